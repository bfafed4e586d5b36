//! `gemini`: Google's Gemini API, and Vertex AI's endpoints that support it.
//!
//! Requests are `POST …/models/MODEL:generateContent` and `:streamGenerateContent`. Responses are one JSON
//! document, `data:` events (`alt=sse`), or one JSON list whose items arrive one by one. A stream has no end mark;
//! the last event has a `finishReason`. Source: Google's API reference and its official Python client.

pub(crate) mod answer;
pub(crate) mod request;
mod synthetic;

use http::HeaderMap;

use crate::answer::{AnswerForm, Event, Transcript};
use crate::dialect::{Dialect, Provider};
use crate::errors::{ErrorContext, ErrorTerms};
use crate::json::{Document, Edits, JsonKind, Value};
use crate::model::{
    Conversation, Finish, Finished, ModelRequest, Reading, ResultSaying, Saying, ToolResult,
};
use crate::stream::Framing;
use crate::target::Target;
use request::Call;

/// The dialect `gemini`.
#[derive(Debug)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn provider(&self) -> &'static Provider {
        &answer::GEMINI
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        Call::of(target).is_some()
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let contents = body.get("contents");
        // A list, or a single item without its list.
        contents
            .is_some_and(|contents| matches!(contents.kind(), JsonKind::Array | JsonKind::Object))
    }

    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest {
        request::read(Call::of(target), body)
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        request::conversation(body.root())
    }

    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        _body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        request::say_result(edits, result, saying);
    }

    fn form(&self, target: Target<'_>, headers: &HeaderMap) -> Option<AnswerForm> {
        match AnswerForm::of(headers)? {
            AnswerForm::Json if streams_a_list(target) => Some(AnswerForm::Stream(Framing::Array)),
            form => Some(form),
        }
    }

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root())
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        synthetic::put_finish(edits, document.root(), at, finish);
        None
    }

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        synthetic::say(edits, answer.root(), choice, saying, finish)
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        synthetic::whole(transcript)
    }

    fn error_terms(&self, context: &ErrorContext<'_>, _after: Option<Event<'_>>) -> ErrorTerms {
        let target = context.target;
        let call = Call::of(target);
        // The first segment may belong to a gateway.
        let mut segments = target.path().split('/');
        let version = segments.find(|segment| matches!(*segment, "v1" | "v1beta" | "v1alpha"));
        let method = call.map_or("generateContent", |call| call.method);
        let mut values = vec![
            ("version", version.unwrap_or("v1beta").into()),
            ("method", method.into()),
        ];
        let model = context.model.or(call.map(|call| call.model));
        values.extend(model.map(|model| ("model", model.into())));
        ErrorTerms {
            conditions: match call.is_some_and(Call::streams) {
                true if streams_a_list(target) => vec!["listed"],
                true => vec!["server_sent_events"],
                false => Vec::new(),
            },
            values,
        }
    }
}

/// Whether the response to `target` is a JSON list whose items arrive one by one.
fn streams_a_list(target: Target<'_>) -> bool {
    let alt = target.parameter("alt").or_else(|| target.parameter("$alt"));
    Call::of(target).is_some_and(Call::streams) && alt != Some("sse")
}
