//! Realtime sessions: each response is a call, asked for or begun by the server, and all else passes.

use serde_json::{Value, json};
use squall_tests::upstream::Connection;
use squall_tests::upstream::chat::WORDS;
use squall_tests::{Path, Stage};

use super::Socket;
use super::frames::{Message, frame};
use super::upstream::accept;

/// The sound of each word, as the upstream sends it.
const AUDIO: &str = "UklGRg==";

fn target(model: &str) -> String {
    format!("/v1/realtime?model={model}")
}

/// A simulated session. The name of the model decides what it says: with `tools` a call, with `written` the
/// words alone, else words and their sound.
fn serve(mut connection: Connection) {
    let Some(request) = connection.request() else {
        return;
    };
    let model = request.target.split_once("model=");
    let model = model.map(|(_, model)| model.to_owned()).unwrap_or_default();
    let mut end = accept(&mut connection, &request);
    let mut session = Session { model, events: 0 };
    let created = session.event(
        "session.created",
        json!({ "session": { "type": "realtime" } }),
    );
    connection.send(end.text(&created.to_string()));
    loop {
        let bytes = connection.receive();
        if bytes.is_empty() {
            return;
        }
        end.push(&bytes);
        while let Some(message) = end.next() {
            match message {
                Message::Text(text) => {
                    let message = serde_json::from_str(&text).unwrap_or_default();
                    for event in session.answer(&message) {
                        connection.send(end.text(&event.to_string()));
                    }
                }
                Message::Close(code) => {
                    connection.send(end.close(code));
                    return;
                }
                Message::Other(..) => {}
            }
        }
    }
}

struct Session {
    model: String,
    events: usize,
}

impl Session {
    fn event(&mut self, kind: &str, mut members: Value) -> Value {
        self.events += 1;
        members["type"] = json!(kind);
        members["event_id"] = json!(format!("event_{:03}", self.events));
        members
    }

    fn answer(&mut self, message: &Value) -> Vec<Value> {
        match message["type"].as_str() {
            Some("response.create") => self.response(),
            // The end of speech.
            Some("input_audio_buffer.append") if message["audio"] == "" => {
                let mut events = vec![
                    self.event(
                        "input_audio_buffer.speech_stopped",
                        json!({ "item_id": "item_u" }),
                    ),
                    self.event(
                        "input_audio_buffer.committed",
                        json!({ "item_id": "item_u" }),
                    ),
                ];
                events.extend(self.response());
                events
            }
            Some("input_audio_buffer.append") => Vec::new(),
            _ => vec![self.event("echo", json!({ "of": message }))],
        }
    }

    fn response(&mut self) -> Vec<Value> {
        let id = format!("resp_{}", self.events);
        let (item, pieces) = self.output();
        let response = |status: &str, output: &[&Value], usage: Value| {
            json!({ "response": {
                "object": "realtime.response", "id": id, "status": status, "status_details": null,
                "output": output, "usage": usage, "metadata": null,
            } })
        };
        let mut events = vec![self.event(
            "response.created",
            response("in_progress", &[], Value::Null),
        )];
        for (kind, mut members) in pieces {
            members["response_id"] = json!(id);
            members["output_index"] = json!(0);
            if kind.contains("content_part") || kind.contains("_audio") || kind.contains("_text") {
                members["content_index"] = json!(0);
            }
            events.push(self.event(kind, members));
        }
        let usage = json!({
            "total_tokens": 26, "input_tokens": 9, "output_tokens": 17,
            "output_token_details": { "text_tokens": 5, "audio_tokens": 12 },
        });
        events.push(self.event("response.done", response("completed", &[&item], usage)));
        events.push(self.event("rate_limits.updated", json!({ "rate_limits": [] })));
        events
    }

    /// The item of a response, and its events.
    fn output(&self) -> (Value, Vec<(&'static str, Value)>) {
        if self.model.contains("tools") {
            let item = |status: &str, arguments: &str| {
                json!({
                    "id": "item_f", "object": "realtime.item", "type": "function_call", "status": status,
                    "call_id": "call_1", "name": "weather", "arguments": arguments,
                })
            };
            let arguments = r#"{"city":"Kiel"}"#;
            let of_call = |mut members: Value| {
                members["item_id"] = json!("item_f");
                members["call_id"] = json!("call_1");
                members
            };
            let delta = |delta: &str| {
                (
                    "response.function_call_arguments.delta",
                    of_call(json!({ "delta": delta })),
                )
            };
            let done = of_call(json!({ "name": "weather", "arguments": arguments }));
            let whole = item("completed", arguments);
            let pieces = vec![
                (
                    "response.output_item.added",
                    json!({ "item": item("in_progress", "") }),
                ),
                delta(&arguments[..8]),
                delta(&arguments[8..]),
                ("response.function_call_arguments.done", done),
                ("response.output_item.done", json!({ "item": whole })),
            ];
            return (whole, pieces);
        }
        let speaks = !self.model.contains("written");
        let (kind, member) = if speaks {
            ("output_audio", "transcript")
        } else {
            ("output_text", "text")
        };
        let item = |status: &str, content: Value| {
            json!({
                "id": "item_a", "object": "realtime.item", "type": "message", "status": status,
                "role": "assistant", "content": content,
            })
        };
        let part = |text: &str| json!({ "type": &kind["output_".len()..], member: text });
        let of_item = |mut members: Value| {
            members["item_id"] = json!("item_a");
            members
        };
        let (delta, done) = if speaks {
            (
                "response.output_audio_transcript.delta",
                "response.output_audio_transcript.done",
            )
        } else {
            ("response.output_text.delta", "response.output_text.done")
        };
        let whole = item(
            "completed",
            json!([{ "type": kind, member: WORDS.concat() }]),
        );
        let mut pieces = vec![
            (
                "response.output_item.added",
                json!({ "item": item("in_progress", json!([])) }),
            ),
            (
                "response.content_part.added",
                of_item(json!({ "part": part("") })),
            ),
        ];
        for word in WORDS {
            pieces.push((delta, of_item(json!({ "delta": word }))));
            if speaks {
                pieces.push((
                    "response.output_audio.delta",
                    of_item(json!({ "delta": AUDIO })),
                ));
            }
        }
        if speaks {
            pieces.push(("response.output_audio.done", of_item(json!({}))));
        }
        pieces.extend([
            (done, of_item(json!({ member: WORDS.concat() }))),
            (
                "response.content_part.done",
                of_item(json!({ "part": part(&WORDS.concat()) })),
            ),
            ("response.output_item.done", json!({ "item": whole })),
        ]);
        (whole, pieces)
    }
}

/// Messages of an agent that speaks, asks and calls tools, and how many events follow each.
fn conversation() -> Vec<Value> {
    vec![
        json!({ "type": "session.update", "session": { "type": "realtime" } }),
        json!({ "type": "input_audio_buffer.append", "audio": AUDIO }),
        json!({ "type": "input_audio_buffer.append", "audio": "" }),
        json!({ "type": "conversation.item.create", "item": {
            "type": "function_call_output", "call_id": "call_1", "output": "21" } }),
        json!({ "type": "response.create", "event_id": "ours_1" }),
    ]
}

#[test]
fn without_chaos_a_session_gets_the_bytes_of_a_direct_connection() {
    let stage = Stage::with(&json!({}), serve);
    for model in ["gpt-realtime", "gpt-realtime-tools", "written"] {
        let mut session = Session {
            model: model.to_owned(),
            events: 1,
        };
        let answers: Vec<Vec<u8>> = conversation()
            .iter()
            .map(|message| {
                let events = session.answer(message);
                let frames = events
                    .iter()
                    .flat_map(|event| frame(0x81, None, event.to_string().as_bytes()));
                frames.collect()
            })
            .collect();
        for path in [Path::Direct].into_iter().chain(Path::THROUGH) {
            let mut socket = Socket::open_at(&stage, path, &target(model), false);
            socket.event();
            for (message, answer) in conversation().iter().zip(&answers) {
                socket.send(message);
                assert!(
                    socket.wire.receive(answer.len()) == *answer,
                    "{path:?}: {message}"
                );
            }
            socket.close(1000);
        }
    }
}

/// The events up to one of this kind.
fn until(socket: &mut Socket, kind: &str) -> Vec<Value> {
    let mut events = Vec::new();
    while events
        .last()
        .is_none_or(|event: &Value| event["type"] != kind)
    {
        events.push(socket.event());
    }
    events
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .collect()
}

#[test]
fn each_response_is_an_exchange_whoever_begins_it() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let mut count = 0;
    for rules in [json!([]), json!([{ "mode": "garbage", "model": "other" }])] {
        api.chaos(&json!({ "llm_faults": rules }));
        for (model, finish, tools) in [
            ("gpt-realtime", "done", json!([])),
            ("gpt-realtime-tools", "tool", json!(["weather"])),
        ] {
            let mut socket = Socket::open_at(&stage, Path::Reverse, &target(model), true);
            for message in conversation() {
                socket.send(&message);
            }
            let events: Vec<_> = (0..2)
                .flat_map(|_| until(&mut socket, "rate_limits.updated"))
                .collect();
            assert_eq!(
                kinds(&events)[..3],
                [
                    "session.created",
                    "echo",
                    "input_audio_buffer.speech_stopped"
                ]
            );
            socket.close(1000);
            count += 3;
            let entries = api.wait_for_exchanges(count).split_off(count - 3);
            let calls: Vec<_> = entries
                .iter()
                .filter(|entry| entry["kind"] == "llm")
                .collect();
            assert_eq!(calls.len(), 2, "{entries:?}");
            let socket = entries
                .iter()
                .find(|entry| entry["kind"] == "other")
                .unwrap();
            for call in calls {
                assert_eq!(call["dialect"], "openai-realtime", "{call}");
                assert_eq!(call["websocket"], socket["id"], "{call}");
                let llm = &call["llm"];
                let facts = json!([
                    llm["model"],
                    llm["input_tokens"],
                    llm["output_tokens"],
                    llm["finish"],
                    llm["tool_calls"]
                ]);
                assert_eq!(facts, json!([model, 9, 17, finish, tools]), "{call}");
            }
        }
    }
}

#[test]
fn a_response_that_the_server_begins_can_fail_and_the_session_goes_on() {
    let stage = Stage::with(&json!({}), serve);
    stage
        .daemon
        .api
        .chaos(&json!({ "llm_faults": [{ "mode": "rate_limit", "calls": [1] }] }));
    let mut socket = Socket::open_at(&stage, Path::Forward, &target("gpt-realtime"), true);
    socket.event();
    socket.send(&json!({ "type": "input_audio_buffer.append", "audio": "" }));
    let events = until(&mut socket, "response.done");
    let expected = [
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "response.created",
        "response.done",
    ];
    assert_eq!(kinds(&events), expected);
    let response = &events[3]["response"];
    assert_eq!(response["status"], "failed", "{response}");
    assert_eq!(
        response["status_details"]["error"]["code"],
        "rate_limit_exceeded"
    );
    assert_eq!(events[2]["response"]["id"], response["id"]);
    // Events beside the response pass.
    assert_eq!(socket.event()["type"], "rate_limits.updated");
    socket.send(&json!({ "type": "response.create" }));
    let events = until(&mut socket, "response.done");
    assert_eq!(events.last().unwrap()["response"]["status"], "completed");
}

/// Modes, their parameters and what a client gets under each: the end, the transcript or the calls, and
/// how many words are heard.
const MODES: [(&str, &str, &str); 22] = [
    (
        "timeout",
        r#"{"delay_ms":100}"#,
        "closed 1006, no text, 0 heard",
    ),
    (
        "truncated_response",
        r#"{"max_tokens":2}"#,
        "incomplete max_output_tokens, the beginning, 2 heard",
    ),
    (
        "rate_limit",
        "{}",
        "failed rate_limit_exceeded, no text, 0 heard",
    ),
    ("empty", "{}", "completed, no text, 0 heard"),
    ("garbage", "{}", "completed, another text, 0 heard"),
    (
        "response_drift",
        r#"{"drift_type":"verbosity_shift"}"#,
        "completed, another text, 5 heard",
    ),
    ("overloaded", "{}", "failed server_error, no text, 0 heard"),
    (
        "quota_exhausted",
        "{}",
        "failed insufficient_quota, no text, 0 heard",
    ),
    (
        "context_length_exceeded",
        "{}",
        "error context_length_exceeded about ours, no text, 0 heard",
    ),
    (
        "auth_error",
        "{}",
        "error invalid_api_key about ours, no text, 0 heard",
    ),
    (
        "model_not_found",
        "{}",
        "error model_not_found about ours, no text, 0 heard",
    ),
    (
        "connection_limit",
        "{}",
        "error session_expired about ours, no text, 0 heard",
    ),
    (
        "content_filter",
        "{}",
        "incomplete content_filter, no text, 0 heard",
    ),
    ("refusal", "{}", "completed, another text, 0 heard"),
    (
        "malformed_tool_call",
        "{}",
        "completed, weather with other arguments",
    ),
    (
        "unknown_tool_call",
        "{}",
        "completed, another tool with the arguments",
    ),
    (
        "wrong_tool_arguments",
        "{}",
        "completed, weather with other arguments",
    ),
    (
        "stream_stall",
        r#"{"after_tokens":2,"delay_ms":600000}"#,
        "waits, the beginning, 2 heard",
    ),
    (
        "stream_cut",
        r#"{"after_tokens":2}"#,
        "closed 1006, the beginning, 1 heard",
    ),
    (
        "stream_error",
        r#"{"after_tokens":2}"#,
        "failed server_error, the beginning, 1 heard",
    ),
    ("duplicate_chunk", "{}", "completed, another text, 5 heard"),
    ("missing_terminator", "{}", "waits, the text, 5 heard"),
];

/// What a client got, in the words of [`MODES`].
fn summary(got: &Value) -> String {
    let whole = WORDS.concat();
    let text = match got["text"].as_str().unwrap_or_default() {
        "" => "no text",
        text if text == whole => "the text",
        text if whole.starts_with(text) => "the beginning",
        _ => "another text",
    };
    let content = match (got["name"].as_str(), got["arguments"].as_str()) {
        (Some(name), Some(arguments)) => {
            let name = if name == "weather" {
                name
            } else {
                "another tool"
            };
            let same = arguments == r#"{"city":"Kiel"}"#;
            format!(
                "{name} with {} arguments",
                if same { "the" } else { "other" }
            )
        }
        _ => format!("{text}, {} heard", got["heard"]),
    };
    let word = |key: &str| {
        got[key]
            .as_str()
            .map(|word| format!(" {word}"))
            .unwrap_or_default()
    };
    let about = if got["about"] == "ours" {
        " about ours"
    } else {
        ""
    };
    let end = match (got["waits"].as_bool(), got["closed"].as_u64()) {
        (Some(_), _) => "waits".to_owned(),
        (None, Some(code)) => format!("closed {code}"),
        (None, None) => format!(
            "{}{}{about}",
            got["finish"].as_str().unwrap_or("nothing"),
            word("code")
        ),
    };
    format!("{end}, {content}")
}

#[test]
fn the_openai_client_takes_each_mode_in_a_session() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let model = |mode: &str| {
        let tools = if mode.contains("tool") { "-tools" } else { "" };
        format!("{mode}{tools}")
    };
    let rules = MODES.map(|(mode, parameters, _)| {
        let mut rule: Value = serde_json::from_str(parameters).unwrap();
        rule["mode"] = json!(mode);
        rule["model"] = json!(model(mode));
        rule
    });
    // Only a call that must get no end waits in vain.
    let ask = |faulted: bool| {
        let calls = MODES.map(|(mode, _, expected)| {
            let waits = faulted && expected.starts_with("waits");
            json!({ "model": model(mode), "timeout": if waits { 5 } else { 60 } })
        });
        let way = stage.way(Path::Reverse, "/v1");
        let got = way.ask("realtime_calls.py", &["--calls", &json!(calls).to_string()]);
        MODES.map(|(mode, ..)| got[model(mode)].clone())
    };
    let clean = ask(false);
    api.chaos(&json!({ "llm_faults": rules }));
    let before = api.wait_for_exchanges(2 * MODES.len()).len();
    let got = ask(true);
    let entries = api.wait_for_exchanges(before + 2 * MODES.len());
    let mut complaints = Vec::new();
    for (((mode, _, expected), got), clean) in MODES.iter().zip(got).zip(clean) {
        let entry = entries[before..]
            .iter()
            .find(|entry| entry["llm"]["model"] == model(mode));
        let rule = &entry.expect("a call")["rules"][0];
        let (got, clean) = (summary(&got), summary(&clean));
        if got != *expected || rule["outcome"] != "applied" {
            complaints.push(format!("{mode}: {got}; {rule}"));
        }
        let usual = if mode.contains("tool") {
            "completed, weather with the arguments"
        } else {
            "completed, the text, 5 heard"
        };
        if clean != usual || clean == *expected {
            complaints.push(format!("{mode} without the fault: {clean}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
