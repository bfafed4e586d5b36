//! `squall replay`: runs, records and imports replay sessions, and exports them from runs.

use std::path::Path;

use serde_json::{Map, json};
use squall_harness::count::count;
use squall_harness::run::RunKind;

use crate::args::{ExportArgs, RecordArgs, ReplayCommand, ReplayRunArgs, RunArgs};
use crate::client::Client;
use crate::commands::run::run_in;
use crate::commands::{import, recordings};
use crate::daemon::signals::{Interruption, Signals};
use crate::failure::Failure;
use crate::host;
use crate::judging;
use crate::output_file;
use crate::render::output;
use crate::sessions::{self, ListedIncident};
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

/// Writes each failed invocation of a run as a session.
async fn incidents(export: &ExportArgs) -> Result<(), Failure> {
    let run = &export.run;
    let list = async |client: &Client| sessions::list(client, run).await;
    let found = host::read(&export.read.store, Some(("run", run)), list).await?;
    let files = sessions::write(&found, &export.output)?;
    let mut items = Vec::new();
    for (incident, file) in found.iter().zip(&files) {
        if !export.read.json {
            print(incident, file)?;
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
