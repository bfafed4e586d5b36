//! `gemini-live`: Google's Live API over WebSocket, on the Gemini API and on Vertex AI.
//!
//! A call is a `clientContent` with `turnComplete`, a `toolResponse`, or a turn that the server begins when it hears
//! the end of speech. The session's first message, `setup`, names the model; a call contains that part of it. A turn is
//! `serverContent` up to `turnComplete` or a `toolCall`, with the contents of `gemini`. An error is a Close frame, with
//! the message as its reason: the event `close` for it exists only in Squall. Source: `live.py` and `types.py` of Google's
//! official Python client 3.4.

use std::borrow::Cow;

use serde_json::json;

use crate::answer::{Event, Transcript};
use crate::dialect::{Dialect, Provider, Quirk};
use crate::errors::{self, ErrorContext, ErrorTerms};
use crate::gemini::answer::{GEMINI, read_part, read_usage};
use crate::gemini::request::{self, contents, each, either, tool_result};
use crate::json::{Document, Edits, Value};
use crate::model::{
    BadCalls, Conversation, Delta, DeltaKind, Finish, FinishWords, Finished, Message, ModelRequest,
    Reading, ResultSaying, Role, Saying, ToolResult, UsageKeys, call_pieces, error_message,
    number_of_whole_call,
};
use crate::stream::SyntheticEvent;
use crate::target::Target;

static LIVE: Provider = Provider {
    dialect: "gemini-live",
    endpoint: "gemini-live",
    quirks: &[Quirk::KeepsConversations, Quirk::NoRefusals],
    event_number: None,
    end_mark: None,
    // A turn that ends as usual has no reason.
    finish_words: FinishWords(&[
        (
            "",
            &[
                Finish::Done,
                Finish::Length,
                Finish::Tool,
                Finish::Refused,
                Finish::Context,
            ],
        ),
        ("TURN_COMPLETE_REASON_UNSPECIFIED", &[Finish::Done]),
        ("NEED_MORE_INPUT", &[Finish::Done]),
        ("GENERATED_CONTENT_SAFETY", &[Finish::Filtered]),
        ("GENERATED_AUDIO_SAFETY", &[Finish::Filtered]),
        ("GENERATED_CONTENT_PROHIBITED", &[Finish::Filtered]),
        ("GENERATED_CONTENT_BLOCKLIST", &[Finish::Filtered]),
        ("PROHIBITED_INPUT_CONTENT", &[Finish::Filtered]),
        ("BLOCKLIST", &[Finish::Filtered]),
        ("RESPONSE_REJECTED", &[Finish::Refused]),
        ("MALFORMED_FUNCTION_CALL", &[Finish::BadTool]),
    ]),
    usage: UsageKeys {
        input: &["promptTokenCount", "toolUsePromptTokenCount"],
        output: "responseTokenCount",
        hidden: &["thoughtsTokenCount"],
        total: "totalTokenCount",
    },
    errors: &errors::GEMINI,
};

/// The dialect `gemini-live`.
#[derive(Debug)]
pub(crate) struct GeminiLive;

impl Dialect for GeminiLive {
    fn provider(&self) -> &'static Provider {
        &LIVE
    }

    fn recognises(&self, target: Target<'_>) -> bool {
        let method = target.path().rsplit(['/', '.']).next();
        // The latter is for agents with a token of short life.
        matches!(
            method,
            Some("BidiGenerateContent" | "BidiGenerateContentConstrained")
        )
    }

    fn confirms(&self, body: Value<'_>) -> bool {
        let begins = [
            ("clientContent", "client_content"),
            ("toolResponse", "tool_response"),
            ("realtimeInput", "realtime_input"),
        ];
        let mut begins = begins.iter();
        begins.any(|(camel, snake)| either(body, camel, snake).is_some())
    }

    fn request(&self, _target: Target<'_>, body: Value<'_>) -> ModelRequest {
        let model = body.get("setup").and_then(|setup| setup.text("model"));
        // `models/MODEL`, or `projects/…/models/MODEL`.
        let name = |model: Cow<'_, str>| Some(model.rsplit('/').next()?.to_owned());
        ModelRequest {
            model: model.and_then(name),
            stream: true,
            previous_response: None,
            choices: 1,
            tools: Vec::new(),
        }
    }

    fn conversation<'d>(&self, body: &'d Document<'d>) -> Conversation<'d> {
        let root = body.root();
        let content = either(root, "clientContent", "client_content");
        let mut conversation = contents(content.and_then(|content| content.get("turns")));
        let response = either(root, "toolResponse", "tool_response");
        let results = response.and_then(|it| either(it, "functionResponses", "function_responses"));
        for (index, result) in each(results).enumerate() {
            conversation.tool_results.extend(tool_result(result, index));
            conversation.messages.push(Message {
                role: Role::Tool,
                place: result.id(),
                texts: Vec::new(),
            });
        }
        // The session has the rest.
        conversation.continues = Some(Cow::Borrowed("session"));
        conversation
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

    fn read<'d>(&self, event: Event<'d>) -> Reading<'d> {
        let root = event.root();
        let mut reading = Reading {
            error: root.given("error").map(error_message),
            bad_calls: BadCalls::Dropped,
            ..Reading::default()
        };
        if let Some(counts) = root.get("usageMetadata") {
            // Vertex AI has the names of `gemini`.
            let is_vertex = counts.get(GEMINI.usage.output).is_some();
            let provider = if is_vertex { &GEMINI } else { &LIVE };
            reading.usage = read_usage(counts, &provider.usage);
        }
        if let Some(content) = root.get("serverContent") {
            read_content(content, &mut reading);
        }
        if let Some(call) = root.get("toolCall") {
            read_calls(call, &mut reading);
        }
        // No other event is only the end.
        reading.ends = !reading.finishes.is_empty() && reading.deltas.is_empty();
        reading
    }

    fn put_finish(
        &self,
        edits: &mut Edits<'_>,
        document: &Document<'_>,
        at: &Finished,
        finish: Option<&Finish>,
    ) -> Option<&'static str> {
        let word = finish.map(|finish| LIVE.finish_words.write(finish));
        let reason = word.filter(|word| !word.is_empty());
        let place = document.value(at.place);
        if place.key().as_deref() == Some("toolCall") {
            let end = match reason {
                Some(reason) => json!({ "turnComplete": true, "turnCompleteReason": reason }),
                None => json!({ "turnComplete": true }),
            };
            match finish {
                Some(Finish::Tool) => {}
                Some(_) => {
                    edits.rename(at.place, "serverContent");
                    edits.replace(at.place, end);
                }
                None => edits.remove(at.place),
            }
            return None;
        }
        let known = document.root().path(&["serverContent", REASON]);
        match (reason, known) {
            (Some(reason), known) => edits.set(known, at.place, REASON, json!(reason)),
            (None, Some(known)) => edits.remove(known.id()),
            (None, None) => {}
        }
        if finish.is_none() {
            edits.remove(at.place);
        }
        None
    }

    fn say(
        &self,
        _edits: &mut Edits<'_>,
        _answer: &Document<'_>,
        _choice: u64,
        _saying: Saying<'_>,
        _finish: &Finish,
    ) -> bool {
        // No event repeats the answer.
        false
    }

    fn say_events(&self, event: Event<'_>, choice: u64, saying: Saying<'_>) -> Vec<SyntheticEvent> {
        let text = saying.text();
        if choice > 0 || text.is_empty() {
            return Vec::new();
        }
        let transcription = ["serverContent", "outputTranscription"];
        let content = if event.root().path(&transcription).is_some() {
            json!({ "outputTranscription": { "text": text } })
        } else {
            json!({ "modelTurn": { "parts": [{ "text": text }], "role": "model" } })
        };
        let said = json!({ "serverContent": content });
        vec![SyntheticEvent::data(said.to_string())]
    }

    fn whole_answer(&self, _transcript: &Transcript<'_>) -> Option<String> {
        // Every response is events.
        None
    }

    fn error_terms(&self, context: &ErrorContext<'_>, _after: Option<Event<'_>>) -> ErrorTerms {
        let mut words = context.target.path().split(['/', '.']);
        let version = words.find(|word| matches!(*word, "v1" | "v1beta" | "v1beta1" | "v1alpha"));
        ErrorTerms {
            conditions: vec!["live"],
            values: vec![
                ("version", version.unwrap_or("v1beta").into()),
                ("method", "bidiGenerateContent".into()),
            ],
        }
    }
}

const REASON: &str = "turnCompleteReason";

/// Reads what the model said.
fn read_content<'d>(content: Value<'d>, reading: &mut Reading<'d>) {
    if let Some(parts) = content.path(&["modelTurn", "parts"]) {
        for part in parts.items() {
            read_part(part, parts, 0, &mut reading.deltas);
            // Sound goes with its words.
            reading.rests_on(0, 0, part.get("inlineData").map(|_| part), false);
        }
    }
    if let Some(spoken) = content.get("outputTranscription") {
        let words = spoken.string("text");
        let words = words.map(|words| Delta::new(0, 0, DeltaKind::Text, words));
        reading
            .deltas
            .extend(words.map(|words| words.inside(spoken)));
    }
    reading.rests_on(0, 0, content.get("groundingMetadata"), false);
    if content.flag("turnComplete")
        && let Some(end) = content.get("turnComplete")
    {
        let reason = content.text(REASON).unwrap_or_default();
        reading.finish(0, LIVE.finish_words.read(&reason), end);
    }
}

/// Reads a `toolCall`, which ends the turn until its results arrive.
fn read_calls<'d>(calls: Value<'d>, reading: &mut Reading<'d>) {
    if let Some(list) = calls.get("functionCalls") {
        for call in list.items() {
            let fields = [call.string("id"), call.string("name"), call.given("args")];
            let pieces = call_pieces(0, number_of_whole_call(call), fields);
            let pieces = pieces.map(|piece| piece.inside_list(call, list));
            reading.deltas.extend(pieces);
        }
    }
    reading.finish(0, Finish::Tool, calls);
}
