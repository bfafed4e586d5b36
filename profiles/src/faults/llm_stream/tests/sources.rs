//! What the words of a text rest on: it goes where they go.

use serde_json::Value;

use super::*;

const TEXT: &str = "The quick brown fox jumps over the lazy dog and sleeps for hours.";

/// Half as long.
const SHORTER: Rewrite = Rewrite::Drift(ResponseDrift {
    kind: TextDrift::Length {
        factor: 2.0,
        compress: true,
    },
    severity: Severity::Moderate,
    choice: 0,
});

/// A whole answer of a dialect, where its sources stand, and what stands there once they are gone.
fn answers() -> [(&'static str, String, &'static str, Option<&'static str>); 4] {
    [
        (
            "openai-chat",
            format!(
                r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"{TEXT}","refusal":null,"annotations":[{{"type":"url_citation","url_citation":{{"start_index":50,"end_index":60}}}}]}},"finish_reason":"stop"}}]}}"#
            ),
            "/choices/0/message/annotations",
            Some("[]"),
        ),
        (
            "openai-responses",
            format!(
                r#"{{"object":"response","status":"completed","output":[{{"type":"message","id":"m","status":"completed","role":"assistant","content":[{{"type":"output_text","text":"{TEXT}","annotations":[{{"type":"url_citation","start_index":50,"end_index":60}}]}}]}}]}}"#
            ),
            "/output/0/content/0/annotations",
            Some("[]"),
        ),
        (
            "anthropic",
            format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"text","text":"{TEXT}","citations":[{{"type":"char_location","cited_text":"a"}}]}}],"stop_reason":"end_turn"}}"#
            ),
            "/content/0/citations",
            None,
        ),
        (
            "gemini",
            format!(
                r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{TEXT}"}}]}},"finishReason":"STOP","groundingMetadata":{{"groundingSupports":[{{"segment":{{"startIndex":50,"endIndex":60}}}}]}}}}]}}"#
            ),
            "/candidates/0/groundingMetadata",
            None,
        ),
    ]
}

fn changed(fault: &StreamFault, dialect: &str, answer: &str) -> Value {
    let dialect = by_name(dialect).expect("a dialect");
    let call = AnsweredCall::new(dialect);
    let (steps, why) = run(super::super::editor(fault, AnswerForm::Json, call), answer);
    assert_eq!(why, None);
    serde_json::from_str(&received(&steps).0).expect("JSON")
}

#[test]
fn they_go_with_a_text_that_is_cut_or_worded_anew() {
    for (dialect, answer, place, gone) in answers() {
        let gone = gone.map(|json| serde_json::from_str::<Value>(json).expect("JSON"));
        for fault in [
            StreamFault::Truncate { max_tokens: 3 },
            StreamFault::Instead(Instead::Nothing),
            StreamFault::Instead(Instead::Refusal { choice: 0 }),
            StreamFault::Instead(Instead::Filtered),
            StreamFault::Rewrite(SHORTER),
        ] {
            let after = changed(&fault, dialect, &answer);
            // Where all of the text's part went, they went with it.
            if let Some(left) = after.pointer(place) {
                assert_eq!(Some(left), gone.as_ref(), "{dialect} {fault:?}");
            }
        }
    }
}

#[test]
fn they_stay_with_a_text_that_stays() {
    let (dialect, answer, place, _) = &answers()[0];
    let call = r#"[{"id":"c","type":"function","function":{"name":"a","arguments":"{\"city\":\"a very long name of a city\"}"}}]"#;
    let answer = answer.replace(
        r#""annotations""#,
        &format!(r#""tool_calls":{call},"annotations""#),
    );
    let fault = StreamFault::Truncate { max_tokens: 19 };
    let after = changed(&fault, dialect, &answer);
    let sources = after.pointer(place).and_then(Value::as_array);
    assert_eq!(sources.map(Vec::len), Some(1), "{after}");
}

#[test]
fn of_a_stream_those_behind_the_cut_go() {
    let dialect = by_name("openai-responses").expect("a dialect");
    let note = r#"{"type":"url_citation","start_index":0,"end_index":3}"#;
    let events = |annotations: &str| {
        [
            r#"{"type":"response.created","response":{"status":"in_progress","output":[]}}"#.to_owned(),
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","status":"in_progress","content":[]}}"#.to_owned(),
            r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#.to_owned(),
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"The quick brown fox"}"#.to_owned(),
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":" jumps over the lazy dog"}"#.to_owned(),
            format!(r#"{{"type":"response.output_text.annotation.added","output_index":0,"content_index":0,"annotation_index":0,"annotation":{note}}}"#),
            r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"The quick brown fox jumps over the lazy dog"}"#.to_owned(),
            format!(r#"{{"type":"response.content_part.done","output_index":0,"content_index":0,"part":{{"type":"output_text","text":"The quick brown fox jumps over the lazy dog","annotations":{annotations}}}}}"#),
            format!(r#"{{"type":"response.completed","response":{{"status":"completed","output":[{{"type":"message","id":"m","status":"completed","content":[{{"type":"output_text","text":"The quick brown fox jumps over the lazy dog","annotations":{annotations}}}]}}]}}}}"#),
        ]
    };
    let events = events(&format!("[{note}]"));
    let stream = format!("data: {}\n\n", events.join("\n\ndata: "));
    for (max_tokens, kept) in [(3, false), (100, true)] {
        let fault = StreamFault::Truncate { max_tokens };
        let call = AnsweredCall::new(dialect);
        let (steps, why) = run(super::super::editor(&fault, SSE, call), &stream);
        assert_eq!(why.is_none(), !kept);
        let text = received(&steps).0;
        assert_eq!(text.contains("url_citation"), kept, "{text}");
        assert_eq!(text.contains("annotation.added"), kept, "{text}");
        assert!(text.contains(r#""annotations":["#), "{text}");
    }
}
