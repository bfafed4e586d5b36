//! Tapes: recorded responses in place of a scope's upstreams.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use squall_documents::Fields;
use squall_harness::session;
use squall_journal::tape::{ModelSource, Otherwise, Session};
use squall_proxy::tape::{Playing, PlayingOptions};

use super::path::Scope;
use crate::access::Caller;
use crate::document::RequestDocument;
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::recordings::Recordings;
use crate::state::ApiState;
use crate::store::{DocumentKey, DocumentKind};
use crate::stored_documents::newest;
use crate::tasks;

/// Slowest and fastest playback; 0 means at once.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// A tape that a scope plays.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tape")]
pub(super) struct TapeLine {
    /// The scope whose exchanges it answers.
    scope: String,
    /// Its source: `recording ID`, `replay ID` or `session ID`.
    source: String,
    /// `error` or `passthrough`.
    on_miss: &'static str,
    /// `error` or `passthrough`.
    on_exhausted: &'static str,
    /// Speed of playback; 0: responses are sent at once.
    speed: f64,
    /// Requests answered from the tape.
    served: u64,
    /// Requests without a response on the tape, or without an unused one.
    missed: u64,
    /// Missed requests whose responses were all used.
    exhausted: u64,
    /// Requests and tunnels sent upstream.
    dialled: u64,
    /// Responses on the tape.
    answers: u64,
    /// Unused responses.
    left: u64,
}

impl TapeLine {
    fn of(scope: &str, playing: &Playing) -> Self {
        let (options, counts) = (playing.options(), playing.counts());
        Self {
            scope: scope.to_owned(),
            source: playing.source().to_owned(),
            on_miss: options.on_miss.as_str(),
            on_exhausted: options.on_exhausted.as_str(),
            speed: options.speed,
            served: counts.served,
            missed: counts.missed,
            exhausted: counts.exhausted,
            dialled: counts.dialled,
            answers: counts.answers,
            left: counts.left,
        }
    }

    /// The tape that a scope plays now.
    fn playing(state: &ApiState, scope: &str) -> Option<Self> {
        let playing = state.chaos.tapes().playing(scope);
        playing.map(|playing| Self::of(scope, &playing))
    }
}

impl TapeLine {
    /// A tape, for the audit log.
    fn told(&self) -> String {
        format!(
            "{}, on_miss {}, on_exhausted {}",
            self.source, self.on_miss, self.on_exhausted
        )
    }
}

/// The tapes that the caller's scopes play, by scope.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<TapeLine>>, ApiProblem> {
    let limit = page::limit(&mut params);
    let after = page::after_name(&mut params);
    params.finish()?;
    let seen = caller.scopes();
    let mut playing = state.chaos.tapes().all_playing();
    playing.retain(|(scope, _)| seen.hold(scope));
    let mut lines: Vec<_> = playing
        .iter()
        .map(|(scope, playing)| TapeLine::of(scope, playing))
        .collect();
    lines.sort_unstable_by(|a, b| a.scope.cmp(&b.scope));
    Ok(page::by_name(
        lines,
        |one| &one.scope,
        after.as_deref(),
        limit,
    ))
}

/// The tape of a scope, and its counters.
pub(super) async fn show(
    State(state): State<ApiState>,
    Scope(scope): Scope,
    params: Params,
) -> Result<Json<TapeLine>, ApiProblem> {
    params.finish()?;
    let line = TapeLine::playing(&state, &scope).map(Json);
    line.ok_or_else(|| ApiProblem::not_found(format!("scope `{scope}` plays no tape")))
}

/// Answers a scope's exchanges from a tape, from its beginning.
pub(super) async fn put(
    State(state): State<ApiState>,
    caller: Caller,
    Scope(scope): Scope,
    params: Params,
    document: RequestDocument,
) -> Result<Json<TapeLine>, ApiProblem> {
    params.finish()?;
    let wanted = document.fields(read)?;
    let (source, session) = find(&state, &caller, wanted.source).await?;
    let options = PlayingOptions {
        on_miss: wanted.on_miss.or(session.on_miss).unwrap_or_default(),
        on_exhausted: wanted
            .on_exhausted
            .or(session.on_exhausted)
            .unwrap_or_default(),
        speed: wanted.speed,
        live_models: session.models == Some(ModelSource::Live),
    };
    let playing = tasks::blocking(move || Playing::new(source, &session, options)).await;
    let line = TapeLine::of(&scope, &playing);
    let before = TapeLine::playing(&state, &scope);
    let played = state.chaos.play(&scope, playing);
    played.map_err(|over| ApiProblem::conflict(over.to_string()))?;
    caller.changed(before.as_ref(), Some(&line), line.told());
    Ok(Json(line))
}

/// Removes a scope's tape: its exchanges use their upstreams again.
pub(super) async fn delete(
    State(state): State<ApiState>,
    caller: Caller,
    Scope(scope): Scope,
    params: Params,
) -> Result<StatusCode, ApiProblem> {
    params.finish()?;
    let before = TapeLine::playing(&state, &scope);
    state.chaos.take_out_tape(&scope);
    let detail = before.as_ref().map(TapeLine::told).unwrap_or_default();
    caller.changed(before.as_ref(), None, detail);
    Ok(StatusCode::NO_CONTENT)
}

/// A request to play a tape.
struct TapeRequest {
    source: TapeSource,
    on_miss: Option<Otherwise>,
    on_exhausted: Option<Otherwise>,
    speed: f64,
}

enum TapeSource {
    Recording(String),
    Replay(String),
    Session(Box<Session>),
}

/// The session to play, and its source in words.
async fn find(
    state: &ApiState,
    caller: &Caller,
    source: TapeSource,
) -> Result<(String, Session), ApiProblem> {
    match source {
        TapeSource::Session(session) => Ok((format!("session {}", session.id), *session)),
        TapeSource::Recording(id) => {
            let recordings = &state.recordings;
            let found = recordings.find(caller.workspace(), &id).await?;
            let recording = found.ok_or_else(|| nothing("recording", &id))?;
            let recorded = recordings.recorded(&recording).await?;
            let session = Recordings::session(&recording, &recorded);
            Ok((format!("recording {id}"), session))
        }
        TapeSource::Replay(id) => {
            let key = DocumentKey {
                workspace: caller.workspace().to_owned(),
                kind: DocumentKind::Replay,
                name: id.clone(),
            };
            let found = newest(&state.store, &key).await?;
            let (_, text) = found.ok_or_else(|| nothing("replay", &id))?;
            let session = session::parse(&id, &text.body).map_err(|errors| {
                let first = errors.first().map(ToString::to_string);
                let first = first.unwrap_or_default();
                ApiProblem::internal(format!("the stored replay cannot be read: {first}"))
            })?;
            Ok((format!("replay {id}"), session))
        }
    }
}

fn nothing(what: &str, id: &str) -> ApiProblem {
    let id: String = id.chars().take(64).collect();
    let detail = format!("there is no {what} `{id}`");
    ApiProblem::invalid_at(format!("/{what}"), detail)
}

/// Reads the request.
fn read(fields: &mut Fields<'_, '_>) -> Option<TapeRequest> {
    let source = source(fields);
    let on_miss = fields.word("on_miss", "", "action", Otherwise::NAMES);
    let on_exhausted = fields.word("on_exhausted", "", "action", &Otherwise::NAMES[..2]);
    let speed = fields.field("speed", "", |value| {
        let speed = value.real(0.0..=*SPEEDS.end(), "")?;
        if speed != 0.0 && !SPEEDS.contains(&speed) {
            value.error("expected 0 (answers come at once) or 0.001 to 1000 (1: as recorded)");
        }
        Some(speed)
    });
    Some(TapeRequest {
        source: source?,
        on_miss,
        on_exhausted,
        speed: speed.unwrap_or(0.0),
    })
}

fn source(fields: &mut Fields<'_, '_>) -> Option<TapeSource> {
    let given = ["recording", "replay", "session"];
    let given = given.into_iter().filter(|name| fields.has(name));
    if given.count() != 1 {
        let detail =
            "a tape is played of one of `recording`, `replay` and `session`; give one of them";
        fields.reader.error(fields.position, detail);
    }
    let recording = fields.exact_words("recording", "");
    let recording = recording.map(|id| TapeSource::Recording(id.value));
    let replay = fields.exact_words("replay", "");
    let replay = replay.map(|id| TapeSource::Replay(id.value));
    let session = fields.field("session", "", session::read_whole);
    let session = session.map(|session| TapeSource::Session(Box::new(session)));
    recording.or(replay).or(session)
}
