//! What people read: colour, tables, one line per exchange.

pub(crate) mod exchange;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod run;
pub(crate) mod summary;
pub(crate) mod table;
