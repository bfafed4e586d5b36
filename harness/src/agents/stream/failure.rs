//! The failure that an agent's stream tells of: its answer is not whole, whatever was said before.
//!
//! Models:
//! - `OpenAI`: a chunk `{"error": {…}}`, events `error` and `response.failed`, runs of assistants that failed;
//! - Anthropic, `LangServe`, `LangGraph`, Groq: an event `error`;
//! - Vercel's AI SDK: `{"type": "error", "errorText": …}`, `{"type": "abort"}`, `finishReason: error`;
//! - `OpenRouter`: `finish_reason: error`; Ollama: a line `{"error": …}`; AG-UI: `RUN_ERROR`; Dify: `{"event": "error"}`.

use serde_json::Value;

use super::{Event, extract};

/// Names of events by which the whole answer has failed.
const NAMES: [&str; 7] = [
    "error",
    "abort",
    "response.failed",
    "thread.run.failed",
    "thread.run.expired",
    "RUN_ERROR",
    "run_error",
];

/// What an event is about that may fail while the answer goes on.
const PARTS: [&str; 6] = ["tool", "function", "step", "node", "mcp", "retry"];

/// Where the reason stands, the nearest first.
const REASONS: [&str; 10] = [
    "/error/message",
    "/error/type",
    "/error",
    "/Error",
    "/errorText",
    "/response/error/message",
    "/last_error/message",
    "/message",
    "/detail",
    "/reason",
];

/// Why the answer has failed, if this event says so.
pub(super) fn failure(event: &Event) -> Option<String> {
    let document = serde_json::from_str(&event.data).ok();
    let document = document.filter(Value::is_object).unwrap_or_default();
    let own_name = |field| document.get(field).and_then(Value::as_str);
    let names = [
        Some(event.name.as_str()),
        own_name("type"),
        own_name("event"),
    ];
    let names = || names.iter().flatten();
    let is_named = names().any(|name| NAMES.contains(name));
    let is_of_part = || {
        let mut all = names().copied().chain(keys(&document));
        all.any(|name| PARTS.iter().any(|part| name.contains(part)))
    };
    let says_so = || extract::reported_failure(&document).is_some() && !is_of_part();
    (is_named || says_so() || ends_in_error(&document)).then(|| {
        format!(
            "the agent's stream ended in an error{}",
            why(event, &document)
        )
    })
}

fn keys(document: &Value) -> impl Iterator<Item = &str> {
    let members = document.as_object().into_iter().flatten();
    members.map(|(name, _)| name.as_str())
}

/// Whether a choice, or the whole, is finished by an error.
fn ends_in_error(document: &Value) -> bool {
    let places = ["/choices/0/finish_reason", "/finishReason"];
    let mut reasons = places.iter().filter_map(|place| document.pointer(place));
    reasons.any(|reason| reason == "error")
}

/// What is told of the reason: what stands where reasons do, or all that the event says.
fn why(event: &Event, document: &Value) -> String {
    let told = REASONS
        .iter()
        .filter_map(|place| document.pointer(place))
        .find(|reason| reason.as_str().is_none_or(|text| !text.is_empty()) && !reason.is_null());
    let told = told.map_or_else(|| event.data.trim().to_owned(), extract::text_of);
    if told.is_empty() {
        String::new()
    } else {
        format!(": {}", extract::shown(&told))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DATA_STREAM, Turn, turn};

    const SSE: &str = "text/event-stream";
    const LINES: &str = "application/x-ndjson";

    #[test]
    fn a_stream_that_tells_of_its_failure_is_no_answer() {
        for (media_type, body, text, why) in [
            // OpenAI
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It is \"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n",
                "It is ",
                ": overloaded",
            ),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It is \"}}]}\n\nevent: error\ndata: {\"error\":{\"message\":\"boom\"}}\n\n",
                "It is ",
                ": boom",
            ),
            (
                SSE,
                "data: {\"type\":\"response.output_text.delta\",\"delta\":\"It\"}\n\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"message\":\"gone\"}}}\n\n",
                "It",
                ": gone",
            ),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"It\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
                "It",
                "",
            ),
            // Anthropic
            (
                SSE,
                "data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"It\"}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
                "It",
                ": Overloaded",
            ),
            // Vercel's AI SDK
            (
                SSE,
                "data: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"It is \"}\n\ndata: {\"type\":\"error\",\"errorText\":\"the model is down\"}\n\ndata: [DONE]\n\n",
                "It is ",
                ": the model is down",
            ),
            (
                SSE,
                "data: {\"type\":\"text-delta\",\"id\":\"1\",\"delta\":\"It\"}\n\ndata: {\"type\":\"finish\",\"finishReason\":\"error\"}\n\n",
                "It",
                "",
            ),
            (
                DATA_STREAM,
                "0:\"It is \"\n3:\"the model is down\"\nd:{\"finishReason\":\"error\"}\n",
                "It is ",
                ": \"the model is down\"",
            ),
            // No JSON, and nothing at all.
            (
                SSE,
                "data: It is \n\nevent: error\ndata: boom\n\n",
                "It is ",
                ": boom",
            ),
            (SSE, "data: It is \r\n\r\nevent:error\r\n\r\n", "It is ", ""),
            (SSE, "event: error\ndata: boom\n\n", "", ": boom"),
            (
                LINES,
                "{\"response\":\"It \",\"done\":false}\n{\"error\":\"an error was encountered\"}\n",
                "It ",
                ": an error was encountered",
            ),
            (
                LINES,
                "{\"chunk\":{\"words\":\"It\"}}\n{\"error\":\"x\"}\n",
                "",
                ": x",
            ),
        ] {
            let why = format!("the agent's stream ended in an error{why}");
            let found = turn(media_type, body, None).expect("a stream");
            match found.expect("a turn") {
                Turn::Failed {
                    text: said,
                    why: told,
                } => {
                    assert_eq!(said, text, "{body}");
                    assert!(told.starts_with(&why), "{told}: {body}");
                }
                other @ (Turn::Answered(_) | Turn::BrokenOff { .. } | Turn::TimedOut { .. }) => {
                    panic!("{other:?}: {body}")
                }
            }
        }
    }

    #[test]
    fn what_fails_on_the_way_to_an_answer_is_no_failure_of_it() {
        for (media_type, body) in [
            (
                SSE,
                "data: {\"type\":\"tool_result\",\"error\":\"timeout\"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"Sunny\"}\n\n",
            ),
            (
                SSE,
                "data: {\"type\":\"tool-output-error\",\"errorText\":\"timeout\"}\n\ndata: {\"type\":\"text-delta\",\"delta\":\"Sunny\"}\n\n",
            ),
            (
                SSE,
                "data: {\"event\":\"on_tool_error\",\"error\":\"timeout\"}\n\ndata: {\"text\":\"Sunny\"}\n\n",
            ),
            (
                LINES,
                "{\"tool\":\"weather\",\"error\":\"timeout\",\"done\":false}\n{\"response\":\"Sunny\",\"error\":null}\n",
            ),
            (SSE, "event: message\ndata: Sunny\n\n"),
            (
                SSE,
                "data: {\"choices\":[{\"delta\":{\"content\":\"Sunny\"},\"finish_reason\":\"stop\"}],\"error\":\"\"}\n\n",
            ),
        ] {
            let found = turn(media_type, body, None).expect("a stream");
            assert_eq!(found, Ok(Turn::Answered("Sunny".to_owned())), "{body}");
        }
    }
}
