//! Thinking reaches the agent as it came, or not at all: it is signed, or sealed beside its words, and
//! providers refuse what was changed.

use super::dialects::{Sample, bytes, edited};
use super::*;

const ANTHROPIC: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude\",\"content\":[],\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"The user greets me.\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\" So do I.\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"SIG==\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Good morning\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\" to you all\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":14}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

/// The events of the block that thinks.
const THOUGHT: std::ops::Range<usize> = 1..6;

const ITEM: &str = r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"I think about the many things in the world"}],"encrypted_content":"ENC=="}"#;

fn responses(status: &str) -> String {
    let message = |text: &str, status: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"{status}\",\"content\":[{text}]}}"
        )
    };
    let text = r#"{"type":"output_text","text":"Good morning to you all","annotations":[]}"#;
    format!(
        "{{\"id\":\"r\",\"object\":\"response\",\"created_at\":1,\"status\":\"{status}\",\"incomplete_details\":null,\"model\":\"m\",\"output\":[{ITEM},{}],\"usage\":{{\"input_tokens\":5,\"output_tokens\":20,\"total_tokens\":25}}}}",
        message(text, "completed"),
    )
}

fn responses_stream() -> String {
    let reasons = |event: &str| format!("response.reasoning_summary_{event}");
    let of_thought = r#","item_id":"rs_1","output_index":0,"summary_index":0"#;
    let of_text = r#","item_id":"msg_1","output_index":1,"content_index":0"#;
    let empty = ITEM.replace(
        r#"[{"type":"summary_text","text":"I think about the many things in the world"}]"#,
        "[]",
    );
    let part = r#"{"type":"output_text","text":"Good morning to you all","annotations":[]}"#;
    let message = |content: &str, status: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"msg_1\",\"role\":\"assistant\",\"status\":\"{status}\",\"content\":[{content}]}}"
        )
    };
    let thought = "I think about the many things in the world";
    let events = [
        ("response.created".to_owned(), r#","response":{"id":"r","object":"response","status":"in_progress","model":"m","output":[],"usage":null}"#.to_owned()),
        ("response.output_item.added".to_owned(), format!(",\"output_index\":0,\"item\":{empty}")),
        (reasons("part.added"), format!("{of_thought},\"part\":{{\"type\":\"summary_text\",\"text\":\"\"}}")),
        (reasons("text.delta"), format!("{of_thought},\"delta\":\"I think about the many things\"")),
        (reasons("text.delta"), format!("{of_thought},\"delta\":\" in the world\"")),
        (reasons("text.done"), format!("{of_thought},\"text\":\"{thought}\"")),
        (reasons("part.done"), format!("{of_thought},\"part\":{{\"type\":\"summary_text\",\"text\":\"{thought}\"}}")),
        ("response.output_item.done".to_owned(), format!(",\"output_index\":0,\"item\":{ITEM}")),
        ("response.output_item.added".to_owned(), format!(",\"output_index\":1,\"item\":{}", message("", "in_progress"))),
        ("response.content_part.added".to_owned(), format!("{of_text},\"part\":{{\"type\":\"output_text\",\"text\":\"\",\"annotations\":[]}}")),
        ("response.output_text.delta".to_owned(), format!("{of_text},\"delta\":\"Good morning\"")),
        ("response.output_text.delta".to_owned(), format!("{of_text},\"delta\":\" to you all\"")),
        ("response.output_text.done".to_owned(), format!("{of_text},\"text\":\"Good morning to you all\"")),
        ("response.content_part.done".to_owned(), format!("{of_text},\"part\":{part}")),
        ("response.output_item.done".to_owned(), format!(",\"output_index\":1,\"item\":{}", message(part, "completed"))),
        ("response.completed".to_owned(), format!(",\"response\":{}", responses("completed"))),
    ];
    let numbered = events.into_iter().enumerate();
    let events = numbered.map(|(number, (name, members))| {
        format!(
            "event: {name}\ndata: {{\"type\":\"{name}\",\"sequence_number\":{number}{members}}}\n\n"
        )
    });
    events.collect()
}

fn after(dialect: &str, form: AnswerForm, answer: &str, fault: &StreamFault) -> String {
    let sample = Sample {
        name: dialect.to_owned(),
        dialect: by_name(dialect).expect("built in"),
        form,
        bytes: answer.as_bytes().to_vec(),
    };
    let (steps, why) = edited(&sample, fault, 50);
    assert_eq!(why, None, "{fault:?}");
    String::from_utf8(bytes(&steps)).expect("text")
}

fn events(stream: &str) -> Vec<&str> {
    stream.split_inclusive("\n\n").collect()
}

fn others() -> [StreamFault; 4] {
    [
        Instead::Nothing,
        Instead::Filtered,
        Instead::Refusal { choice: 0 },
        Instead::Garbage { choice: 1 },
    ]
    .map(StreamFault::Instead)
}

#[test]
fn a_stream_cut_short_or_in_other_words_keeps_a_signed_thought_and_opens_no_empty_block() {
    let mut faults = Vec::from(others());
    faults.extend((0..12).map(|max_tokens| StreamFault::Truncate { max_tokens }));
    for fault in faults {
        let got = after("anthropic", SSE, ANTHROPIC, &fault);
        let got = events(&got);
        let expected = events(ANTHROPIC);
        assert_eq!(got[THOUGHT], expected[THOUGHT], "{fault:?}");
        for pair in got.windows(2) {
            let empty = pair[0].contains("content_block_start") && pair[1].contains("_stop\"");
            assert!(!empty, "{fault:?} {pair:?}");
        }
    }
}

#[test]
fn what_thinking_costs_is_taken_from_what_may_be_said() {
    let fault = StreamFault::Truncate { max_tokens: 3 };
    let got = after("anthropic", SSE, ANTHROPIC, &fault);
    let got = events(&got);
    // Its thought is longer than that, so no word follows.
    assert_eq!(got.len(), 8, "{got:#?}");
    assert!(
        got[6].contains("\"stop_reason\":\"max_tokens\""),
        "{}",
        got[6]
    );
    assert!(got[6].contains("\"output_tokens\":9"), "{}", got[6]);
    let thought_alone = [&events(ANTHROPIC)[..6], &events(ANTHROPIC)[10..]].concat();
    let got = after("anthropic", SSE, &thought_alone.concat(), &fault);
    assert_eq!(events(&got)[..6], thought_alone[..6]);
    assert!(got.contains("\"stop_reason\":\"max_tokens\""), "{got}");
}

#[test]
fn a_reasoning_item_is_given_whole_with_what_is_sealed_in_it() {
    for max_tokens in [0, 4, 10] {
        let fault = StreamFault::Truncate { max_tokens };
        for (form, answer) in [
            (AnswerForm::Json, responses("completed")),
            (SSE, responses_stream()),
        ] {
            let got = after("openai-responses", form, &answer, &fault);
            let whole = got.matches(ITEM).count();
            let expected = answer.matches(ITEM).count();
            assert_eq!(whole, expected, "{max_tokens} {got}");
            assert!(got.contains("max_output_tokens"), "{got}");
        }
    }
    for fault in others() {
        let got = after(
            "openai-responses",
            AnswerForm::Json,
            &responses("completed"),
            &fault,
        );
        assert!(got.contains(&format!("\"output\":[{ITEM}")), "{got}");
        assert!(!got.contains("Good morning"), "{got}");
        let got = after("openai-responses", SSE, &responses_stream(), &fault);
        assert_eq!(got.matches(ITEM).count(), 2, "{got}");
        assert!(!got.contains("Good morning"), "{got}");
    }
}

/// A cut item is announced as it stands in the response: incomplete.
#[test]
fn an_item_that_was_cut_says_so_wherever_it_stands() {
    let fault = StreamFault::Truncate { max_tokens: 11 };
    let got = after("openai-responses", SSE, &responses_stream(), &fault);
    let cut = r#""role":"assistant","status":"incomplete""#;
    let events = events(&got);
    let done = events
        .iter()
        .filter(|event| event.contains("output_item.done"));
    let done: Vec<bool> = done.map(|event| event.contains(cut)).collect();
    assert_eq!(done, [false, true], "{got}");
    assert!(
        events.last().is_some_and(|last| last.contains(cut)),
        "{got}"
    );
    let got = after(
        "openai-responses",
        AnswerForm::Json,
        &responses("completed"),
        &fault,
    );
    assert!(got.contains(cut), "{got}");
}

#[test]
#[rustfmt::skip]
fn no_event_that_thinks_comes_twice() {
    let chat = [
        r#"{"role":"assistant","reasoning_content":"Hm."}"#,
        r#"{"reasoning_content":" So."}"#,
        r#"{"content":"Yes."}"#,
    ];
    let chat = chat.map(chunk).concat() + &stop() + DONE;
    for (dialect, stream, thoughts) in [
        ("anthropic", ANTHROPIC.to_owned(), ["thinking_delta", "signature_delta"]),
        ("openai-responses", responses_stream(), ["summary_text.delta", "summary_text.done"]),
        ("openai-chat", chat, ["reasoning_content", "role"]),
    ] {
        let got = after(dialect, SSE, &stream, &StreamFault::Repeat);
        assert!(got.len() > stream.len(), "{dialect}");
        for thought in thoughts {
            let count = |text: &str| text.matches(thought).count();
            assert_eq!(count(&got), count(&stream), "{dialect}");
        }
    }
}
