//! The vocabulary of failure. No I/O.

pub mod facts;
pub mod fault;
pub mod plan;
pub mod rule;
