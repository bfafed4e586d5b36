//! The interface between providers and faults: what a provider's wire format must implement.

use std::fmt::Debug;

use http::HeaderMap;

use crate::answer::{AnswerForm, Event, Transcript};
use crate::errors::{ErrorContext, ErrorTerms, Templates, WireReply};
use crate::json::{Document, Edits, NodeId, Value, quote};
use crate::model::{
    Conversation, Finish, FinishWords, Finished, ModelError, ModelRequest, Reading, ResultSaying,
    Saying, ToolResult, UsageKeys,
};
use crate::stream::SyntheticEvent;
use crate::target::Target;

/// A property in which a provider differs from most others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// The provider may store the conversation. A request then contains tool results without the calls that name
    /// the tools.
    KeepsConversations,
    /// A choice with tool calls ends with the same finish reason as one without. The event that ends the choice
    /// does not show which it is, because the calls came earlier.
    ToolCallsEndAsDone,
    /// No events can be added to a stream, so [`Dialect::say`] adds new text to the event that ends it.
    SaysAtTheEnd,
    /// Answers have neither a refusal field nor a finish reason for refusals, so a refusal is plain text.
    NoRefusals,
    /// The provider validates the arguments that a model generates, and responds with an error if they are not
    /// JSON.
    RejectsBadCalls,
}

/// The constants of a provider.
#[derive(Debug)]
pub struct Provider {
    /// Name of the dialect in files, API and metrics, such as `openai-chat`.
    pub dialect: &'static str,
    /// Name of the provider's endpoint in the configuration: the dialect, or a variation of it
    /// (`openai-chat/groq`).
    pub endpoint: &'static str,
    /// How the provider differs from most others.
    pub quirks: &'static [Quirk],
    /// The field with an event's sequence number, if the provider numbers events.
    pub event_number: Option<&'static str>,
    /// Event data that ends a stream and is not JSON.
    pub(crate) end_mark: Option<&'static str>,
    pub(crate) finish_words: FinishWords,
    pub(crate) usage: UsageKeys,
    pub(crate) errors: &'static Templates,
}

impl Provider {
    /// Whether the provider has this quirk.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// Whether non-JSON event data is the provider's end-of-stream mark.
    pub fn is_end_mark(&self, data: &[u8]) -> bool {
        let is_same = |mark: &str| data.trim_ascii() == mark.as_bytes();
        self.end_mark.is_some_and(is_same)
    }

    /// The sequence number of an event, if the provider numbers events.
    pub fn number<'d>(&self, event: Event<'d>) -> Option<Value<'d>> {
        event.root().get(self.event_number?)
    }
}

/// One provider's wire format.
///
/// Implementations are stateless and deterministic. They handle JSON, not the bytes of a stream: [`crate::stream`]
/// handles the framing, and every synthetic event is a [`SyntheticEvent`] that the framing serialises.
pub trait Dialect: Debug + Send + Sync {
    /// The constants of the provider.
    fn provider(&self) -> &'static Provider;

    /// The provider that answers a request, because several providers can share one dialect.
    fn provider_of(&self, context: &ErrorContext<'_>) -> &'static Provider {
        let _ = context;
        self.provider()
    }

    // ── The request ────────────────────────────────────────────────────────────────────────────

    /// Whether a POST to this target may be in this dialect. The host is ignored. If several dialects share a path,
    /// the body decides.
    fn recognises(&self, target: Target<'_>) -> bool;

    /// Whether a request's body has this dialect's shape, and not that of a dialect with the same paths.
    fn confirms(&self, body: Value<'_>) -> bool;

    /// Parses a request. `body` is its outermost object, possibly truncated: missing parts count as absent.
    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest;

    /// The conversation of a request, with the places of its parts.
    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d>;

    /// Replaces the content of a tool's result; its id stays.
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

    /// The layout of the response body. `None`: it cannot be read.
    fn form(&self, target: Target<'_>, headers: &HeaderMap) -> Option<AnswerForm> {
        let _ = target;
        AnswerForm::of(headers)
    }

    /// Reads a whole answer, or one event of a stream.
    fn read<'d>(&self, event: Event<'d>) -> Reading<'d>;

    // ── Changing an answer ─────────────────────────────────────────────────────────────────────

    /// Sets the finish reason of a choice in `document`, which is a whole answer or an event's data. `None`: the
    /// choice has not ended. `at` is the place of the original reason.
    ///
    /// Returns the event's new name, if a stream's events are named by their reason.
    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        let _ = document;
        put_word(edits, self.provider(), at.place, finish);
        None
    }

    /// Replaces the text and the finish reason of `choice` in a whole answer, and removes its tool calls. The
    /// reasoning before the text stays. Returns false and makes no edits if there is no such choice. It is also
    /// called for the last event of a stream, which is edited in the same way if it repeats the whole answer.
    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool;

    /// The events that give `choice` this text as a complete part, modelled on `event`. That is the first event with
    /// other text, the start of a part, or the end of the choice. No part is open before them. Empty if `event`
    /// cannot serve as a model, or the provider does not support this.
    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        let _ = (event, choice, saying);
        Vec::new()
    }

    /// The whole answer with the content of a stream, as the provider sends it without streaming. `None`: the
    /// stream was too incomplete.
    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String>;

    // ── Errors ─────────────────────────────────────────────────────────────────────────────────

    /// The values that this provider's errors need beside the exchange. `after` is the event before the error, if
    /// any.
    fn error_terms(&self, context: &ErrorContext<'_>, after: Option<Event<'_>>) -> ErrorTerms {
        let _ = (context, after);
        ErrorTerms::default()
    }

    /// The response with which this provider reports `error` instead of an answer.
    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        let terms = self.error_terms(context, None);
        let errors = self.provider_of(context).errors;
        errors.reply(error, context, &terms)
    }

    /// The event with which this provider reports `error` in the middle of a stream. `after` is the event before
    /// it, if any. `None`: the provider closes the connection instead.
    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<SyntheticEvent> {
        let terms = self.error_terms(context, after);
        let errors = self.provider_of(context).errors;
        errors.event(error, context, &terms, after)
    }

    /// Name in files, API and metrics, such as `openai-chat`.
    fn name(&self) -> &'static str {
        self.provider().dialect
    }
}

/// Writes a provider's finish reason; `null`: the choice has not ended.
pub(crate) fn put_word(
    edits: &mut Edits<'_>,
    provider: &Provider,
    place: NodeId,
    finish: Option<&Finish>,
) {
    let word = finish.map(|finish| quote(provider.finish_words.write(finish)));
    edits.replace(place, word.as_deref().unwrap_or("null"));
}

impl ErrorContext<'_> {
    /// Why the provider has no such error for this request; `None`: it has.
    pub fn rules_out(&self, error: &ModelError, dialect: &dyn Dialect) -> Option<&'static str> {
        let keeps = dialect.provider().has(Quirk::KeepsConversations);
        let (of_request, why) = match error {
            ModelError::PreviousResponse => (
                self.previous_response.is_some(),
                "the request has no `previous_response_id`, or was not read",
            ),
            ModelError::ConnectionLimit => (self.on_websocket, "the call is not on a WebSocket"),
            ModelError::RateLimit { .. }
            | ModelError::QuotaExhausted
            | ModelError::ContextLength
            | ModelError::ContentFilter
            | ModelError::Auth
            | ModelError::ModelNotFound
            | ModelError::Timeout
            | ModelError::ServerError { .. }
            | ModelError::Overloaded => return None,
        };
        if keeps {
            (!of_request).then_some(why)
        } else {
            Some("the dialect has no such error")
        }
    }
}
