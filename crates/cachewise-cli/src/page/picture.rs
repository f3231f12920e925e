//! What all pictures share: the frame, texts that fit, the patterns.

use super::markup::{Element, element};
use std::fmt::Display;

/// The width of a letter: the font is monospaced, so that widths are known here.
pub(super) const LETTER: f64 = 7.3;
/// The same of the small letters.
pub(super) const SMALL_LETTER: f64 = 6.1;

/// A picture that scales, with the words for those who do not see it.
pub(super) fn svg(width: f64, height: f64, title: &str, description: &str) -> Element {
    element("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("role", "img")
        .with("aria-label", title)
        .with("viewBox", format_args!("0 0 {width:.0} {height:.0}"))
        .with("width", format_args!("{width:.0}"))
        .child(element("title").text(title))
        .child(element("desc").text(description))
}

pub(super) fn text(x: f64, y: f64, text: &str) -> Element {
    element("text").with("x", format_args!("{x:.1}")).with("y", format_args!("{y:.1}")).text(text)
}

/// At most so many letters: the beginning and the end.
pub(super) fn short(text: &str, letters: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= letters {
        return text.to_owned();
    }
    let end = letters / 2;
    let begin = letters.saturating_sub(end + 1);
    all[..begin].iter().chain(&['…']).chain(&all[all.len() - end..]).collect()
}

/// How an area is filled, so that it can be told from others without its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    Full,
    Striped,
    Dotted,
    Crossed,
    Empty,
}

const PATTERNS: [Pattern; 5] =
    [Pattern::Full, Pattern::Striped, Pattern::Dotted, Pattern::Crossed, Pattern::Empty];

impl Pattern {
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Striped => "striped",
            Self::Dotted => "dotted",
            Self::Crossed => "crossed",
            Self::Empty => "empty",
        }
    }

    pub(super) fn rect(self, x: f64, y: f64, width: f64, height: f64) -> Element {
        element("rect")
            .class(format_args!("area {}", self.name()))
            .with("x", format_args!("{x:.1}"))
            .with("y", format_args!("{y:.1}"))
            .with("width", format_args!("{width:.1}"))
            .with("height", format_args!("{height:.1}"))
            .with("fill", format_args!("url(#{})", self.name()))
    }

    /// A sample of it with its meaning.
    pub(super) fn key(self, meaning: impl Display) -> Element {
        let sample = element("svg")
            .with("width", 28)
            .with("height", 14)
            .with("aria-hidden", "true")
            .child(self.rect(1.0, 1.0, 26.0, 12.0));
        element("li").child(sample).text(format_args!(" {meaning}"))
    }

    fn drawing(self) -> Option<&'static str> {
        match self {
            Self::Full | Self::Empty => None,
            Self::Striped => Some("M-1 1L1 -1M0 6L6 0M5 7L7 5"),
            Self::Dotted => Some("M1.5 1.5h1.5v1.5h-1.5zM4.5 4.5h1.5v1.5h-1.5z"),
            Self::Crossed => Some("M0 0L6 6M0 6L6 0"),
        }
    }
}

/// The patterns, once for the whole page.
pub(super) fn patterns() -> Element {
    let pattern = |pattern: Pattern| {
        let ground = element("rect")
            .class(format_args!("ground-{}", pattern.name()))
            .with("width", 6)
            .with("height", 6);
        let drawing = pattern.drawing().map(|path| {
            element("path").class(format_args!("ink-{}", pattern.name())).with("d", path)
        });
        element("pattern")
            .with("id", pattern.name())
            .with("width", 6)
            .with("height", 6)
            .with("patternUnits", "userSpaceOnUse")
            .child(ground)
            .children(drawing)
    };
    element("svg")
        .class("patterns")
        .with("width", 0)
        .with("height", 0)
        .with("aria-hidden", "true")
        .child(element("defs").children(PATTERNS.map(pattern)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_keep_both_ends() {
        assert_eq!(short("memcpy", 6), "memcpy");
        assert_eq!(short("./libfoo.so:my_memcpy", 9), "./li…mcpy");
        assert_eq!(short("µµµµ", 3), "µ…µ");
        assert_eq!(short("abc", 0), "…");
    }
}
