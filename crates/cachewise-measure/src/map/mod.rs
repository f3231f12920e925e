//! The break-even map: an operation with its later use and its bystander, the parts and the whole.

mod cell;

pub use cell::{
    Cell, Core, Figures, Measured, Outcome, Page, Share, Status, Times, USE_UNIT_BYTES, UseKind,
    Victim, Walk,
};
