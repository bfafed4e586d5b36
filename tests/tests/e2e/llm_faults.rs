//! Model faults on every path, one of each way in which they are carried out. What each mode does is in
//! [`crate::every_mode`].

use serde_json::Value;
use serde_json::json;
use squall_tests::End;
use squall_tests::upstream::chat::WORDS;

use crate::matrix::{Ask, Seen, on_every_path};

const WHOLE: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","messages":[{"role":"user","content":"hi"}]}"#,
);
const STREAM: Ask = Ask::Post(
    "/v1/chat/completions",
    r#"{"model":"test-model","stream":true,"messages":[{"role":"user","content":"hi"}]}"#,
);

/// Text and finish reason of an answer, streamed or not.
fn said(seen: &Seen) -> (String, Option<String>) {
    let text = seen.answer.text();
    let mut words = String::new();
    let mut finish = None;
    let choices = |value: &Value, from: &str| {
        let choice = &value["choices"][0];
        let content = choice[from]["content"].as_str().unwrap_or_default();
        let finish = choice["finish_reason"].as_str().map(str::to_owned);
        (content.to_owned(), finish)
    };
    if let Ok(whole) = serde_json::from_str::<Value>(&text) {
        return choices(&whole, "message");
    }
    let events = text.split("\n\n");
    for data in events.filter_map(|event| event.strip_prefix("data: ")) {
        if let Ok(event) = serde_json::from_str::<Value>(data) {
            let (content, reason) = choices(&event, "delta");
            words.push_str(&content);
            finish = reason.or(finish);
        }
    }
    (words, finish)
}

/// That the answer begins as the model's does, and ends sooner.
fn begins(seen: &Seen, text: &str) -> Result<(), String> {
    let all = WORDS.concat();
    let kept = all.starts_with(text) && text.len() < all.len();
    seen.expect("a beginning of the text", kept && !text.is_empty())
}

fn shortened(seen: &Seen) -> Result<(), String> {
    let (text, finish) = said(seen);
    let whole = seen.answer.status == 200 && seen.answer.broke.is_none();
    seen.expect("a whole answer", whole)?;
    seen.expect("finish: length", finish.as_deref() == Some("length"))?;
    begins(seen, &text)
}

fn terminated(seen: &Seen) -> Result<(), String> {
    let ended = seen.answer.text().ends_with("data: [DONE]\n\n");
    seen.expect("the terminator", ended)
}

#[test]
fn a_model_fault_is_the_same_on_every_path() {
    let truncated = json!({ "mode": "truncated_response", "max_tokens": 2 });
    on_every_path(
        "llm_faults",
        [
            (
                json!({ "mode": "rate_limit", "retry_after": 7 }),
                STREAM,
                |seen| {
                    seen.expect("429", seen.answer.status == 429)?;
                    let wait = seen.answer.header("retry-after");
                    seen.expect("retry-after: 7", wait == Some("7"))?;
                    let body: Value = serde_json::from_slice(&seen.answer.body).unwrap_or_default();
                    let code = &body["error"]["code"];
                    seen.expect("a code", code == "rate_limit_exceeded")?;
                    seen.expect("nothing reached the upstream", seen.forwarded == 0)
                },
            ),
            (
                json!({ "mode": "timeout", "delay_ms": 250 }),
                WHOLE,
                |seen| {
                    seen.expect("no answer", seen.answer.status == 0)?;
                    seen.expect("FIN", seen.answer.broke == Some(End::Closed))?;
                    seen.expect("it took 250 ms", seen.took.as_millis() >= 250)?;
                    seen.expect("nothing reached the upstream", seen.forwarded == 0)
                },
            ),
            (truncated.clone(), WHOLE, shortened),
            (truncated, STREAM, |seen| {
                shortened(seen)?;
                terminated(seen)
            }),
            (
                json!({ "mode": "stream_cut", "after_tokens": 2 }),
                STREAM,
                |seen| {
                    let (text, finish) = said(seen);
                    seen.expect("it broke", seen.answer.broke.is_some())?;
                    let unended = finish.is_none() && !seen.answer.text().contains("[DONE]");
                    seen.expect("no finish and no terminator", unended)?;
                    begins(seen, &text)
                },
            ),
            // The first token waits, and at least four more follow at 40 a second.
            (
                json!({ "mode": "slow_stream", "ttft_ms": 150, "tokens_per_second": 40 }),
                STREAM,
                |seen| {
                    let (text, finish) = said(seen);
                    let whole = text == WORDS.concat() && finish.as_deref() == Some("stop");
                    seen.expect("the whole text", whole)?;
                    terminated(seen)?;
                    seen.expect("it took 250 ms", seen.took.as_millis() >= 250)
                },
            ),
        ],
    );
}
