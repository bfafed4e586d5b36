//! Writes a whole answer as a stream: each part of it is one event.

use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value as Json, json};

use crate::answer::{AnswerForm, Event};
use crate::dialect::Dialect;
use crate::json::Document;
use crate::model::Saying;
use crate::stream::{Framing, SyntheticEvent};
use crate::target::Target;

/// The media type and the body of the stream with this answer. `None`: it is no answer, or the dialect is not
/// supported.
pub fn streamed(
    dialect: &dyn Dialect,
    target: Target<'_>,
    answer: &[u8],
) -> Option<(HeaderValue, Vec<u8>)> {
    let answer: Json = serde_json::from_slice(answer).ok()?;
    let answer = Some(answer).filter(Json::is_object)?;
    let (events, media_type) = match dialect.name() {
        "openai-chat" => (chat(answer)?, "text/event-stream"),
        "openai-responses" => (responses(dialect, &answer)?, "text/event-stream"),
        "anthropic" => (messages(&answer)?, "text/event-stream"),
        "ollama" => (vec![answer], "application/x-ndjson"),
        // Without `alt=sse` a stream is a list.
        "gemini" => match dialect.form(target, &headers("application/json")) {
            Some(AnswerForm::Stream(_)) => (vec![json!([answer])], "application/json"),
            Some(AnswerForm::Json) | None => (vec![answer], "text/event-stream"),
        },
        _ => return None,
    };
    let framing = match media_type {
        "text/event-stream" => Framing::Sse,
        _ => Framing::Lines,
    };
    let mut body = Vec::new();
    for event in &events {
        let (name, data) = (event["type"].as_str(), event.to_string());
        let event = match name {
            Some(name) => SyntheticEvent::event(name.to_owned(), data),
            None => SyntheticEvent::data(data),
        };
        body.extend_from_slice(&framing.first_frame(&event));
    }
    if let Some(mark) = dialect.provider().end_mark {
        body.extend_from_slice(&framing.first_frame(&SyntheticEvent::data(mark)));
    }
    Some((HeaderValue::from_static(media_type), body))
}

fn headers(media_type: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))])
}

/// One chunk with the whole messages.
fn chat(mut answer: Json) -> Option<Vec<Json>> {
    answer["object"] = "chat.completion.chunk".into();
    for choice in answer["choices"].as_array_mut()? {
        let choice = choice.as_object_mut()?;
        let mut delta = choice.remove("message")?;
        let calls = delta.get_mut("tool_calls").and_then(Json::as_array_mut);
        for (call, index) in calls.into_iter().flatten().zip(0..) {
            call["index"] = index.into();
        }
        choice.insert("delta".into(), delta);
    }
    Some(vec![answer])
}

fn messages(answer: &Json) -> Option<Vec<Json>> {
    let mut begun = answer.clone();
    begun["content"] = json!([]);
    begun["stop_reason"] = Json::Null;
    begun["stop_sequence"] = Json::Null;
    let mut events = vec![json!({ "type": "message_start", "message": begun })];
    for (block, index) in answer["content"].as_array()?.iter().zip(0..) {
        let mut empty = block.clone();
        let mut deltas = Vec::new();
        for (member, kind, field) in [
            ("text", "text_delta", "text"),
            ("thinking", "thinking_delta", "thinking"),
            ("signature", "signature_delta", "signature"),
            ("input", "input_json_delta", "partial_json"),
        ] {
            let Some(value) = block.get(member) else {
                continue;
            };
            empty[member] = value.as_str().map_or(json!({}), |_| "".into());
            let piece = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            deltas.push(json!({ "type": kind, field: piece }));
        }
        events
            .push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(
                |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            ),
        );
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let end =
        json!({ "stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"] });
    events.push(json!({ "type": "message_delta", "delta": end, "usage": answer["usage"] }));
    events.push(json!({ "type": "message_stop" }));
    Some(events)
}

fn responses(dialect: &dyn Dialect, answer: &Json) -> Option<Vec<Json>> {
    let mut begun = answer.clone();
    begun["status"] = "in_progress".into();
    begun["output"] = json!([]);
    let mut events = vec![json!({ "type": "response.created", "response": begun })];
    for (item, index) in answer["output"].as_array()?.iter().zip(0..) {
        let of_item =
            |kind: &str, item: &Json| json!({ "type": kind, "output_index": index, "item": item });
        let added = of_item("response.output_item.added", item);
        if item["type"] == "message" {
            let parts = item["content"].as_array().into_iter().flatten();
            let text: String = parts.filter_map(|part| part["text"].as_str()).collect();
            let added = added.to_string();
            let event = Document::parse(added.as_bytes()).ok()?;
            let said = dialect.say_events(Event::unnamed(&event), 0, Saying::Text(&text));
            let said = said.iter().map(|event| serde_json::from_slice(&event.data));
            events.extend(said.flatten());
            continue;
        }
        events.push(added);
        if let Some(arguments) = item.get("arguments") {
            if let Some(added) = events.last_mut() {
                added["item"]["arguments"] = "".into();
            }
            for (happens, member) in [("delta", "delta"), ("done", "arguments")] {
                events.push(json!({ "type": format!("response.function_call_arguments.{happens}"), member: arguments,
                    "item_id": item["id"], "name": item["name"], "output_index": index }));
            }
        }
        events.push(of_item("response.output_item.done", item));
    }
    let end = format!("response.{}", answer["status"].as_str()?);
    events.push(json!({ "type": end, "response": answer }));
    for (event, number) in events.iter_mut().zip(0..) {
        event["sequence_number"] = number.into();
    }
    Some(events)
}
