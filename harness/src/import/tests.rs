use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};
use squall_journal::redact::Redactor;
use squall_journal::tape::{Content, Session};

use super::*;

fn import(format: ImportFormat, bytes: &[u8]) -> Imported {
    let redactor = Redactor::default();
    let options = ImportOptions {
        name: "incident",
        redactor: &redactor,
        tools: None,
    };
    let imported = read(format, bytes, options).expect("an import");
    for session in &imported.sessions {
        let again = crate::session::parse("s", &session.to_yaml()).expect("a session");
        assert_eq!(&again, session);
    }
    imported
}

fn whole(session: &Session, at: usize) -> String {
    let bytes = session.exchanges[at].answer.content.whole();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn reasons(imported: &Imported) -> Vec<String> {
    let all = imported.unmapped.iter();
    all.map(|one| format!("{}: {}", one.what, one.why))
        .collect()
}

/// An archive with these entries.
fn archive(entries: &[Value]) -> Vec<u8> {
    let log =
        json!({ "log": { "version": "1.2", "creator": { "name": "t" }, "entries": entries } });
    format!("\u{feff}{log}").into_bytes()
}

fn entry(url: &str, response: &Value) -> Value {
    json!({ "request": { "method": "GET", "url": url, "httpVersion": "h2",
        "headers": [{ "name": ":authority", "value": "h.test" }] }, "response": response })
}

#[test]
fn habits_of_browsers_are_understood() {
    let gzip = STANDARD.encode(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcbH\xcd\xc9\xc9\x07\x00\x86\xa6\x106\x05\x00\x00\x00");
    let coded = json!([{ "name": "Content-Encoding", "value": "gzip" }, { "name": ":status", "value": "200" },
        { "name": "Set-Cookie", "value": "a=1\nb=2" }]);
    let text = |text: &str| json!({ "size": 5, "text": text });
    let base64 = |text: &str| json!({ "size": 5, "text": text, "encoding": "base64" });
    let ok = |headers: &Value, content: Value| json!({ "status": 200, "headers": headers, "content": content });
    let imported = import(
        ImportFormat::Har,
        &archive(&[
            entry("https://H.test:443/a#top", &ok(&coded, text("hello"))),
            entry("https://h.test/a", &ok(&coded, base64(&gzip))),
            entry(
                "https://h.test/a",
                &ok(&coded, base64(&STANDARD.encode("hello"))),
            ),
            entry(
                "https://h.test/empty",
                &json!({ "status": 204, "content": { "size": 0 } }),
            ),
            entry(
                "https://h.test/aborted",
                &json!({ "status": 0, "content": {} }),
            ),
            entry(
                "https://h.test/lost?key=1",
                &ok(&json!([]), json!({ "size": 9 })),
            ),
            entry("wss://h.test/socket", &json!({ "status": 101 })),
            entry("data:text/plain,x", &json!({ "status": 200 })),
        ]),
    );
    let [session] = &imported.sessions[..] else {
        panic!("{imported:?}")
    };
    let found: Vec<_> = (session.exchanges.iter().enumerate())
        .map(|(at, one)| {
            (
                one.matching.url.as_deref().unwrap_or_default(),
                one.answer.status,
                whole(session, at),
            )
        })
        .collect();
    let hello = |url| (url, 200, "hello".to_owned());
    assert_eq!(
        found,
        [
            hello("https://h.test/a"),
            hello("https://h.test/a"),
            hello("https://h.test/a"),
            ("https://h.test/empty", 204, String::new()),
            ("https://h.test/aborted", 0, String::new()),
        ]
    );
    let cookies = [
        ("set-cookie".to_owned(), "REDACTED".to_owned()),
        ("set-cookie".to_owned(), "REDACTED".to_owned()),
    ];
    assert_eq!(session.exchanges[0].answer.headers, cookies);
    assert!(session.exchanges[0].http2);
    assert_eq!(
        reasons(&imported),
        [
            "GET https://h.test/lost: the archive does not have its response's body",
            "GET wss://h.test/socket: a WebSocket; only HTTP exchanges are imported",
            "GET data:text/plain,x: it did not go over HTTP",
            "the input of incident: no user message was found; write `input` into the session before a run replays it",
        ]
    );
}

#[test]
fn a_status_is_read_or_listed() {
    let statuses = [
        json!("200"),
        json!("200 OK"),
        json!(200.0),
        json!(0),
        json!(null),
        json!(-1),
        json!(99_999),
        json!("ok"),
    ];
    let entries =
        (statuses.iter()).map(|status| entry("http://h.test/", &json!({ "status": status })));
    let request = json!({ "method": "GET", "uri": "http://h.test/" });
    let interactions = statuses.iter().flat_map(|status| {
        let responses = [
            json!({ "status": { "code": status } }),
            json!({ "status": status }),
        ];
        responses.map(|response| json!({ "request": request, "response": response }))
    });
    let cassette = json!({ "interactions": interactions.collect::<Value>() });
    for (format, file, expected, invalid) in [
        // A status of 0 means that there was no response; a cassette has only exchanges with one.
        (
            ImportFormat::Har,
            archive(&entries.collect::<Vec<_>>()),
            &[200, 200, 200, 0][..],
            4,
        ),
        (
            ImportFormat::Vcr,
            cassette.to_string().into_bytes(),
            &[200; 6],
            10,
        ),
    ] {
        let imported = import(format, &file);
        let exchanges = imported.sessions[0].exchanges.iter();
        let read: Vec<_> = exchanges.map(|one| one.answer.status).collect();
        assert_eq!(read, expected, "{format:?}");
        let listed = reasons(&imported);
        let listed = listed.iter().filter(|why| why.contains("its status"));
        assert_eq!(listed.count(), invalid, "{imported:?}");
    }
}

#[test]
fn the_prompt_is_the_last_message_of_the_first_model_call_and_secrets_do_not_come_in() {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Rome, key sk-abcdefgh12?" }] });
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let events = [event("sk-zyxw"), event("vuts98")];
    let response = json!({ "status": 200, "headers": [{ "name": "content-type", "value": "text/event-stream" }],
        "content": { "size": 1, "text": events.concat(),
            "_stream": [{ "at_ms": 5, "end": events[0].len() }, { "at_ms": 9, "end": events.concat().len() }] } });
    let mut entry = entry(
        "https://h.test/v1/chat/completions?api_key=hunter2",
        &response,
    );
    entry["request"]["method"] = json!("POST");
    entry["request"]["headers"] =
        json!([{ "name": "Authorization", "value": "Bearer hunter3hunter3" }]);
    entry["request"]["postData"] = json!({ "text": body.to_string() });
    let imported = import(ImportFormat::Har, &archive(&[entry]));
    let session = &imported.sessions[0];
    assert_eq!(session.input, ["Rome, key REDACTED?"]);
    assert_eq!(session.exchanges[0].dialect.as_deref(), Some("openai-chat"));
    let yaml = session.to_yaml();
    for secret in ["hunter", "abcdefgh12", "sk-zyxw", "vuts98"] {
        assert!(!yaml.contains(secret), "{secret} in {yaml}");
    }
    let Content::Stream(pieces) = &session.exchanges[0].answer.content else {
        panic!("{yaml}")
    };
    let times: Vec<_> = pieces.iter().map(|piece| piece.at_ms).collect();
    assert_eq!(times, [5, 9]);
}

#[test]
fn bodies_of_cassettes_are_decoded_however_they_are_written() {
    let gzip = "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==";
    let yaml = format!(
        "interactions:\n{}version: 1\n",
        [
            "body:\n      string: hello".to_owned(),
            "body:\n      string: !!binary |\n        aGVsbG8=".to_owned(),
            format!("headers: {{Content-Encoding: [gzip]}}\n    body:\n      string: !!binary |\n        {gzip}"),
            "headers: {Content-Encoding: [gzip]}\n    body: {string: hello}".to_owned(),
            "body:\n      encoding: ASCII-8BIT\n      base64_string: aGVsbG8=".to_owned(),
            "content: hello".to_owned(),
        ]
        .map(|response| format!(
            "- request: {{method: get, uri: 'http://h.test/', body: null, headers: {{}}}}\n  response:\n    status: {{code: 200}}\n    {response}\n"
        ))
        .concat()
    );
    let imported = import(ImportFormat::Vcr, yaml.as_bytes());
    let session = &imported.sessions[0];
    let bodies: Vec<_> = (0..session.exchanges.len())
        .map(|at| whole(session, at))
        .collect();
    assert_eq!(bodies, ["hello"; 6]);
    assert!(
        session
            .exchanges
            .iter()
            .all(|one| one.answer.headers.is_empty())
    );
}

#[test]
fn failed_results_of_a_report_become_sessions_with_the_mutated_prompt() {
    let result = |passed: bool| {
        json!({ "original_prompt": "Book it", "passed": passed, "error": null,
        "mutation": { "original": "Book it", "mutated": "Book it NOW", "type": "tone_shift" },
        "checks": [{ "check_type": "contains", "passed": passed, "details": "no price" }] })
    };
    let report = json!({ "version": "1.0", "started_at": "2026-01-02T03:04:05", "mutations": [result(true), result(false)] });
    let imported = import(ImportFormat::Flakestorm, report.to_string().as_bytes());
    let [session] = &imported.sessions[..] else {
        panic!("{imported:?}")
    };
    assert_eq!(session.id, "incident-002");
    assert_eq!(session.input, ["Book it NOW"]);
    assert_eq!(
        session.expected_failure.as_deref(),
        Some("contains: no price")
    );
}

#[test]
fn sessions_of_flakestorm_are_read_and_other_fields_are_listed() {
    let yaml = "replays:\n  sessions:\n  - {id: a b/c, input: x, contract: default, severity: high,\n     tool_responses: [{tool: t, response: {p: 1}, status: 0}]}\n  - {file: other.yaml}\n";
    let redactor = Redactor::default();
    let tools = BTreeSet::from(["u".to_owned()]);
    let options = ImportOptions {
        name: "n",
        redactor: &redactor,
        tools: Some(&tools),
    };
    let imported = read(ImportFormat::Flakestorm, yaml.as_bytes(), options).expect("an import");
    assert_eq!(imported.sessions[0].id, "a-b-c");
    assert_eq!(imported.sessions[0].tool_responses[0].status, 0);
    assert_eq!(
        reasons(&imported),
        [
            "field `severity`: sessions have no such field",
            "session other.yaml: it is in another file; import that file",
            "requests of tool t: the suite's `tools:` does not name it, so only MCP calls of a tool with this name get its responses",
        ]
    );
}

#[test]
fn what_is_another_format_is_an_error() {
    for (format, text, why) in [
        (ImportFormat::Har, "{}", "it has no `log.entries`"),
        (ImportFormat::Har, "x: 1", "it is not JSON"),
        (ImportFormat::Vcr, "a: 1", "it has no `interactions`"),
        (ImportFormat::Vcr, "{", "it is not JSON"),
        (ImportFormat::Flakestorm, "a: 1", "it is neither a session"),
        (
            ImportFormat::Flakestorm,
            "{\"id\": \"x\", \"input\": 3}",
            "/input: ",
        ),
        (ImportFormat::Flakestorm, "[", "it is not JSON"),
    ] {
        let redactor = Redactor::default();
        let options = ImportOptions {
            name: "n",
            redactor: &redactor,
            tools: None,
        };
        let error = read(format, text.as_bytes(), options).expect_err(text);
        assert!(error.contains(why), "{text}: {error}");
    }
}

/// A document near to those that are imported: known names, any values.
fn any_document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<f64>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        "[ -~é\u{1f600}]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["base64", "http://h/", "GET", "gzip", "user", "/wA="])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        let names = prop::sample::select(NAMES.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((names, inner), 0..6).prop_map(|all| all
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()),
        ]
    })
}

#[rustfmt::skip]
const NAMES: [&str; 37] = [
    "log", "entries", "request", "response", "method", "url", "uri", "headers", "name", "value", "content", "text",
    "encoding", "postData", "params", "status", "code", "timings", "wait", "_stream", "at_ms", "end", "interactions",
    "body", "string", "base64_string", "mutations", "mutation", "mutated", "passed", "checks", "cells", "replays",
    "sessions", "id", "input", "tool_responses",
];

proptest! {
    #[test]
    fn no_document_panics(document in any_document(), wrap in 0..4_usize) {
        let document = match wrap {
            0 => document,
            1 => json!({ "log": { "entries": [document] } }),
            2 => json!({ "interactions": [document] }),
            _ => json!({ "mutations": [document] }),
        };
        let redactor = Redactor::default();
        let options = ImportOptions { name: "n", redactor: &redactor, tools: None };
        for (_, format) in ImportFormat::NAMES {
            if let Ok(imported) = read(*format, document.to_string().as_bytes(), options) {
                for session in imported.sessions {
                    crate::session::parse("s", &session.to_yaml()).expect("a session");
                }
            }
        }
    }
}

/// A file of `tests/imports`, which `make.py` there made with the tool itself.
fn made(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/imports");
    std::fs::read(format!("{folder}/{name}")).expect("a file")
}

#[test]
fn files_of_the_real_tools_are_imported() {
    let weather = "{\"city\": \"Rome\", \"degrees\": 21}";
    for (format, name, exchanges, unmapped) in [
        (ImportFormat::Har, "chromium.har", 7, 0),
        (ImportFormat::Har, "firefox.har", 7, 0),
        (ImportFormat::Vcr, "vcrpy.yaml", 5, 0),
        (ImportFormat::Vcr, "vcrpy.json", 3, 0),
    ] {
        let imported = import(format, &made(name));
        assert_eq!(imported.unmapped.len(), unmapped, "{:?}", imported.unmapped);
        let session = &imported.sessions[0];
        assert_eq!(session.exchanges.len(), exchanges, "{name}");
        let input = session.input.first().map(String::as_str);
        assert_eq!(input, Some("What is the weather in Rome?"), "{name}");
        assert!(!session.to_yaml().contains("sk-proj"), "{name}");
        let body = |end: &str| {
            let is_of = |url: &String| url.ends_with(end);
            let mut all = session.exchanges.iter();
            let found = all.find(|one| one.matching.url.as_ref().is_some_and(is_of));
            found.map(|one| one.answer.content.whole())
        };
        assert_eq!(
            body("/weather?city=Rome").expect("a call"),
            weather,
            "{name}"
        );
        if let Some(binary) = body("/binary") {
            assert_eq!(&binary[..], b"\xff\x00\x01", "{name}");
        }
        let calls = session.exchanges.iter().filter(|one| one.dialect.is_some());
        assert_eq!(calls.count(), 2, "{name}");
    }
    let imported = import(ImportFormat::Flakestorm, &made("flakestorm.json"));
    let input = imported.sessions[0].input.first().map(String::as_str);
    assert_eq!(input, Some("Weather! In Rome! NOW! REDACTED"));
}

#[test]
fn traces_of_the_real_tools_are_imported() {
    let weather = json!({ "city": "Rome", "degrees": 21 });
    for (format, name) in [
        (ImportFormat::Otlp, "otlp-genai.json"),
        (ImportFormat::Otlp, "otlp-genai.pb"),
        (ImportFormat::Otlp, "otlp-openinference.json"),
        (ImportFormat::Otlp, "otlp-openinference.pb"),
        (ImportFormat::Langsmith, "langsmith.json"),
        (ImportFormat::Langfuse, "langfuse.json"),
    ] {
        let imported = import(format, &made(name));
        assert_eq!(imported.unmapped, [], "{name}");
        let [session] = &imported.sessions[..] else {
            panic!("{name}: {imported:?}")
        };
        let input = session.input.first().map(String::as_str);
        assert_eq!(input, Some("What is the weather in Rome?"), "{name}");
        let [tool] = &session.tool_responses[..] else {
            panic!("{name}: {session:?}")
        };
        assert_eq!((&*tool.tool, tool.status), ("get_weather", 200), "{name}");
        assert_eq!(tool.response, weather, "{name}");
        let bodies = session.llm_responses.iter().map(|one| {
            assert_eq!(one.dialect.as_deref(), Some("openai-chat"), "{name}");
            serde_json::from_slice::<Value>(&one.answer.content.whole()).expect("JSON")
        });
        let [first, second] = &bodies.collect::<Vec<_>>()[..] else {
            panic!("{name}: {session:?}")
        };
        let call = &first["choices"][0]["message"]["tool_calls"][0];
        assert_eq!(call["function"]["name"], "get_weather", "{name}");
        assert_eq!(first["choices"][0]["finish_reason"], "tool_calls", "{name}");
        let text = &second["choices"][0]["message"]["content"];
        assert_eq!(text, "It is 21 degrees in Rome.", "{name}");
    }
}

/// A span of OTLP with attributes.
fn span(id: u8, attributes: &Value) -> Value {
    let pairs = attributes.as_object().into_iter().flatten();
    let pairs: Value = pairs
        .map(|(name, value)| json!({ "key": name, "value": { "stringValue": value } }))
        .collect();
    json!({ "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": format!("{id:016x}"), "name": "x",
        "startTimeUnixNano": format!("{id}000000"), "endTimeUnixNano": format!("{id}500000000"), "attributes": pairs })
}

fn otlp(spans: &[Value]) -> String {
    json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] }).to_string()
}

#[test]
fn what_a_trace_does_not_have_is_listed_and_its_models_are_left_out() {
    let said = json!([{ "role": "assistant", "parts": [{ "type": "text", "content": "hi" }], "finish_reason": "stop" }]);
    let chat = |provider: &str, output: &Value| {
        json!({ "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": "m",
            "gen_ai.output.messages": output.to_string() })
    };
    let lines = [
        otlp(&[
            span(1, &chat("openai", &said)),
            span(
                2,
                &json!({ "gen_ai.operation.name": "chat", "gen_ai.request.model": "m" }),
            ),
        ]),
        otlp(&[
            span(3, &json!({ "http.request.method": "GET" })),
            json!({ "spanId": "z" }),
        ]),
        otlp(&[
            span(4, &json!({ "gen_ai.tool.name": "t" })),
            span(5, &chat("unheard", &said)),
        ]),
    ];
    let imported = import(ImportFormat::Otlp, lines.join("\n").as_bytes());
    let id = "0af7651916cd43dd8448eb211c80319c";
    assert_eq!(imported.sessions[0].llm_responses, []);
    assert!(imported.sessions[0].has_live_models());
    assert_eq!(
        reasons(&imported),
        [
            "spans: 1: their trace id or span id is invalid".to_owned(),
            format!("a call of tool t in {id}: the trace does not have its result"),
            format!(
                "response 2 of m in {id}: the trace does not have its content; instrumentations record it only if they are told to"
            ),
            format!(
                "response 3 of m in {id}: the trace names no known provider, so its format is not known"
            ),
            format!(
                "1 other model responses in {id}: responses are replayed in order, and one of them is missing"
            ),
            format!(
                "x in {id}: a span of HTTP has no bodies; record the traffic, or trace the tool"
            ),
            format!(
                "the input of {id}: no user message was found; write `input` into the session before a run replays it"
            ),
        ]
    );
}

#[test]
fn responses_are_written_in_the_format_of_each_provider() {
    let said = json!([{ "role": "assistant", "parts": [{ "type": "text", "content": "hi" },
        { "type": "tool_call", "id": "c", "name": "t", "arguments": { "a": 1 } }] }]);
    for (provider, dialect, text, name) in [
        (
            "azure.ai.openai",
            "openai-chat",
            "/choices/0/message/content",
            "/choices/0/message/tool_calls/0/function/name",
        ),
        (
            "anthropic",
            "anthropic",
            "/content/0/text",
            "/content/1/name",
        ),
        (
            "gcp.gemini",
            "gemini",
            "/candidates/0/content/parts/0/text",
            "/candidates/0/content/parts/1/functionCall/name",
        ),
        (
            "ollama",
            "ollama",
            "/message/content",
            "/message/tool_calls/0/function/name",
        ),
    ] {
        let attributes = json!({ "gen_ai.operation.name": "chat", "gen_ai.system": provider,
            "gen_ai.output.messages": said.to_string() });
        let imported = import(ImportFormat::Otlp, otlp(&[span(1, &attributes)]).as_bytes());
        let written = &imported.sessions[0].llm_responses[0];
        assert_eq!(written.dialect.as_deref(), Some(dialect));
        assert_eq!(written.answer.latency_ms, 1499);
        let body: Value = serde_json::from_slice(&written.answer.content.whole()).expect("JSON");
        assert_eq!(body.pointer(text), Some(&json!("hi")), "{body}");
        assert_eq!(body.pointer(name), Some(&json!("t")), "{body}");
    }
}

#[test]
fn messages_of_langchain_are_understood() {
    let message = |class: &str, more: Value| json!({ "lc": 1, "type": "constructor", "id": ["langchain", class], "kwargs": more });
    let runs = json!([
        { "id": "r", "trace_id": "r", "run_type": "chain", "name": "g", "dotted_order": "1", "error": "boom",
            "inputs": { "messages": [message("HumanMessage", json!({ "content": "Rome?", "type": "human" }))] } },
        { "id": "m", "trace_id": "r", "parent_run_id": "r", "run_type": "llm", "name": "ChatAnthropic", "dotted_order": "1.1",
            "extra": { "metadata": { "ls_provider": "anthropic", "ls_model_name": "claude" } }, "inputs": {},
            "outputs": { "generations": [[{ "text": "", "message": message("AIMessage", json!({
                "content": "", "tool_calls": [{ "name": "t", "args": { "a": 1 }, "id": "c" }] })) }]] } },
        { "id": "t", "trace_id": "r", "parent_run_id": "r", "run_type": "tool", "name": "t", "dotted_order": "1.2",
            "start_time": "2026-01-01T00:00:00", "end_time": "2026-01-01T00:00:01.5", "error": "TimeoutError", "outputs": null },
        { "id": "s", "trace_id": "r", "parent_run_id": "r", "run_type": "retriever", "name": "docs", "dotted_order": "1.3" },
    ]);
    let imported = import(ImportFormat::Langsmith, runs.to_string().as_bytes());
    let session = &imported.sessions[0];
    assert_eq!(session.input.first().map(String::as_str), Some("Rome?"));
    assert_eq!(session.expected_failure.as_deref(), Some("boom"));
    let tool = &session.tool_responses[0];
    assert_eq!(
        (tool.status, tool.latency_ms, &tool.response),
        (0, 1500, &json!("TimeoutError"))
    );
    let body = session.llm_responses[0].answer.content.whole();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(body["content"][0]["input"], json!({ "a": 1 }), "{body}");
    assert_eq!(
        reasons(&imported),
        ["docs in r: results of retrievers and embeddings are not replayed"]
    );
}

#[test]
fn ranges_of_time_are_read_or_rejected() {
    let day = 86_400_000;
    for (text, expected) in [
        ("last_7_days", Some((100 * day - 7 * day, 100 * day))),
        ("last_1_day", Some((99 * day, 100 * day))),
        (
            "last_36_hours",
            Some((100 * day - 36 * 3_600_000, 100 * day)),
        ),
        ("7d", Some((93 * day, 100 * day))),
        ("90m", Some((100 * day - 90 * 60_000, 100 * day))),
        ("1970-01-01T00:00:00Z/1970-01-02T00:00:00Z", Some((0, day))),
        ("1970-01-02T00:00:00Z/1970-01-01T00:00:00Z", None),
        ("last_week", None),
        ("last_0_days", None),
        ("last_7_parsecs", None),
        ("yesterday", None),
        ("", None),
    ] {
        let range = crate::date_range::DateRange::parse(text);
        let bounds = range.map(|range| range.bounds(100 * day));
        assert_eq!(bounds.ok(), expected, "{text}");
    }
}

mod fetching {
    use super::*;
    use crate::agents::testing::{Reply, Server, json as reply};
    use crate::dial::Dialler;

    async fn fetch(
        service: Service,
        source: &str,
        replies: Vec<Reply>,
    ) -> (Result<Imported, FetchError>, Server) {
        let server = Server::start(replies).await;
        let fetching = Fetching {
            service,
            source: source.to_owned(),
            status: "error".to_owned(),
            range: crate::date_range::DateRange::parse("1970-01-01T00:00:00Z/1970-01-02T00:00:00Z")
                .ok(),
            min_latency_ms: 1500,
            limit: 100,
            endpoint: Some(server.url.clone()),
            now_ms: 0,
        };
        let redactor = Redactor::default();
        let options = ImportOptions {
            name: "n",
            redactor: &redactor,
            tools: None,
        };
        let variable = |name: &str| match name {
            "LANGSMITH_WORKSPACE_ID" => Some("team".to_owned()),
            name => name.ends_with("_KEY").then(|| format!("hunter-{name}")),
        };
        let fetched = fetching.run(&Dialler::default(), &variable, options).await;
        (fetched, server)
    }

    fn run(id: &str, kind: &str, order: &str) -> Value {
        json!({ "id": id, "trace_id": "r", "run_type": kind, "name": id, "dotted_order": order,
            "parent_run_id": (id != "r").then_some("r"), "inputs": { "input": "Rome?" },
            "outputs": { "output": "your key is hunter-LANGSMITH_API_KEY" }, "start_time": "2026-01-01T00:00:00" })
    }

    #[tokio::test]
    async fn a_project_is_fetched_by_pages_and_each_tree_by_a_query_of_its_own() {
        for (info, list, next) in [
            ("{}", "runs", "/cursors/next"),
            (
                r#"{"instance_flags":{"ch_query_enabled":false,"sdb_query_enabled":true}}"#,
                "items",
                "/next_cursor",
            ),
        ] {
            let page = |runs: Value, cursor: Value| {
                let mut page = json!({ list: runs, "cursors": {} });
                if next == "/next_cursor" {
                    page["next_cursor"] = cursor;
                } else {
                    page["cursors"]["next"] = cursor;
                }
                reply(&page.to_string())
            };
            let (fetched, server) = fetch(
                Service::Langsmith,
                "my project",
                vec![
                    reply(info),
                    reply(r#"[{"id":"p1"}]"#),
                    page(json!([run("r", "chain", "1")]), json!("c2")),
                    page(json!([]), json!(null)),
                    page(json!([run("t", "tool", "1.2")]), json!(null)),
                ],
            )
            .await;
            let imported = fetched.expect("sessions");
            let session = &imported.sessions[0];
            assert_eq!(
                (&*session.id, session.input.first().map(String::as_str)),
                ("r", Some("Rome?"))
            );
            assert_eq!(
                session.tool_responses[0].response,
                json!("your key is REDACTED")
            );
            let asked = server.requests();
            assert!(
                asked
                    .iter()
                    .all(|one| one.header("x-api-key") == Some("hunter-LANGSMITH_API_KEY"))
            );
            assert!(
                asked
                    .iter()
                    .all(|one| one.header("x-tenant-id") == Some("team"))
            );
            let lines: Vec<_> = asked
                .iter()
                .map(|one| one.line.split(" HTTP").next().unwrap_or_default())
                .collect();
            let query = if list == "runs" {
                "POST /runs/query"
            } else {
                "POST /api/v2/runs/query"
            };
            assert_eq!(
                lines,
                [
                    "GET /info",
                    "GET /sessions?name=my%20project",
                    query,
                    query,
                    query
                ]
            );
            let body = |at: usize| serde_json::from_str::<Value>(&asked[at].body).expect("JSON");
            let roots = body(3);
            assert_eq!(roots["is_root"], true);
            assert_eq!(roots["cursor"], "c2");
            assert_eq!(
                roots["filter"],
                "and(gte(latency, 1.500), lte(start_time, \"1970-01-02T00:00:00.000Z\"))"
            );
            assert_eq!(
                roots[if list == "runs" { "error" } else { "has_error" }],
                true
            );
            let tree = body(4);
            assert_eq!(tree[if list == "runs" { "trace" } else { "trace_id" }], "r");
            assert_eq!(tree["is_root"], false);
        }
    }

    #[tokio::test]
    async fn traces_of_langfuse_are_listed_and_fetched_one_by_one() {
        let trace = String::from_utf8(made("langfuse.json")).expect("a text");
        let failed = trace.replacen("\"DEFAULT\"", "\"ERROR\"", 1);
        let failed = failed.replacen("\"observations\"", "\"latency\": 2.5, \"observations\"", 1);
        let (fetched, server) = fetch(
            Service::Langfuse,
            "latest",
            vec![
                reply(r#"{"data":[{"id":"a"},{"id":"b/c"}]}"#),
                reply(r#"{"data":[]}"#),
                reply(&trace),
                reply(&failed),
            ],
        )
        .await;
        assert_eq!(fetched.expect("sessions").sessions.len(), 1);
        let asked = server.requests();
        let pair = STANDARD.encode("hunter-LANGFUSE_PUBLIC_KEY:hunter-LANGFUSE_SECRET_KEY");
        assert_eq!(
            asked[0].header("authorization"),
            Some(&*format!("Basic {pair}"))
        );
        assert!(
            asked[0]
                .line
                .contains("page=1&limit=50&fromTimestamp=1970-01-01T00:00:00.000Z"),
            "{}",
            asked[0].line
        );
        assert!(
            asked[3].line.starts_with("GET /api/public/traces/b%2Fc "),
            "{}",
            asked[3].line
        );
    }

    #[tokio::test]
    async fn a_rejected_key_is_an_error_without_the_key() {
        for service in [Service::Langsmith, Service::Langfuse] {
            let reply = Reply::With(
                401,
                "application/json",
                "{\"detail\":\"bad hunter-LANGSMITH_API_KEY\"}".to_owned(),
            );
            let (fetched, _) = fetch(service, "x", vec![reply]).await;
            let error = fetched.expect_err("a wrong key").to_string();
            assert!(
                error.ends_with("the key was rejected (status 401)"),
                "{error}"
            );
            assert!(!error.contains("hunter"), "{error}");
        }
    }
}

#[test]
fn a_request_without_spans_is_one_for_a_collector_and_no_file() {
    assert_eq!(
        otlp::OtlpFormat::Json
            .spans(b"{}", false)
            .map(|(spans, _)| spans.len()),
        Ok(0)
    );
    let request = otlp::OtlpFormat::Json.spans(br#"{"resourceSpans":7}"#, false);
    assert!(request.is_err());
    assert!(otlp::read(b"{}").is_err());
}

/// A sparse list has the items that were sent, and a name of very many parts is left out.
#[test]
fn attributes_of_messages_take_no_more_memory_than_they_have() {
    let deep = format!("llm.output_messages.{}", "a.".repeat(1_000_000));
    let sparse: Value = (0..2000)
        .map(|number| {
            let name = format!("llm.output_messages.0.message.x{number}.999.999.999.999");
            (name, json!("x"))
        })
        .collect();
    let mut attributes = json!({
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m",
        "llm.input_messages.10.message.content": "last", "llm.input_messages.10.message.role": "user",
        "llm.input_messages.9.message.content": "first", "llm.input_messages.9.message.role": "user",
        "llm.output_messages.0.message.content": "hi", "llm.output_messages.0.message.role": "assistant",
    });
    attributes[deep] = json!("x");
    for (name, value) in sparse.as_object().into_iter().flatten() {
        attributes[name] = value.clone();
    }
    let imported = otlp::read(otlp(&[span(1, &attributes)]).as_bytes()).expect("a trace");
    let [session] = &imported.sessions[..] else {
        panic!("{imported:?}");
    };
    assert_eq!(session.input, ["last"]);
    assert_eq!(session.llm_responses.len(), 1, "{:?}", imported.unmapped);
    let body = session.llm_responses[0].answer.content.whole();
    assert!(body.len() < 1000, "{} bytes", body.len());
}
