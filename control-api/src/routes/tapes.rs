//! Tapes: recorded answers in the place of a scope's upstreams.

use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use squall_harness::session;
use squall_journal::tape::{Otherwise, Session};
use squall_proxy::tape::{Counts, Playing, PlayingOptions};

use super::chaos::check_seen;
use super::path::Scope;
use crate::ApiState;
use crate::access::Caller;
use crate::document::LongDocument;
use crate::nearest::nearest;
use crate::openapi::Operation;
use crate::problem::{Detail, Problem};
use crate::query::Params;
use crate::recordings::Recordings;
use crate::runs::documents::ReplayDocument;
use crate::store::DocumentKind;
use crate::stored_documents::Collection;

const MEMBERS: [&str; 6] = [
    "recording",
    "replay",
    "session",
    "on_miss",
    "on_exhausted",
    "speed",
];

/// Fastest and slowest that a tape is played, beside at once.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// What to play: one of `recording`, `replay` and `session`.
#[derive(JsonSchema)]
#[schemars(rename = "NewTape", deny_unknown_fields)]
#[expect(dead_code, reason = "says what `read` takes")]
pub(super) struct Asked {
    /// Id of a recording.
    recording: Option<String>,
    /// Id of a replay session that was put.
    replay: Option<String>,
    /// A replay session.
    session: Option<ReplayDocument>,
    /// What becomes of a request that nothing was recorded of; as the session says, else `error`.
    on_miss: Option<Else>,
    /// What becomes of a request all of whose answers were given; as the session says, else `error`.
    on_exhausted: Option<Else>,
    /// 0 (default): answers come at once; 1: as recorded; 2: twice as fast.
    #[schemars(range(min = 0, max = 1000))]
    speed: Option<f64>,
}

/// What becomes of a request that a tape has no answer for.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case", inline)]
#[expect(dead_code, reason = "says what words there are")]
enum Else {
    /// It is refused, and nothing is dialled.
    Error,
    /// It goes to its upstream.
    Passthrough,
}

/// A tape that plays.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tape")]
pub(super) struct Line {
    /// The scope whose exchanges it answers.
    scope: String,
    /// Where it comes from: `recording ID`, `replay ID` or `session ID`.
    source: String,
    /// `error` or `passthrough`.
    on_miss: &'static str,
    /// `error` or `passthrough`.
    on_exhausted: &'static str,
    /// 0: answers come at once.
    speed: f64,
    /// Requests answered from the tape.
    served: u64,
    /// Requests that it had no answer for, or none any more.
    missed: u64,
    /// Of those missed: all answers had been given.
    exhausted: u64,
    /// Requests and tunnels that went upstream.
    dialled: u64,
    /// Answers on the tape.
    answers: u64,
    /// Answers that were not given yet.
    left: u64,
}

impl Line {
    fn of(scope: String, playing: &Playing) -> Self {
        let options = playing.options();
        let Counts {
            served,
            missed,
            exhausted,
            dialled,
            answers,
            left,
        } = playing.counts();
        Self {
            scope,
            source: playing.source().to_owned(),
            on_miss: options.on_miss.as_str(),
            on_exhausted: options.on_exhausted.as_str(),
            speed: options.speed,
            served,
            missed,
            exhausted,
            dialled,
            answers,
            left,
        }
    }
}

impl Line {
    /// Which tape, for the audit log.
    fn told(&self) -> String {
        format!(
            "{}, on_miss {}, on_exhausted {}",
            self.source, self.on_miss, self.on_exhausted
        )
    }
}

/// The tape of a scope, and what came of it.
pub(super) async fn show(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    params: Params,
) -> Result<Json<Line>, Problem> {
    params.finish()?;
    check_seen(&caller, &scope)?;
    match state.chaos.tapes().playing(&scope) {
        Some(playing) => Ok(Json(Line::of(scope, &playing))),
        None => Err(Problem::not_found(format!("scope `{scope}` plays no tape"))),
    }
}

pub(super) fn show_operation() -> Operation {
    Operation::new("show_tape", "The tape of a scope, and what came of it")
        .answers::<Line>(200, "The tape")
        .problems([404])
}

/// Answers a scope's exchanges from a tape, from its beginning.
pub(super) async fn put(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    params: Params,
    LongDocument(document): LongDocument,
) -> Result<Json<Line>, Problem> {
    params.finish()?;
    check_seen(&caller, &scope)?;
    let wanted = read(&document.value()?).map_err(Problem::invalid)?;
    let (source, session) = find(&state, &caller, wanted.source).await?;
    let options = PlayingOptions {
        on_miss: wanted.on_miss.or(session.on_miss).unwrap_or_default(),
        on_exhausted: wanted
            .on_exhausted
            .or(session.on_exhausted)
            .unwrap_or_default(),
        speed: wanted.speed,
    };
    let made = tokio::task::spawn_blocking(move || Playing::new(source, &session, options));
    let playing = made
        .await
        .map_err(|error| Problem::internal(format!("the tape cannot be made: {error}")))?;
    let line = Line::of(scope.clone(), &playing);
    let before = state.chaos.tapes().playing(&scope);
    let before = before.map(|playing| Line::of(scope.clone(), &playing));
    let played = state.chaos.play(&scope, playing);
    played.map_err(|over| Problem::conflict(over.to_string()))?;
    caller.changed(before.as_ref(), Some(&line), line.told());
    Ok(Json(line))
}

pub(super) fn put_operation() -> Operation {
    Operation::new("put_tape", "Answers a scope's exchanges from a tape")
        .about(
            "In recorded order per method, URL and body. Rules still apply. With `on_miss` and \
             `on_exhausted` both `error`, nothing is dialled.",
        )
        .takes::<Asked>()
        .answers::<Line>(200, "The tape, at its beginning")
        .problems([404, 409])
        .asks_store()
}

/// Takes a scope's tape away: its exchanges go to their upstreams again.
pub(super) async fn delete(
    State(state): State<ApiState>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    params: Params,
) -> Result<StatusCode, Problem> {
    params.finish()?;
    check_seen(&caller, &scope)?;
    let before = state.chaos.tapes().playing(&scope);
    let before = before.map(|playing| Line::of(scope.clone(), &playing));
    state.chaos.take_out_tape(&scope);
    let detail = before.as_ref().map(Line::told).unwrap_or_default();
    caller.changed(before.as_ref(), None, detail);
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn delete_operation() -> Operation {
    Operation::new("delete_tape", "Takes a scope's tape away")
        .empty(204, "There is none any more, or there was none")
        .problems([404])
}

/// What is asked for.
struct Wanted {
    source: Source,
    on_miss: Option<Otherwise>,
    on_exhausted: Option<Otherwise>,
    speed: f64,
}

enum Source {
    Recording(String),
    Replay(String),
    Session(Box<Session>),
}

/// The session that is meant, and how people are told where it comes from.
async fn find(
    state: &ApiState,
    caller: &Caller,
    source: Source,
) -> Result<(String, Session), Problem> {
    match source {
        Source::Session(session) => Ok((format!("session {}", session.id), *session)),
        Source::Recording(id) => {
            let recordings = &state.recordings;
            let found = recordings.find(caller.workspace(), &id).await;
            let found = found.map_err(|error| Problem::store(&error))?;
            let recording = found.ok_or_else(|| nothing("recording", &id))?;
            let recorded = recordings.recorded(&recording).await;
            let recorded = recorded.map_err(|error| Problem::store(&error))?;
            let session = Recordings::session(&recording, &recorded);
            Ok((format!("recording {id}"), session))
        }
        Source::Replay(id) => {
            let replays = Collection {
                workspace: caller.workspace().to_owned(),
                kind: DocumentKind::Replay,
            };
            let found = state.documents.newest(&replays, &id).await;
            let found = found.map_err(|error| Problem::store(&error))?;
            let replay = found.ok_or_else(|| nothing("replay", &id))?;
            let session = session::parse(&id, &replay.body).map_err(|errors| {
                let first = errors.first().map(ToString::to_string);
                let first = first.unwrap_or_default();
                Problem::internal(format!("the stored replay cannot be read: {first}"))
            })?;
            Ok((format!("replay {id}"), session))
        }
    }
}

fn nothing(what: &str, id: &str) -> Problem {
    let id: String = id.chars().take(64).collect();
    let detail = format!("there is no {what} `{id}`");
    Problem::invalid(vec![Detail::at(format!("/{what}"), detail)])
}

/// Reads what is asked for; everything that is wrong with it is said at once.
fn read(document: &Value) -> Result<Wanted, Vec<Detail>> {
    let Value::Object(members) = document else {
        let detail = "the document must be an object, like {\"recording\": \"ID\"}";
        return Err(vec![Detail::at("", detail)]);
    };
    let mut errors = Vec::new();
    for member in members
        .keys()
        .filter(|name| !MEMBERS.contains(&name.as_str()))
    {
        let shown: String = member.chars().take(40).collect();
        let detail = match nearest(member, MEMBERS) {
            Some(near) => format!("unknown field `{shown}`, did you mean `{near}`?"),
            None => format!("unknown field `{shown}`; there are {}", MEMBERS.join(", ")),
        };
        errors.push(Detail::at(format!("/{shown}"), detail));
    }
    let source = source(members, &mut errors);
    let on_miss = otherwise(members, "on_miss", &mut errors);
    let on_exhausted = otherwise(members, "on_exhausted", &mut errors);
    let speed = match members.get("speed") {
        None | Some(Value::Null) => Some(0.0),
        Some(speed) => speed
            .as_f64()
            .filter(|speed| *speed == 0.0 || SPEEDS.contains(speed)),
    };
    if speed.is_none() {
        let detail = "`speed` must be 0 (answers come at once) or 0.001 to 1000 (1: as recorded)";
        errors.push(Detail::at("/speed", detail));
    }
    match (source, speed) {
        (Some(source), Some(speed)) if errors.is_empty() => Ok(Wanted {
            source,
            on_miss,
            on_exhausted,
            speed,
        }),
        _ => Err(errors),
    }
}

fn source(members: &Map<String, Value>, errors: &mut Vec<Detail>) -> Option<Source> {
    let given: Vec<&str> = MEMBERS[..3]
        .iter()
        .copied()
        .filter(|name| members.get(*name).is_some_and(|value| !value.is_null()))
        .collect();
    let [only] = given.as_slice() else {
        let detail =
            "a tape is played of one of `recording`, `replay` and `session`; give one of them";
        errors.push(Detail::at("", detail));
        return None;
    };
    let value = members.get(*only)?;
    if *only == "session" {
        return match session::parse("session", &value.to_string()) {
            Ok(session) => Some(Source::Session(Box::new(session))),
            Err(wrong) => {
                errors.extend(
                    wrong.into_iter().map(|error| {
                        Detail::at(format!("/session{}", error.pointer), error.message)
                    }),
                );
                None
            }
        };
    }
    let Some(id) = value.as_str() else {
        let detail = format!("`{only}` must be an id, a text");
        errors.push(Detail::at(format!("/{only}"), detail));
        return None;
    };
    Some(match *only {
        "recording" => Source::Recording(id.to_owned()),
        _ => Source::Replay(id.to_owned()),
    })
}

fn otherwise(
    members: &Map<String, Value>,
    name: &str,
    errors: &mut Vec<Detail>,
) -> Option<Otherwise> {
    let value = members.get(name).filter(|value| !value.is_null())?;
    let read = value.as_str().and_then(Otherwise::parse);
    if read.is_none() {
        let detail = format!("`{name}` must be error or passthrough");
        errors.push(Detail::at(format!("/{name}"), detail));
    }
    read
}
