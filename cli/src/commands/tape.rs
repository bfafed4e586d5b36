//! `squall tape`: plays recorded responses instead of sending a scope's requests upstream.

use std::path::Path;

use serde_json::{Value, json};
use squall_journal::tape::Session;
use squall_proxy::chaos::DEFAULT_SCOPE;

use crate::args::{PlayArgs, RecordingFormat, TapeCommand};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::render::{output, plural};
use crate::text;

pub(super) async fn run(action: TapeCommand) -> Result<(), Failure> {
    match action {
        TapeCommand::Play(tape) => play(&tape).await,
        TapeCommand::Stop { scope, remote } => {
            let scope = scope.as_deref().unwrap_or(DEFAULT_SCOPE);
            let (client, path) = (Client::new(&remote)?, path(scope));
            let tape: Value = client.get(&path).await?;
            client.delete(&path).await?;
            let line = format!("the tape of scope {scope} has stopped: {}", counts(&tape));
            output::done(remote.json, &tape, &line)
        }
    }
}

async fn play(tape: &PlayArgs) -> Result<(), Failure> {
    let scope = tape.scope.as_deref().unwrap_or(DEFAULT_SCOPE);
    let mut body = match (&tape.file, &tape.recording, &tape.replay) {
        (Some(file), _, _) => json!({ "session": session(file)?.to_value() }),
        (None, recording, replay) => json!({ "recording": recording, "replay": replay }),
    };
    body["on_miss"] = json!(tape.on_miss);
    body["on_exhausted"] = json!(tape.on_exhausted);
    body["speed"] = json!(tape.speed);
    let playing: Value = Client::new(&tape.remote)?.put(&path(scope), &body).await?;
    if tape.remote.json {
        return output::json(&playing);
    }
    let source = playing["source"].as_str().unwrap_or_default();
    output::line(&format!(
        "scope {scope} plays {source}, {}; stop it with `squall tape stop --scope {scope}`",
        plural(playing["answers"].as_u64().unwrap_or_default(), "response")
    ))
}

pub(super) fn path(scope: &str) -> String {
    format!("/v1/scopes/{}/tape", segment(scope))
}

/// Plays a session in the default scope.
pub(super) async fn play_session(client: &Client, session: &Session) -> Result<Value, Failure> {
    let body = json!({ "session": session.to_value() });
    client.put(&path(DEFAULT_SCOPE), &body).await
}

/// Reads a replay session.
pub(super) fn session(file: &Path) -> Result<Session, Failure> {
    if RecordingFormat::of(Some(file)) == RecordingFormat::Har {
        return Err(Failure::Usage(format!(
            "{}: an HTTP archive cannot be played; pass a replay session, such as `squall run --record FILE.yaml` writes",
            file.display()
        )));
    }
    let text = text::read(file).map_err(|error| Failure::Usage(error.in_file(file)))?;
    squall_harness::session::parse(&file.display().to_string(), &text).map_err(|errors| {
        let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Failure::Usage(lines.join("\n"))
    })
}

/// The counters of a tape.
pub(super) fn counts(tape: &Value) -> String {
    format!(
        "served {}, missed {}, dialled {}, left {}",
        tape["served"], tape["missed"], tape["dialled"], tape["left"],
    )
}
