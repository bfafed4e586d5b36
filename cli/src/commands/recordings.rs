//! `squall recordings`: lists, starts, stops and exports recordings.

use std::path::Path;

use serde_json::{Value, json};

use super::print_list;
use crate::args::{RecordingFormat, RecordingsCommand, RemoteArgs};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output_file;
use crate::render::{output, plural};

const RECORDINGS: &str = "/v1/recordings";

pub(super) async fn run(action: RecordingsCommand) -> Result<(), Failure> {
    match action {
        RecordingsCommand::List(remote) => list(&remote).await,
        RecordingsCommand::Start {
            scope,
            name,
            remote,
        } => start(scope.as_deref(), name.as_deref(), &remote).await,
        RecordingsCommand::Stop { id, remote } => stop(&id, &remote).await,
        RecordingsCommand::Export {
            id,
            output,
            format,
            remote,
        } => {
            let form = format.unwrap_or_else(|| RecordingFormat::of(output.as_deref()));
            export(&Client::new(&remote)?, &id, output.as_deref(), form).await
        }
    }
}

async fn list(remote: &RemoteArgs) -> Result<(), Failure> {
    let items: Vec<Value> = Client::new(remote)?.list(RECORDINGS).await?;
    let columns = [
        ("ID", "id", ""),
        ("STATE", "state", ""),
        ("SCOPE", "scope", "all"),
        ("EXCHANGES", "exchanges", ""),
        ("STARTED", "started_at", ""),
        ("NAME", "name", ""),
    ];
    let empty = "no recordings; start one with `squall recordings start`";
    print_list(&items, remote.json, &columns, empty)
}

async fn start(
    scope: Option<&str>,
    name: Option<&str>,
    remote: &RemoteArgs,
) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let body = json!({ "scope": scope, "name": name });
    let begun: Value = client.post(RECORDINGS, &body).await?;
    if remote.json {
        return output::json(&begun);
    }
    // Only the id is on stdout, for scripts.
    let id = begun["id"].as_str().unwrap_or_default();
    output::line(id)?;
    output::tell_line(&format!(
        "recording; stop it with `squall recordings stop {id}`"
    ));
    Ok(())
}

/// Starts a recording; returns its id.
pub(super) async fn begin(client: &Client, scope: Option<&str>) -> Result<String, Failure> {
    let begun: Value = client.post(RECORDINGS, &json!({ "scope": scope })).await?;
    Ok(begun["id"].as_str().unwrap_or_default().to_owned())
}

/// Stops a recording and writes it to a file in the format of its extension.
pub(super) async fn finish(client: &Client, id: &str, file: &Path) -> Result<(), Failure> {
    let ended = end(client, id).await?;
    export(client, id, Some(file), RecordingFormat::of(Some(file))).await?;
    output::tell_line(&format!("{}: {}", file.display(), size(&ended)));
    Ok(())
}

async fn stop(id: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let ended = end(&client, id).await?;
    if remote.json {
        return output::json(&ended);
    }
    let state = ended["state"].as_str().unwrap_or_default();
    output::line(&format!(
        "{id}: {state}, {}; export it with `squall recordings export {id}`",
        size(&ended)
    ))
}

async fn end(client: &Client, id: &str) -> Result<Value, Failure> {
    let path = format!("{RECORDINGS}/{}/stop", segment(id));
    client.post(&path, &json!({})).await
}

/// The size of a recording.
fn size(recording: &Value) -> String {
    let number = |name: &str| recording[name].as_u64().unwrap_or_default();
    let exchanges = plural(number("exchanges"), "exchange");
    match number("left_out") {
        0 => exchanges,
        left_out => format!("{exchanges}, {left_out} more did not fit"),
    }
}

async fn export(
    client: &Client,
    id: &str,
    file: Option<&Path>,
    form: RecordingFormat,
) -> Result<(), Failure> {
    let path = format!("{RECORDINGS}/{}?format={}", segment(id), form.name());
    let text = client.get_text(&path, form.media_type()).await?;
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

    fn name(self) -> &'static str {
        match self {
            Self::Replay => "replay",
            Self::Har => "har",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Replay => "application/yaml",
            Self::Har => "application/json",
        }
    }
}
