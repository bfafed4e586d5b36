//! `bedrock`: Amazon Bedrock Runtime, with whatever model behind it.
//!
//! ```text
//! POST /model/ID/converse                     one JSON document, Bedrock's own words
//! POST /model/ID/converse-stream              Amazon's event stream of Bedrock's own events
//! POST /model/ID/invoke                       one JSON document in the model's vendor's words
//! POST /model/ID/invoke-with-response-stream  Amazon's event stream around the vendor's events
//! ```
//!
//! What a vendor's document says is left to the vendor's dialect: Anthropic's and OpenAI's are
//! told by their shape, and Amazon's Nova speaks Bedrock's own words, each event inside a member
//! named after it. Errors are Bedrock's for all of them. Source: the service model of
//! `bedrock-runtime` (2023-09-30) that the AWS SDKs are made from.

mod answer;
mod made;
mod request;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use http::{HeaderMap, Method};

use crate::dialect::{
    AnswerForm, Dialect, EndOfChoice, ErrorContext, Event, Target, Transcript, WireReply,
};
use crate::errors::{self, Given};
use crate::json::{Document, Edits, Kind, Value, quote};
use crate::model::{
    Conversation, Finish, Finished, ModelError, ModelRequest, Reading, ResultSaying, Saying,
    ToolResult,
};
use crate::stream::{Framing, Made};

/// The dialect `bedrock`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bedrock;

/// What is done with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Converse,
    ConverseStream,
    Invoke,
    InvokeStream,
}

impl Operation {
    fn streams(self) -> bool {
        matches!(self, Self::ConverseStream | Self::InvokeStream)
    }
}

/// The model's id, not decoded, and what is done with it: `…/model/ID/OPERATION`. An id that is an
/// ARN may hold slashes.
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

/// Names of the events that Bedrock itself has.
const EVENTS: [&str; 6] = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
];

/// Whose words an event is in.
enum Words<'d> {
    /// Bedrock's: the event's name and what it holds.
    Own(Cow<'d, str>, Value<'d>),
    /// An exception of Bedrock's.
    Exception(&'d str),
    /// A vendor's.
    Vendor(&'static dyn Dialect, Event<'d>),
    /// Nobody's that is known.
    Unknown,
}

impl<'d> Words<'d> {
    fn of(event: Event<'d>) -> Self {
        let root = event.root();
        match event.name() {
            Some(name) if name.ends_with("Exception") => return Self::Exception(name),
            Some(name) => return Self::Own(Cow::Borrowed(name), root),
            None => {}
        }
        let named = root.members().find_map(|member| {
            let key = member.key()?;
            EVENTS.contains(&&*key).then_some((key, member))
        });
        match (named, vendor(root)) {
            (Some((name, inside)), _) => Self::Own(name, inside),
            (None, Some(dialect)) => Self::Vendor(dialect, renamed(event)),
            (None, None) => Self::Unknown,
        }
    }
}

/// A vendor's event as its dialect knows it. Inside of Amazon's stream it has lost its name, which
/// Anthropic repeats in `type`.
fn renamed(event: Event<'_>) -> Event<'_> {
    let name = match event.root().get("type").and_then(Value::as_str) {
        Some(Cow::Borrowed(name)) => Some(name),
        _ => None,
    };
    Event::named(name, event.document)
}

/// The dialect of the vendor in whose words a document is; `None` for Bedrock's own.
///
/// All of Anthropic's answers and events have a `type`, its requests an `anthropic_version`; all of
/// OpenAI's have `choices`, its requests messages that are a string or parts with a `type`.
fn vendor(root: Value<'_>) -> Option<&'static dyn Dialect> {
    let is_string = |key| {
        root.get(key)
            .is_some_and(|value| value.kind() == Kind::String)
    };
    if is_string("type") || is_string("anthropic_version") {
        return crate::by_name("anthropic");
    }
    let openai = root.get("choices").is_some()
        || root.get("messages").is_some_and(|messages| {
            let mut contents = messages
                .items()
                .filter_map(|message| message.get("content"));
            contents.any(|content| {
                content.kind() == Kind::String
                    || content.items().any(|part| part.get("type").is_some())
            })
        });
    if openai {
        crate::by_name("openai-chat")
    } else {
        None
    }
}

impl Dialect for Bedrock {
    fn name(&self) -> &'static str {
        "bedrock"
    }

    fn recognises(&self, method: &Method, target: Target<'_>) -> bool {
        method == Method::POST && call(target).is_some()
    }

    // The paths are nobody else's, and `invoke` takes whatever a vendor thought of.
    fn confirms(&self, body: Value<'_>) -> bool {
        body.kind() == Kind::Object
    }

    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest {
        let asked = match vendor(body) {
            Some(vendor) => vendor.request(target, body),
            None => request::read(body),
        };
        let Some((model, operation)) = call(target) else {
            return asked;
        };
        ModelRequest {
            model: Some(request::decoded(model)),
            stream: operation.streams(),
            usage_in_stream: operation == Operation::ConverseStream,
            ..asked
        }
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        match vendor(body.root()) {
            Some(vendor) => vendor.conversation(body),
            None => request::conversation(body.root()),
        }
    }

    fn user_message(&self, text: &str) -> String {
        format!(
            "{{\"role\":\"user\",\"content\":[{{\"text\":{}}}]}}",
            quote(text)
        )
    }

    fn say_result(
        &self,
        edits: &mut Edits<'_>,
        body: &Document<'_>,
        result: &ToolResult<'_>,
        saying: ResultSaying<'_>,
    ) {
        if let Some(vendor) = vendor(body.root()) {
            return vendor.say_result(edits, body, result, saying);
        }
        // Blocks of text must hold some.
        let content = match saying.text() {
            "" => "[]".to_owned(),
            text => format!("[{{\"text\":{}}}]", quote(text)),
        };
        edits.replace(result.content, content);
        if let ResultSaying::Failure(_) = saying {
            match body.value(result.place).get("status") {
                Some(status) => edits.replace(status.id(), "\"error\""),
                None => edits.insert_after(result.content, "status", "\"error\""),
            }
        }
    }

    fn form(
        &self,
        target: Target<'_>,
        _request: Option<&ModelRequest>,
        headers: &HeaderMap,
    ) -> Option<AnswerForm> {
        let form = AnswerForm::of(headers);
        let wraps = call(target).is_some_and(|(_, operation)| operation == Operation::InvokeStream);
        match form {
            Some(AnswerForm::Stream(Framing::AwsEvents)) if wraps => {
                Some(AnswerForm::Stream(Framing::AwsChunks))
            }
            form => form,
        }
    }

    fn read_answer<'d>(&self, answer: &'d Document<'d>) -> Reading<'d> {
        match vendor(answer.root()) {
            Some(vendor) => vendor.read_answer(answer),
            None => answer::read(answer.root()),
        }
    }

    fn read_event<'d>(&self, event: Event<'d>) -> Reading<'d> {
        match Words::of(event) {
            Words::Own(name, inside) => answer::read_event(&name, inside),
            Words::Exception(name) => answer::read_exception(name, event.root()),
            Words::Vendor(vendor, event) => vendor.read_event(event),
            Words::Unknown => Reading::default(),
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
        let word = finish.map_or_else(|| "null".to_owned(), made::finish_word);
        edits.replace(at.place, word);
        None
    }

    fn remove_results_behind(&self, edits: &mut Edits<'_>, answer: &Document<'_>, part: u64) {
        if let Some(vendor) = vendor(answer.root()) {
            vendor.remove_results_behind(edits, answer, part);
        }
    }

    fn finish_events(&self, event: Event<'_>, end: &EndOfChoice<'_>) -> Vec<Made> {
        match Words::of(event) {
            Words::Own(name, inside) => made::finish_events(event, &name, inside, end),
            // There is one choice, and what ends a stream hangs on the vendor, so it comes here.
            Words::Vendor(vendor, event) => {
                let mut events = vendor.finish_events(event, end);
                if !events.is_empty() && vendor.name() == "anthropic" {
                    events.extend(vendor.end(Framing::AwsChunks));
                }
                events
            }
            Words::Exception(_) | Words::Unknown => Vec::new(),
        }
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
        match vendor(answer.root()) {
            Some(vendor) => vendor.say(edits, answer, choice, saying, finish),
            None => choice == 0 && made::say(edits, answer.root(), saying, finish),
        }
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<Made> {
        match Words::of(event) {
            Words::Own(name, inside) if choice == 0 => {
                Vec::from_iter(made::say_event(event, &name, inside, saying))
            }
            Words::Vendor(vendor, event) => vendor.say_events(event, choice, saying),
            Words::Own(..) | Words::Exception(_) | Words::Unknown => Vec::new(),
        }
    }

    fn drops_bad_calls(&self, answer: Value<'_>) -> bool {
        // Bedrock's own words have a reason for it, vendors' have none.
        answer.get("output").is_some()
    }

    fn whole_answer(&self, transcript: &Transcript<'_>) -> Option<String> {
        match (Words::of(transcript.first), Words::of(transcript.last)) {
            (Words::Own(..), Words::Own(_, last)) => made::whole(transcript, last),
            (Words::Vendor(vendor, first), Words::Vendor(_, last)) => {
                let transcript = Transcript {
                    first,
                    last,
                    ..transcript.clone()
                };
                vendor.whole_answer(&transcript)
            }
            _ => None,
        }
    }

    fn error(&self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        errors::BEDROCK.reply(Given::new(error, context))
    }

    fn error_event(
        &self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        _after: Option<Event<'_>>,
    ) -> Option<Made> {
        let operation = call(context.target).map(|(_, operation)| operation);
        let conditions: &[_] = match operation {
            Some(Operation::InvokeStream) => &["invoke_stream"],
            _ => &[],
        };
        errors::BEDROCK.event(Given {
            conditions,
            ..Given::new(error, context)
        })
    }
}
