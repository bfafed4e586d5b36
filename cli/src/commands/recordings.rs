//! `squall recordings`: lists, starts, stops and exports recordings.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{RecordingFormat, RecordingsCommand, RemoteArgs};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::render::{output, plural};

const RECORDINGS: &str = "/v1/recordings";

/// A recording, as the API lists it.
#[derive(Debug, Deserialize)]
pub(super) struct ListedRecording {
    pub(super) id: String,
    name: Option<String>,
    scope: Option<String>,
    state: String,
    started_at: String,
    exchanges: u64,
    left_out: u64,
}

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
    let client = Client::new(remote)?;
    if remote.json {
        let items: Vec<Value> = client.list(RECORDINGS).await?;
        return output::json(&json!({ "items": items }));
    }
    let items: Vec<ListedRecording> = client.list(RECORDINGS).await?;
    if items.is_empty() {
        return output::line("no recordings; start one with `squall recordings start`");
    }
    let paint = Paint::stdout();
    let mut table = Table::new(["ID", "STATE", "SCOPE", "EXCHANGES", "STARTED", "NAME"]);
    for line in items {
        table.row([
            paint.name(&line.id),
            line.state,
            line.scope.unwrap_or_else(|| "all".to_owned()),
            line.exchanges.to_string(),
            line.started_at,
            line.name.unwrap_or_default(),
        ]);
    }
    output::print(&table.render())
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
    let number = |name: &str| ended[name].as_u64().unwrap_or_default();
    let holds = holds(number("exchanges"), number("left_out"));
    output::tell_line(&format!("{}: {holds}", file.display()));
    Ok(())
}

async fn stop(id: &str, remote: &RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    let ended = end(&client, id).await?;
    if remote.json {
        return output::json(&ended);
    }
    let line: ListedRecording = serde_json::from_value(ended)
        .map_err(|error| Failure::could_not("the daemon's answer", error))?;
    output::line(&format!(
        "{}: {}, {}; export it with `squall recordings export {}`",
        line.id,
        line.state,
        holds(line.exchanges, line.left_out),
        line.id
    ))
}

async fn end(client: &Client, id: &str) -> Result<Value, Failure> {
    let path = format!("{RECORDINGS}/{}/stop", segment(id));
    client.post(&path, &json!({})).await
}

/// The size of a recording.
fn holds(exchanges: u64, left_out: u64) -> String {
    let exchanges = plural(exchanges, "exchange");
    if left_out == 0 {
        exchanges
    } else {
        format!("{exchanges}, {left_out} more did not fit")
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
