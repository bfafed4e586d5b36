//! `squall replay`: incidents, recorded and written down.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Export, Record, Replay, Run};
use crate::client::{Client, segment};
use crate::commands::recordings;
use crate::commands::run::run_in;
use crate::daemon::signals::{Signals, Told};
use crate::failure::Failure;
use crate::host::Host;
use crate::output_file;
use crate::render::{output, plural};

pub(super) async fn run(action: Replay) -> Result<(), Failure> {
    match action {
        Replay::Record(record) => {
            output_file::check(&record.output)?;
            if record.command.is_empty() {
                here(&record).await
            } else {
                Box::pin(program(*record)).await
            }
        }
        Replay::Export(export) => incidents(&export).await,
    }
}

/// Records a program behind a private daemon.
async fn program(record: Record) -> Result<(), Failure> {
    let Record {
        scope,
        output,
        command,
        daemon,
        ..
    } = record;
    let run = Run {
        daemon,
        quiet: true,
        record: Some(output),
        replay: None,
        base_urls: false,
        command,
    };
    run_in(run, scope.as_deref()).await
}

/// Records a running daemon until somebody ends it.
async fn here(record: &Record) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let client = Client::new(&record.remote)?;
    let begun = recordings::begin(&client, record.scope.as_deref(), None).await?;
    let id = begun["id"].as_str().unwrap_or_default().to_owned();
    output::tell_line(&format!(
        "recording {id}; Ctrl-C ends it and writes {}",
        record.output.display()
    ));
    while signals.next().await == Told::Reload {}
    let ended = recordings::end(&client, &id).await?;
    recordings::export(&client, &id, Some(&record.output)).await?;
    say(&record.output, &ended);
    Ok(())
}

/// An invocation that failed, as the API lists it.
#[derive(Debug, Deserialize)]
struct Incident {
    id: String,
    scenario: String,
    invariants: Vec<String>,
    missing: u64,
    session: Value,
}

/// Writes what failed in a run, a session each.
async fn incidents(export: &Export) -> Result<(), Failure> {
    let run = &export.run;
    let host = Box::pin(Host::open(&export.site, None)).await?;
    let path = format!("/v1/runs/{}/incidents", segment(run));
    let found = host.client().list::<Incident>(&path).await;
    host.close().await;
    let found = found?;
    let directory = &export.output;
    if !found.is_empty() {
        std::fs::create_dir_all(directory)
            .map_err(|error| Failure::could_not(directory.display(), error))?;
    }
    let mut items = Vec::new();
    for incident in found {
        let file = directory.join(format!("{}.yaml", name(&incident.id)?));
        output_file::write_private(&file, &session(&incident)?)?;
        if !export.json {
            tell(&incident, &file)?;
        }
        items.push(json!({ "id": incident.id, "file": file, "missing": incident.missing }));
    }
    if export.json {
        return output::json(&json!({ "items": items }));
    }
    if items.is_empty() {
        output::line(&format!(
            "nothing failed in run {run}: there is nothing to write"
        ))?;
    }
    Ok(())
}

/// The session as it is kept in a file; it can be read again.
fn session(incident: &Incident) -> Result<String, Failure> {
    let read = squall_harness::session::parse(&incident.id, &incident.session.to_string());
    let session = read.map_err(|errors| {
        let first = errors.first().map(ToString::to_string);
        Failure::could_not("a session of the daemon", first.unwrap_or_default())
    })?;
    Ok(session.to_yaml())
}

/// A session's name, where it can be that of a file in a directory.
fn name(id: &str) -> Result<&str, Failure> {
    if squall_proxy::is_scope_name(id) {
        return Ok(id);
    }
    Err(Failure::could_not(
        "a session of the daemon",
        format!("its id is {id:?}, which cannot be the name of a file"),
    ))
}

fn tell(incident: &Incident, file: &Path) -> Result<(), Failure> {
    let missing = match incident.missing {
        0 => String::new(),
        missing => format!("; it lacks {}", plural(missing, "exchange")),
    };
    output::line(&format!(
        "{}: {} under {}{missing}",
        file.display(),
        incident.invariants.join(", "),
        incident.scenario
    ))
}

fn say(file: &Path, ended: &serde_json::Value) {
    let number = |name: &str| ended[name].as_u64().unwrap_or_default();
    output::tell_line(&format!(
        "{}: {}",
        file.display(),
        recordings::holds(number("exchanges"), number("left_out"))
    ));
}
