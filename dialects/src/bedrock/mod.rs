//! `bedrock`: Amazon Bedrock Runtime, for all of its models.
//!
//! ```text
//! POST /model/ID/converse                     one JSON document, Bedrock's own words
//! POST /model/ID/converse-stream              Amazon's event stream of Bedrock's own events
//! POST /model/ID/invoke                       one JSON document in the model's vendor's words
//! POST /model/ID/invoke-with-response-stream  Amazon's event stream around the vendor's events
//! ```
//!
//! A vendor's document is handled by the vendor's dialect. Anthropic's and OpenAI's are recognised by their shape.
//! Amazon's Nova uses Bedrock's own format, with each event inside a member named after it. Errors are Bedrock's
//! for all models. Source: the service model of `bedrock-runtime` (2023-09-30), from which the AWS SDKs are
//! generated.

mod answer;
mod request;
mod synthetic;

use std::borrow::Cow;

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use crate::answer::{AnswerForm, Event, Transcript};
use crate::anthropic::Anthropic;
use crate::dialect::{Dialect, Provider, put_word};
use crate::errors::{ErrorContext, ErrorTerms};
use crate::json::{Document, Edits, JsonKind, Value};
use crate::model::{
    Conversation, Finish, Finished, ModelRequest, Reading, ResultSaying, Saying, ToolResult,
};
use crate::openai_chat;
use crate::stream::{Framing, SyntheticEvent};
use crate::target::Target;

/// The dialect `bedrock`.
#[derive(Debug)]
pub(crate) struct Bedrock;

/// The operation on a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Converse,
    ConverseStream,
    Invoke,
    InvokeStream,
}

/// The model's id, not decoded, and the operation: `…/model/ID/OPERATION`. An id that is an ARN may contain
/// slashes.
fn call(target: Target<'_>) -> Option<(&str, Operation)> {
    let (path, operation) = target.path().rsplit_once('/')?;
    let operation = match operation {
        "converse" => Operation::Converse,
        "converse-stream" => Operation::ConverseStream,
        "invoke" => Operation::Invoke,
        "invoke-with-response-stream" => Operation::InvokeStream,
        _ => return None,
    };
    let (_, model) = path.split_once("/model/")?;
    (!model.is_empty()).then_some((model, operation))
}

fn is_operation(target: Target<'_>, operation: Operation) -> bool {
    call(target).is_some_and(|(_, called)| called == operation)
}

/// Names of Bedrock's own events.
const EVENTS: [&str; 6] = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
];

/// The format of an answer or event.
enum Words<'d> {
    /// Bedrock's: the event's name and its content.
    Own(Cow<'d, str>, Value<'d>),
    /// Bedrock's, as a whole answer.
    Whole,
    /// A Bedrock exception.
    Exception(&'d str),
    /// A vendor's format.
    Vendor(&'static dyn Dialect),
}

impl<'d> Words<'d> {
    fn of(event: Event<'d>) -> Self {
        let root = event.root();
        match event.name {
            Some(name) if name.ends_with("Exception") => return Self::Exception(name),
            Some(name) => return Self::Own(Cow::Borrowed(name), root),
            None => {}
        }
        let is_event = |key: &Cow<'_, str>| EVENTS.contains(&&**key);
        let own = |member: Value<'d>| Some((member.key().filter(is_event)?, member));
        match root.members().find_map(own) {
            Some((name, inside)) => Self::Own(name, inside),
            None => vendor(root).map_or(Self::Whole, Self::Vendor),
        }
    }
}

/// The dialect of the vendor whose format a document has; `None` for Bedrock's own.
///
/// Anthropic's answers and events have a `type`, its requests an `anthropic_version`. OpenAI's answers have
/// `choices`; its requests have messages that are a string, or parts with a `type`.
fn vendor(root: Value<'_>) -> Option<&'static dyn Dialect> {
    if root.string("type").is_some() || root.string("anthropic_version").is_some() {
        return Some(&Anthropic);
    }
    let mut contents = root.list("messages").filter_map(|it| it.get("content"));
    let is_openai = root.get("choices").is_some()
        || contents.any(|content| {
            content.kind() == JsonKind::String || content.items().any(|it| it.get("type").is_some())
        });
    is_openai.then_some(&openai_chat::PLAIN)
}

impl Dialect for Bedrock {
    fn provider(&self) -> &'static Provider {
        &answer::BEDROCK
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        call(target).is_some()
    }

    // No other dialect has these paths, and each vendor defines its own body for `invoke`.
    fn confirms(&self, body: Value<'_>) -> bool {
        body.kind() == JsonKind::Object
    }

    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest {
        let mut request = match vendor(body) {
            Some(vendor) => vendor.request(target, body),
            None => request::read(body),
        };
        if let Some((model, operation)) = call(target) {
            let decoded = percent_decode_str(model).decode_utf8();
            request.model = Some(decoded.unwrap_or(Cow::Borrowed(model)).into_owned());
            request.stream = matches!(
                operation,
                Operation::ConverseStream | Operation::InvokeStream
            );
        }
        request
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        match vendor(body.root()) {
            Some(vendor) => vendor.conversation(body),
            None => request::conversation(body.root()),
        }
    }

    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        match vendor(body.root()) {
            Some(vendor) => vendor.say_result(edits, body, result, saying),
            None => synthetic::say_result(edits, body, result, saying),
        }
    }

    fn form(&self, target: Target<'_>, headers: &HeaderMap) -> Option<AnswerForm> {
        match AnswerForm::of(headers)? {
            AnswerForm::Stream(Framing::AwsEvents)
                if is_operation(target, Operation::InvokeStream) =>
            {
                Some(AnswerForm::Stream(Framing::AwsChunks))
            }
            form => Some(form),
        }
    }

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        match Words::of(event) {
            Words::Own(name, inside) => answer::read_event(&name, inside),
            Words::Whole => answer::read(event.root()),
            Words::Exception(name) => answer::read_exception(name, event.root()),
            Words::Vendor(vendor) => vendor.read(event),
        }
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        if let Some(vendor) = vendor(document.root()) {
            return vendor.put_finish(edits, document, at, finish);
        }
        put_word(edits, self.provider(), at.place, finish);
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
        match vendor(answer.root()) {
            Some(vendor) => vendor.say(edits, answer, choice, saying, finish),
            None => choice == 0 && synthetic::say(edits, answer.root(), saying, finish),
        }
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        match Words::of(event) {
            Words::Own(name, inside) if choice == 0 => {
                synthetic::say_events(event, &name, inside, saying)
            }
            Words::Vendor(vendor) => vendor.say_events(event, choice, saying),
            Words::Own(..) | Words::Whole | Words::Exception(_) => Vec::new(),
        }
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        match Words::of(transcript.last) {
            Words::Own(_, last) => synthetic::whole(transcript, last),
            Words::Vendor(vendor) => vendor.whole_answer(transcript),
            Words::Whole | Words::Exception(_) => None,
        }
    }

    fn error_terms(&self, context: &ErrorContext<'_>, _after: Option<Event<'_>>) -> ErrorTerms {
        let wraps = is_operation(context.target, Operation::InvokeStream);
        ErrorTerms {
            conditions: wraps.then_some("invoke_stream").into_iter().collect(),
            values: Vec::new(),
        }
    }
}
