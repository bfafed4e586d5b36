//! Reads an answer, with the places of its parts. A line of a stream has the same shape as a whole answer.

use crate::dialect::{Provider, Quirk};
use crate::errors;
use crate::json::Value;
use crate::model::{
    Delta, DeltaKind, Finish, FinishWords, Reading, Usage, UsageKeys, call_pieces, error_message,
    number_of_whole_call,
};

pub(super) static OLLAMA: Provider = Provider {
    dialect: "ollama",
    endpoint: "ollama",
    quirks: &[Quirk::ToolCallsEndAsDone, Quirk::SaysAtTheEnd],
    event_number: None,
    end_mark: None,
    finish_words: FinishWords(&[
        (
            "stop",
            &[
                Finish::Done,
                Finish::Tool,
                Finish::Filtered,
                Finish::Refused,
                Finish::BadTool,
            ],
        ),
        ("length", &[Finish::Length, Finish::Context]),
        // Older servers send no reason.
        ("", &[Finish::Done]),
    ]),
    usage: UsageKeys {
        input: &["prompt_eval_count"],
        output: "eval_count",
        hidden: &[],
        total: "",
    },
    errors: &errors::OLLAMA,
};

/// Reads a response to a chat, with the text in `message`, or to a prompt, with the text at the top level.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let usage = Usage::read(root, &OLLAMA.usage);
    let mut reading = Reading {
        model: root.text("model"),
        // Zero counts are omitted.
        usage: usage.filter(|usage| usage.input.or(usage.output).is_some()),
        error: root.given("error").map(error_message),
        ..Reading::default()
    };
    let said = root.get("message").unwrap_or(root);
    for (field, kind) in [
        ("thinking", DeltaKind::Reasoning),
        ("content", DeltaKind::Text),
        ("response", DeltaKind::Text),
    ] {
        let text = said.string(field);
        let delta = text.map(|text| Delta::new(0, 0, kind, text));
        reading.deltas.extend(delta);
    }
    let mut calls = false;
    if let Some(list) = said.get("tool_calls") {
        for call in list.items() {
            calls = true;
            // Its `index` is ignored, because older servers do not send it.
            let number = number_of_whole_call(call);
            let function = call.get("function");
            let fields = [
                call.string("id"),
                function.and_then(|it| it.string("name")),
                function.and_then(|it| it.given("arguments")),
            ];
            let pieces = call_pieces(0, number, fields);
            let pieces = pieces.map(|piece| piece.inside_list(call, list));
            reading.deltas.extend(pieces);
        }
    }
    let logprobs = root.given("logprobs");
    reading.mirrors.extend(logprobs.map(|it| (0, it.id())));
    if let Some(done) = root.get("done").filter(|_| root.flag("done")) {
        let reason = root.string("done_reason");
        let word = reason.and_then(Value::as_str).unwrap_or_default();
        let finish = match OLLAMA.finish_words.read(&word) {
            // Ollama has no finish reason for tool calls.
            Finish::Done if calls => Finish::Tool,
            finish => finish,
        };
        reading.finish(0, finish, reason.unwrap_or(done));
        reading.ends = true;
    }
    reading.ends |= reading.error.is_some();
    reading
}
