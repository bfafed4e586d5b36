use std::borrow::Cow;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use super::*;
use crate::Target;
use crate::json::Document;
use crate::stream::{Frame, FrameKind, Framing, Splitter};

const CALL: &str = include_str!("../../corpus/mcp/request_call.json");
const BATCH: &str = include_str!("../../corpus/mcp/request_batch.json");
const RESULT: &str = include_str!("../../corpus/mcp/result.json");
const ERROR: &str = include_str!("../../corpus/mcp/error.json");
const LIST: &str = include_str!("../../corpus/mcp/list.json");
const ANSWERS: &str = include_str!("../../corpus/mcp/batch.json");

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    fields
        .iter()
        .map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).expect("a sample"),
            )
        })
        .collect()
}

const JSON: (&str, &str) = ("content-type", "application/json; charset=utf-8");

fn head(fields: &[(&'static str, &str)]) -> Head {
    Head::of(&Method::POST, &headers(fields))
}

#[test]
#[rustfmt::skip]
fn a_head_tells_mcp_by_mcp_s_own_headers() {
    for (fields, is_mcp, tool) in [
        (&[][..], false, None),
        (&[("mcp-session-id", "x")], true, None),
        (&[("mcp-protocol-version", "2025-06-18")], true, None),
        (&[("mcp-method", "tools/call"), ("mcp-name", "get_weather")], true, Some("get_weather")),
        (
            &[
                ("mcp-method", "tools/call"),
                ("mcp-name", "=?base64?d2V0dGVyX3rDvHJpY2g=?="),
            ],
            true,
            Some("wetter_zürich"),
        ),
        (&[("mcp-method", "tools/call"), ("mcp-name", "=?base64?!?=")], true, Some("=?base64?!?=")),
        (&[("mcp-method", "prompts/get"), ("mcp-name", "get_weather")], true, None),
    ] {
        let head = head(fields);
        assert_eq!(
            (head.sign == Sign::Own, head.tool()),
            (is_mcp, tool),
            "{fields:?}"
        );
    }
}

#[test]
fn only_a_post_of_json_may_turn_out_to_be_mcp() {
    for (method, fields, expected) in [
        (Method::POST, &[JSON][..], true),
        (Method::GET, &[JSON], false),
        (Method::POST, &[("content-type", "text/plain")], false),
        (Method::POST, &[], false),
        (Method::POST, &[JSON, ("mcp-session-id", "x")], false),
    ] {
        let head = Head::of(&method, &headers(fields));
        assert_eq!(head.sign == Sign::Open, expected, "{method} {fields:?}");
    }
}

#[test]
fn what_an_agent_accepts_is_read_from_its_list() {
    for (accept, json, stream) in [
        (None, true, false),
        (Some("*/*"), true, false),
        (Some("application/json, text/event-stream"), true, true),
        (Some("text/event-stream"), false, true),
        (Some("Text/Event-Stream;q=0.5,application/*"), true, true),
        (Some("text/html"), false, false),
    ] {
        let accept_field = accept.map(|accept| ("accept", accept));
        let fields: Vec<_> = [JSON].into_iter().chain(accept_field).collect();
        let accepts = head(&fields).accepts;
        assert_eq!((accepts.json, accepts.stream), (json, stream), "{accept:?}");
    }
}

#[test]
fn the_reply_to_a_message_for_the_endpoint_of_2024_is_out_of_band() {
    let both = [("accept", "application/json, text/event-stream")];
    for (target, fields, expected) in [
        ("/messages/?session_id=0a", &[][..], true),
        ("/message?x=1&sessionId=0a", &[("accept", "*/*")], true),
        ("/mcp", &[], false),
        ("/mcp?sessionId=0a", &both, false),
        ("/mcp?sessionId=0a", &[("mcp-session-id", "0a")], false),
    ] {
        let fields = [&[JSON], fields].concat();
        let found = replies_out_of_band(Target::new(target), &headers(&fields));
        assert_eq!(found, expected, "{target} {fields:?}");
    }
}

#[test]
fn a_session_of_2024_begins_with_the_event_that_names_its_endpoint() {
    for (beginning, expected) in [
        ("event: endpoint\r\ndata: /m?s=1\r\n\r\n", true),
        (": hello\n\nid:1\nevent:endpoint\ndata: /m\n\n", true),
        ("data: event: endpoint\n\n", false),
        ("event: tick\ndata: 1\n\n", false),
        ("", false),
    ] {
        let found = begins_session(beginning.as_bytes());
        assert_eq!(found, expected, "{beginning}");
    }
}

#[test]
#[rustfmt::skip]
fn a_body_is_mcp_s_if_no_other_protocol_says_that() {
    for (body, json_rpc, mcp) in [
        (CALL, true, true),
        (BATCH, true, true),
        (include_str!("../../corpus/mcp/request_initialize.json"), true, true),
        (include_str!("../../corpus/mcp/request_discover.json"), true, true),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, true, true),
        // Any protocol's.
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true, false),
        // An Ethereum node's, Agent2Agent's, an editor's agent's, a language server's.
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[]}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"/"}}"#, true, false),
        // None at all.
        (r#"{"jsonrpc":"1.0","id":1,"method":"tools/list"}"#, false, false),
        (r#"{"method":"tools/call","params":{"name":"x"}}"#, false, false),
        (r#"{"text":"say \"jsonrpc\""}"#, false, false),
        (r#""jsonrpc""#, false, false),
        ("[]", false, false),
        ("", false, false),
    ] {
        let asked = RpcRequest::read(body.as_bytes());
        assert_eq!(asked.is_some(), json_rpc, "{body}");
        assert_eq!(asked.is_some_and(|asked| asked.is_mcp()), mcp, "{body}");
    }
}

#[test]
fn a_call_is_read_with_its_id_tool_and_token() {
    let asked = RpcRequest::read(CALL.as_bytes()).expect("a sample");
    let [call] = &asked.calls[..] else {
        panic!("{asked:?}");
    };
    assert_eq!(call.id.as_ref().map(Id::as_json), Some("3"));
    assert_eq!(call.tool.as_deref(), Some("get_weather"));
    assert_eq!(call.progress_token.as_ref().map(Id::as_json), Some("3"));
    assert!(call.is_tool_call() && !asked.batch);
    // The call of a long body is known once its name was read.
    let cut = &CALL[..CALL.find("},\"_meta").expect("a sample")];
    let with_version = cut.replace("{\"method\"", "{\"jsonrpc\":\"2.0\",\"method\"");
    let asked = RpcRequest::read(with_version.as_bytes()).expect("a sample");
    assert_eq!(asked.tools(), ["get_weather"]);
}

#[test]
fn a_batch_holds_calls_notifications_and_lists() {
    let asked = RpcRequest::read(BATCH.as_bytes()).expect("a sample");
    assert!(asked.batch && asked.calls_a_tool() && asked.lists_tools());
    assert_eq!(asked.tools(), ["get_weather", "book"]);
    let ids: Vec<_> = asked
        .requests()
        .filter_map(|call| Some(call.id.as_ref()?.as_json()))
        .collect();
    assert_eq!(ids, ["\"a\"", "\"b\"", "5"]);
}

#[test]
fn an_answer_of_the_client_s_is_no_call() {
    let asked =
        RpcRequest::read(br#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#).expect("a sample");
    assert_eq!(asked.requests().count(), 0);
}

#[test]
fn another_id_is_of_the_same_type() {
    for (id, another) in [
        ("3", "1000003"),
        (r#""a""#, r#""a-0""#),
        ("1.5", "-1"),
        ("99999999999", "-1"),
    ] {
        let document = Document::parse(id.as_bytes()).expect("a sample");
        let id = Id::of(document.root()).expect("a sample");
        assert_eq!(id.another().as_json(), another);
    }
}

/// The texts of a document, by part.
fn said(document: &Document<'_>) -> Vec<(TextPart, String)> {
    let say = |text: &Text| {
        let said = document.value(text.place).as_str();
        (text.part, said.unwrap_or_default().into_owned())
    };
    texts(document).iter().map(say).collect()
}

#[test]
fn the_texts_of_a_result_are_found_where_models_and_programs_read_them() {
    let document = Document::parse(RESULT.as_bytes()).expect("a sample");
    let weather = r#"{"city": "Zürich", "celsius": 21.50}"#;
    let expected = [
        (TextPart::Content, weather),
        (TextPart::Resource, "rain later"),
        (TextPart::Structured, "Zürich"),
        (TextPart::Structured, "clear"),
    ];
    assert_eq!(
        said(&document),
        expected.map(|(part, text)| (part, text.to_owned()))
    );
    for other in [ERROR, LIST, CALL, "[]", "1"] {
        let document = Document::parse(other.as_bytes()).expect("a sample");
        assert_eq!(said(&document), [], "{other}");
    }
    let document = Document::parse(ANSWERS.as_bytes()).expect("a sample");
    assert_eq!(said(&document).len(), 2);
}

#[test]
fn answers_are_told_by_their_ids() {
    let document = Document::parse(ANSWERS.as_bytes()).expect("a sample");
    let ids: Vec<_> = messages(&document)
        .into_iter()
        .filter_map(|message| Some(message.answers()?.as_json().to_owned()))
        .collect();
    assert_eq!(ids, ["\"b\"", "\"a\"", "5"]);
    for none in [
        r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"?"}}"#,
    ] {
        let document = Document::parse(none.as_bytes()).expect("a sample");
        assert!(messages(&document)[0].answers().is_none(), "{none}");
    }
}

#[test]
fn a_list_s_tools_are_found_by_name() {
    let document = Document::parse(LIST.as_bytes()).expect("a sample");
    let (_, tools) = messages(&document)[0].tools().expect("a sample");
    let names: Vec<_> = tools.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, ["get_weather", "book"]);
    let document = Document::parse(RESULT.as_bytes()).expect("a sample");
    assert!(messages(&document)[0].tools().is_none());
}

fn made(body: &str, says: Says<'_>, accepts: Accepts) -> WireParts {
    let asked = RpcRequest::read(body.as_bytes()).expect("a sample");
    let calls: Vec<_> = asked.calls.iter().map(|call| (call, says)).collect();
    let layout = Layout {
        accepts,
        batch: asked.batch,
        typed: false,
    };
    let reply = answer(&calls, layout);
    let body = String::from_utf8(reply.body.to_vec()).expect("a sample");
    (reply.status, reply.headers, body)
}

type WireParts = (StatusCode, HeaderMap, String);

#[test]
fn an_answer_has_the_id_of_its_call() {
    let json = Accepts::default();
    for (says, expected) in [
        (
            Says::Text("a \"b\""),
            json!({ "result": {
                "content": [{ "type": "text", "text": "a \"b\"" }],
                "structuredContent": { "result": "a \"b\"" },
                "isError": false,
            } }),
        ),
        (
            Says::Failure(Some("no")),
            json!({ "result": { "content": [{ "type": "text", "text": "no" }], "isError": true } }),
        ),
        (
            Says::Nothing,
            json!({ "result": {
                "content": [], "structuredContent": { "result": "" }, "isError": false,
            } }),
        ),
        (
            Says::Error {
                code: -32603,
                message: "no",
            },
            json!({ "error": { "code": -32603, "message": "no" } }),
        ),
    ] {
        let (status, headers, body) = made(CALL, says, json);
        assert_eq!(
            (status, &headers["content-type"]),
            (
                StatusCode::OK,
                &HeaderValue::from_static("application/json")
            )
        );
        let mut expected = expected;
        expected["jsonrpc"] = json!("2.0");
        expected["id"] = json!(3);
        assert_eq!(
            serde_json::from_str::<Value>(&body).expect("a sample"),
            expected
        );
    }
    let (_, _, broken) = made(CALL, Says::Broken, json);
    assert!(
        broken.starts_with(
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{"#
        ),
        "{broken}"
    );
    assert!(serde_json::from_str::<Value>(&broken).is_err());
}

#[test]
fn each_call_of_a_batch_is_answered_and_no_notification() {
    let (_, _, body) = made(BATCH, Says::Failure(Some("no")), Accepts::default());
    let body: Value = serde_json::from_str(&body).expect("a sample");
    let ids: Vec<_> = body
        .as_array()
        .expect("a sample")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &json!(5)]);
    // A tool list cannot report a failure of a tool.
    assert_eq!(body[2]["error"]["code"], -32603);
    let (_, _, broken) = made(BATCH, Says::Broken, Accepts::default());
    assert!(serde_json::from_str::<Value>(&broken).is_err());
}

#[test]
fn who_takes_nothing_but_a_stream_gets_one() {
    let stream = Accepts {
        json: false,
        stream: true,
    };
    let (_, headers, body) = made(CALL, Says::Text("hi"), stream);
    assert_eq!(headers["content-type"], "text/event-stream");
    let frames = Splitter::new(Framing::Sse, usize::MAX).push(body.as_bytes());
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].name(), Some("message"));
    let data: Value =
        serde_json::from_slice(&frames[0].data().expect("a sample")).expect("a sample");
    assert_eq!(
        (&data["id"], &data["result"]["isError"]),
        (&json!(3), &json!(false))
    );
}

#[test]
fn progress_is_told_under_the_token_it_was_asked_for_with() {
    let asked = RpcRequest::read(CALL.as_bytes()).expect("a sample");
    let told: Value = serde_json::from_str(&progress(&asked.calls[0], 7)).expect("a sample");
    assert_eq!(told["method"], "notifications/progress");
    assert_eq!(told["params"]["progressToken"], 3);
    assert_eq!(told["params"]["progress"], 7);
    let asked = RpcRequest::read(BATCH.as_bytes()).expect("a sample");
    let told: Value = serde_json::from_str(&progress(&asked.calls[0], 7)).expect("a sample");
    assert_eq!(told["method"], "notifications/message");
    assert!(told.get("id").is_none());
}

#[test]
fn a_lost_session_is_a_404_that_names_no_call() {
    let reply = session_expired();
    assert_eq!(reply.status, StatusCode::NOT_FOUND);
    let body: Value = serde_json::from_slice(&reply.body).expect("a sample");
    assert_eq!(
        body,
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "Session not found" } })
    );
}

/// Every stream of the corpus in every chunking: the same messages, and no byte lost.
#[test]
fn chunks_do_not_show_in_a_stream_of_messages() {
    for stream in [
        include_str!("../../corpus/mcp/result.sse"),
        include_str!("../../corpus/mcp/batch.sse"),
    ] {
        let read = |size: usize| {
            let mut splitter = Splitter::new(Framing::Sse, usize::MAX);
            let chunks = stream.as_bytes().chunks(size);
            let mut frames: Vec<Frame> = chunks.flat_map(|chunk| splitter.push(chunk)).collect();
            frames.extend(splitter.finish());
            let bytes: Vec<u8> = frames
                .iter()
                .flat_map(|frame| frame.bytes().to_vec())
                .collect();
            assert_eq!(bytes, stream.as_bytes());
            let events = frames
                .iter()
                .filter(|frame| frame.kind() == FrameKind::Event);
            let ids: Vec<_> = events
                .filter_map(Frame::data)
                .filter_map(|data: Cow<'_, [u8]>| {
                    let document = Document::parse(&data).ok()?;
                    messages(&document)[0].answers()
                })
                .collect();
            ids
        };
        let whole = read(stream.len());
        assert!(!whole.is_empty());
        for size in 1..40 {
            assert_eq!(read(size), whole, "{size}");
        }
    }
}

/// A message to an agent in each version.
const TO_AGENT: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":"7","method":"message/send","params":{"message":{"kind":"message","messageId":"m1","role":"user","parts":[{"kind":"text","text":"Oslo"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":"7","method":"SendMessage","params":{"message":{"messageId":"m1","contextId":"c1","role":"ROLE_USER","parts":[{"text":"Oslo"}]}}}"#,
];

#[test]
#[rustfmt::skip]
fn a_body_is_a2a_s_by_its_own_methods_and_others_by_the_head() {
    for (body, certain, message) in [
        (TO_AGENT[0], true, true),
        (TO_AGENT[1], true, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"message/stream","params":{}}"#, true, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/resubscribe","params":{"id":"t"}}"#, true, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendStreamingMessage","params":{"message":{"parts":[]}}}"#, true, true),
        // Possibly another protocol's.
        (r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":"hi"}}"#, false, true),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#, false, false),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}"#, false, false),
        (CALL, false, true),
    ] {
        let asked = RpcRequest::read(body.as_bytes()).expect("JSON-RPC");
        assert_eq!((asked.is_a2a(), asked.calls_a_tool()), (certain, message), "{body}");
    }
    for (fields, sign) in [
        (&[JSON, ("a2a-version", "1.0")][..], Sign::Agent),
        (&[JSON, ("a2a-extensions", "https://x.example/v1")], Sign::Agent),
        (&[JSON], Sign::Open),
        (&[JSON, ("a2a-version", "1.0"), ("mcp-session-id", "x")], Sign::Own),
        (&[("content-type", "application/a2a+json"), ("a2a-version", "1.0")], Sign::Nothing),
    ] {
        assert_eq!(head(fields).sign, sign, "{fields:?}");
    }
}

#[test]
fn an_agent_answers_with_a_message_or_a_task_as_its_version_writes_it() {
    let message = |text: &str| {
        let v03 = json!({
            "kind": "message", "messageId": "m1-reply", "contextId": "m1", "role": "agent",
            "parts": [{ "kind": "text", "text": text }],
        });
        let v1 = json!({
            "messageId": "m1-reply", "contextId": "c1", "role": "ROLE_AGENT", "parts": [{ "text": text }],
        });
        [v03, v1]
    };
    let task = |state: &str, text: Option<&str>| {
        let [v03, v1] = message(text.unwrap_or_default());
        let states = [
            state.to_owned(),
            format!("TASK_STATE_{}", state.to_uppercase()),
        ];
        let mut tasks = [
            json!({ "id": "m1", "contextId": "m1", "kind": "task", "status": { "state": states[0] } }),
            json!({ "id": "m1", "contextId": "c1", "status": { "state": states[1] } }),
        ];
        if text.is_some() {
            tasks[0]["status"]["message"] = v03;
            tasks[1]["status"]["message"] = v1;
        }
        let [v03, v1] = tasks;
        [v03, json!({ "task": v1 })]
    };
    let [v03, v1] = message("hi");
    for (says, expected) in [
        (Says::Text("hi"), [v03, json!({ "message": v1 })]),
        (Says::Failure(Some("no")), task("failed", Some("no"))),
        (Says::Nothing, task("completed", None)),
    ] {
        for (body, expected) in TO_AGENT.iter().zip(expected) {
            let (_, headers, reply) = made(body, says, Accepts::default());
            assert_eq!(headers["content-type"], "application/json");
            let reply: Value = serde_json::from_str(&reply).expect("JSON");
            assert_eq!(
                reply,
                json!({ "jsonrpc": "2.0", "id": "7", "result": expected })
            );
        }
    }
    for body in TO_AGENT {
        let (_, _, broken) = made(body, Says::Broken, Accepts::default());
        assert!(broken.ends_with("three"), "{broken}");
    }
    // A task is not wrapped where it is the only result; and a stream is answered with events.
    let get = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t"}}"#;
    let (_, _, reply) = made(get, Says::Failure(Some("no")), Accepts::default());
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    assert_eq!(
        reply["result"]["status"]["state"], "TASK_STATE_FAILED",
        "{reply}"
    );
    let stream = TO_AGENT[0].replace("send", "stream");
    let error = Says::Error {
        code: -32001,
        message: "no",
    };
    let (_, headers, reply) = made(&stream, error, Accepts::default());
    assert_eq!(headers["content-type"], "text/event-stream");
    let data = reply
        .strip_prefix("data: ")
        .expect("an event without a name");
    let reply: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(reply["error"]["code"], -32001, "{reply}");
}

#[test]
fn the_texts_of_an_agent_s_result_are_found_and_its_caller_s_are_not() {
    for result in [
        r#"{"kind":"task","history":[{"parts":[{"kind":"text","text":"asked"}]}],"artifacts":[{"parts":[{"kind":"text","text":"said"},{"kind":"data","data":{"a":["data"]}}]}],"status":{"message":{"parts":[{"text":"done"}]}}}"#,
        r#"{"task":{"artifacts":[{"parts":[{"text":"said"},{"data":{"a":["data"]}}]}],"status":{"message":{"parts":[{"text":"done"}]}},"history":[{"parts":[{"text":"asked"}]}]}}"#,
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{result}}}"#);
        let document = Document::parse(body.as_bytes()).expect("a sample");
        let expected = [
            (TextPart::Content, "said"),
            (TextPart::Structured, "data"),
            (TextPart::Content, "done"),
        ];
        assert_eq!(
            said(&document),
            expected.map(|(part, text)| (part, text.to_owned()))
        );
    }
}
