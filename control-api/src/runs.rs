//! Runs: what is demanded of an agent, tried under chaos, and judged.
//!
//! A run is executed by the daemon that took it. What is posted becomes a spec; the [registry](Runs)
//! writes it, holds it until it is its turn and, where the config wants that, until somebody approves it; the
//! harness carries it out and judges. Every state it comes to and everything that happens in it is in the store
//! before it is reported.
//!
//! ```text
//! POST ─▶ order ─▶ RunSpec ─▶ Runs ─▶ queue ─▶ (approval) ─▶ harness ─┬─▶ Reach ─▶ proxy
//!                              │                                      └─▶ Tell ─▶ store ─▶ events
//!                              └─▶ store ◀── lease
//! ```

mod active;
mod agent_files;
mod approval;
mod daemon_id;
mod evidence;
pub(crate) mod incidents;
mod reach;
mod registry;
mod stop;
pub(crate) mod validation;

pub use self::daemon_id::DaemonId;
pub(crate) use self::registry::{NotAdded, NotChanged};
pub use self::registry::{Runs, RunsParts};
use crate::store::DEFAULT_WORKSPACE;

/// The scope that a run of a workspace works in.
pub(crate) fn scope_of(workspace: &str, run: &str) -> String {
    if workspace == DEFAULT_WORKSPACE {
        format!("run-{run}")
    } else {
        format!("{workspace}.run-{run}")
    }
}
