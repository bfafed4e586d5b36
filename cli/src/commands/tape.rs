//! `squall tape`: plays recorded responses instead of sending a scope's requests upstream.

use std::path::Path;

use serde_json::{Value, json};
use squall_harness::count::count;
use squall_journal::tape::Session;
use squall_proxy::chaos::DEFAULT_SCOPE;

use crate::args::{RecordingFormat, RemoteArgs, TapeCommand};
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::render::output;
use crate::text;

pub(super) async fn run(action: TapeCommand, remote: RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(&remote)?;
    match action {
        TapeCommand::Play(tape) => {
            let scope = tape.scope.as_deref().unwrap_or(DEFAULT_SCOPE);
            let mut body = match &tape.file {
                Some(file) => json!({ "session": session(file)?.to_value() }),
                None => json!({ "recording": tape.recording, "replay": tape.replay }),
            };
            body["on_miss"] = json!(tape.on_miss);
            body["on_exhausted"] = json!(tape.on_exhausted);
            body["speed"] = json!(tape.speed);
            let playing: Value = client.put(&tape_path(scope), &body).await?;
            let source = playing["source"].as_str().unwrap_or_default();
            let responses = count(playing["answers"].as_u64().unwrap_or_default(), "response");
            let line = format!(
                "scope {scope} plays {source}, {responses}; stop it with `squall tape stop --scope {scope}`"
            );
            output::result(remote.json, &playing, &line)
        }
        TapeCommand::Stop { scope } => {
            let scope = scope.as_deref().unwrap_or(DEFAULT_SCOPE);
            let tape: Value = client.get(&tape_path(scope)).await?;
            client.delete(&tape_path(scope)).await?;
            let line = format!("the tape of scope {scope} has stopped: {}", counts(&tape));
            output::result(remote.json, &tape, &line)
        }
    }
}

/// The path of a scope's tape.
pub(super) fn tape_path(scope: &str) -> String {
    path(&["/v1/scopes", scope, "tape"], &[])
}

/// Plays a session in the default scope.
pub(super) async fn play_session(client: &Client, session: &Session) -> Result<Value, Failure> {
    let body = json!({ "session": session.to_value() });
    client.put(&tape_path(DEFAULT_SCOPE), &body).await
}

/// Reads a replay session.
pub(super) fn session(file: &Path) -> Result<Session, Failure> {
    if RecordingFormat::of(Some(file)) == RecordingFormat::Har {
        return Err(Failure::Usage(format!(
            "{}: an HTTP archive cannot be played; pass a replay session, such as `squall run --record FILE.yaml` writes",
            file.display()
        )));
    }
    let text = text::read(file).map_err(Failure::Usage)?;
    let session = squall_harness::session::parse(&file.display().to_string(), &text);
    session.map_err(|errors| text::usage(&errors))
}

/// The counters of a tape.
pub(super) fn counts(tape: &Value) -> String {
    format!(
        "served {}, missed {}, dialled {}, left {}",
        tape["served"], tape["missed"], tape["dialled"], tape["left"],
    )
}
