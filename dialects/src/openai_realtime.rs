//! `openai-realtime`: OpenAI's Realtime API over WebSocket.
//!
//! A call is a `response.create` of the agent, or a response that the server begins when it hears the end of speech.
//! The URL names the model. Events are those of the Responses API with other details: `response.done` ends each
//! response, a transcript and audio stand for text, and errors are in `status_details`. Events of the session and of
//! the input pass between them. Source: `types/realtime` of OpenAI's official Python client 3.54; for errors, also
//! the events quoted in openai-python issue 2502, livekit/agents pull request 1122 and openai-realtime-api-beta issue
//! 116.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider, Quirk};
use crate::errors::{self, ErrorContext, ErrorTerms};
use crate::json::{Document, Edits, JsonKind, Value};
use crate::model::{Conversation, Finish, Finished, ModelRequest, Reading, Saying, UsageKeys};
use crate::openai_responses::{answer, request};
use crate::stream::SyntheticEvent;
use crate::target::Target;

static REALTIME: Provider = Provider {
    dialect: "openai-realtime",
    endpoint: "openai-realtime",
    quirks: &[Quirk::KeepsConversations, Quirk::NoRefusals],
    event_number: None,
    end_mark: None,
    finish_words: answer::STATUSES,
    usage: UsageKeys {
        input: &["input_tokens"],
        output: "output_tokens",
        // The transcript is counted apart from its sound.
        hidden: &["output_token_details", "audio_tokens"],
        total: "total_tokens",
    },
    errors: &errors::OPENAI,
};

/// The dialect `openai-realtime`.
#[derive(Debug)]
pub(crate) struct OpenAiRealtime;

impl Dialect for OpenAiRealtime {
    fn provider(&self) -> &'static Provider {
        &REALTIME
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        target.path().ends_with("/realtime")
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        body.text("type").as_deref() == Some("response.create")
    }

    fn request(&self, target: Target<'_>, body: Value<'_>) -> ModelRequest {
        let model = target.parameter("model");
        // Azure's older URLs name a deployment.
        let model = model.or_else(|| target.parameter("deployment"));
        let tools = body.get("response").into_iter();
        let tools = tools.flat_map(|response| response.list("tools"));
        let tools = tools.filter_map(|tool| Some(tool.text("name")?.into_owned()));
        ModelRequest {
            model: model.map(str::to_owned),
            stream: true,
            previous_response: None,
            choices: 1,
            tools: tools.collect(),
        }
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        let response = body.root().get("response");
        let asked = response.map(request::conversation).unwrap_or_default();
        // The session has the conversation, unless the response is beside it.
        let is_alone = asked.continues.as_deref() == Some("none");
        Conversation {
            continues: (!is_alone).then_some(Cow::Borrowed("session")),
            ..asked
        }
    }

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        answer::read(event.root(), &REALTIME.usage)
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        _at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        put_finish(edits, response(document.root()), finish);
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
        let response = response(answer.root());
        let output = response.get("output");
        let output = output.filter(|output| choice == 0 && output.kind() == JsonKind::Array);
        let Some(output) = output else {
            return false;
        };
        let id = output.items().next().and_then(|item| item.text("id"));
        let id = id.or_else(|| response.text("id"));
        let said = match saying.text() {
            "" => json!([]),
            text => json!([message(&item_id(id.as_deref()), "completed", &[part(text)])]),
        };
        edits.replace(output.id(), said);
        put_finish(edits, response, Some(finish));
        true
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        if choice > 0 {
            return Vec::new();
        }
        say_events(event.root(), saying.text())
    }

    fn whole_answer(&self, _transcript: &Transcript<'_>) -> Option<String> {
        // Every response is events.
        None
    }

    fn error_terms(&self, _context: &ErrorContext<'_>, after: Option<Event<'_>>) -> ErrorTerms {
        let text = |key| Some(after?.root().text(key)?.into_owned());
        let response = after.and_then(|after| response_id(after.root()));
        ErrorTerms {
            conditions: vec!["realtime"],
            values: vec![
                (
                    "next_event",
                    next_event(text("event_id").as_deref(), 0).into(),
                ),
                ("response", response.into()),
            ],
        }
    }
}

/// The `response` that an event contains.
fn response(root: Value<'_>) -> Value<'_> {
    root.get("response").unwrap_or(root)
}

/// The id of an event's response.
fn response_id(root: Value<'_>) -> Option<String> {
    let id = root.text("response_id");
    let id = id.or_else(|| root.get("response")?.text("id"));
    id.map(Cow::into_owned)
}

/// Sets the end of a response.
fn put_finish(edits: &mut Edits<'_>, response: Value<'_>, finish: Option<&Finish>) {
    let Some(status) = response.get("status") else {
        return;
    };
    let word = finish.map_or("in_progress", |it| REALTIME.finish_words.write(it));
    edits.replace(status.id(), json!(word));
    let details = match finish {
        Some(finish) if word == "incomplete" => {
            json!({ "type": word, "reason": answer::REASONS.write(finish) })
        }
        _ => Json::Null,
    };
    let there = response.get("status_details");
    edits.set(there, status.id(), "status_details", details);
}

/// The events with this text as a complete message, to replace the event with the data `root`.
fn say_events(root: Value<'_>, text: &str) -> Vec<SyntheticEvent> {
    let kind = root.text("type").unwrap_or_default();
    if text.is_empty() || !kind.starts_with("response.") {
        return Vec::new();
    }
    let response = response_id(root);
    let id = root.get("item").and_then(|item| item.text("id"));
    let id = id.or_else(|| root.text("item_id"));
    let id = item_id(id.as_deref().or(response.as_deref()));
    let index = root.number("output_index").unwrap_or_default();
    let item = |status, content: &[Json]| json!({ "item": message(&id, status, content) });
    let content = |mut event: Json| {
        event["item_id"] = json!(id);
        event["content_index"] = json!(0);
        event
    };
    let events = [
        ("response.output_item.added", item("in_progress", &[])),
        (
            "response.content_part.added",
            content(json!({ "part": { "type": "text", "text": "" } })),
        ),
        (
            "response.output_text.delta",
            content(json!({ "delta": text })),
        ),
        (
            "response.output_text.done",
            content(json!({ "text": text })),
        ),
        (
            "response.content_part.done",
            content(json!({ "part": { "type": "text", "text": text } })),
        ),
        (
            "response.output_item.done",
            item("completed", &[part(text)]),
        ),
    ];
    let before = root.text("event_id");
    let numbered = (0..).zip(events);
    let made = numbered.map(|(number, (kind, mut event))| {
        event["type"] = json!(kind);
        event["event_id"] = json!(next_event(before.as_deref(), number));
        event["response_id"] = json!(response);
        event["output_index"] = json!(index);
        SyntheticEvent::event(kind, event.to_string())
    });
    made.collect()
}

/// The id of a synthetic event after another.
fn next_event(before: Option<&str>, number: usize) -> String {
    format!("{}{number}", before.unwrap_or("event_"))
}

/// The id of a synthetic message, derived from that of the replaced item or response.
fn item_id(id: Option<&str>) -> String {
    let id = id.unwrap_or("item_0");
    let digits = id.split_once('_').map_or(id, |(_, digits)| digits);
    format!("item_{digits}")
}

fn message(id: &str, status: &str, content: &[Json]) -> Json {
    json!({
        "id": id,
        "object": "realtime.item",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    })
}

fn part(text: &str) -> Json {
    json!({ "type": "output_text", "text": text })
}
