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
