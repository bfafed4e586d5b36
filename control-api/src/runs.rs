//! Runs: what is demanded of an agent, tried under chaos, and judged.

pub(crate) mod demands;
