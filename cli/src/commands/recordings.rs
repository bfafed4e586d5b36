//! `squall recordings`: lists, starts, stops and exports recordings.

use std::path::Path;

use serde_json::{Value, json};
use squall_harness::count::count;

use super::print_list;
use crate::args::{RecordingFormat, RecordingsCommand, RemoteArgs};
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::output_file;
use crate::render::output;

const RECORDINGS: &str = "/v1/recordings";

const COLUMNS: [(&str, &str, &str); 6] = [
    ("ID", "id", ""),
    ("STATE", "state", ""),
    ("SCOPE", "scope", "all"),
    ("EXCHANGES", "exchanges", ""),
    ("STARTED", "started_at", ""),
    ("NAME", "name", ""),
];

pub(super) async fn run(action: RecordingsCommand, remote: RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(&remote)?;
    match action {
        RecordingsCommand::List => {
            let empty = "no recordings; start one with `squall recordings start`";
            let items = client.list(RECORDINGS).await?;
            print_list(&items, remote.json, &COLUMNS, empty)
        }
        RecordingsCommand::Start { scope, name } => {
            let body = json!({ "scope": scope, "name": name });
            let started: Value = client.post(RECORDINGS, &body).await?;
            if remote.json {
                return output::json(&started);
            }
            // Only the id is on stdout, for scripts.
            let id = started["id"].as_str().unwrap_or_default();
            output::line(id)?;
            output::report_line(&format!(
                "recording; stop it with `squall recordings stop {id}`"
            ));
            Ok(())
        }
        RecordingsCommand::Stop { id } => {
            let ended = end(&client, &id).await?;
            let state = ended["state"].as_str().unwrap_or_default();
            let size = size(&ended);
            let line =
                format!("{id}: {state}, {size}; export it with `squall recordings export {id}`");
            output::result(remote.json, &ended, &line)
        }
        RecordingsCommand::Export { id, output, format } => {
            let format = format.unwrap_or_else(|| RecordingFormat::of(output.as_deref()));
            export(&client, &id, output.as_deref(), format).await
        }
    }
}

/// Starts a recording; returns its id.
pub(super) async fn begin(client: &Client, scope: Option<&str>) -> Result<String, Failure> {
    let started: Value = client.post(RECORDINGS, &json!({ "scope": scope })).await?;
    Ok(started["id"].as_str().unwrap_or_default().to_owned())
}

/// Stops a recording and writes it to a file in the format of its extension.
pub(super) async fn finish(client: &Client, id: &str, file: &Path) -> Result<(), Failure> {
    let ended = end(client, id).await?;
    export(client, id, Some(file), RecordingFormat::of(Some(file))).await?;
    output::report_line(&format!("{}: {}", file.display(), size(&ended)));
    Ok(())
}

async fn end(client: &Client, id: &str) -> Result<Value, Failure> {
    client
        .post(&path(&[RECORDINGS, id, "stop"], &[]), &json!({}))
        .await
}

/// The size of a recording.
fn size(recording: &Value) -> String {
    let number = |name: &str| recording[name].as_u64().unwrap_or_default();
    let exchanges = count(number("exchanges"), "exchange");
    match number("left_out") {
        0 => exchanges,
        left_out => format!("{exchanges}, {left_out} more did not fit"),
    }
}

async fn export(
    client: &Client,
    id: &str,
    file: Option<&Path>,
    format: RecordingFormat,
) -> Result<(), Failure> {
    let (name, media_type) = match format {
        RecordingFormat::Replay => ("replay", "application/yaml"),
        RecordingFormat::Har => ("har", "application/json"),
    };
    let path = path(&[RECORDINGS, id], &[("format", Some(name.to_owned()))]);
    let text = client.get_text(&path, media_type).await?;
    match file {
        None => output::document(&text),
        Some(file) => output_file::write_private(file, &text),
    }
}

impl RecordingFormat {
    /// `.har` names an HTTP archive, anything else a replay session.
    pub(crate) fn of(file: Option<&Path>) -> Self {
        let extension = file.and_then(Path::extension);
        match extension {
            Some(extension) if extension.eq_ignore_ascii_case("har") => Self::Har,
            _ => Self::Replay,
        }
    }
}
