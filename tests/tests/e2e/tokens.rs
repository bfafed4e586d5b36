//! Tokens of OpenAI's models: where an answer is cut, and what the journal counts, as its official
//! client sees it and as OpenAI's own examples count.

use serde_json::{Value, json};
use squall_tests::upstream::{Connection, chat};
use squall_tests::{Path, Stage};

use crate::matrix::exchange;

/// A text whose tokens OpenAI's cookbook lists ("How to count tokens with tiktoken"), as it is
/// streamed.
struct Text {
    words: &'static [&'static str],
    /// How many tokens it has.
    all: u64,
    /// The beginnings that so many tokens make.
    begins: &'static [(u64, &'static str)],
}

const LONG: &str = "antidisestablishmentarianism";

/// Of `o200k_base`.
const GPT_4O: [Text; 3] = [
    Text {
        words: &["tiktoken", " is", " great", "!"],
        all: 6,
        begins: &[(2, "tikt"), (4, "tiktoken is")],
    },
    Text {
        words: &[LONG],
        all: 6,
        begins: &[(3, "antidisest")],
    },
    Text {
        words: &["お誕生日", "おめでとう"],
        all: 8,
        begins: &[(4, "お誕生日")],
    },
];

/// Of `cl100k_base`.
const GPT_4: [Text; 3] = [
    Text {
        words: &["tiktoken", " is", " great", "!"],
        all: 6,
        begins: &[(2, "tik"), (4, "tiktoken is")],
    },
    Text {
        words: &[LONG],
        all: 6,
        begins: &[(3, "antidisestablish")],
    },
    Text {
        words: &["お誕生日", "おめでとう"],
        all: 9,
        begins: &[(4, "お誕生")],
    },
];

impl Text {
    /// A stage whose upstream says it and counts no tokens.
    fn stage(&self) -> Stage {
        let words = self.words;
        Stage::with(&json!({}), move |mut connection: Connection| {
            while let Some(request) = connection.request() {
                if !chat::say(&mut connection, &request, words) {
                    return;
                }
            }
        })
    }
}

/// What the official client makes of an answer of `model`, and the journal's entry.
fn ask(stage: &Stage, model: &str, more: &[&str]) -> (Value, Value) {
    let api = stage.daemon.api;
    let before = api.exchanges().len();
    let arguments = [&["--model", model], more].concat();
    let way = stage.way(Path::Reverse, "/v1");
    let told = way.ask("openai_chat.py", &arguments);
    (told, exchange(stage, before + 1))
}

fn each(texts: &[Text], check: impl Fn(&Stage, &Text, &[&str])) {
    for text in texts {
        let stage = text.stage();
        for more in [&[][..], &["--stream"]] {
            stage.daemon.api.calm();
            check(&stage, text, more);
        }
    }
}

/// An answer keeps just so many tokens, the journal counts as many, and all of them without the
/// rule.
fn counts_as_openai_does(model: &str, vocabulary: &str, texts: &[Text]) {
    each(texts, |stage, text, more| {
        let (told, entry) = ask(stage, model, more);
        assert_eq!(told["text"], text.words.concat(), "{told}");
        assert_eq!(told["finish"], "stop", "{told}");
        assert_eq!(entry["llm"]["output_tokens"], text.all, "{entry}");
        assert_eq!(entry["llm"]["counted_by"], vocabulary, "{entry}");
        for (max_tokens, kept) in text.begins {
            let rule = json!({ "mode": "truncated_response", "max_tokens": max_tokens });
            stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
            let (told, entry) = ask(stage, model, more);
            assert_eq!(told["text"], *kept, "{max_tokens} {more:?}: {told}");
            assert_eq!(told["finish"], "length", "{told}");
            assert_eq!(entry["llm"]["output_tokens"], *max_tokens, "{entry}");
        }
    });
}

#[test]
fn a_truncated_answer_of_gpt_4o_keeps_as_many_tokens_as_openai_counts() {
    counts_as_openai_does("gpt-4o", "o200k_base", &GPT_4O);
}

#[test]
fn a_truncated_answer_of_gpt_4_keeps_as_many_tokens_as_openai_counts() {
    counts_as_openai_does("gpt-4-0613", "cl100k_base", &GPT_4);
}

#[test]
fn a_stream_breaks_where_openai_counts() {
    for (model, texts) in [("gpt-4o", &GPT_4O), ("gpt-4", &GPT_4)] {
        for text in texts {
            let stage = text.stage();
            let (after_tokens, kept) = text.begins.last().expect("one");
            for mode in ["stream_cut", "stream_error"] {
                let rule = json!({ "mode": mode, "after_tokens": after_tokens });
                stage.daemon.api.chaos(&json!({ "llm_faults": [rule] }));
                let (told, entry) = ask(&stage, model, &["--stream"]);
                assert_eq!(told["ok"], false, "{mode}: {told}");
                assert_eq!(told["after"], *kept, "{mode} {after_tokens}: {told}");
                assert_eq!(entry["llm"]["output_tokens"], *after_tokens, "{entry}");
            }
        }
    }
}
