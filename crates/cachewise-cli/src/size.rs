//! Sizes, in and out.
//!
//! Input takes KiB, MiB, GiB, their first letters, or plain bytes. KB and MB are refused: half of
//! the world means 1000 by them.

use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Size(pub(crate) usize);

const UNITS: [(&str, &str, u32); 4] =
    [("GiB", "G", 30), ("MiB", "M", 20), ("KiB", "K", 10), ("B", "", 0)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad =
            || format!("\"{text}\" is not a size; write bytes or a number with KiB, MiB, GiB");
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let unit = unit.trim_start();
        let is_it = |word: &str| unit.eq_ignore_ascii_case(word);
        let (.., shift) = UNITS
            .into_iter()
            .find(|(long, short, _)| is_it(long) || is_it(short))
            .ok_or_else(bad)?;
        let number: usize = number.parse().map_err(|_| bad())?;
        let bytes = number.checked_mul(1 << shift).filter(|&bytes| isize::try_from(bytes).is_ok());
        bytes.map(Self).ok_or_else(|| format!("\"{text}\" is more than any memory holds"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0 as u64).fmt(f)
    }
}

impl Size {
    pub(crate) fn short(self) -> String {
        Bytes(self.0 as u64).short()
    }
}

/// An amount to be shown. A 32-bit program, too, may sit in more memory than it can address.
#[derive(Clone, Copy)]
pub(crate) struct Bytes(pub(crate) u64);

/// In the largest unit that divides it, so that no size reads like another.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits =
            |&(_, _, shift): &(_, _, u32)| self.0 >= 1 << shift && self.0.trailing_zeros() >= shift;
        let (unit, _, shift) = UNITS.into_iter().find(fits).unwrap_or(UNITS[3]);
        f.pad(&format!("{} {unit}", self.0 >> shift))
    }
}

impl Bytes {
    /// In at most four digits and a tenth: exact where that suffices.
    pub(crate) fn short(self) -> String {
        let exact = self.to_string();
        let digits = exact.bytes().filter(u8::is_ascii_digit).count();
        let fits = |&(_, _, shift): &(_, _, u32)| self.0 >= 1 << shift;
        match UNITS.into_iter().find(fits) {
            Some((unit, _, shift)) if digits > 4 => {
                format!("{:.1} {unit}", self.0 as f64 / (1_u64 << shift) as f64)
            }
            _ => exact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_way_that_is_promised() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("64B", 64),
            ("4K", 4096),
            ("4 KiB", 4096),
            ("2m", 2 << 20),
            ("3GiB", 3 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "K", "4KB", "1.5M", "-1", "4KiBs", "99999999999G", "18446744073709551616"]
        {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn short_sizes_are_exact_where_they_can_be() {
        for (bytes, text) in [(0, "0 B"), (1100, "1100 B"), (4095 << 20, "4095 MiB")] {
            assert_eq!(Size(bytes).short(), text);
        }
        assert_eq!(Size(25_276_502_016).short(), "23.5 GiB");
    }

    #[test]
    fn sizes_written_read_back_the_same() {
        for (bytes, text) in
            [(0, "0 B"), (100, "100 B"), (1024, "1 KiB"), (5000, "5000 B"), (3 << 30, "3 GiB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Size(bytes)));
        }
    }
}
