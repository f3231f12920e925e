//! Horizontal bars: one per contender, in parts or whole, with an interval.
//!
//! What belongs to which kind is told by a pattern, not by a colour alone, and every bar's figure is
//! written beside it. One slow contender would press all others into a corner, so bars beyond four
//! times the median length are cut, and say so by a broken end.

use super::markup::{Element, element};
use super::picture::{LETTER, Pattern, short, svg, text};

pub(super) struct Bars {
    pub(super) title: String,
    pub(super) description: String,
    pub(super) bars: Vec<Bar>,
    /// A line across, where this much would end.
    pub(super) reference: Option<f64>,
}

pub(super) struct Bar {
    pub(super) label: String,
    /// One after the other; negative ones are not drawn.
    pub(super) parts: Vec<(Pattern, f64)>,
    pub(super) interval: Option<(f64, f64)>,
    /// Written behind the bar.
    pub(super) figure: String,
    /// Shown by pointing at it.
    pub(super) hint: String,
}

impl Bar {
    fn length(&self) -> f64 {
        self.parts.iter().map(|(_, value)| value.max(0.0)).sum()
    }
}

const WIDTH: f64 = 640.0;
const ROW: f64 = 22.0;
const LABEL_LETTERS: usize = 24;
/// Beyond so many times the median length a bar is cut.
const CUT: f64 = 4.0;
const GAP: f64 = 8.0;

impl Bars {
    pub(super) fn draw(&self) -> Element {
        let letters = |of: fn(&Bar) -> &str, most: usize| {
            let widest = self.bars.iter().map(|bar| of(bar).chars().count()).max();
            widest.unwrap_or(0).min(most) as f64 * LETTER
        };
        let left = letters(|bar| &bar.label, LABEL_LETTERS) + GAP;
        let right = WIDTH - letters(|bar| &bar.figure, usize::MAX) - GAP;
        let width = (right - left).max(40.0);
        let most = self.most();
        let x = |value: f64| left + value.clamp(0.0, most) / most * width;

        let height = self.bars.len() as f64 * ROW + 4.0;
        let mut picture = svg(WIDTH, height, &self.title, &self.description);
        for (index, bar) in self.bars.iter().enumerate() {
            picture = picture.child(bar.draw(index as f64 * ROW + 2.0, left, &x, most));
        }
        if let Some(reference) = self.reference.filter(|&reference| reference < most) {
            let at = format!("{:.1}", x(reference));
            let line = element("line").class("reference");
            let line = line.with("x1", &at).with("x2", &at).with("y1", 0).with("y2", height);
            picture = picture.child(line);
        }
        picture
    }

    /// Where the scale ends.
    fn most(&self) -> f64 {
        let mut lengths: Vec<f64> = self.bars.iter().map(Bar::length).collect();
        lengths.sort_by(f64::total_cmp);
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
        let longest = lengths.last().copied().unwrap_or(0.0);
        let ends = self.bars.iter().filter_map(|bar| bar.interval.map(|(_, high)| high));
        let most = ends.fold(longest, f64::max).min(median * CUT);
        if most > 0.0 { most } else { 1.0 }
    }
}

impl Bar {
    fn draw(&self, y: f64, left: f64, x: &dyn Fn(f64) -> f64, most: f64) -> Element {
        let mut group = element("g");
        group = group.child(element("title").text(format_args!("{}: {}", self.label, self.hint)));
        let middle = y + ROW / 2.0 + 4.0;
        group = group.child(text(0.0, middle, &short(&self.label, LABEL_LETTERS)));
        let mut from = 0.0;
        for (pattern, value) in &self.parts {
            let to = from + value.max(0.0);
            let (begin, end) = (x(from), x(to));
            if end > begin {
                let part = pattern.rect(begin, y + 3.0, end - begin, ROW - 8.0);
                group = group.child(part);
            }
            from = to;
        }
        let mut end = x(from);
        if from > most {
            let (a, b) = (end - 9.0, end - 3.0);
            let (top, low) = (y + 1.0, y + ROW - 3.0);
            let path = format!("M{a:.1} {low:.1}L{b:.1} {top:.1}H{:.1}L{a:.1} {low:.1}Z", b + 4.0);
            group = group.child(element("path").class("break").with("d", path));
        }
        if let Some((low, high)) = self.interval.filter(|_| from <= most) {
            let (low, high, y) = (x(low), x(high), y + ROW / 2.0 - 1.0);
            end = end.max(high);
            let (top, bottom) = (y - 4.0, y + 4.0);
            let path = format!(
                "M{low:.1} {top:.1}V{bottom:.1}M{low:.1} {y:.1}H{high:.1}M{high:.1} {top:.1}V{bottom:.1}"
            );
            group = group.child(element("path").class("interval").with("d", path));
        }
        group.child(text(end.max(left) + GAP, middle, &self.figure))
    }
}
