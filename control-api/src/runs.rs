//! Runs: an agent is invoked under chaos, and its invariants are judged.
//!
//! A run is executed by the daemon that accepted it; a spread run shares its scenarios with others. The posted document becomes a spec. The [registry](Runs)
//! writes it and queues it, until approval if the config requires that. The harness executes and judges it. Every
//! state and event of a run is stored before it is reported.
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
mod mutants;
mod reach;
mod registry;
mod stop;
pub(crate) mod validation;

pub use self::daemon_id::DaemonId;
pub(crate) use self::registry::RunOrder;
pub use self::registry::{Runs, RunsParts};
use crate::problem::ApiProblem;
use crate::store::DEFAULT_WORKSPACE;

/// The scope of a run in a workspace.
pub(crate) fn scope_of(workspace: &str, run: &str) -> String {
    if workspace == DEFAULT_WORKSPACE {
        format!("run-{run}")
    } else {
        format!("{workspace}.run-{run}")
    }
}

/// The error for a run that does not exist.
pub(crate) fn unknown(id: &str) -> ApiProblem {
    let shown: String = id.chars().take(40).collect();
    ApiProblem::not_found(format!("there is no run `{shown}`"))
}
