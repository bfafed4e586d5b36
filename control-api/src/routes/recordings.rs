//! Recordings: begun, stopped, listed, and given out as replay sessions or HTTP archives.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use squall_journal::tape::har;
use squall_journal::timestamp;

use super::chaos::check_seen;
use super::path::RecordingName;
use crate::ApiState;
use crate::access::Caller;
use crate::document::Document;
use crate::nearest::nearest;
use crate::openapi::{ExchangeIdText, JSON, Operation, YAML};
use crate::page::{self, Page};
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::recordings::{NewRecording, NotBegun, NotStopped, Recordings};
use crate::runs::documents::ReplayDocument;
use crate::store::{RecordingState, StoredRecording};

/// How the recording is doing that is given out.
const STATE: HeaderName = HeaderName::from_static("squall-recording-state");

const MEMBERS: [&str; 2] = ["scope", "name"];

/// What to record.
#[derive(JsonSchema)]
#[schemars(rename = "NewRecording", deny_unknown_fields)]
#[expect(dead_code, reason = "says what `read` takes")]
pub(super) struct Asked {
    /// Which scope; every one of the workspace if absent.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"))]
    scope: Option<String>,
    /// A title.
    #[schemars(length(min = 1, max = 200))]
    name: Option<String>,
}

/// A recording.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Recording")]
pub(super) struct Line {
    /// Its id.
    id: String,
    /// Its title.
    name: Option<String>,
    /// Which scope; `null`: every one of the workspace.
    scope: Option<String>,
    /// How it is doing.
    state: RecordingState,
    /// The daemon that records, as `GET /v1/chaos` has it.
    daemon: String,
    /// When it began, RFC 3339.
    started_at: String,
    /// When it ended, RFC 3339; `null` while it runs.
    ended_at: Option<String>,
    /// Exchanges in it.
    exchanges: u64,
    /// Bytes that they take, about.
    bytes: u64,
    /// Exchanges that found no room; one that is full soon looks at no more of them.
    left_out: u64,
}

impl From<StoredRecording> for Line {
    fn from(recording: StoredRecording) -> Self {
        Self {
            id: recording.id,
            name: recording.name,
            scope: recording.scope,
            state: recording.state,
            daemon: recording.daemon,
            started_at: timestamp::rfc3339(recording.started_at),
            ended_at: recording.ended_at.map(timestamp::rfc3339),
            exchanges: recording.tally.exchanges,
            bytes: recording.tally.bytes,
            left_out: recording.tally.left_out,
        }
    }
}

impl Line {
    /// Which recording, for the audit log.
    fn told(&self) -> String {
        let scope = self.scope.as_deref().unwrap_or("every scope");
        format!(
            "recording {} of {scope}, {} exchanges",
            self.id, self.exchanges
        )
    }
}

/// Begins a recording.
pub(super) async fn begin(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    params: Params,
    document: Document,
) -> Result<Response, Problem> {
    params.finish()?;
    let sent = if document.text.trim().is_empty() {
        Value::Object(serde_json::Map::new())
    } else {
        document.value()?
    };
    let asked = read(&sent).map_err(Problem::invalid)?;
    if let Some(scope) = &asked.scope {
        check_seen(&caller, scope)?;
    }
    let asked = NewRecording {
        workspace: caller.workspace().to_owned(),
        scopes: caller.scopes(),
        ..asked
    };
    let begun = state.recordings.begin(asked).await;
    let recording = begun.map_err(|error| match error {
        NotBegun::TooMany(over) => Problem::conflict(over.to_string()),
        NotBegun::Store(error) => Problem::store(&error),
    })?;
    let place = format!("/v1/recordings/{}", recording.id);
    let place = HeaderValue::from_str(&place).expect("ids are hex digits");
    let line = Line::from(recording);
    caller.changed(None, Some(&line), line.told());
    let body = Json(line);
    Ok((StatusCode::CREATED, [(LOCATION, place)], body).into_response())
}

pub(super) fn begin_operation() -> Operation {
    Operation::new("begin_recording", "Records traffic from now on")
        .about(
            "Heads and bodies of every exchange that begins from now on, decoded, bounded, secrets \
             taken out. A recording that holds as much as it may ends by itself, `full`.",
        )
        .takes::<Asked>()
        .or_nothing()
        .answers::<Line>(201, "It runs")
        .with("Location", "Where it is given out")
        .problems([404, 409])
        .asks_store()
}

/// Ends a recording.
pub(super) async fn stop(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RecordingName(id): RecordingName,
    params: Params,
) -> Result<Json<Line>, Problem> {
    params.finish()?;
    let before = state.recordings.find(caller.workspace(), &id).await;
    let before = before.ok().flatten().map(Line::from);
    let stopped = state.recordings.stop(caller.workspace(), &id).await;
    let recording = stopped.map_err(|error| match error {
        NotStopped::Unknown(_) => unknown(&id),
        NotStopped::Elsewhere(..) => Problem::conflict(error.to_string()),
        NotStopped::Store(error) => Problem::store(&error),
    })?;
    let line = Line::from(recording);
    caller.changed(before.as_ref(), Some(&line), line.told());
    Ok(Json(line))
}

pub(super) fn stop_operation() -> Operation {
    Operation::new(
        "stop_recording",
        "Ends a recording; one that has ended stays as it is",
    )
    .answers::<Line>(200, "It has ended")
    .problems([404, 409])
    .asks_store()
}

/// Recordings, newest first.
pub(super) async fn list(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    mut params: Params,
) -> Result<Json<Page<Line>>, Problem> {
    let limit = page::limit(&mut params);
    let before = page::before_id(&mut params);
    params.finish()?;
    let before = before.map_or_else(String::new, |id| id.to_string());
    let found = state
        .recordings
        .list(caller.workspace(), &before, limit + 1)
        .await;
    let mut found = found.map_err(|error| Problem::store(&error))?;
    let more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().map(|last| last.id.clone());
    Ok(Json(Page {
        items: found.into_iter().map(Line::from).collect(),
        next_cursor: last.filter(|_| more),
    }))
}

pub(super) fn list_operation() -> Operation {
    Operation::new("list_recordings", "Recordings, newest first")
        .pages_by::<ExchangeIdText, Line>("Recordings")
        .asks_store()
}

/// In which form a recording is given out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
enum Format {
    /// A replay session, YAML.
    Replay,
    /// An HTTP archive, HAR 1.2.
    Har,
}

/// A recording, as what it is good for.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    RecordingName(id): RecordingName,
    mut params: Params,
) -> Result<Response, Problem> {
    let format = params.read("format", "`replay` or `har`", |text| match text {
        "replay" => Some(Format::Replay),
        "har" => Some(Format::Har),
        _ => None,
    });
    params.finish()?;
    let found = state.recordings.find(caller.workspace(), &id).await;
    let found = found.map_err(|error| Problem::store(&error))?;
    let recording = found.ok_or_else(|| unknown(&id))?;
    let recorded = state.recordings.recorded(&recording).await;
    let recorded = recorded.map_err(|error| Problem::store(&error))?;
    let stand = HeaderValue::from_static(recording.state.as_str());
    // A long one takes a while: not on the thread of everybody else.
    let made = tokio::task::spawn_blocking(move || match format.unwrap_or(Format::Replay) {
        Format::Replay => {
            let session = Recordings::session(&recording, &recorded);
            let about = remark(&recording).map_or_else(String::new, |it| format!("# {it}\n"));
            (YAML, about + &session.to_yaml())
        }
        Format::Har => {
            let version = env!("CARGO_PKG_VERSION");
            let archive = har::document(version, remark(&recording).as_deref(), &recorded);
            (JSON, archive.to_string())
        }
    });
    let (media_type, body) = made.await.map_err(|error| {
        Problem::internal(format!("the recording cannot be given out: {error}"))
    })?;
    let media_type = HeaderValue::from_static(media_type);
    Ok(([(CONTENT_TYPE, media_type), (STATE, stand)], body).into_response())
}

pub(super) fn show_operation() -> Operation {
    Operation::new(
        "show_recording",
        "A recording, as a replay session or an HTTP archive",
    )
    .about("Of one that runs, what has ended by now.")
    .query::<Format>("format", "`replay` if absent")
    .answers_as::<ReplayDocument>(200, YAML, "The recording")
    .or_as::<Value>(JSON)
    .with(
        "squall-recording-state",
        "How it is doing: `recording`, `stopped`, `full` or `cut`",
    )
    .problems([404])
    .asks_store()
}

/// What a reader must know of a recording as a whole.
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

fn unknown(id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    Problem::not_found(format!("there is no recording `{id}`"))
}

/// Reads `{scope, name}`; everything that is wrong with it is said at once.
fn read(document: &Value) -> Result<NewRecording, Vec<Detail>> {
    let Value::Object(members) = document else {
        let detail = "the document must be an object, like {\"scope\": \"job-7\"}";
        return Err(vec![Detail::at("", detail)]);
    };
    let mut errors = Vec::new();
    let mut text = |name: &str, fits: fn(&str) -> bool, allowed: &str| match members.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if fits(text) => Some(text.clone()),
        Some(_) => {
            errors.push(Detail::at(
                format!("/{name}"),
                format!("`{name}` must be {allowed}"),
            ));
            None
        }
    };
    let scope = text(
        "scope",
        squall_proxy::is_scope_name,
        "1 to 128 characters of a-z, A-Z, 0-9, `.`, `_` and `-`, the first no `.`, and no key",
    );
    let is_title = |text: &str| {
        (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control)
    };
    let name = text("name", is_title, "1 to 200 printable characters");
    for member in members
        .keys()
        .filter(|name| !MEMBERS.contains(&name.as_str()))
    {
        let shown: String = member.chars().take(40).collect();
        let detail = match nearest(member, MEMBERS) {
            Some(near) => format!("unknown field `{shown}`, did you mean `{near}`?"),
            None => format!("unknown field `{shown}`; there are scope and name"),
        };
        errors.push(Detail::at(format!("/{shown}"), detail));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(NewRecording {
        name,
        scope,
        ..NewRecording::default()
    })
}
