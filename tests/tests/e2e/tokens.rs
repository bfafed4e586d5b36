//! Tokens of OpenAI's models: where an answer is cut, and what the journal counts, as OpenAI's own
//! examples count.

use serde_json::{Value, json};
use squall_tests::upstream::{Connection, chat};
use squall_tests::{Path, Stage};

use crate::matrix::exchange;

const WORDS: [&str; 4] = ["tiktoken", " is", " great", "!"];

/// The beginnings that so many tokens make, by model, and how many tokens the whole text has: from
/// OpenAI's cookbook, "How to count tokens with tiktoken".
const MODELS: [(&str, &str, u64, &str); 2] = [
    ("gpt-4o", "o200k_base", 6, "tikt"),
    ("gpt-4-0613", "cl100k_base", 6, "tik"),
];

#[test]
fn an_answer_is_cut_and_counted_as_openai_counts() {
    // An upstream that counts no tokens itself.
    let stage = Stage::with(&json!({}), |mut connection: Connection| {
        while let Some(request) = connection.request() {
            if !chat::say(&mut connection, &request, &WORDS) {
                return;
            }
        }
    });
    let mut number = 0;
    for (model, vocabulary, all, two_tokens) in MODELS {
        let mut ask = |rules: Value| {
            stage.daemon.api.chaos(&json!({ "llm_faults": rules }));
            let body = json!({ "model": model, "messages": [] }).to_string();
            let mut wire = stage.open(Path::Reverse);
            let answer = wire.post("/v1/chat/completions", &body).json();
            number += 1;
            let entry = exchange(&stage, number);
            (answer["choices"][0]["message"]["content"].clone(), entry)
        };
        let (text, entry) = ask(json!([]));
        assert_eq!(text, WORDS.concat());
        assert_eq!(entry["llm"]["output_tokens"], all, "{entry}");
        assert_eq!(entry["llm"]["counted_by"], vocabulary, "{entry}");
        let (text, entry) = ask(json!([{ "mode": "truncated_response", "max_tokens": 2 }]));
        assert_eq!(text, two_tokens, "{model}");
        assert_eq!(entry["llm"]["output_tokens"], 2, "{entry}");
    }
}
