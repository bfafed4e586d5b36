//! `gemini`: Google's Gemini API, and Vertex AI's endpoints that speak it.
//!
//! Requests are `POST …/models/MODEL:generateContent` and `:streamGenerateContent`; answers one
//! JSON document, `data:` events (`alt=sse`), or one JSON list whose items arrive one by one. A
//! stream has no end mark: the last event names a `finishReason`. Source: Google's API reference
//! and its official Python client.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;

use http::{HeaderMap, Method};

use crate::dialect::{
    AnswerForm, Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply,
};
use crate::errors::{self, Given, Term};
use crate::json::{Document, Edits, Kind, Value, quote};
use crate::model::{
    Conversation, Finish, Finished, ModelError, ModelRequest, Reading, ResultSaying, Saying,
    ToolResult,
};
use crate::stream::{Framing, Made};

/// The dialect `gemini`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        method == Method::POST && Call::of(target).is_some()
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let contents = body.get("contents");
        // A list, or the only item of one.
        contents.is_some_and(|contents| matches!(contents.kind(), Kind::Array | Kind::Object))
    }

    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest {
        request::read(Call::of(target), body)
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        request::conversation(body.root())
    }

    fn user_message(&self, text: &str) -> String {
        format!(
            "{{\"role\":\"user\",\"parts\":[{{\"text\":{}}}]}}",
            quote(text)
        )
    }

    // A function's response is an object; these are the keys that Google's documentation names.
    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        _body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        let key = match saying {
            ResultSaying::Output(_) => "output",
            ResultSaying::Failure(_) => "error",
        };
        let said = format!("{{\"{key}\":{}}}", quote(saying.text()));
        edits.replace(result.content, said);
    }

    fn form(
        &self,
        target: Target<'_>,
        _request: Option<&ModelRequest>,
        headers: &HeaderMap,
    ) -> Option<AnswerForm> {
        let form = AnswerForm::of(headers)?;
        let listed = form == AnswerForm::Json && streams_a_list(target);
        Some(if listed {
            AnswerForm::Stream(Framing::Array)
        } else {
            form
        })
    }

    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d> {
        answer::read(answer.root())
    }

    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root())
    }

    fn tool_calls_end_as_done(&self) -> bool {
        true
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        made::put_finish(edits, document.root(), at, finish);
        None
    }

    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
        made::finish_event(event, end).into_iter().collect()
    }

    fn end(&self, _framing: Framing) -> Vec<Made> {
        Vec::new()
    }

    fn say(
        &self,
        edits: &mut Edits<'_>,
        answer: &Document<'_>,
        choice: u64,
        saying: Saying<'_>,
        finish: &Finish,
    ) -> bool {
        made::say(edits, answer.root(), choice, saying, finish)
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made> {
        made::say_event(event, choice, saying).into_iter().collect()
    }

    fn drops_bad_calls(&self, _answer: Value<'_>) -> bool {
        true
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        made::whole(transcript)
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        with_given(error, context, |given| errors::GEMINI.reply(given))
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        _after: Option<Event<'_>>,
    ) -> Option<Made> {
        with_given(error, context, |given| errors::GEMINI.event(given))
    }
}

/// What a path asks for: `…/models/MODEL:METHOD`.
#[derive(Debug, Clone, Copy)]
struct Call<'a> {
    model: &'a str,
    method: &'a str,
}

impl<'a> Call<'a> {
    /// `None`: the path asks for something else.
    fn of(target: Target<'a>) -> Option<Self> {
        let (before, last) = target.path().rsplit_once('/')?;
        let (_, collection) = before.rsplit_once('/')?;
        let (model, method) = last.split_once(':')?;
        let known = matches!(collection, "models" | "tunedModels" | "endpoints")
            && matches!(method, "generateContent" | "streamGenerateContent")
            && !model.is_empty();
        known.then_some(Self { model, method })
    }

    fn streams(self) -> bool {
        self.method == "streamGenerateContent"
    }
}

/// What the templates of errors are filled from: the path names model, version and method.
fn with_given<T>(
    error: &ModelError,
    context: &ErrorContext<'_>,
    render: impl FnOnce(Given<'_>) -> T,
) -> T {
    let target = context.target;
    let call = Call::of(target);
    let context = ErrorContext {
        model: context.model.or(call.map(|call| call.model)),
        ..*context
    };
    // The first segment may be a gateway's.
    let mut segments = target.path().split('/');
    let version = segments.find(|segment| matches!(*segment, "v1" | "v1beta" | "v1alpha"));
    let method = call.map_or("generateContent", |call| call.method);
    let text = |text: &str| Term::Text(text.to_owned());
    let conditions: &[_] = match call.is_some_and(Call::streams) {
        true if streams_a_list(target) => &["listed"],
        true => &["server_sent_events"],
        false => &[],
    };
    render(Given {
        conditions,
        values: &[
            ("version", text(version.unwrap_or("v1beta"))),
            ("method", text(method)),
        ],
        ..Given::new(error, &context)
    })
}

/// Whether the answer to `target` is a JSON list whose items arrive one by one.
fn streams_a_list(target: Target<'_>) -> bool {
    let alt = target.parameter("alt").or_else(|| target.parameter("$alt"));
    Call::of(target).is_some_and(Call::streams) && alt != Some("sse")
}

/// A member under the name of the API's JSON, or under that of its protocol buffers, which it
/// takes as well.
fn either<'d>(object: Value<'d>, camel: &str, snake: &str) -> Option<Value<'d>> {
    object.get(camel).or_else(|| object.get(snake))
}
