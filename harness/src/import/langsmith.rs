//! Runs of LangSmith: lists of runs as its API has them, or runs with `child_runs`.

use std::collections::BTreeMap;

use serde_json::Value;
use squall_journal::timestamp;

use super::message::{TracedCall, text, user_text};
use super::trace::{CallKind, Trace};
use super::{Imported, words};

pub(super) fn read(document: &Value) -> Result<Imported, String> {
    let listed = ["runs", "items"]
        .iter()
        .find_map(|name| document.get(*name));
    let mut runs = Vec::new();
    flatten(listed.unwrap_or(document), &mut runs);
    if runs.is_empty() {
        return Err("it has no run of LangSmith: no object with `run_type`".to_owned());
    }
    let mut traces: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for run in runs {
        let id = words(run, "trace_id")
            .or_else(|| words(run, "id"))
            .unwrap_or_default();
        traces.entry(id).or_default().push(run);
    }
    let mut imported = Imported::default();
    for (id, mut runs) in traces {
        runs.sort_by_key(|run| (words(run, "dotted_order"), words(run, "start_time")));
        trace(id, &runs).add_to(&mut imported);
    }
    Ok(imported)
}

/// A run and its children, or a list of runs.
fn flatten<'v>(value: &'v Value, runs: &mut Vec<&'v Value>) {
    if let Some(items) = value.as_array() {
        for item in items {
            flatten(item, runs);
        }
    } else if value.get("run_type").is_some() {
        runs.push(value);
        flatten(&value["child_runs"], runs);
    }
}

/// The session of one tree; the first run is its root.
fn trace(id: &str, runs: &[&Value]) -> Trace {
    let first = runs
        .iter()
        .find(|run| words(run, "parent_run_id").is_none());
    let root = first.or(runs.first()).copied().unwrap_or(&Value::Null);
    let mut trace = Trace {
        id: id.to_owned(),
        name: words(root, "name").map(str::to_owned),
        source: "LangSmith".to_owned(),
        captured_at: words(root, "start_time").map(str::to_owned),
        input: user_text(&root["inputs"]),
        failure: words(root, "error").map(str::to_owned),
        ..Trace::default()
    };
    for run in runs {
        let name = words(run, "name").unwrap_or("?").to_owned();
        let error = words(run, "error").map(str::to_owned);
        let kind = words(run, "run_type").unwrap_or_default();
        let kind = match kind.to_ascii_lowercase().as_str() {
            "tool" => CallKind::Tool,
            "llm" => CallKind::Model,
            "retriever" | "embedding" => CallKind::Search,
            _ => CallKind::Other,
        };
        let outputs = &run["outputs"];
        let metadata = &run["extra"]["metadata"];
        let model = words(metadata, "ls_model_name").or_else(|| words(&run["inputs"], "model"));
        let call = TracedCall {
            name,
            output: if kind == CallKind::Tool {
                result(outputs)
            } else {
                Some(outputs.clone())
            },
            error,
            latency_ms: span_ms(words(run, "start_time"), words(run, "end_time")),
            provider: words(metadata, "ls_provider").map(str::to_owned),
            model: model.map(str::to_owned),
        };
        trace.add(kind, call, || user_text(&run["inputs"]));
    }
    trace
}

/// What a tool returned: `output`, the content of a message, or the map that it returned.
fn result(outputs: &Value) -> Option<Value> {
    let members = outputs.as_object().filter(|members| !members.is_empty())?;
    let found = members.get("output").or_else(|| members.get("content"));
    let found = found.unwrap_or(outputs);
    let is_message = found.get("kwargs").is_some() || found.get("tool_call_id").is_some();
    let said = text(found).filter(|_| is_message).map(Value::from);
    Some(said.unwrap_or_else(|| found.clone()))
}

/// Milliseconds between two times. Times without an offset are UTC.
pub(super) fn span_ms(start: Option<&str>, end: Option<&str>) -> u64 {
    let at = |text: &str| {
        let offset = timestamp::parse(text).or_else(|_| timestamp::parse(&format!("{text}Z")));
        offset.ok()
    };
    let (start, end) = (start.and_then(at), end.and_then(at));
    let millis = start.zip(end).map(|(start, end)| end.saturating_sub(start));
    millis.unwrap_or(0).min(86_400_000)
}
