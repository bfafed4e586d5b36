//! The demo's simulated model: it supports the chat-completions protocol with and without streaming, and decides
//! by the conversation. It is deterministic.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

/// Name of the model.
const NAME: &str = "squall-demo-1";

/// Beginning of an answer about a successful booking.
const BOOKED: &str = "You are booked";

/// Pause between two tokens of a stream.
const PAUSE: Duration = Duration::from_millis(4);

/// `POST /v1/chat/completions`.
pub(super) async fn complete(Json(call): Json<Value>) -> Response {
    let turn = DemoTurn::after(&call["messages"]);
    if call["stream"] == json!(true) {
        turn.streamed()
    } else {
        turn.whole()
    }
}

/// The model's next turn.
#[derive(Debug, PartialEq)]
enum DemoTurn {
    /// It calls a tool.
    Call {
        tool: &'static str,
        arguments: Value,
    },
    /// It answers.
    Say(String),
}

impl DemoTurn {
    /// The next turn of a conversation, from the latest tool result in it.
    fn after(messages: &Value) -> Self {
        let results: Vec<&Value> = messages
            .as_array()
            .into_iter()
            .flatten()
            .filter(|message| message["role"] == "tool")
            .collect();
        let Some(result) = results.last() else {
            return Self::Call {
                tool: "search_flights",
                arguments: json!({ "from": "Oslo", "to": "Rome", "day": "Friday" }),
            };
        };
        let text = result["content"].as_str().unwrap_or_default();
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        match result["name"].as_str() {
            Some("search_flights") => Self::after_search(&found),
            _ => Self::after_booking(&found),
        }
    }

    fn after_search(found: &Value) -> Self {
        let flights = found["flights"].as_array().into_iter().flatten();
        let cheapest = flights
            .filter_map(|flight| Some((flight["price_eur"].as_u64()?, flight["flight"].as_str()?)))
            .min();
        match cheapest {
            Some((_, flight)) => Self::Call {
                tool: "book_flight",
                arguments: json!({ "flight": flight }),
            },
            None => Self::Say(
                "I could not look up flights: the search did not give me a list I can read. \
                 Nothing is booked."
                    .to_owned(),
            ),
        }
    }

    fn after_booking(found: &Value) -> Self {
        let (flight, confirmation) = (found["flight"].as_str(), found["confirmation"].as_str());
        Self::Say(match (flight, confirmation, found["error"].as_str()) {
            (Some(flight), Some(confirmation), _) => format!(
                "{BOOKED} on {flight} from Oslo to Rome on Friday, the cheapest of the \
                 day. Your confirmation is {confirmation}; please check in online by Thursday \
                 evening. Have a good trip!"
            ),
            (_, _, Some(error)) => format!(
                "I found a flight but could not book it: {error}. Please check before you try \
                 again."
            ),
            // Like a model that tries to please, it accepts any result.
            _ => format!("{BOOKED} from Oslo to Rome on Friday. Have a good trip!"),
        })
    }

    /// The turn as one JSON document.
    fn whole(&self) -> Response {
        let (message, finish) = match self {
            Self::Call { tool, arguments } => (
                json!({ "role": "assistant", "content": null, "tool_calls": [call(tool, arguments)] }),
                "tool_calls",
            ),
            Self::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        };
        Json(json!({
            "id": "chatcmpl-demo", "object": "chat.completion", "created": 0, "model": NAME,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
            "usage": { "prompt_tokens": 40, "completion_tokens": 40, "total_tokens": 80 },
        }))
        .into_response()
    }

    /// The turn as server-sent events, one for each word.
    fn streamed(&self) -> Response {
        let mut events = vec![chunk(&json!({ "role": "assistant" }), None)];
        let finish = match self {
            Self::Call { tool, arguments } => {
                let mut call = call(tool, arguments);
                call["index"] = json!(0);
                events.push(chunk(&json!({ "tool_calls": [call] }), None));
                "tool_calls"
            }
            Self::Say(text) => {
                let words = text.split_inclusive(' ');
                events.extend(words.map(|word| chunk(&json!({ "content": word }), None)));
                "stop"
            }
        };
        events.push(chunk(&json!({}), Some(finish)));
        events.push("[DONE]".to_owned());
        let paced = stream::unfold(events.into_iter(), |mut events| async {
            let event = Event::default().data(events.next()?);
            tokio::time::sleep(PAUSE).await;
            Some((Ok::<_, Infallible>(event), events))
        });
        Sse::new(paced).into_response()
    }
}

/// A tool call in the protocol's form: arguments are JSON in a string.
fn call(tool: &str, arguments: &Value) -> Value {
    json!({
        "id": format!("call_{tool}"),
        "type": "function",
        "function": { "name": tool, "arguments": arguments.to_string() },
    })
}

/// One event of a stream.
fn chunk(delta: &Value, finish: Option<&str>) -> String {
    json!({
        "id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": NAME,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool_result(name: &str, content: &str) -> Value {
        json!([{ "role": "user", "content": "go" }, { "role": "tool", "name": name, "content": content }])
    }

    #[test]
    #[rustfmt::skip]
    fn the_model_decides_by_the_latest_result() {
        let shown = |turn: DemoTurn| match turn {
            DemoTurn::Call { tool, arguments } => format!("{tool} {arguments}"),
            DemoTurn::Say(text) => text,
        };
        for (messages, expected) in [
            (json!([{ "role": "user", "content": "go" }]), "search_flights"),
            (
                tool_result(
                    "search_flights",
                    r#"{"flights":[{"flight":"A1","price_eur":9},{"flight":"B2","price_eur":8}]}"#,
                ),
                r#"book_flight {"flight":"B2"}"#,
            ),
            (tool_result("search_flights", "<html>"), "could not look up"),
            (tool_result("book_flight", r#"{"flight":"B2","confirmation":"R"}"#), "booked on B2"),
            (tool_result("book_flight", r#"{"error":"HTTP 503"}"#), "HTTP 503"),
            (tool_result("book_flight", "{}"), "You are booked"),
        ] {
            let shown = shown(DemoTurn::after(&messages));
            assert!(shown.contains(expected), "{messages}: {shown}");
        }
    }
}
