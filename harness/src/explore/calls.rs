//! Exploration over calls: which fault on which of the agent's calls makes an invariant fail?
//!
//! ```text
//! clean run ──▶ calls × faults = points ──▶ executed ──▶ calls that only occur under a fault: more points
//!                                               └──▶ pairs of points on different logical calls
//! ```
//!
//! This is Filibuster's search (Meiklejohn et al., 2021), breadth first. It plans points and reads results; the runner
//! executes them.

mod call;
mod fault;
mod search;
#[cfg(test)]
mod tests;

pub(crate) use self::call::{calls, names_after_fault};
pub(crate) use self::fault::profile;
pub(crate) use self::search::{CallSearch, Planned, PointResult};
