//! Recordings: begin, stop, list, and export as replay sessions or HTTP archives.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use squall_documents::Fields;
use squall_journal::tape::har;

use super::path::{Name, check_seen};
use crate::access::Caller;
use crate::document::{RequestDocument, text};
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::recordings::{NewRecording, Recordings, unknown};
use crate::state::ApiState;
use crate::store::{RecordingState, StoredRecording};
use crate::tasks;

/// The state of an exported recording.
const STATE: HeaderName = HeaderName::from_static("squall-recording-state");

/// A recording, for the audit log.
fn describe(recording: &StoredRecording) -> String {
    let scope = recording.scope.as_deref().unwrap_or("every scope");
    let (id, exchanges) = (&recording.id, recording.size.exchanges);
    format!("recording {id} of {scope}, {exchanges} exchanges")
}

/// Begins a recording.
pub(super) async fn begin(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
    document: RequestDocument,
) -> Result<Response, ApiProblem> {
    params.finish()?;
    let new = document.fields(|fields| Some(read(fields)))?;
    if let Some(scope) = &new.scope {
        check_seen(&caller, scope)?;
    }
    let new = NewRecording {
        workspace: caller.workspace().to_owned(),
        scopes: caller.scopes(),
        ..new
    };
    let recording = state.recordings.begin(new).await?;
    let place = format!("/v1/recordings/{}", recording.id);
    let place = HeaderValue::from_str(&place).expect("ids are hex digits");
    caller.changed(None, Some(&recording), describe(&recording));
    Ok((StatusCode::CREATED, [(LOCATION, place)], Json(recording)).into_response())
}

/// Ends a recording.
pub(super) async fn stop(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<StoredRecording>, ApiProblem> {
    params.finish()?;
    let before = state.recordings.find(caller.workspace(), &id).await;
    let before = before.ok().flatten();
    let recording = state.recordings.stop(caller.workspace(), &id).await?;
    caller.changed(before.as_ref(), Some(&recording), describe(&recording));
    Ok(Json(recording))
}

/// Recordings, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<StoredRecording>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let before = page::before_id(&mut params);
    params.finish()?;
    let before = before.map_or_else(String::new, |id| id.to_string());
    let recordings = &state.recordings;
    let found = (recordings.list(caller.workspace(), &before, limit + 1)).await?;
    Ok(page::newest(found, limit, |last| last.id.clone()))
}

/// A recording: its description, a replay session or an HTTP archive.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    mut params: Params,
) -> Result<Response, ApiProblem> {
    let is_har = params.read("format", "`replay` or `har`", |text| match text {
        "replay" => Some(false),
        "har" => Some(true),
        _ => None,
    });
    params.finish()?;
    let found = state.recordings.find(caller.workspace(), &id).await?;
    let recording = found.ok_or_else(|| unknown(&id))?;
    let recorded = state.recordings.recorded(&recording).await?;
    let recording_state = HeaderValue::from_static(recording.state.as_str());
    let (media_type, body) = tasks::blocking(move || {
        if is_har.unwrap_or(false) {
            let version = env!("CARGO_PKG_VERSION");
            let archive = har::document(version, remark(&recording).as_deref(), &recorded);
            return ("application/json", archive.to_string());
        }
        let session = Recordings::session(&recording, &recorded);
        let about = remark(&recording).map_or_else(String::new, |it| format!("# {it}\n"));
        ("application/yaml", about + &session.to_yaml())
    })
    .await;
    let media_type = HeaderValue::from_static(media_type);
    Ok(([(CONTENT_TYPE, media_type), (STATE, recording_state)], body).into_response())
}

/// A remark about an incomplete recording.
fn remark(recording: &StoredRecording) -> Option<String> {
    let what = match recording.state {
        RecordingState::Stopped => return None,
        RecordingState::Recording => "it still runs".to_owned(),
        RecordingState::Full => "it is full: what came after is not in it".to_owned(),
        RecordingState::Cut => {
            "its daemon ended while it ran: the last exchanges may be missing".to_owned()
        }
    };
    Some(format!("recording {}: {what}", recording.id))
}

/// Reads `{scope, name}`.
fn read(fields: &mut Fields<'_, '_>) -> NewRecording {
    let scopes =
        "1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`, and no key";
    let names = text("1 to 200 printable characters", |name| {
        (1..=200).contains(&name.chars().count()) && !name.chars().any(char::is_control)
    });
    NewRecording {
        scope: fields.field("scope", "", text(scopes, squall_proxy::is_scope_name)),
        name: fields.field("name", "", names),
        ..NewRecording::default()
    }
}
