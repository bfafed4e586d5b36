//! Writes the failed invocations of a run as replay sessions.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::client::{Client, RUNS, path};
use crate::failure::Failure;
use crate::output_file;

/// An invocation that failed, as the API lists it.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedIncident {
    pub(crate) id: String,
    pub(crate) scenario: String,
    pub(crate) invariants: Vec<String>,
    pub(crate) missing: u64,
    session: Value,
}

/// The failed invocations of a run.
pub(crate) async fn list(client: &Client, run: &str) -> Result<Vec<ListedIncident>, Failure> {
    client.list(&path(&[RUNS, run, "incidents"], &[])).await
}

/// Writes each as a file of the directory; returns the files.
pub(crate) fn write(
    incidents: &[ListedIncident],
    directory: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    if !incidents.is_empty() {
        output_file::create_directory(directory)?;
    }
    let files = incidents.iter().map(|incident| {
        let file = directory.join(format!("{}.yaml", name(&incident.id)?));
        output_file::write_private(&file, &session(incident)?)?;
        Ok(file)
    });
    files.collect()
}

/// The session as YAML.
fn session(incident: &ListedIncident) -> Result<String, Failure> {
    let read = squall_harness::session::parse(&incident.id, &incident.session.to_string());
    let session = read.map_err(|errors| {
        let first = errors.first().map(ToString::to_string);
        Failure::could_not("a session of the daemon", first.unwrap_or_default())
    })?;
    Ok(session.to_yaml())
}

/// A session's id, if it is a valid file name.
fn name(id: &str) -> Result<&str, Failure> {
    if squall_proxy::is_scope_name(id) {
        return Ok(id);
    }
    Err(Failure::could_not(
        "a session of the daemon",
        format!("its id {id:?} is not a valid file name"),
    ))
}
