//! Values that are words.

/// Each value is a word, in messages and in results, and read back from it.
macro_rules! words {
    ($($type:ident: $kind:literal { $($value:ident => $word:literal),* })*) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $(Self::$value => $word),* })
            }
        }

        impl std::str::FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($word => Ok(Self::$value),)*
                    _ => Err(format!(
                        concat!("\"{}\" is no ", $kind, "; there are: {}"),
                        text,
                        [$($word),*].join(", ")
                    )),
                }
            }
        }
    )*};
}

pub(crate) use words;
