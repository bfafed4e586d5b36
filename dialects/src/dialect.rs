//! What a provider's wire format must be able to say: the seam between providers and faults.

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Method, StatusCode};

use crate::json::{Document, Edits, NodeId, Value, quote};
use crate::model::{
    Conversation, DeltaKind, Finish, Finished, ModelError, ModelRequest, Reading, ResultSaying,
    Saying, ToolResult,
};
use crate::stream::{Frame, Framing, Made};

/// One provider's wire format.
///
/// Implementations hold no state and decide nothing: the same input gives the same output. They
/// know JSON, never bytes of a stream: how events are framed is [`crate::stream`]'s, and every
/// event they make up is a [`Made`] that the framing lays out.
pub trait Dialect: Debug + Send + Sync {
    /// The name in files, API and metrics: `openai-chat`.
    fn name(&self) -> &'static str;

    // ── Recognition ────────────────────────────────────────────────────────────────────────────

    /// Whether a request with this method and target looks like this dialect. The host is never
    /// asked. Several dialects may say yes to one path: the body decides then.
    fn recognises(&self, method: &Method, target: Target<'_>) -> bool;

    /// Whether a request's body has this dialect's shape, and no other's that shares its paths.
    fn confirms(&self, body: Value<'_>) -> bool;

    // ── The request ────────────────────────────────────────────────────────────────────────────

    /// What a request asks for. `body` is its outermost object, maybe of a prefix only: what was
    /// cut off counts as absent. What stands in the path (Gemini's and Bedrock's model) counts,
    /// too.
    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest;

    /// What a request's conversation says, and where.
    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d>;

    /// Whether the provider may keep the conversation, so that a request brings results of tools without
    /// the calls that name those.
    fn keeps_conversations(&self) -> bool {
        false
    }

    /// A message as it stands in the list of messages, as JSON, by which the user says `text`.
    fn user_message(&self, text: &str) -> String;

    /// Makes a tool's result say this and nothing else; id and pairing stay.
    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        let _ = body;
        edits.replace(result.content, quote(saying.text()));
    }

    // ── The answer ─────────────────────────────────────────────────────────────────────────────

    /// How the answer's body is laid out. `request` is what the request's body asked for, when it
    /// was read. `None`: in no form that can be read.
    ///
    /// A dialect that streams under the media type of a whole answer overrides this.
    fn form(
        &self,
        target: Target<'_>,
        request: Option<&ModelRequest>,
        headers: &HeaderMap,
    ) -> Option<AnswerForm> {
        let _ = (target, request);
        AnswerForm::of(headers)
    }

    /// What a whole answer says.
    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d>;

    /// What one event of a stream says.
    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d>;

    /// Whether an event's data that are not JSON are the mark that ends a stream. Marks that are
    /// JSON are told by [`Reading::ends`].
    fn is_end_mark(&self, data: &[u8]) -> bool {
        let _ = data;
        false
    }

    /// Whether a choice that called tools ends with the same word as one that said everything.
    /// An event that ends a choice does not tell then which of both it was: the calls came before.
    fn tool_calls_end_as_done(&self) -> bool {
        false
    }

    // ── Changing an answer ─────────────────────────────────────────────────────────────────────

    /// Makes `document`, a whole answer or an event's data, say that a choice ends for this
    /// reason; `None`: that it has not ended yet. `at` is what was read there.
    ///
    /// Returns the event's new name, where a stream's event is named after it.
    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str>;

    /// Makes the part of an answer, or of an event's data, that a text at `place` belongs to say that it
    /// was cut short, where the provider says so of parts.
    fn put_cut(&self, edits: &mut Edits<'_>, document: &Document<'_>, place: NodeId) {
        let _ = (edits, document, place);
    }

    /// Takes out of a whole answer what stands behind `part` and is no word of the model's: results of
    /// tools that the provider runs itself. By default there are none.
    fn remove_results_behind(&self, edits: &mut Edits<'_>, answer: &Document<'_>, part: u64) {
        let _ = (edits, answer, part);
    }

    /// Whether this provider's answers have a place of their own for refusals, or have a `finish` that
    /// tells them; false where [`Saying::Refusal`] would reach no reader, so that a refusal is said
    /// as text. The `context` tells which provider it is where the dialect has many.
    fn tells_refusals(&self, context: &ErrorContext<'_>) -> bool {
        let _ = context;
        true
    }

    /// The events that end a choice before its time, in order, all but [`Self::end`].
    ///
    /// `event` belongs to the choice: the model the new ones are made after, so that ids and
    /// unknown fields are carried over. Empty when it cannot serve as one, or when the end repeats
    /// what only the upstream knows: then the upstream's own end is waited for and edited.
    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made>;

    /// The events that end a stream once every choice has ended; empty when the provider sends
    /// none.
    fn end(&self, framing: Framing) -> Vec<Made>;

    /// Makes a whole answer's `choice` say this, end for this reason, and nothing else: no tool
    /// call. The thinking before the first words stays as it is. False, and no edits, when the answer holds no such choice. Asked of the
    /// event that ends a stream, too: one that repeats the whole answer is edited likewise.
    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool;

    /// The events by which `choice` says this, made after `event`: the first that would have said
    /// something else, opened a part or ended the choice. No part is open when they come, and the
    /// one that they open is left to be closed by [`Self::finish_events`], which are asked for with
    /// the same `event`. Empty when it cannot serve as a model, or the provider cannot say it.
    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made>;

    /// Whether the event that ends a stream says, by [`Self::say`], what no [`Self::say_events`] did.
    fn says_at_the_end(&self) -> bool {
        false
    }

    /// Whether an answer (or event) of this provider ends with [`Finish::BadTool`] and no call where a
    /// model writes arguments that are not JSON.
    fn drops_bad_calls(&self, answer: Value<'_>) -> bool {
        let _ = answer;
        false
    }

    /// Whether this provider checks the arguments that a model writes, and answers with an error where
    /// they are not JSON. The `context` tells which provider it is where the dialect has many.
    fn rejects_bad_calls(&self, context: &ErrorContext<'_>) -> bool {
        let _ = context;
        false
    }

    /// The number that an event bears, where a stream's events are numbered one by one.
    fn number<'d>(&self, event: Event<'d>) -> Option<Value<'d>> {
        let _ = event;
        None
    }

    /// The whole answer that says what a stream said, as the provider would have given it had no
    /// stream been asked for. `None`: the stream was too broken for that, or nobody wrote it yet.
    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        let _ = transcript;
        None
    }

    // ── Errors ─────────────────────────────────────────────────────────────────────────────────

    /// The reply with which this provider reports `error` instead of an answer.
    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply;

    /// The event with which this provider reports `error` in a stream that has begun. `after` is
    /// the event before it, when there was one. `None`: it reports none, it breaks off.
    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made>;
}

/// Where a request goes, as far as dialects care: path and query of the upstream's URL, and the host where
/// a path that many share is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    path: &'a str,
    query: &'a str,
    host: &'a str,
}

impl<'a> Target<'a> {
    /// From a path with or without query.
    pub fn new(path_and_query: &'a str) -> Self {
        let mark = |text: &str, mark: u8| memchr::memchr(mark, text.as_bytes());
        let end = mark(path_and_query, b'#').unwrap_or(path_and_query.len());
        let whole = &path_and_query[..end];
        let (path, query) = match mark(whole, b'?') {
            Some(at) => (&whole[..at], &whole[at + 1..]),
            None => (whole, ""),
        };
        Self {
            path: path.strip_suffix('/').unwrap_or(path),
            query,
            host: "",
        }
    }

    /// The same at this host. No dialect is recognised by it: it tells apart whose errors a dialect's
    /// are, where a path is several providers'.
    #[must_use]
    pub fn at(self, host: &'a str) -> Self {
        Self { host, ..self }
    }

    /// The host, in lower case; empty where nobody said.
    pub fn host(self) -> &'a str {
        self.host
    }

    /// Everything behind the `?`, not decoded; empty where there is nothing.
    pub fn query(self) -> &'a str {
        self.query
    }

    /// The path, without a slash at its end; not decoded.
    pub fn path(self) -> &'a str {
        self.path
    }

    /// The first value of a query parameter, not decoded.
    pub fn parameter(self, name: &str) -> Option<&'a str> {
        let mut pairs = self
            .query
            .split('&')
            .filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
    }
}

impl Default for Target<'_> {
    fn default() -> Self {
        Self::new("")
    }
}

/// One event of a stream, as dialects read it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'d> {
    name: Name<'d>,
    /// Its data.
    pub document: &'d Document<'d>,
}

#[derive(Debug, Clone, Copy)]
enum Name<'d> {
    Of(&'d Frame),
    Given(Option<&'d str>),
}

impl<'d> Event<'d> {
    /// The event in `frame`, whose data `document` is.
    pub fn of(frame: &'d Frame, document: &'d Document<'d>) -> Self {
        Self {
            name: Name::Of(frame),
            document,
        }
    }

    /// An event without a frame.
    pub fn named(name: Option<&'d str>, document: &'d Document<'d>) -> Self {
        Self {
            name: Name::Given(name),
            document,
        }
    }

    /// Its name; `None` when it has none, or the framing has no names. Looked up at every call.
    pub fn name(self) -> Option<&'d str> {
        match self.name {
            Name::Of(frame) => frame.name(),
            Name::Given(name) => name,
        }
    }

    /// The outermost value of its data.
    pub fn root(self) -> Value<'d> {
        self.document.root()
    }
}

/// The end of a choice that ends before its time.
#[derive(Debug, Clone, Copy)]
pub struct EndOfChoice<'a> {
    /// Which alternative answer it is.
    pub choice: u64,
    /// Why it ends.
    pub finish: &'a Finish,
    /// Tokens that the agent got of it, as Squall counts.
    pub tokens: u64,
    /// Where it was made to say other words than the model's: the tokens of those, thinking apart. What
    /// the provider has counted is of the model's.
    pub instead: Option<u64>,
    /// Whether the agent got anything of the part that the event belongs to: the event itself, an
    /// earlier one, or what [`Dialect::say_events`] made of it. If not, there is nothing to close.
    pub kept: bool,
}

/// What a stream said, put together.
#[derive(Debug, Clone)]
pub struct Transcript<'a> {
    /// The first event that was read.
    pub first: Event<'a>,
    /// The last event that was read and held an answer or its counts.
    pub last: Event<'a>,
    /// What was said, ascending by choice and in the order in which it was begun.
    pub parts: Vec<Part>,
    /// Why each choice ended.
    pub finishes: Vec<(u64, Finish)>,
    /// Tokens in and out, as far as they were counted.
    pub tokens: (Option<u64>, Option<u64>),
}

/// A part of a choice, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Which alternative answer it belongs to.
    pub choice: u64,
    /// Which part of it, as [`crate::model::Delta::part`] numbers them.
    pub part: u64,
    /// Text, reasoning or refusal; [`DeltaKind::ToolArguments`] for a tool call.
    pub kind: DeltaKind,
    /// The text, or the arguments as JSON.
    pub text: String,
    /// Of a tool call: its id and the tool's name.
    pub call: Option<(String, String)>,
    /// What it was signed with.
    pub signature: Option<String>,
}

/// What a made-up error may mention of the exchange it answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorContext<'a> {
    /// What ids and other irregular figures are derived from: the exchange's own draw.
    pub draw: u64,
    /// What the names of the account are derived from: the same for all that one agent asks.
    pub account: u64,
    /// By what the request says who asks.
    pub credential: Option<Credential<'a>>,
    /// Where the request goes.
    pub target: Target<'a>,
    /// The model asked for, when the request was read.
    pub model: Option<&'a str>,
    /// Whether a stream was asked for; false when the request was not read.
    pub stream: bool,
    /// How many tokens the request holds, when it was read and the error says so
    /// ([`ModelError::counts_input`]).
    pub input_tokens: Option<u64>,
    /// What time it is, counted from 1970. `None`: not known, so no date is mentioned.
    pub now: Option<Duration>,
}

/// By what a request says who asks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Credential<'a> {
    /// `Authorization: Bearer`.
    Bearer(&'a str),
    /// A header of the provider's for its keys.
    Key(&'a str),
}

impl<'a> Credential<'a> {
    /// The credential among a request's headers; the provider's own header first.
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let keys = ["x-api-key", "api-key", "x-goog-api-key"];
        if let Some(key) = keys.into_iter().find_map(text) {
            return Some(Self::Key(key));
        }
        let (scheme, token) = text("authorization")?.split_once(' ')?;
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        is_bearer.then(|| Self::Bearer(token.trim()))
    }
}

/// Says of which sort it is, never which.
impl fmt::Debug for Credential<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer",
            Self::Key(_) => "Key",
        })
    }
}

/// A complete HTTP response as a provider would send it, but for `date` and `content-length`,
/// which belong to whoever sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct WireReply {
    /// Status.
    pub status: StatusCode,
    /// Headers, `content-type` included.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// How an answer's body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerForm {
    /// One JSON document.
    Json,
    /// Events.
    Stream(Framing),
}

impl AnswerForm {
    /// The form that a response's `content-type` announces. `None`: no form that can be read.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let media_type = media_type(headers)?;
        let stream = |framing| Some(Self::Stream(framing));
        match &*media_type {
            "text/event-stream" => stream(Framing::Sse),
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => {
                stream(Framing::Lines)
            }
            "application/vnd.amazon.eventstream" => stream(Framing::AwsEvents),
            "application/json" => Some(Self::Json),
            other => other.ends_with("+json").then_some(Self::Json),
        }
    }
}

/// The media type of a message's body, in lower case and without parameters.
pub fn media_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media_type = value.split(';').next().unwrap_or_default().trim();
    Some(
        if media_type.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(media_type.to_ascii_lowercase())
        } else {
            Cow::Borrowed(media_type)
        },
    )
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_content_type_tells_the_form() {
        let stream = |framing| Some(AnswerForm::Stream(framing));
        for (value, expected) in [
            ("application/json", Some(AnswerForm::Json)),
            ("application/json; charset=utf-8", Some(AnswerForm::Json)),
            ("application/problem+json", Some(AnswerForm::Json)),
            ("Text/Event-Stream;charset=utf-8", stream(Framing::Sse)),
            ("application/x-ndjson", stream(Framing::Lines)),
            (
                "application/vnd.amazon.eventstream",
                stream(Framing::AwsEvents),
            ),
            ("text/html", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]);
            assert_eq!(AnswerForm::of(&headers), expected, "{value}");
        }
        assert_eq!(AnswerForm::of(&HeaderMap::new()), None);
    }

    #[test]
    fn a_target_is_a_path_and_parameters() {
        let target = Target::new("/v1/x:stream/?key=1&alt=sse&alt=json#alt=no");
        assert_eq!(target.path(), "/v1/x:stream");
        assert_eq!(target.parameter("alt"), Some("sse"));
        assert_eq!(target.parameter("lt"), None);
        assert_eq!(Target::new("/x").parameter("x"), None);
    }
}
