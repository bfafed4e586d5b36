//! Gemini Live sessions: each turn of the model is a call, and all else passes.

use serde_json::{Value, json};
use squall_tests::upstream::Connection;
use squall_tests::upstream::chat::WORDS;
use squall_tests::{Path, Stage};

use super::frames::{Message, frame};
use super::upstream::accept;
use super::{MASK, Socket};

const TARGET: &str =
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=k";

/// Sound of one sample, as the upstream sends it with each word.
const SOUND: &str = "AAABAA==";

/// A simulated session. The name of the model decides what it says: with `tools` calls, with `written` the
/// words alone, else words and their sound.
fn serve(mut connection: Connection) {
    let Some(request) = connection.request() else {
        return;
    };
    let mut end = accept(&mut connection, &request);
    let mut model = String::new();
    loop {
        let bytes = connection.receive();
        if bytes.is_empty() {
            return;
        }
        end.push(&bytes);
        while let Some(message) = end.next() {
            let text = match message {
                Message::Text(text) => text,
                Message::Other(2, bytes) => String::from_utf8(bytes).expect("JSON"),
                Message::Other(..) => continue,
                Message::Close(code) => {
                    connection.send(end.close(code));
                    return;
                }
            };
            for event in answer(&mut model, &serde_json::from_str(&text).unwrap_or_default()) {
                connection.send(binary(&event));
            }
        }
    }
}

/// An event as Google sends it.
fn binary(event: &Value) -> Vec<u8> {
    frame(0x82, None, event.to_string().as_bytes())
}

fn answer(model: &mut String, message: &Value) -> Vec<Value> {
    let either = |camel, snake| message.get(camel).or_else(|| message.get(snake));
    if let Some(setup) = message.get("setup") {
        setup["model"]
            .as_str()
            .unwrap_or_default()
            .clone_into(model);
        return vec![json!({ "setupComplete": {} })];
    }
    if let Some(content) = either("clientContent", "client_content") {
        let ends = [&content["turnComplete"], &content["turn_complete"]];
        let ends = ends.iter().any(|ends| **ends == true);
        return if ends { turn(model) } else { Vec::new() };
    }
    if either("toolResponse", "tool_response").is_some() {
        return turn("written");
    }
    // The end of speech.
    if message["realtimeInput"]["audioStreamEnd"] == true {
        let heard = json!({ "serverContent": { "inputTranscription": { "text": "hello" } } });
        return [vec![heard], turn(model)].concat();
    }
    Vec::new()
}

fn turn(model: &str) -> Vec<Value> {
    let usage = json!({ "promptTokenCount": 9, "responseTokenCount": 17, "totalTokenCount": 26 });
    if model.contains("tools") {
        let call = json!({ "id": "call_1", "name": "weather", "args": { "city": "Kiel" } });
        let mut events =
            vec![json!({ "toolCall": { "functionCalls": [call] }, "usageMetadata": usage })];
        if model.contains("rest") {
            events.push(json!({ "serverContent": { "generationComplete": true } }));
            events.push(json!({ "serverContent": { "turnComplete": true } }));
        }
        events.push(json!({ "sessionResumptionUpdate": {} }));
        return events;
    }
    let content = |content: Value| json!({ "serverContent": content });
    let part = |part: Value| content(json!({ "modelTurn": { "parts": [part] } }));
    let mut events = Vec::new();
    for word in WORDS {
        if model.contains("written") {
            events.push(part(json!({ "text": word })));
        } else {
            let sound = json!({ "mimeType": "audio/pcm;rate=24000", "data": SOUND });
            events.push(part(json!({ "inlineData": sound })));
            events.push(content(json!({ "outputTranscription": { "text": word } })));
        }
    }
    events.push(content(json!({ "generationComplete": true })));
    let mut end = content(json!({ "turnComplete": true }));
    end["usageMetadata"] = usage;
    events.push(end);
    events.push(json!({ "sessionResumptionUpdate": {} }));
    events
}

fn setup(model: &str) -> Value {
    json!({ "setup": { "model": format!("models/{model}"), "generationConfig": {} } })
}

/// Messages of an agent that asks, answers a call in two parts, and speaks; the number of turns for them is 3.
fn conversation() -> Vec<Value> {
    let result = |id: &str| {
        json!({ "toolResponse": { "functionResponses": [
            { "id": id, "name": "weather", "response": { "output": "21" } }] } })
    };
    vec![
        json!({ "clientContent": { "turns": [{ "role": "user", "parts": [{ "text": "hi" }] }] } }),
        json!({ "client_content": { "turns": [], "turn_complete": true } }),
        json!({ "realtimeInput": { "audio": { "mimeType": "audio/pcm", "data": SOUND } } }),
        result("call_1"),
        json!({ "realtimeInput": { "audioStreamEnd": true } }),
    ]
}

/// The next event, which is in a binary message.
fn event(socket: &mut Socket) -> Value {
    match socket.next() {
        Some(Message::Other(2, bytes)) => serde_json::from_slice(&bytes).expect("JSON"),
        other => panic!("{other:?} in place of an event"),
    }
}

/// The events up to the one after a turn.
fn until_idle(socket: &mut Socket) -> Vec<Value> {
    let mut events = vec![event(socket)];
    while events.last().expect("one")["sessionResumptionUpdate"].is_null() {
        events.push(event(socket));
    }
    events
}

fn open(stage: &Stage, path: Path, model: &str) -> Socket {
    let mut socket = Socket::open_at(stage, path, TARGET, false);
    socket.send(&setup(model));
    assert_eq!(event(&mut socket), json!({ "setupComplete": {} }));
    socket
}

#[test]
fn without_chaos_a_live_session_gets_the_bytes_of_a_direct_connection() {
    let stage = Stage::with(&json!({}), serve);
    for model in ["gemini-live", "gemini-live-tools", "written"] {
        for path in [Path::Direct].into_iter().chain(Path::THROUGH) {
            let mut socket = Socket::open_at(&stage, path, TARGET, false);
            let mut named = String::new();
            for message in [setup(model)].iter().chain(&conversation()) {
                let answer = answer(&mut named, message);
                let answer: Vec<u8> = answer.iter().flat_map(binary).collect();
                socket.send(message);
                let got = socket.wire.receive(answer.len());
                assert!(got == answer, "{path:?}: {message}");
            }
            socket.close(1000);
        }
    }
}

#[test]
fn each_turn_is_an_exchange_whoever_begins_it() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let mut count = 0;
    for rules in [json!([]), json!([{ "mode": "garbage", "model": "other" }])] {
        api.chaos(&json!({ "llm_faults": rules }));
        for (model, tools) in [
            ("gemini-live", [json!([]), json!([]), json!([])]),
            (
                "gemini-live-tools",
                [json!(["weather"]), json!([]), json!(["weather"])],
            ),
        ] {
            for is_binary in [false, true] {
                let mut socket = open(&stage, Path::Reverse, model);
                for message in conversation() {
                    if is_binary {
                        let text = message.to_string();
                        socket.wire.send(frame(0x82, MASK, text.as_bytes()));
                    } else {
                        socket.send(&message);
                    }
                    if !answer(&mut model.to_owned(), &message).is_empty() {
                        let events = until_idle(&mut socket);
                        assert_eq!(events, answer(&mut model.to_owned(), &message));
                    }
                }
                socket.close(1000);
                count += 4;
                let entries = api.wait_for_exchanges(count).split_off(count - 4);
                let (calls, sockets): (Vec<_>, Vec<_>) =
                    entries.iter().partition(|entry| entry["kind"] == "llm");
                assert_eq!((calls.len(), sockets.len()), (3, 1), "{entries:?}");
                for (call, tools) in calls.into_iter().zip(&tools) {
                    let finish = if *tools == json!([]) { "done" } else { "tool" };
                    assert_eq!(call["dialect"], "gemini-live", "{call}");
                    assert_eq!(call["websocket"], sockets[0]["id"], "{call}");
                    let llm = &call["llm"];
                    let facts = [
                        "model",
                        "input_tokens",
                        "output_tokens",
                        "finish",
                        "tool_calls",
                    ];
                    let facts = facts.map(|name| llm[name].clone());
                    assert_eq!(json!(facts), json!([model, 9, 17, finish, tools]), "{call}");
                }
            }
        }
    }
}

/// Results that are sent before the model goes on are of one turn, however many messages they come in.
#[test]
fn messages_before_the_model_begins_are_of_one_call() {
    let stage = Stage::with(
        &json!({}),
        scripted(
            |number| {
                if number % 2 == 0 {
                    turn("written")
                } else {
                    Vec::new()
                }
            },
            2,
        ),
    );
    let api = stage.daemon.api;
    let result = json!({ "toolResponse": { "functionResponses": [] } });
    for rules in [json!([]), json!([{ "mode": "garbage", "model": "other" }])] {
        api.chaos(&json!({ "llm_faults": rules }));
        let before = api.wait_for_exchanges(0).len();
        let mut socket = open(&stage, Path::Reverse, "written");
        for _ in 0..2 {
            socket.send(&result);
            socket.send(&result);
            until_idle(&mut socket);
        }
        socket.close(1000);
        let entries = api.wait_for_exchanges(before + 3);
        let calls = entries[before..].iter();
        let calls = calls.filter(|entry| entry["kind"] == "llm");
        assert_eq!(calls.count(), 2, "{entries:?}");
    }
}

/// A session that answers each message by its number: 0 is the setup.
fn scripted(script: impl Fn(usize) -> Vec<Value> + Clone, kind: u8) -> impl Fn(Connection) + Clone {
    move |mut connection| {
        let Some(request) = connection.request() else {
            return;
        };
        let mut end = accept(&mut connection, &request);
        let mut messages = 0;
        loop {
            let bytes = connection.receive();
            if bytes.is_empty() {
                return;
            }
            end.push(&bytes);
            while let Some(message) = end.next() {
                let events = match message {
                    Message::Close(code) => {
                        connection.send(end.close(code));
                        return;
                    }
                    _ if messages == 0 => vec![json!({ "setupComplete": {} })],
                    _ => script(messages),
                };
                let first = if messages == 0 { 0x82 } else { 0x80 | kind };
                messages += 1;
                for event in &events {
                    connection.send(frame(first, None, event.to_string().as_bytes()));
                }
            }
        }
    }
}

/// The turn often goes on after a call of tools, before or after the results are sent.
#[test]
fn what_follows_a_tool_call_in_its_turn_is_of_no_call() {
    let content = |content: Value| json!({ "serverContent": content });
    let finished = content(json!({ "outputTranscription": { "finished": true } }));
    let sound = json!({ "inlineData": { "mimeType": "audio/pcm", "data": SOUND } });
    let sound = content(json!({ "modelTurn": { "parts": [sound] } }));
    let generated = content(json!({ "generationComplete": true }));
    let mut end = content(json!({ "turnComplete": true }));
    end["usageMetadata"] = json!({ "promptTokenCount": 1, "responseTokenCount": 1 });
    for (before, after) in [
        (vec![], vec![]),
        (vec![finished.clone()], vec![]),
        (
            vec![finished, sound, generated.clone(), end.clone()],
            vec![],
        ),
        (vec![], vec![generated, end]),
    ] {
        let (early, late) = (before.clone(), after.clone());
        let script = move |number| match number {
            1 => [turn("tools"), early.clone()].concat(),
            2 => [late.clone(), turn("written")].concat(),
            _ => turn("written"),
        };
        let stage = Stage::with(&json!({}), scripted(script, 2));
        let api = stage.daemon.api;
        for (rules, third) in [
            (json!([]), WORDS.concat()),
            (json!([{ "mode": "empty", "calls": [3] }]), String::new()),
        ] {
            let entries = api.wait_for_exchanges(0).len();
            api.chaos(&json!({ "llm_faults": rules }));
            let mut socket = open(&stage, Path::Reverse, "written");
            let mut said = Vec::new();
            for (call, rest) in [(0, before.len()), (1, 0), (2, 0)] {
                socket.send(&json!({ "toolResponse": { "id": call } }));
                let events = until_idle(&mut socket);
                let parts = events.iter();
                let parts = parts.map(|it| &it["serverContent"]["modelTurn"]["parts"][0]["text"]);
                said.push(parts.filter_map(Value::as_str).collect::<String>());
                for _ in 0..rest {
                    event(&mut socket);
                }
            }
            socket.close(1000);
            let about = format!("{rules}, {before:?}, {after:?}");
            assert_eq!(said, [String::new(), WORDS.concat(), third], "{about}");
            let entries = api.wait_for_exchanges(entries + 4).split_off(entries);
            let calls = entries.iter().filter(|entry| entry["kind"] == "llm");
            let ends: Vec<_> = calls.map(|call| call["llm"]["finish"].clone()).collect();
            assert_eq!(ends, ["tool", "done", "done"], "{about}: {entries:?}");
        }
    }
}

#[test]
fn an_error_of_the_upstream_s_own_passes_in_the_frame_that_it_came_in() {
    let error = json!({ "error": { "code": 503, "message": "no", "status": "UNAVAILABLE" } });
    let answer = [vec![error], turn("written")].concat();
    let script = {
        let answer = answer.clone();
        move |_| answer.clone()
    };
    let stage = Stage::with(&json!({}), scripted(script, 1));
    let rule = json!({ "mode": "stream_cut", "after_tokens": 1000 });
    for rules in [json!([]), json!([rule])] {
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let mut socket = open(&stage, Path::Reverse, "written");
        socket.send(&json!({ "toolResponse": {} }));
        for expected in &answer {
            assert_eq!(socket.event(), *expected, "{rules}");
        }
    }
}

#[test]
fn a_turn_that_the_server_begins_can_fail() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    api.chaos(&json!({ "llm_faults": [{ "mode": "overloaded", "calls": [2] }] }));
    let mut socket = open(&stage, Path::Forward, "written");
    socket.send(&json!({ "clientContent": { "turnComplete": true } }));
    assert_eq!(until_idle(&mut socket), turn("written"));
    socket.send(&json!({ "realtimeInput": { "audioStreamEnd": true } }));
    assert!(event(&mut socket)["serverContent"]["inputTranscription"].is_object());
    assert_eq!(socket.next(), Some(Message::Close(1011)));
    socket.send(&json!({ "clientContent": { "turnComplete": true } }));
    socket.wire.send(frame(0x88, MASK, &1011_u16.to_be_bytes()));
    assert!(socket.wire.rest().0.is_empty());
    drop(socket);
    let entries = api.wait_for_exchanges(3);
    let outcomes: Vec<_> = entries.iter().map(|entry| &entry["outcome"]).collect();
    assert_eq!(
        (outcomes.len(), outcomes[2]),
        (3, &json!("injected")),
        "{entries:?}"
    );
    let mut socket = open(&stage, Path::Forward, "written");
    socket.send(&json!({ "clientContent": { "turnComplete": true } }));
    assert_eq!(until_idle(&mut socket), turn("written"));
}

/// Modes, their parameters and what a client gets under each.
const MODES: [(&str, &str, &str); 22] = [
    (
        "timeout",
        r#"{"delay_ms":100}"#,
        "closed 1006 abnormal closure [internal], no text, 0 heard",
    ),
    (
        "truncated_response",
        r#"{"max_tokens":2}"#,
        "complete, the beginning, 3 heard",
    ),
    (
        "rate_limit",
        "{}",
        "closed 1011 You exceeded your current quota, no text, 0 heard",
    ),
    ("empty", "{}", "complete, no text, 0 heard"),
    ("garbage", "{}", "complete, another text, 0 heard"),
    (
        "response_drift",
        r#"{"drift_type":"verbosity_shift"}"#,
        "complete, another text, 5 heard",
    ),
    (
        "overloaded",
        "{}",
        "closed 1011 The service is currently unavailable., no text, 0 heard",
    ),
    (
        "server_error",
        "{}",
        "closed 1011 Internal error encountered., no text, 0 heard",
    ),
    (
        "quota_exhausted",
        "{}",
        "closed 1011 You exceeded your current quota, no text, 0 heard",
    ),
    (
        "context_length_exceeded",
        "{}",
        "closed 1007 The input token count, no text, 0 heard",
    ),
    (
        "auth_error",
        "{}",
        "closed 1007 API key not valid. Please pass a valid API key., no text, 0 heard",
    ),
    (
        "model_not_found",
        "{}",
        "closed 1008 models/model_not_found is not found for API version v1, no text, 0 heard",
    ),
    (
        "connection_limit",
        "{}",
        "goes away in 0s, closed 1011 Deadline expired before operation could complete., no text, 0 heard",
    ),
    (
        "content_filter",
        "{}",
        "GENERATED_CONTENT_SAFETY, no text, 0 heard",
    ),
    ("refusal", "{}", "complete, another text, 0 heard"),
    (
        "malformed_tool_call",
        "{}",
        "MALFORMED_FUNCTION_CALL, no text, 0 heard",
    ),
    (
        "unknown_tool_call",
        "{}",
        "calls, another tool with the arguments",
    ),
    (
        "wrong_tool_arguments",
        "{}",
        "calls, weather with other arguments",
    ),
    (
        "stream_stall",
        r#"{"after_tokens":2,"delay_ms":600000}"#,
        "waits, the beginning, 3 heard",
    ),
    (
        "stream_cut",
        r#"{"after_tokens":2}"#,
        "closed 1006 abnormal closure [internal], the beginning, 2 heard",
    ),
    (
        "stream_error",
        r#"{"after_tokens":2}"#,
        "closed 1011 The service is currently unavailable., the beginning, 2 heard",
    ),
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
    let content = match &got["calls"][0] {
        Value::Null => format!("{text}, {} heard", got["heard"]),
        call => {
            let name = if call[0] == "weather" {
                "weather"
            } else {
                "another tool"
            };
            let same = call[1] == json!({ "city": "Kiel" });
            format!(
                "{name} with {} arguments",
                if same { "the" } else { "other" }
            )
        }
    };
    let reason = got["reason"].as_str().unwrap_or_default();
    let reason = reason.split(['(', ',']).next().unwrap_or_default().trim();
    let end = match (got["waits"].as_bool(), got["closed"].as_u64()) {
        (Some(_), _) => "waits".to_owned(),
        (None, Some(code)) => format!("closed {code} {reason}"),
        (None, None) => got["finish"].as_str().unwrap_or("nothing").to_owned(),
    };
    match got["go_away"].as_str() {
        Some(left) => format!("goes away in {left}, {end}, {content}"),
        None => format!("{end}, {content}"),
    }
}

#[test]
fn the_google_client_takes_each_mode_in_a_session() {
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
        let way = stage.way(Path::Intercepted, "");
        let got = way.ask("live_calls.py", &["--calls", &json!(calls).to_string()]);
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
            "calls, weather with the arguments"
        } else {
            "complete, the text, 5 heard"
        };
        if clean != usual || clean == *expected {
            complaints.push(format!("{mode} without the fault: {clean}"));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The client above gives up a turn at its call, so that a repetition of it is seen here.
#[test]
fn a_tool_call_can_come_twice_and_has_no_end_of_its_own() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    for (number, (rules, times, outcome)) in (1..).zip([
        (json!([]), 1, Value::Null),
        (json!([{ "mode": "duplicate_chunk" }]), 2, json!("applied")),
        (
            json!([{ "mode": "missing_terminator" }]),
            1,
            json!("bypassed"),
        ),
    ]) {
        api.chaos(&json!({ "llm_faults": rules }));
        let mut socket = open(&stage, Path::Reverse, "tools");
        socket.send(&json!({ "clientContent": { "turnComplete": true } }));
        let events = until_idle(&mut socket);
        let calls = events.iter().filter(|event| event["toolCall"].is_object());
        assert_eq!(calls.count(), times, "{events:?}");
        socket.close(1000);
        let entries = api.wait_for_exchanges(2 * number);
        let call = entries.iter().rfind(|entry| entry["kind"] == "llm");
        let call = call.expect("a call");
        assert_eq!(call["rules"][0]["outcome"], outcome, "{call}");
    }
}

#[test]
fn the_rest_of_a_turn_follows_its_tool_call_unless_a_rule_replaced_the_call() {
    let stage = Stage::with(&json!({}), serve);
    for (rules, calls) in [
        (json!([]), 1),
        (json!([{ "mode": "duplicate_chunk" }]), 2),
        (json!([{ "mode": "malformed_tool_call" }]), 0),
    ] {
        stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
        let mut socket = open(&stage, Path::Reverse, "tools rest");
        for turn in 1..=2 {
            socket.send(&json!({ "clientContent": { "turnComplete": true } }));
            let events = until_idle(&mut socket);
            let count = |found: fn(&Value) -> bool| events.iter().filter(|one| found(one)).count();
            let found = count(|event| event["toolCall"].is_object());
            assert_eq!(found, calls, "{rules}, turn {turn}: {events:?}");
            let ends = count(|event| event["serverContent"]["turnComplete"] == true);
            assert_eq!(ends, 1, "{rules}, turn {turn}: {events:?}");
        }
        socket.close(1000);
    }
}

#[test]
fn a_tape_answers_the_turns_of_a_session_and_dials_nothing() {
    let stage = Stage::with(&json!({}), serve);
    let api = stage.daemon.api;
    let begun = api.call("POST", "/v1/recordings", Some(&json!({})));
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    let ask = || {
        let mut socket = open(&stage, Path::Reverse, "written");
        socket.send(&json!({ "clientContent": { "turnComplete": true } }));
        let said: Vec<Value> = turn("written").iter().map(|_| event(&mut socket)).collect();
        socket.close(1000);
        said
    };
    let said = ask();
    api.wait_for_exchanges(2);
    api.call("POST", &format!("/v1/recordings/{id}/stop"), None);
    let put = json!({ "recording": id });
    let put = api.call("PUT", "/v1/scopes/default/tape", Some(&put));
    assert_eq!(put.status, 200, "{}", put.text());
    let reached = stage.plain.opened();
    let mut socket = open(&stage, Path::Reverse, "written");
    socket.send(&json!({ "clientContent": { "turnComplete": true } }));
    // What is beside a turn is not on the tape.
    for expected in &said[..said.len() - 1] {
        assert_eq!(event(&mut socket), *expected);
    }
    assert_eq!(stage.plain.opened(), reached);
}
