//! Runs: what is demanded of an agent, tried under chaos, and judged.
//!
//! A run is executed by the daemon that took it. Whoever asks for one gives an [order](order); the
//! [book](Runs) writes it down, holds it until it is its turn and, where the config wants that, until
//! somebody says yes; a [`Runner`] of its kind carries it out and judges. Every state it comes to and
//! everything that happens in it is in the store before anybody is told.
//!
//! ```text
//! POST ─▶ order ─▶ book ─▶ queue ─▶ (approval) ─▶ Runner ─┬─▶ Reach ─▶ proxy
//!                   │                                     └─▶ Tell ─▶ store ─▶ events
//!                   └─▶ store ◀── lease
//! ```

mod agent_files;
mod agent_name;
mod approval;
mod book;
mod daemon_id;
pub(crate) mod demands;
pub(crate) mod documents;
pub(crate) mod incidents;
mod kept;
mod ongoing;
pub(crate) mod order;
mod reach;
mod runner;
mod stop;
mod suites;

pub(crate) use self::book::{NotAdded, NotApproved, NotCancelled};
pub use self::book::{Runs, RunsParts};
pub use self::daemon_id::DaemonId;
pub use self::runner::{Order, RunError, Runner, Tools, Verdict};
pub use self::suites::SuiteRunner;

use crate::store::DEFAULT_WORKSPACE;

/// The scope that a run of a workspace works in.
pub(crate) fn scope_of(workspace: &str, run: &str) -> String {
    if workspace == DEFAULT_WORKSPACE {
        format!("run-{run}")
    } else {
        format!("{workspace}.run-{run}")
    }
}
