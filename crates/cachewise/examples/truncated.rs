//! A file is mapped and read; another process truncates it. The reader says how far it got instead
//! of dying of SIGBUS (case 16).
//!
//! ```text
//! cargo run --example truncated
//! ```

#[cfg(all(target_arch = "x86_64", target_os = "linux", feature = "std", not(cachewise_portable)))]
mod linux {
    use cachewise::fallible::{self, Fault};
    use std::fs::File;
    use std::io::{self, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::process::Command;
    use std::ptr::null_mut;

    const LEN_BYTES: usize = 64 << 20;
    const CUT_BYTES: usize = 20_000_000;
    /// What the reader takes at a time.
    const BUFFER_BYTES: usize = 1 << 20;

    /// A mapping is no slice: a reference to memory that others take away is undefined behaviour.
    struct Mapping {
        first: *const u8,
        len_bytes: usize,
    }

    impl Mapping {
        fn new(file: &File, len_bytes: usize) -> io::Result<Self> {
            let (read, shared, fd) = (libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd());
            // SAFETY: a new mapping, at an address of the kernel's choice.
            let first = unsafe { libc::mmap(null_mut(), len_bytes, read, shared, fd, 0) };
            if first == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(Self { first: first.cast(), len_bytes })
        }

        /// Fills the buffer from `offset`. What is there is copied, also when the rest is not.
        fn read(&self, offset: usize, buffer: &mut [u8]) -> Result<(), Fault> {
            assert!(offset <= self.len_bytes && buffer.len() <= self.len_bytes - offset);
            // SAFETY: the buffer is borrowed exclusively and no part of the mapping. That the file
            // may have become shorter is what the call is for.
            unsafe { fallible::try_copy(buffer.as_mut_ptr(), self.first.add(offset), buffer.len()) }
        }
    }

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: our own mapping, which nobody else knows.
            unsafe { libc::munmap(self.first.cast_mut().cast(), self.len_bytes) };
        }
    }

    /// Reads it all; an error comes with the offset it is at.
    fn read_all(mapping: &Mapping, buffer: &mut [u8]) -> Result<(), (usize, Fault)> {
        for offset in (0..mapping.len_bytes).step_by(buffer.len()) {
            mapping.read(offset, buffer).map_err(|fault| (offset + fault.copied_bytes(), fault))?;
        }
        Ok(())
    }

    pub(super) fn main() -> Result<(), Box<dyn std::error::Error>> {
        fallible::install()?;

        let path = std::env::temp_dir().join(format!("cachewise-truncated-{}", std::process::id()));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
        file.write_all(&vec![b'x'; LEN_BYTES])?;
        let mapping = Mapping::new(&file, LEN_BYTES)?;
        println!("{LEN_BYTES} bytes are mapped");

        let mut buffer = vec![0; BUFFER_BYTES];
        if let Err((offset, fault)) = read_all(&mapping, &mut buffer) {
            return Err(format!("nobody has truncated it yet, but at {offset}: {fault}").into());
        }
        println!("all of them are read");

        let size = format!("--size={CUT_BYTES}");
        let mut truncating = Command::new("truncate").arg(size).arg(&path).spawn()?;
        println!("process {} truncates the file to {CUT_BYTES}", truncating.id());
        let (offset, fault) = loop {
            if let Err(stopped) = read_all(&mapping, &mut buffer) {
                break stopped;
            }
            if truncating.try_wait()?.is_some_and(|status| !status.success()) {
                return Err("it could not be truncated".into());
            }
        };
        truncating.wait()?;
        println!("the reader got to byte {offset}; in the last piece: {fault}");

        // The kernel takes away the pages behind the new end; the page it is in stays.
        match read_all(&mapping, &mut buffer) {
            Err((offset, _)) => println!("from now on to byte {offset}, the end of its page"),
            Ok(()) => println!("and now it can be read again"),
        }
        std::fs::remove_file(path)?;
        println!("and lives");
        Ok(())
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux", feature = "std", not(cachewise_portable)))]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    linux::main()
}

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    feature = "std",
    not(cachewise_portable)
)))]
fn main() {
    println!("needs x86-64 Linux and feature std");
}
