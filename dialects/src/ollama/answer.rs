//! What an answer says, and where. A line of a stream has the same shape as a whole answer.

use std::borrow::Cow;

use super::request::items;
use crate::json::{Kind, Value};
use crate::model::{Delta, DeltaKind, Finish, Finished, Reading, Usage, number_of_whole_call};

/// Reads an answer to a chat, whose words stand in `message`, or to a prompt, whose words stand
/// beside everything else.
pub(super) fn read(root: Value<'_>) -> Reading<'_> {
    let mut reading = Reading {
        model: root.get("model").and_then(Value::as_str),
        usage: read_usage(root),
        error: root
            .get("error")
            .filter(|error| !error.is_null())
            .map(|error| error.as_str().unwrap_or(Cow::Borrowed(error.raw()))),
        ..Reading::default()
    };
    let said = root.get("message").unwrap_or(root);
    for (field, kind) in [
        ("thinking", DeltaKind::Reasoning),
        ("content", DeltaKind::Text),
        ("response", DeltaKind::Text),
    ] {
        if let Some(value) = string(said, field) {
            reading.deltas.push(Delta::new(0, 0, kind, value));
        }
    }
    let mut calls = false;
    for call in items(said.get("tool_calls")) {
        calls = true;
        read_call(call, &mut reading.deltas);
    }
    let logprobs = root.get("logprobs").filter(|value| !value.is_null());
    reading
        .mirrors
        .extend(logprobs.map(|value| (0, value.id())));
    if let Some(done) = root.get("done")
        && done.as_bool() == Some(true)
    {
        reading.ends = true;
        reading.finishes.push(read_end(root, done, calls));
    }
    reading.ends |= reading.error.is_some();
    reading
}

/// Arguments are an object, and a call comes whole. Its `index` is left aside: older servers have
/// none.
fn read_call<'d>(call: Value<'d>, deltas: &mut Vec<Delta<'d>>) {
    let number = number_of_whole_call(call);
    let delta = |kind, value: Value<'d>| Delta::new(0, number, kind, value).inside_call(call);
    if let Some(id) = string(call, "id") {
        deltas.push(delta(DeltaKind::ToolId, id));
    }
    let Some(function) = call.get("function") else {
        return;
    };
    if let Some(name) = string(function, "name") {
        deltas.push(delta(DeltaKind::ToolName, name));
    }
    if let Some(arguments) = function.get("arguments").filter(|value| !value.is_null()) {
        deltas.push(delta(DeltaKind::ToolArguments, arguments));
    }
}

/// Older servers give no `done_reason`.
fn read_end(root: Value<'_>, done: Value<'_>, calls: bool) -> Finished {
    let reason = string(root, "done_reason");
    let word = reason.and_then(Value::as_str);
    let finish = match word.as_deref() {
        // There is no word of its own for a model that wants tools called.
        Some("stop" | "") | None if calls => Finish::Tool,
        Some("stop" | "") | None => Finish::Done,
        Some("length") => Finish::Length,
        Some(other) => Finish::Foreign(other.to_owned()),
    };
    Finished {
        choice: 0,
        finish,
        place: reason.unwrap_or(done).id(),
    }
}

fn string<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).filter(|value| value.kind() == Kind::String)
}

/// A count of nothing is left out.
fn read_usage(root: Value<'_>) -> Option<Usage> {
    let number = |key| root.get(key).and_then(Value::as_u64);
    let (input, output) = (number("prompt_eval_count"), number("eval_count"));
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage {
        input,
        output,
        hidden: 0,
        output_place: root
            .get("eval_count")
            .filter(|value| value.kind() == Kind::Number)
            .map(Value::id),
        apart: 0,
        total_place: None,
    })
}
