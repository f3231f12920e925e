//! What recovery costs: a recoverable copy beside the plain call of the same variant, and beside
//! what programs do instead when their memory may not be there. Prints docs/faults.md's table.
//!
//! `cargo bench -p cachewise-measure --bench faults`
//!
//! The source is a file in memory, mapped, so that `pread` has something to read. All contestants
//! of a size take turns in shuffled order; figures are medians over rounds, ratios are paired within
//! rounds. Cold cases walk through a range larger than the last-level cache.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() {
    linux::main();
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {
    println!("not measured here: recovery is for Linux on x86-64");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux {
    use cachewise::fallible;
    use cachewise::switch::{self, Slot};
    use cachewise::variant::Copier;
    use cachewise_measure::Samples;
    use std::ptr;
    use std::time::Instant;

    const RANGE_BYTES: usize = 256 << 20;
    const SIZES_BYTES: [usize; 7] = [8, 64, 512, 4 << 10, 64 << 10, 256 << 10, 1 << 20];
    const ROUNDS: usize = 41;
    const SAMPLE_BYTES: usize = 4 << 20;
    const CALLS_MAX: usize = 20_000;
    const PAGE_BYTES: usize = 4096;

    /// A copy of `len` bytes of the file from `offset` to the same offset of the destination.
    type Way = (&'static str, Box<dyn Fn(usize, usize)>);

    pub(crate) fn main() {
        fallible::install().expect("the handlers can be installed");
        let variant = switch::get(Slot::Copy);
        let copier = variant.copier().expect("what serves a slot can run");
        let file = File::new(RANGE_BYTES);
        let dst = map(RANGE_BYTES, -1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the destination is a mapping of that length.
        unsafe { ptr::write_bytes(dst, 1, RANGE_BYTES) };
        println!("variant: {}\n", variant.name());
        println!(
            "| size | | plain, ns | recoverable: ratio | process_vm_readv | bytewise volatile | pread |"
        );
        println!("|---|---|---|---|---|---|---|");
        let ways = ways(copier, file, dst);
        for cold in [false, true] {
            for len in SIZES_BYTES {
                row(&ways, len, cold);
            }
        }
        println!();
        recovery(copier, dst);
    }

    struct File {
        fd: i32,
        mapped: *const u8,
    }

    impl File {
        fn new(len_bytes: usize) -> Self {
            // SAFETY: a valid name and no flags.
            let fd = unsafe { libc::memfd_create(c"source".as_ptr(), 0) };
            assert!(fd >= 0, "no file in memory: {}", std::io::Error::last_os_error());
            // SAFETY: a valid descriptor.
            assert_eq!(unsafe { libc::ftruncate(fd, len_bytes as i64) }, 0);
            let mapped = map(len_bytes, fd, libc::MAP_SHARED);
            for offset in (0..len_bytes).step_by(8) {
                // SAFETY: inside the mapping.
                unsafe { mapped.add(offset).cast::<usize>().write(offset ^ 0x5a5a) };
            }
            Self { fd, mapped }
        }
    }

    fn map(len_bytes: usize, fd: i32, flags: i32) -> *mut u8 {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place of the kernel's choice.
        let memory = unsafe { libc::mmap(ptr::null_mut(), len_bytes, protection, flags, fd, 0) };
        assert_ne!(memory, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        memory.cast()
    }

    fn ways(copier: Copier, file: File, dst: *mut u8) -> [Way; 5] {
        let File { fd, mapped: src } = file;
        let at = move |offset: usize| (dst.wrapping_add(offset), src.wrapping_add(offset));
        [
            (
                "plain",
                Box::new(move |offset, len| {
                    let (dst, src) = at(offset);
                    // SAFETY: both ranges are inside their mappings.
                    unsafe { copier.copy_raw(dst, src, len) }
                }),
            ),
            (
                "recoverable",
                Box::new(move |offset, len| {
                    let (dst, src) = at(offset);
                    // SAFETY: as above.
                    unsafe { copier.try_copy_raw(dst, src, len) }.expect("all of it is there");
                }),
            ),
            (
                "process_vm_readv",
                Box::new(move |offset, len| {
                    let (dst, src) = at(offset);
                    let to = libc::iovec { iov_base: dst.cast(), iov_len: len };
                    let from = libc::iovec { iov_base: src.cast_mut().cast(), iov_len: len };
                    // SAFETY: as above; the process is this one.
                    let read =
                        unsafe { libc::process_vm_readv(libc::getpid(), &to, 1, &from, 1, 0) };
                    assert_eq!(read, len as isize);
                }),
            ),
            (
                "bytewise volatile",
                Box::new(move |offset, len| {
                    let (dst, src) = at(offset);
                    for i in 0..len {
                        // SAFETY: as above.
                        unsafe { dst.add(i).write_volatile(src.add(i).read_volatile()) };
                    }
                }),
            ),
            (
                "pread",
                Box::new(move |offset, len| {
                    let (dst, _) = at(offset);
                    // SAFETY: the destination range is inside its mapping.
                    let read = unsafe { libc::pread(fd, dst.cast(), len, offset as i64) };
                    assert_eq!(read, len as isize);
                }),
            ),
        ]
    }

    fn row(ways: &[Way], len: usize, cold: bool) {
        let calls = (SAMPLE_BYTES / len).clamp(1, CALLS_MAX);
        let pieces = RANGE_BYTES / len;
        let mut next = 0;
        let mut times = vec![Vec::new(); ways.len()];
        let mut order: Vec<usize> = (0..ways.len()).collect();
        for round in 0..ROUNDS {
            order.rotate_left(1);
            order.swap(0, round % ways.len());
            for &index in &order {
                let way = &ways[index].1;
                let started = Instant::now();
                for _ in 0..calls {
                    way(if cold { next % pieces * len } else { 0 }, len);
                    next += 1;
                }
                times[index].push(started.elapsed().as_nanos() as f64 / calls as f64);
            }
        }
        let samples: Vec<Samples> = times.into_iter().map(|t| Samples::new(vec![t])).collect();
        let plain = samples[0].estimate(1).expect("there are samples").median;
        print!("| {len} | {} | {plain:.1} |", if cold { "cold" } else { "hot" });
        for other in &samples[1..] {
            let ratio = other.ratio(&samples[0]).estimate(1).expect("there are samples");
            print!(" {:.2} ({:.2} to {:.2}) |", ratio.median, ratio.low, ratio.high);
        }
        println!();
    }

    /// The time of one recovery: a copy of 128 bytes whose source ends after some.
    fn recovery(copier: Copier, dst: *mut u8) {
        let src = map(2 * PAGE_BYTES, -1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let end = src.wrapping_add(PAGE_BYTES);
        // SAFETY: the second page of a mapping of two.
        assert_eq!(unsafe { libc::mprotect(end.cast(), PAGE_BYTES, libc::PROT_NONE) }, 0);
        for present in [0, 1, 64] {
            let mut times = Vec::new();
            for _ in 0..ROUNDS {
                let started = Instant::now();
                for _ in 0..1000 {
                    // SAFETY: the destination is ours; the source may fault.
                    let fault = unsafe { copier.try_copy_raw(dst, end.wrapping_sub(present), 128) };
                    assert_eq!(fault.unwrap_err().copied_bytes(), present);
                }
                times.push(started.elapsed().as_secs_f64() * 1e6 / 1000.0);
            }
            let time = Samples::new(vec![times]).estimate(1).expect("there are samples");
            println!(
                "one recovery, {present} of 128 bytes there: {:.1} µs ({:.1} to {:.1})",
                time.median, time.low, time.high
            );
        }
    }
}
