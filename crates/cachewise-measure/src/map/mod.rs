//! The break-even map: an operation with its later use and its bystander, the parts and the whole.

mod break_even;
mod cell;
mod run;
mod step;

pub use break_even::{BreakEven, Crossing, Duel, Finding, Side, break_even, duel, is_nontemporal};
pub use cell::{
    Cell, Core, Figures, Measured, Outcome, Share, Status, Times, USE_UNIT_BYTES, UseKind, Victim,
    Walk,
};
pub use run::{Soil, measure};
