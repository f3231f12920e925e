//! Heat maps that need no colour: each cell says who wins by a shape and a striped or a full edge,
//! and by how much in figures. The shade repeats it for the eye that skims.

use super::markup::{Element, element};
use super::picture::{LETTER, Pattern, short, svg, text};

pub(super) struct Heat {
    pub(super) title: String,
    pub(super) description: String,
    /// What the rows are, in columns of their own.
    pub(super) row_names: Vec<String>,
    pub(super) column_name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<(Vec<String>, Vec<Option<Cell>>)>,
}

pub(super) struct Cell {
    /// Above 1: the side of the upward triangle wins.
    pub(super) ratio: f64,
    pub(super) call: Call,
    pub(super) hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Up,
    Down,
    /// No difference.
    Even,
    /// Not enough is known to call it.
    Open,
}

impl Call {
    pub(super) fn sign(self) -> char {
        match self {
            Self::Up => '▲',
            Self::Down => '▼',
            Self::Even => '=',
            Self::Open => '?',
        }
    }
}

const CELL: (f64, f64) = (86.0, 26.0);
const NAME_LETTERS: usize = 24;
const NAME_GAP: usize = 2;
/// A ratio of this much, or of its reciprocal, has the darkest shade.
const DARKEST: f64 = 4.0;

impl Heat {
    pub(super) fn draw(&self) -> Element {
        let widths: Vec<usize> =
            (0..self.row_names.len()).map(|key| self.name_width(key)).collect();
        let letters: usize = widths.iter().map(|width| width + NAME_GAP).sum();
        let left = letters as f64 * LETTER;
        let names = |names: &[String], y: f64| {
            let mut x = 0.0;
            let mut texts = Vec::new();
            for (name, &width) in names.iter().zip(&widths) {
                texts.push(text(x, y, &short(name, NAME_LETTERS)));
                x += (width + NAME_GAP) as f64 * LETTER;
            }
            texts
        };
        let top = 40.0;
        // The column's name may be wider than its columns.
        let columns = self.columns.len() as f64 * CELL.0;
        let width = left + columns.max(self.column_name.chars().count() as f64 * LETTER) + 2.0;
        let height = top + self.rows.len() as f64 * CELL.1 + 4.0;
        let mut picture = svg(width, height, &self.title, &self.description).class("heat");
        picture = picture.child(text(left, 13.0, &self.column_name).class("axis"));
        let titles = names(&self.row_names, 32.0).into_iter().map(|name| name.class("axis"));
        picture = picture.children(titles);
        for (index, name) in self.columns.iter().enumerate() {
            let x = left + index as f64 * CELL.0 + CELL.0 / 2.0;
            let name = text(x, 32.0, &short(name, 11)).with("text-anchor", "middle");
            picture = picture.child(name);
        }
        for (row, (name, cells)) in self.rows.iter().enumerate() {
            let y = top + row as f64 * CELL.1;
            picture = picture.children(names(name, y + 17.0));
            for (column, cell) in cells.iter().enumerate() {
                let x = left + column as f64 * CELL.0;
                if let Some(cell) = cell {
                    picture = picture.child(cell.draw(x, y));
                }
            }
        }
        picture
    }
}

impl Heat {
    fn name_width(&self, key: usize) -> usize {
        let names = self.rows.iter().map(|(names, _)| names).chain([&self.row_names]);
        let letters = names.filter_map(|names| Some(names.get(key)?.chars().count()));
        letters.max().unwrap_or(0).min(NAME_LETTERS)
    }
}

impl Cell {
    fn draw(&self, x: f64, y: f64) -> Element {
        let (width, height) = (CELL.0 - 2.0, CELL.1 - 2.0);
        let strength = (self.ratio.ln().abs() / DARKEST.ln()).clamp(0.0, 1.0) * 0.5 + 0.08;
        let (shade, edge) = match self.call {
            Call::Up => ("up", Some(Pattern::Striped)),
            Call::Down => ("down", Some(Pattern::Full)),
            Call::Even | Call::Open => ("even", None),
        };
        let rect = element("rect")
            .class(format_args!("cell {shade}"))
            .with("x", format_args!("{x:.1}"))
            .with("y", format_args!("{y:.1}"))
            .with("width", width)
            .with("height", height)
            .with("fill-opacity", format_args!("{strength:.2}"));
        let figure = format!("{} {}", self.call.sign(), times(self.ratio));
        let figure = text(x + 4.0 + width / 2.0, y + 16.0, &figure).with("text-anchor", "middle");
        element("g")
            .child(element("title").text(&self.hint))
            .child(rect)
            .children(edge.map(|edge| edge.rect(x, y, 8.0, height)))
            .child(figure)
    }
}

/// A ratio in four letters or five.
fn times(ratio: f64) -> String {
    match ratio {
        ..10.0 => format!("{ratio:.2}x"),
        ..100.0 => format!("{ratio:.1}x"),
        _ => format!("{ratio:.0}x"),
    }
}
