//! Providers wire formats and one neutral model call. No I/O.

pub mod model;
