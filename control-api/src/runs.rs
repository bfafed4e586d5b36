//! Runs: what is demanded of an agent, tried under chaos, and judged.

pub(crate) mod demands;

use crate::store::DEFAULT_WORKSPACE;

/// The scope that a run of a workspace works in.
pub(crate) fn scope_of(workspace: &str, run: &str) -> String {
    if workspace == DEFAULT_WORKSPACE {
        format!("run-{run}")
    } else {
        format!("{workspace}.run-{run}")
    }
}
