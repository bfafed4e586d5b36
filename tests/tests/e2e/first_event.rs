//! Every event of a stream reaches the agent before the upstream sends the next, in every dialect and
//! framing, whether or not a rule reads along; and what the upstream takes is not told as overhead.

use std::time::Instant;

use serde_json::{Value, json};
use squall_tests::upstream::{Connection, bedrock, chat, gemini, messages, ollama, responses};
use squall_tests::{Path, Stage};

use crate::matrix::exchange;

/// A streamed answer, and what asks for it.
struct Stream {
    dialect: &'static str,
    target: &'static str,
    body: &'static str,
    media_type: &'static str,
    /// Each written at a time.
    events: Vec<Vec<u8>>,
}

const SSE: &str = "text/event-stream";
const AWS: &str = "application/vnd.amazon.eventstream";

const CHAT: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const MESSAGES: &str =
    r#"{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
const RESPONSES: &str = r#"{"model":"m","stream":true,"input":"hi"}"#;
const CONTENTS: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;
const PROMPT: &str = r#"{"model":"m","prompt":"hi"}"#;
const CONVERSE: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;

/// One of each.
fn streams() -> Vec<Stream> {
    let asked = json!({ "model": "m" });
    let sse = |dialect, target, body, events: Vec<String>| Stream {
        dialect,
        target,
        body,
        media_type: SSE,
        events: events.into_iter().map(String::into_bytes).collect(),
    };
    let other = |stream: Stream, media_type| Stream {
        media_type,
        ..stream
    };
    let aws = |target, body, events| Stream {
        dialect: "bedrock",
        target,
        body,
        media_type: AWS,
        events,
    };
    let generated = gemini::events(false);
    vec![
        sse(
            "openai-chat",
            "/v1/chat/completions",
            CHAT,
            chat::events(false),
        ),
        sse(
            "anthropic",
            "/v1/messages",
            MESSAGES,
            messages::named(&messages::events(&asked)),
        ),
        sse(
            "openai-responses",
            "/v1/responses",
            RESPONSES,
            messages::named(&responses::events(&asked)),
        ),
        sse(
            "gemini",
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            CONTENTS,
            gemini::sse(&generated),
        ),
        other(
            sse(
                "gemini",
                "/v1beta/models/m:streamGenerateContent",
                CONTENTS,
                gemini::list(&generated),
            ),
            "application/json",
        ),
        other(
            sse("ollama", "/api/chat", CHAT, ollama::lines(true, false)),
            "application/x-ndjson",
        ),
        other(
            sse(
                "ollama",
                "/api/generate",
                PROMPT,
                ollama::lines(false, false),
            ),
            "application/x-ndjson",
        ),
        aws("/model/m/converse-stream", CONVERSE, bedrock::events()),
        aws(
            "/model/m/invoke-with-response-stream",
            CHAT,
            bedrock::chunks(),
        ),
    ]
}

/// Sends the stream that is asked for, each event but the first after a step of the test's.
fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        let streams = streams();
        let asked = |stream: &&Stream| request.target.ends_with(stream.target);
        let Some(stream) = streams.iter().find(asked) else {
            return;
        };
        connection.send(format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ntransfer-encoding: chunked\r\n\r\n",
            stream.media_type
        ));
        for event in &stream.events {
            let size = format!("{:x}\r\n", event.len());
            connection.send([size.as_bytes(), event, b"\r\n"].concat());
            if !connection.wait_for_step() {
                return;
            }
        }
        connection.send("0\r\n\r\n");
    }
}

/// What of an event a reader of it needs: a list's item is whole before the line it stands on is.
fn needed(event: &[u8], media_type: &str) -> Vec<u8> {
    match media_type {
        "application/json" => {
            let text = String::from_utf8_lossy(event);
            text.trim_end_matches(['\n', ']']).as_bytes().to_vec()
        }
        _ => event.to_vec(),
    }
}

/// Receives every stream event by event, with a rule in force.
fn hear_all(rules: &Value) {
    let stage = Stage::with(&json!({}), serve);
    stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
    for (number, stream) in (1..).zip(streams()) {
        let mut wire = stage.open(Path::Reverse);
        let headers = [("content-type", "application/json")];
        wire.request("POST", stream.target, &headers, stream.body.as_bytes());
        let mut began = None;
        let mut paused = 0.0;
        for event in &stream.events {
            wire.receive_until(needed(event, stream.media_type));
            // So long the upstream sends nothing.
            let began = began.get_or_insert_with(Instant::now);
            paused = began.elapsed().as_secs_f64();
            stage.plain.step();
        }
        wire.receive_until("0\r\n\r\n");
        let entry = exchange(&stage, number);
        assert_eq!(entry["dialect"], stream.dialect, "{entry}");
        assert_eq!(entry["rules"][0]["mode"], rules[0]["mode"], "{entry}");
        let lasted = entry["duration_ms"].as_f64().unwrap_or_default() / 1e3;
        let own = entry["overhead_us"].as_f64().unwrap_or(f64::MAX) / 1e6;
        assert!(
            lasted - own >= paused,
            "the upstream's pauses of {paused} s are none of Squall's: {entry}"
        );
    }
}

#[test]
fn an_event_comes_before_the_next_is_sent_whether_or_not_a_rule_reads_along() {
    for rules in [
        json!([]),
        json!([{ "mode": "truncated_response", "max_tokens": 1_000_000 }]),
        json!([{ "mode": "malformed_tool_call" }]),
    ] {
        hear_all(&rules);
    }
}
