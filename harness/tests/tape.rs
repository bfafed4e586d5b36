//! What is recorded comes back: recording, session, YAML, session, tape.

use bytes::Bytes;
use http::Method;
use proptest::prelude::*;
use squall_dialects::stream::Framing;
use squall_journal::record::{Kind, Outcome};
use squall_journal::redact::Redactor;
use squall_journal::tape::recorded::{Recorded, Request};
use squall_journal::tape::{
    Answer, Content, Data, Piece, Session, Tape, TapeQuestion, TapeResult, har, redact,
};

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![
        any::<String>().prop_map(Data::from),
        "[ -~\\r\\n\\t]{0,60}".prop_map(Data::from),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Data(bytes.into())),
        Just("data: {\"choices\":[]}\n\n".into()),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    let piece = (0_u64..100_000, data()).prop_map(|(at_ms, data)| Piece { at_ms, data });
    prop_oneof![
        data().prop_map(Content::Body),
        prop::collection::vec(piece, 0..5).prop_map(Content::Stream),
    ]
}

prop_compose! {
    fn recorded()(
        path in 0_usize..3,
        sent in data(),
        status in 200_u16..1000,
        content in content(),
        headers in prop::collection::vec(("[a-z]{1,8}", "[!-~é]{1,20}"), 0..4),
        latency_ms in 0_u64..10_000,
        answered in prop::bool::weighted(0.9),
        broken_off: bool,
    ) -> Recorded {
        // Names that come again stand together, as they do on the wire behind hyper.
        let mut headers = headers;
        headers.sort();
        let url = format!("https://api.example/{path}?q=a%20b");
        Recorded {
            id: "0193a1b2c3d400000001beef".to_owned(),
            scope: "default".to_owned(),
            started_ms: 1_700_000_000_000,
            kind: Kind::Tool,
            dialect: None,
            outcome: Outcome::Ok,
            fingerprint: fingerprint(&Method::POST, &url, &sent.0),
            request: Request {
                method: "POST".to_owned(),
                url,
                headers: Vec::new(),
                bytes: sent.0.len() as u64,
                body: sent,
                over_limit: false,
            },
            input: None,
            answer: answered.then_some(Answer {
                status,
                headers,
                latency_ms,
                content,
                over_limit: false,
                broken_off,
            }),
            version: "HTTP/1.1".to_owned(),
            response_bytes: 0,
            duration_ms: latency_ms + 5,
            faults: Vec::new(),
            exposed: None,
        }
    }
}

fn fingerprint(method: &Method, url: &str, body: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    (method.as_str(), url, body).hash(&mut hasher);
    hasher.finish()
}

/// What a tape answers to what was recorded, in the same order.
fn played(session: &Session, asked: &[Recorded]) -> Vec<TapeResult> {
    let mut tape = Tape::new(session, &fingerprint);
    let asked = asked.iter().map(|one| {
        tape.ask(&TapeQuestion {
            method: &Method::POST,
            url: &one.request.url,
            fingerprint: one.fingerprint,
            tools: &[],
            dialect: None,
            model: None,
        })
    });
    asked.collect()
}

proptest! {
    #[test]
    fn what_is_recorded_and_exported_is_played_back_the_same(
        recording in prop::collection::vec(recorded(), 0..6)
    ) {
        let exported = Session::of_recording("rec", Some("a: name"), &recording);
        let yaml = exported.to_yaml();
        let imported = squall_harness::session::parse("rec.yaml", &yaml).expect("our own YAML");
        let first = exported.exchanges.first().map(|one| one.answer.clone());
        let again = imported.exchanges.first().map(|one| one.answer.clone());
        // Empty bodies are not written.
        prop_assert_eq!(first.map(|one| one.content.whole()), again.map(|one| one.content.whole()));
        let (given, expected) = (played(&imported, &recording), played(&exported, &recording));
        for (given, recorded) in given.iter().zip(&recording) {
            let TapeResult::Answer(given) = given else {
                panic!("{given:?}");
            };
            let none = Answer::default();
            let answer = recorded.answer.as_ref().unwrap_or(&none);
            prop_assert_eq!(given.answer.status, answer.status);
            prop_assert_eq!(&given.answer.headers, &answer.headers);
            prop_assert_eq!(given.answer.content.whole(), answer.content.whole());
            prop_assert_eq!(given.answer.broken_off, answer.broken_off);
        }
        prop_assert_eq!(given, expected);
    }

    #[test]
    fn a_recording_comes_out_of_the_store_as_it_went_in(recorded in recorded()) {
        let row = serde_json::to_string(&recorded).expect("JSON");
        prop_assert_eq!(serde_json::from_str::<Recorded>(&row).expect("our own JSON"), recorded);
    }
}

#[test]
fn no_secret_is_left_in_an_export() {
    let secret = "sk-planted1234567890";
    let mut recorded = Recorded {
        id: "x".to_owned(),
        scope: "default".to_owned(),
        started_ms: 0,
        kind: Kind::Llm,
        dialect: Some("openai-chat".to_owned()),
        outcome: Outcome::Ok,
        request: Request {
            method: "POST".to_owned(),
            url: format!("https://h/v1?key={secret}&q=1"),
            headers: vec![
                ("authorization".to_owned(), format!("Bearer {secret}")),
                ("cookie".to_owned(), "planted-cookie".to_owned()),
                ("x-note".to_owned(), format!("see {secret}")),
            ],
            body: format!("{{\"say\":\"{secret}\"}}").into(),
            bytes: 1,
            over_limit: false,
        },
        fingerprint: 1,
        input: Some(format!("my key is {secret}")),
        answer: Some(Answer {
            status: 200,
            headers: vec![
                ("set-cookie".to_owned(), "planted-cookie".to_owned()),
                ("location".to_owned(), format!("/?token={secret}")),
            ],
            content: Content::Stream(vec![Piece {
                at_ms: 1,
                data: Data(Bytes::from(format!("data: {secret}\n\n"))),
            }]),
            ..Answer::default()
        }),
        version: "HTTP/1.1".to_owned(),
        response_bytes: 1,
        duration_ms: 3,
        faults: Vec::new(),
        exposed: None,
    };
    redact::recorded(&Redactor::default(), Some(Framing::Sse), &mut recorded);
    let recording = [recorded];
    let session = Session::of_recording("rec", None, &recording);
    let archive = har::document("1", None, &recording);
    for text in [session.to_yaml(), archive.to_string()] {
        assert!(!text.contains("planted"), "{text}");
        assert!(text.contains("REDACTED"), "{text}");
    }
    insta::assert_snapshot!(session.to_yaml());
    let archive = serde_json::to_string_pretty(&archive).expect("JSON");
    insta::assert_snapshot!(archive);
}

/// Which answer a request gets.
mod invocation {
    use http::Method;
    use squall_journal::tape::{Content, Tape, TapeQuestion, TapeResult};

    fn number(method: &Method, url: &str, body: &[u8]) -> u64 {
        (method.as_str().len() + url.len() * 1000 + body.len() * 1_000_000) as u64
    }

    fn tape(text: &str) -> Tape {
        let session = squall_harness::session::parse("session.yaml", text).expect("a session");
        Tape::new(&session, &number)
    }

    fn ask(tape: &mut Tape, method: &Method, url: &str, body: &str) -> String {
        said(tape.ask(&TapeQuestion {
            method,
            url,
            fingerprint: number(method, url, body.as_bytes()),
            tools: &[],
            dialect: None,
            model: None,
        }))
    }

    #[test]
    fn the_nearest_response_is_the_next_unused_one_of_the_same_method_and_url() {
        let mut tape = tape(
            r#"{"id":"s","exchanges":[
            {"match":{"method":"POST","url":"http://h/a?x=1","body":"x"},"body":"1"},
            {"match":{"method":"POST","url":"http://h/b","body":"x"},"body":"other"},
            {"match":{"method":"POST","url":"http://h/a","body":"yy"},"body":"2"}]}"#,
        );
        let mut nearest = |method: &Method, url: &str| {
            let found = tape.ask_nearest(&TapeQuestion {
                method,
                url,
                fingerprint: 0,
                tools: &[],
                dialect: None,
                model: None,
            });
            found.map(said)
        };
        let (post, get) = (Method::POST, Method::GET);
        assert_eq!(nearest(&get, "http://h/a"), None);
        assert_eq!(nearest(&post, "http://h/a?y=2").as_deref(), Some("1"));
        assert_eq!(nearest(&post, "http://h/a").as_deref(), Some("2"));
        assert_eq!(nearest(&post, "http://h/a"), None);
        assert_eq!(nearest(&post, "http://h/b").as_deref(), Some("other"));
    }

    fn said(found: TapeResult) -> String {
        match found {
            TapeResult::Answer(given) => match &given.answer.content {
                Content::Body(body) => body.as_text().expect("a text").to_owned(),
                Content::Stream(_) => "a stream".to_owned(),
            },
            TapeResult::Tool(tool) => tool.response.to_string(),
            TapeResult::Exhausted(why) => format!("exhausted: {why}"),
            TapeResult::Missed(why) => format!("missed: {why}"),
        }
    }

    #[test]
    fn answers_of_a_key_are_given_in_recorded_order() {
        let mut tape = tape(
            r#"{"id":"s","exchanges":[
            {"match":{"method":"POST","url":"http://h/a","body":"x"},"body":"1"},
            {"match":{"method":"POST","url":"http://h/a","body":"yy"},"body":"other"},
            {"match":{"method":"POST","url":"http://h/a","body":"x"},"body":"2"},
            {"match":{"method":"GET","url":"http://h/b*"},"body":"loose"}]}"#,
        );
        assert_eq!(tape.answers(), (4, 4));
        let post = Method::POST;
        let told: Vec<_> = ["x", "yy", "x", "x", "zzz"]
            .map(|body| ask(&mut tape, &post, "http://h/a", body))
            .to_vec();
        assert_eq!(
            told,
            [
                "1",
                "other",
                "2",
                "exhausted: its 2 recorded answers were given",
                "missed: the nearest recorded key is POST http://h/a (00000000000f6954) with another body",
            ]
        );
        let get = Method::GET;
        assert_eq!(
            ask(&mut tape, &get, "http://h/c", ""),
            "missed: the nearest recorded key is GET http://h/b*"
        );
        assert_eq!(ask(&mut tape, &get, "http://h/b/1?q", ""), "loose");
        assert_eq!(
            ask(&mut tape, &get, "http://h/b/1?q", ""),
            "exhausted: its one recorded answer was given"
        );
        assert_eq!(tape.answers(), (4, 0));
    }

    #[test]
    fn g34_tools_answer_by_name_and_then_by_ordinal() {
        let mut tape = tape(
            r#"{"id":"s","tool_responses":[{"tool":"search","response":1},
            {"tool":"mail","response":"m"},{"tool":"search","response":2}]}"#,
        );
        let mut call = |tool: &str| {
            said(tape.ask(&TapeQuestion {
                method: &Method::POST,
                url: "http://tools/x",
                fingerprint: 1,
                tools: &[tool.to_owned()],
                dialect: None,
                model: None,
            }))
        };
        assert_eq!(call("search"), "1");
        assert_eq!(call("mail"), "\"m\"");
        assert_eq!(call("search"), "2");
        assert_eq!(
            call("search"),
            "exhausted: its 2 recorded answers were given"
        );
        assert_eq!(
            call("serch"),
            "missed: the nearest recorded key is tool `search`"
        );
    }

    #[test]
    fn models_answer_in_order_where_dialect_and_model_are_theirs() {
        let mut tape = tape(
            r#"{"id":"s","llm_responses":[
            {"dialect":"anthropic","body":"a1"},{"match":{"model":"gpt-4*"},"body":"g1"},
            {"dialect":"anthropic","body":"a2"},{"body":"any"}]}"#,
        );
        let mut call = |dialect: &str, model: &str| {
            said(tape.ask(&TapeQuestion {
                method: &Method::POST,
                url: "http://m/x",
                fingerprint: 1,
                tools: &[],
                dialect: Some(dialect),
                model: Some(model),
            }))
        };
        assert_eq!(call("openai-chat", "gpt-4o"), "g1");
        assert_eq!(call("anthropic", "claude"), "a1");
        assert_eq!(call("anthropic", "claude"), "a2");
        assert_eq!(call("openai-chat", "gpt-4o"), "any");
        assert_eq!(
            call("openai-chat", "gpt-4o"),
            "exhausted: its 2 recorded answers were given"
        );
    }
}
