//! What is asked: golden prompts and recorded incidents.

use serde_json::{Value, json};
use squall_journal::tape::Otherwise;

use super::shapes::{
    block, either, flag, list, reference, some, text, whole, words, words_of_ones_own,
};
use crate::suite::replays;

pub(super) fn prompt() -> Value {
    let turns = some(text());
    let conversation = block(
        "One conversation.",
        &["turns"],
        vec![("turns", "What is said in turn.", turns.clone())],
    );
    either([text(), turns, conversation])
}

pub(super) fn replays_block() -> Value {
    let mut fields = vec![("file", "The file.", text())];
    let over = "Set over what the file says.";
    fields.extend(replays::BESIDE_FILE.map(|name| (name, over, json!({}))));
    let file = block("A session in a file.", &["file"], fields);
    let invocation =
        json!({ "allOf": [reference("replay_session"), { "required": ["id", "input"] }] });
    let filter = block(
        "Which of its runs.",
        &[],
        vec![
            (
                "status",
                "How they ended; default `error`.",
                words(replays::STATUSES.map(|(name, _)| name)),
            ),
            ("date_range", "As `last_7_days`.", text()),
            (
                "min_latency_ms",
                "Runs that took at least so long.",
                whole(0, None),
            ),
        ],
    );
    block(
        "Incidents and where they come from.",
        &[],
        vec![
            ("sessions", "Incidents.", list(either([file, invocation]))),
            (
                "sources",
                "Where more are fetched from.",
                list(block(
                    "A source.",
                    &["type"],
                    vec![
                        (
                            "type",
                            "What it is.",
                            words(replays::SOURCES.map(|(name, _)| name)),
                        ),
                        ("project", "The project.", text()),
                        ("run_id", "The run's id.", text()),
                        ("filter", "Which of its runs.", filter),
                        (
                            "auto_import",
                            "Whether every run fetches them; default false.",
                            flag(),
                        ),
                    ],
                )),
            ),
        ],
    )
}

pub(super) fn session() -> Value {
    let answer = block(
        "What a tool answered.",
        &["tool"],
        vec![
            ("tool", "The tool's name.", text()),
            (
                "response",
                "A text, a document, or nothing.",
                json!({ "type": ["string", "number", "boolean", "object", "array", "null"] }),
            ),
            (
                "status",
                "Default 200; 0 is an error without one.",
                whole(0, Some(999)),
            ),
            (
                "latency_ms",
                "How long it took.",
                whole(0, Some(86_400_000)),
            ),
        ],
    );
    let maps = || list(json!({ "type": "object" }));
    let ends = || words([Otherwise::Error, Otherwise::Passthrough].map(Otherwise::as_str));
    block(
        "A production incident.",
        &["id"],
        vec![
            ("id", "Unique in the suite.", words_of_ones_own()),
            ("name", "What reports call it.", text()),
            ("input", "What the agent is asked.", words_of_ones_own()),
            ("source", "Where it was captured; default `manual`.", text()),
            ("captured_at", "When.", text()),
            ("context", "What came before, oldest first.", maps()),
            ("tool_responses", "What tools answered then.", list(answer)),
            ("llm_responses", "What models answered then.", maps()),
            ("exchanges", "Answers by request.", maps()),
            (
                "on_miss",
                "Of a request that was not recorded; default `error`.",
                ends(),
            ),
            (
                "on_exhausted",
                "Of one that was recorded less often; default `error`.",
                ends(),
            ),
            ("expected_failure", "What went wrong then.", text()),
            ("contract", "Name of the contract that must hold.", text()),
        ],
    )
}
