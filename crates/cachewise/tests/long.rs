//! Lengths above 4 GiB (case 6: once truncated to 32 bits), in a few MiB of memory: small files
//! mapped again and again over the range.
//!
//! The destination's parts below and above 4 GiB, and its first and last page, are files of their
//! own, so that what a truncated length leaves out shows. No file's size divides 4 GiB, so a
//! truncated index reads the wrong byte.

mod common;

#[cfg(not(all(target_os = "linux", target_pointer_width = "64", not(miri))))]
#[test]
#[ignore = "needs a 64-bit Linux: memfd_create"]
fn long() {}

#[cfg(all(target_os = "linux", target_pointer_width = "64", not(miri)))]
mod linux {
    use super::common::{Handle, Rng, exclusive, for_each_variant, title};
    use super::say;
    use cachewise::variant::Variant;
    use cachewise::{bytes, variant};
    use std::collections::HashSet;
    use std::fs::File;
    use std::ops::Range;
    use std::os::fd::{AsRawFd as _, FromRawFd as _};
    use std::os::unix::fs::FileExt as _;
    use std::ptr::null_mut;
    use std::time::Instant;

    const PAGE: usize = 4096;
    const FOUR_GIB: usize = 1 << 32;
    /// 4.5 GiB and a partial page.
    const END: usize = FOUR_GIB + (1 << 29);
    const DST_OFFSET: usize = 3;
    const SRC_OFFSET: usize = 5;
    /// In the last page.
    const TAIL: usize = 77;
    const LEN: usize = END + TAIL - DST_OFFSET;

    /// Address space that ends in a page which cannot be touched.
    struct Space {
        first: *mut u8,
        len: usize,
    }

    impl Space {
        fn new() -> Self {
            let len = END + 2 * PAGE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: a new mapping, at an address of the kernel's choice.
            let first = unsafe { libc::mmap(null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
            assert!(first != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
            Self { first: first.cast(), len }
        }

        /// Maps the file over the range as often as it takes.
        fn cover(&self, range: Range<usize>, file: &Small) {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE;
            for at in range.clone().step_by(file.len) {
                let len = file.len.min(range.end - at);
                let fd = file.file.as_raw_fd();
                // SAFETY: replaces a part of our own mapping.
                let map =
                    unsafe { libc::mmap(self.first.add(at).cast(), len, protection, flags, fd, 0) };
                assert!(map != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
            }
        }
    }

    impl Drop for Space {
        fn drop(&mut self) {
            // SAFETY: exactly our mapping.
            unsafe { libc::munmap(self.first.cast(), self.len) };
        }
    }

    /// A file in memory.
    struct Small {
        file: File,
        len: usize,
    }

    impl Small {
        fn new(pages: usize) -> Self {
            // SAFETY: a valid C string.
            let fd = unsafe { libc::memfd_create(c"cachewise-test".as_ptr(), libc::MFD_CLOEXEC) };
            assert!(fd >= 0, "memfd_create: {}", std::io::Error::last_os_error());
            // SAFETY: nobody else owns it.
            let file = unsafe { File::from_raw_fd(fd) };
            let small = Self { file, len: pages * PAGE };
            small.write(&vec![0; small.len]);
            small
        }

        fn write(&self, bytes: &[u8]) {
            self.file.write_all_at(bytes, 0).expect("a file in memory can be written");
        }

        fn read(&self) -> Vec<u8> {
            let mut bytes = vec![0; self.len];
            self.file.read_exact_at(&mut bytes, 0).expect("a file in memory can be read");
            bytes
        }
    }

    /// The destination's parts and the file under each.
    struct Stage {
        dst: Space,
        src: Space,
        parts: [(Range<usize>, Small); 4],
        pattern: Vec<u8>,
    }

    impl Stage {
        fn new() -> Self {
            let (dst, src) = (Space::new(), Space::new());
            let mut pattern = vec![0; 300 * PAGE];
            Rng::new(51).fill(&mut pattern);
            let source = Small::new(300);
            source.write(&pattern);
            src.cover(0..END + PAGE, &source);
            let parts = [
                (0..PAGE, Small::new(1)),
                (PAGE..FOUR_GIB, Small::new(257)),
                (FOUR_GIB..END, Small::new(131)),
                (END..END + PAGE, Small::new(1)),
            ];
            parts.iter().for_each(|(range, file)| dst.cover(range.clone(), file));
            Self { dst, src, parts, pattern }
        }

        /// Runs `call(dst, src)`, which must leave `expected(i)` in each byte `i` of its range.
        #[track_caller]
        fn check(
            &self,
            subject: &str,
            expected: impl Fn(usize) -> u8,
            call: impl FnOnce(*mut u8, *const u8),
        ) {
            let poison = 0x77;
            for (_, file) in &self.parts {
                file.write(&vec![poison; file.len]);
            }
            // SAFETY: inside the spaces.
            let (dst, src) =
                unsafe { (self.dst.first.add(DST_OFFSET), self.src.first.add(SRC_OFFSET)) };
            call(dst, src);
            for (range, file) in &self.parts {
                for (j, found) in file.read().into_iter().enumerate() {
                    // The last place in the range that shows this byte of the file.
                    let last = range.end - 1;
                    let at = last - (last - range.start - j) % file.len;
                    let inside = (DST_OFFSET..DST_OFFSET + LEN).contains(&at);
                    let right = if inside { expected(at - DST_OFFSET) } else { poison };
                    assert_eq!(found, right, "{subject}: offset {at:#x} of {LEN:#x}");
                }
            }
        }

        #[track_caller]
        fn check_copy(&self, subject: &str, call: impl FnOnce(*mut u8, *const u8)) {
            let pattern = &self.pattern;
            self.check(subject, |i| pattern[(i + SRC_OFFSET) % pattern.len()], call);
        }
    }

    /// Of those that are alike in what they do, the first.
    fn representatives() -> HashSet<*const Variant> {
        let mut kinds = HashSet::new();
        let kind = |v: &Variant| {
            (v.operation(), v.store(), v.registers(), v.stores_once(), v.recoverable())
        };
        let first = super::common::available().filter(|v| kinds.insert(kind(v)));
        first.map(std::ptr::from_ref).collect()
    }

    #[test]
    fn lengths_above_4_gib() {
        let _alone = exclusive();
        let stage = Stage::new();
        let chosen = representatives();
        let begin = Instant::now();
        let ran = for_each_variant(
            |v| chosen.contains(&std::ptr::from_ref(v)),
            |variant| match Handle::of(variant) {
                Handle::Copy(copier) => stage.check_copy(&title(variant), |dst, src| {
                    // SAFETY: both spaces are mapped over the length.
                    unsafe { copier.copy_raw(dst, src, LEN) }
                }),
                Handle::Clear(clearer) => stage.check(
                    &title(variant),
                    |_| 0xa5,
                    |dst, _| {
                        // SAFETY: as above.
                        unsafe { clearer.fill_raw(dst, 0xa5, LEN) }
                    },
                ),
            },
        );
        stage.check_copy("copy_nontemporal", |dst, src| {
            // SAFETY: as above.
            unsafe { bytes::copy_nontemporal_raw(dst, src, LEN) }
        });
        stage.check(
            "clear_auto",
            |_| 0,
            |dst, _| {
                // SAFETY: as above.
                unsafe { bytes::clear_auto_raw(dst, LEN, cachewise::Hints::new()) }
            },
        );
        let of = variant::all().len();
        let seconds = begin.elapsed().as_secs_f32();
        say!("long: {ran} kinds of {of} variants, and two calls, in {seconds:.1} s");
    }
}
