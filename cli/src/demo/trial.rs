//! One trial: the agent at its task, in one weather.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::{Duration, Instant};

use squall_journal::record::ExchangeRecord;
use tokio::process::Command;

use super::TASK;
use crate::failure::Failure;
use crate::pointing::Variable;

/// Longest an agent may take; it gives up by itself long before.
const LONGEST: Duration = Duration::from_secs(18);

/// What came of a trial.
#[derive(Debug, Clone)]
pub(crate) struct Trial {
    /// Profile in force, `none` for none.
    pub(crate) profile: String,
    /// What the agent printed: its answer to the user.
    pub(crate) answer: String,
    /// What it complained of when it ended without an answer.
    pub(crate) complaint: Option<String>,
    /// How long it took.
    pub(crate) took: Duration,
    /// Everything it sent and got, oldest first.
    pub(crate) exchanges: Vec<ExchangeRecord>,
}

/// Runs the agent to its end. The journal is read afterwards, by whoever called.
pub(crate) async fn run(profile: &str, variables: &[Variable]) -> Result<Trial, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::could_not("the path of this program", error))?;
    let started = Instant::now();
    let child = Command::new(program)
        .args(arguments())
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(LONGEST, child)
        .await
        .map_err(|_| Failure::could_not("the agent", "it did not end"))?
        .map_err(|error| Failure::could_not("the agent", error))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.trim().trim_start_matches("squall: ").to_owned();
    Ok(Trial {
        profile: profile.to_owned(),
        answer: String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        complaint: (!output.status.success()).then_some(complaint),
        took: started.elapsed(),
        exchanges: Vec::new(),
    })
}

/// The agent's command line.
fn arguments() -> [OsString; 2] {
    ["demo-agent".into(), TASK.into()]
}
