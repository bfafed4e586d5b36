//! Texts and tool calls that say something else: pure functions from what a model wrote to what it
//! is made to have written.

pub(crate) mod drift;
pub(crate) mod tools;
pub(crate) mod words;
