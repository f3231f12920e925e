//! The break-even map: an operation with its later use and its bystander, the parts and the whole.

mod break_even;
mod cell;
mod plan;
mod run;
mod step;
mod survey;

pub use break_even::{BreakEven, Crossing, Duel, Finding, Side, break_even, duel, is_nontemporal};
pub use cell::{
    Cell, Core, Figures, Measured, Misses, Outcome, Share, Status, Times, USE_UNIT_BYTES, UseKind,
    Victim, Walk,
};
pub use plan::{Axes, Axis};
pub use run::{Soil, measure};
pub use survey::{End, Progress, Survey};
pub(crate) use survey::{scores, screen};
