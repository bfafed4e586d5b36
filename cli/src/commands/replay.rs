//! `squall replay`: runs, records and imports replay sessions, and exports them from runs.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use squall_harness::count::count;
use squall_harness::run::RunKind;

use crate::args::{ExportArgs, RecordArgs, ReplayCommand, ReplayRunArgs, RunArgs};
use crate::client::{Client, RUNS, path};
use crate::commands::run::run_in;
use crate::commands::{import, recordings};
use crate::daemon::signals::{Interruption, Signals};
use crate::failure::Failure;
use crate::host;
use crate::judging;
use crate::output_file;
use crate::render::output;
use crate::suite::{LocalSuite, add_documents};

pub(super) async fn run(action: ReplayCommand) -> Result<(), Failure> {
    match action {
        ReplayCommand::Run(args) => Box::pin(replay(&args)).await,
        ReplayCommand::Shrink(mut args) => {
            args.trial.shrink = true;
            Box::pin(replay(&args)).await
        }
        ReplayCommand::Record(record) => {
            output_file::check(&record.output)?;
            if record.command.is_empty() {
                here(&record).await
            } else {
                Box::pin(program(*record)).await
            }
        }
        ReplayCommand::Export(export) => incidents(&export).await,
        ReplayCommand::Import(args) => Box::pin(import::run(&args)).await,
    }
}

/// Replays sessions, and judges them.
async fn replay(args: &ReplayRunArgs) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in &args.paths {
        let before = files.len();
        add_documents(path, &mut files).map_err(Failure::Usage)?;
        if files.len() == before {
            return Err(Failure::Usage(format!(
                "{}: there is no replay session in this folder; sessions are .yaml, .yml or .json files",
                path.display()
            )));
        }
    }
    let files: Vec<_> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    let trial = &args.trial;
    let suite = LocalSuite::with_sessions(&trial.suite.file, &files)?;
    let mut options = Map::new();
    if args.expect_failure {
        options.insert("expect_failure".to_owned(), true.into());
    }
    if let Some(models) = &args.models {
        options.insert("models".to_owned(), models.as_str().into());
    }
    judging::run_suite(RunKind::Replay, trial, None, suite, options, |_| Ok(())).await
}

/// Records a program behind a private daemon.
async fn program(record: RecordArgs) -> Result<(), Failure> {
    let RecordArgs {
        scope,
        output,
        command,
        daemon,
        ..
    } = record;
    let run = RunArgs {
        daemon,
        quiet: true,
        record: Some(output),
        replay: None,
        base_urls: false,
        command,
    };
    run_in(run, scope.as_deref()).await
}

/// Records the traffic of a running daemon until a signal.
async fn here(record: &RecordArgs) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let client = Client::new(&record.remote)?;
    let id = recordings::begin(&client, record.scope.as_deref()).await?;
    output::report_line(&format!(
        "recording {id}; Ctrl-C stops it and writes {}",
        record.output.display()
    ));
    while signals.next().await == Interruption::Reload {}
    recordings::finish(&client, &id, &record.output).await
}

/// An invocation that failed, as the API lists it.
#[derive(Debug, Deserialize)]
struct ListedIncident {
    id: String,
    scenario: String,
    invariants: Vec<String>,
    missing: u64,
    session: Value,
}

/// Writes each failed invocation of a run as a session.
async fn incidents(export: &ExportArgs) -> Result<(), Failure> {
    let run = &export.run;
    let path = path(&[RUNS, run, "incidents"], &[]);
    let list = async |client: &Client| client.list::<ListedIncident>(&path).await;
    let found = host::read(&export.read.store, Some(("run", run)), list).await?;
    let directory = &export.output;
    if !found.is_empty() {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::could_not(directory.display(), error))?;
    }
    let mut items = Vec::new();
    for incident in found {
        let file = directory.join(format!("{}.yaml", name(&incident.id)?));
        output_file::write_private(&file, &session(&incident)?)?;
        if !export.read.json {
            print(&incident, &file)?;
        }
        items.push(json!({ "id": incident.id, "file": file, "missing": incident.missing }));
    }
    if export.read.json {
        return output::json(&json!({ "items": items }));
    }
    if items.is_empty() {
        output::line(&format!(
            "no invocation failed in run {run}, or only those with changed requests: no session was written"
        ))?;
    }
    Ok(())
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

fn print(incident: &ListedIncident, file: &Path) -> Result<(), Failure> {
    let missing = match incident.missing {
        0 => String::new(),
        missing => format!(
            "; {} of it are no longer stored",
            count(missing, "exchange")
        ),
    };
    output::line(&format!(
        "{}: {} under {}{missing}",
        file.display(),
        incident.invariants.join(", "),
        incident.scenario
    ))
}
