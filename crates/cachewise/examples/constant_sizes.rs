//! Copies of a constant size of 1, 2, 4 or 8 bytes are single moves in the caller's own code: no
//! call, no branch, no look at the switch (the final form of the 2005 patches had this, too).
//!
//! The functions below have names of their own so that they can be looked at:
//!
//! ```text
//! cargo build --release --example constant_sizes
//! objdump -d --disassemble=copy_8 target/release/examples/constant_sizes
//! ```
//!
//! shows, on x86-64,
//!
//! ```text
//! mov    (%rsi),%rax
//! mov    %rax,(%rdi)
//! ret
//! ```

/// A copy of a constant size, out of line under its own name.
macro_rules! constant_size {
    ($($name:ident: $bytes:literal),*) => {$(
        #[inline(never)]
        #[unsafe(no_mangle)]
        extern "C" fn $name(dst: &mut [u8; $bytes], src: &[u8; $bytes]) {
            cachewise::copy(dst, src);
        }
    )*};
}

constant_size!(copy_1: 1, copy_2: 2, copy_4: 4, copy_8: 8);

fn main() {
    let (mut one, mut two, mut four, mut eight) = ([0; 1], [0; 2], [0; 4], [0; 8]);
    copy_1(&mut one, &[1; 1]);
    copy_2(&mut two, &[2; 2]);
    copy_4(&mut four, &[4; 4]);
    copy_8(&mut eight, &[8; 8]);
    assert_eq!((one, two, four, eight), ([1; 1], [2; 2], [4; 4], [8; 8]));
    println!("copied; now look at copy_1, copy_2, copy_4 and copy_8 in this binary");
}
