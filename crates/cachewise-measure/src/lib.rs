//! The scales.
