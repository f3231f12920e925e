//! Heat maps that need no colour: each cell says who wins by a shape and a striped or a full edge,
//! by how much in figures, and by its name where the row is not that. The shade repeats it for the
//! eye that skims.

use super::markup::{Element, element};
use super::picture::{LETTER, Pattern, SMALL_LETTER, short, svg, text};

pub(super) struct Heat {
    pub(super) title: String,
    pub(super) description: String,
    /// What the rows are, in columns of their own.
    pub(super) row_names: Vec<String>,
    pub(super) column_name: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Row>,
}

pub(super) struct Row {
    pub(super) names: Vec<String>,
    /// Where on the page there is more about it.
    pub(super) link: Option<String>,
    pub(super) cells: Vec<Option<Cell>>,
}

#[derive(Clone)]
pub(super) struct Cell {
    /// Above 1: the side of the upward triangle wins.
    pub(super) ratio: f64,
    pub(super) call: Call,
    /// Who wins; empty if nobody does, or the row says it.
    pub(super) winner: String,
    pub(super) hint: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Up,
    Down,
    /// No difference.
    Even,
    /// Too noisy, or too few samples, to call it: then the figure means nothing.
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
/// The line of the winner.
const WINNER: f64 = 13.0;
const EDGE: f64 = 8.0;
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
        let size = self.cell_size();
        // The column's name may be wider than its columns.
        let columns = self.columns.len() as f64 * size.0;
        let width = left + columns.max(self.column_name.chars().count() as f64 * LETTER) + 2.0;
        let height = top + self.rows.len() as f64 * size.1 + 4.0;
        let mut picture = svg(width, height, &self.title, &self.description).class("heat");
        picture = picture.child(text(left, 13.0, &self.column_name).class("axis"));
        let titles = names(&self.row_names, 32.0).into_iter().map(|name| name.class("axis"));
        picture = picture.children(titles);
        for (index, name) in self.columns.iter().enumerate() {
            let x = left + index as f64 * size.0 + size.0 / 2.0;
            let name = text(x, 32.0, &short(name, 11)).with("text-anchor", "middle");
            picture = picture.child(name);
        }
        for (index, row) in self.rows.iter().enumerate() {
            let y = top + index as f64 * size.1;
            let names = names(&row.names, y + size.1 / 2.0 + 4.0);
            picture = match &row.link {
                Some(to) => picture.child(element("a").with("href", to).children(names)),
                None => picture.children(names),
            };
            for (column, cell) in row.cells.iter().enumerate() {
                let x = left + column as f64 * size.0;
                picture = picture.children(cell.as_ref().map(|cell| cell.draw(x, y, size)));
            }
        }
        picture
    }

    /// As wide as the longest winner's name, and higher by its line.
    fn cell_size(&self) -> (f64, f64) {
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let letters = cells.map(|cell| cell.winner.chars().count()).max().unwrap_or(0);
        match letters.min(NAME_LETTERS) {
            0 => CELL,
            letters => {
                let width = letters as f64 * SMALL_LETTER + EDGE + 4.0;
                (width.max(CELL.0), CELL.1 + WINNER)
            }
        }
    }

    fn name_width(&self, key: usize) -> usize {
        let names = self.rows.iter().map(|row| &row.names).chain([&self.row_names]);
        let letters = names.filter_map(|names| Some(names.get(key)?.chars().count()));
        letters.max().unwrap_or(0).min(NAME_LETTERS)
    }
}

impl Cell {
    fn draw(&self, x: f64, y: f64, size: (f64, f64)) -> Element {
        let (width, height) = (size.0 - 2.0, size.1 - 2.0);
        let (shade, edge) = match self.call {
            Call::Up => ("up", Some(Pattern::Striped)),
            Call::Down => ("down", Some(Pattern::Full)),
            Call::Even | Call::Open => ("even", None),
        };
        let strength = match self.call {
            Call::Open => 0.0,
            _ => (self.ratio.ln().abs() / DARKEST.ln()).clamp(0.0, 1.0) * 0.5 + 0.08,
        };
        let rect = element("rect")
            .class(format_args!("cell {shade}"))
            .with("x", format_args!("{x:.1}"))
            .with("y", format_args!("{y:.1}"))
            .with("width", format_args!("{width:.1}"))
            .with("height", format_args!("{height:.1}"))
            .with("fill-opacity", format_args!("{strength:.2}"));
        let figure = match self.call {
            Call::Open => self.call.sign().to_string(),
            call => format!("{} {}", call.sign(), times(self.ratio)),
        };
        let middle =
            |y, words: &str| text(x + (EDGE + width) / 2.0, y, words).with("text-anchor", "middle");
        let first = if self.winner.is_empty() { y + size.1 / 2.0 + 3.0 } else { y + 16.0 };
        let winner = (!self.winner.is_empty())
            .then(|| middle(y + 30.0, &short(&self.winner, NAME_LETTERS)).class("small"));
        element("g")
            .child(element("title").text(&self.hint))
            .child(rect)
            .children(edge.map(|edge| edge.rect(x, y, EDGE, height)))
            .child(middle(first, &figure))
            .children(winner)
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
