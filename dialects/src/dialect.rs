//! The seam between providers and faults: what a provider's wire format must implement.

use std::fmt::Debug;

use http::HeaderMap;

use crate::answer::{AnswerForm, EndOfChoice, Event, Transcript};
use crate::errors::{ErrorContext, ErrorTerms, Templates, WireReply};
use crate::json::{Document, Edits, NodeId, Value, quote};
use crate::model::{
    Conversation, Finish, FinishWords, Finished, ModelError, ModelRequest, Reading, ResultSaying,
    Saying, ToolResult, UsageKeys,
};
use crate::stream::Made;
use crate::target::Target;

/// How a provider differs from most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// The provider may keep the conversation, so that a request brings results of tools without
    /// the calls that name those.
    KeepsConversations,
    /// A choice that called tools ends with the same word as one that said everything. An event
    /// that ends a choice does not tell then which of both it was: the calls came before.
    ToolCallsEndAsDone,
    /// The event that ends a stream says, by [`Dialect::say`], what no [`Dialect::say_events`] did.
    SaysAtTheEnd,
    /// Answers have no place of their own for refusals, nor a `finish` that tells them: a refusal is
    /// said as text.
    NoRefusals,
    /// The provider checks the arguments that a model writes, and answers with an error where they
    /// are not JSON.
    RejectsBadCalls,
}

/// The facts of a provider that are data.
#[derive(Debug)]
pub struct Provider {
    /// The dialect in files, API and metrics: `openai-chat`.
    pub dialect: &'static str,
    /// An endpoint of this provider in the configuration: the dialect, or a variation of it
    /// (`openai-chat/groq`).
    pub endpoint: &'static str,
    /// How the provider differs from most.
    pub quirks: &'static [Quirk],
    /// The member of an event that numbers it, where a stream's events are numbered one by one.
    pub event_number: Option<&'static str>,
    /// The event that ends a stream once every choice has ended: name and data.
    pub(crate) end: Option<(Option<&'static str>, &'static str)>,
    pub(crate) finish_words: FinishWords,
    pub(crate) usage: UsageKeys,
    pub(crate) errors: &'static Templates,
}

impl Provider {
    /// Whether the provider differs from most in this.
    pub fn has(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// Whether an event's data that are not JSON are the mark that ends a stream.
    pub fn is_end_mark(&self, data: &[u8]) -> bool {
        self.end
            .is_some_and(|(_, mark)| data.trim_ascii() == mark.as_bytes())
    }

    /// The event that ends a stream once every choice has ended, if the provider sends one.
    pub fn end_event(&self) -> Option<Made> {
        let (name, data) = self.end?;
        Some(match name {
            Some(name) => Made::event(name, data),
            None => Made::data(data),
        })
    }

    /// The number of an event, where a stream's events are numbered one by one.
    pub fn number<'d>(&self, event: Event<'d>) -> Option<Value<'d>> {
        event.root().get(self.event_number?)
    }
}

/// One provider's wire format.
///
/// Implementations hold no state and decide nothing: the same input gives the same output. They
/// know JSON, never bytes of a stream: how events are framed is [`crate::stream`]'s, and every
/// synthetic event is a [`Made`] that the framing lays out.
pub trait Dialect: Debug + Send + Sync {
    /// The facts of the provider.
    fn provider(&self) -> &'static Provider;

    /// The facts of the provider that answers a request: of one dialect there may be many.
    fn provider_of(&self, context: &ErrorContext<'_>) -> &'static Provider {
        let _ = context;
        self.provider()
    }

    // ── The request ────────────────────────────────────────────────────────────────────────────

    /// Whether a POST to this target looks like this dialect. The host is not asked. Several dialects
    /// may recognise one path: the body decides then.
    fn recognises(&self, target: Target<'_>) -> bool;

    /// Whether a request's body has this dialect's shape, and no other's that shares its paths.
    fn confirms(&self, body: Value<'_>) -> bool;

    /// What a request asks for. `body` is its outermost object, maybe of a prefix only: what was
    /// cut off counts as absent.
    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest;

    /// The conversation of a request, and where it is.
    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d>;

    /// Replaces a tool's result; id and pairing stay.
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

    /// How the answer's body is laid out. `None`: in no form that can be read.
    fn form(&self, target: Target<'_>, headers: &HeaderMap) -> Option<AnswerForm> {
        let _ = target;
        AnswerForm::of(headers)
    }

    /// What a whole answer, or one event of a stream, says.
    fn read<'d>(&self, event: Event<'d>) -> Reading<'d>;

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
    ) -> Option<&'static str> {
        let _ = document;
        put_word(edits, self.provider(), at.place, finish);
        None
    }

    /// The events that end a choice before its time, in order, all but [`Provider::end_event`].
    ///
    /// `event` belongs to the choice: the new ones are modelled on it, so that ids and unknown fields
    /// are carried over. Empty when it cannot serve as one, or when the end repeats
    /// what only the upstream knows: then the upstream's own end is waited for and edited.
    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made>;

    /// Makes a whole answer's `choice` say this, end for this reason, and nothing else: no tool
    /// call. The thinking before the first words stays as it is. False, and no edits, when the answer
    /// holds no such choice. Called for the event that ends a stream, too: one that repeats the whole
    /// answer is edited likewise.
    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool;

    /// The events by which `choice` says this, modelled on `event`: the first that would have said
    /// something else, opened a part or ended the choice. No part is open when they come, and the
    /// one that they open is left to be closed by [`Self::finish_events`], which are asked for with
    /// the same `event`. Empty when it cannot serve as a model, or the provider cannot say it.
    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made>;

    /// The whole answer that says what a stream said, as the provider would have given it had no
    /// stream been requested. `None`: the stream was too broken for that.
    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String>;

    // ── Errors ─────────────────────────────────────────────────────────────────────────────────

    /// What this provider's errors depend on beside the exchange. `after` is the event before the
    /// error, when there was one.
    fn error_terms(&self, context: &ErrorContext<'_>, after: Option<Event<'_>>) -> ErrorTerms {
        let _ = (context, after);
        ErrorTerms::default()
    }

    /// The reply with which this provider reports `error` instead of an answer.
    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        let terms = self.error_terms(context, None);
        let errors = self.provider_of(context).errors;
        errors.reply(error, context, &terms)
    }

    /// The event with which this provider reports `error` in a stream that has begun. `after` is
    /// the event before it, when there was one. `None`: it reports none, it breaks off.
    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made> {
        let terms = self.error_terms(context, after);
        let errors = self.provider_of(context).errors;
        errors.event(error, context, &terms, after)
    }

    /// The name in files, API and metrics: `openai-chat`.
    fn name(&self) -> &'static str {
        self.provider().dialect
    }
}

/// Writes a provider's word for why a choice ends; `null`: not yet.
pub(crate) fn put_word(
    edits: &mut Edits<'_>,
    provider: &Provider,
    place: NodeId,
    finish: Option<&Finish>,
) {
    let word = finish.map(|finish| quote(provider.finish_words.write(finish)));
    edits.replace(place, word.as_deref().unwrap_or("null"));
}
