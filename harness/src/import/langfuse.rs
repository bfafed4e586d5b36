//! Traces of Langfuse, with their observations.

use serde_json::Value;

use super::langsmith::span_ms;
use super::message::{TracedCall, user_text};
use super::trace::{CallKind, Trace};
use super::{Imported, entries, words};

pub(super) fn read(document: &Value) -> Result<Imported, String> {
    let listed = document.get("data").unwrap_or(document);
    let mut imported = Imported::default();
    for one in entries(listed) {
        // A list of traces has only ids of observations.
        let observations = one["observations"].as_array();
        let observations = observations.filter(|all| all.iter().all(Value::is_object)).ok_or(
            "it has no trace of Langfuse with its `observations`; import single traces by their ids",
        )?;
        trace(one, observations).add_to(&mut imported);
    }
    Ok(imported)
}

fn trace(one: &Value, observations: &[Value]) -> Trace {
    let text = |value: &Value, name: &str| words(value, name).map(str::to_owned);
    let mut trace = Trace {
        id: text(one, "id").unwrap_or_default(),
        name: text(one, "name"),
        source: "Langfuse".to_owned(),
        captured_at: text(one, "timestamp"),
        input: user_text(&one["input"]),
        ..Trace::default()
    };
    let mut sorted: Vec<&Value> = observations.iter().collect();
    sorted.sort_by_key(|one| words(one, "startTime"));
    for observation in sorted {
        let name = text(observation, "name").unwrap_or_else(|| "?".to_owned());
        let is_error = words(observation, "level") == Some("ERROR");
        let message = text(observation, "statusMessage");
        let error = is_error.then(|| message.unwrap_or_else(|| "failed".to_owned()));
        if trace.failure.is_none() {
            trace.failure.clone_from(&error);
        }
        let output = observation
            .get("output")
            .filter(|it| !it.is_null())
            .cloned();
        let kind = match words(observation, "type").unwrap_or_default() {
            "TOOL" => CallKind::Tool,
            "GENERATION" => CallKind::Model,
            "RETRIEVER" | "EMBEDDING" => CallKind::Search,
            _ => CallKind::Other,
        };
        let model = text(observation, "model");
        let [start, end] = ["startTime", "endTime"].map(|name| words(observation, name));
        let call = TracedCall {
            name,
            output,
            error,
            latency_ms: span_ms(start, end),
            provider: provider(observation, model.as_deref()),
            model,
        };
        trace.add(kind, call, || user_text(&observation["input"]));
    }
    trace
}

/// Langfuse has no field for it: instrumentations write it into the metadata, and names of models begin with it.
fn provider(observation: &Value, model: Option<&str>) -> Option<String> {
    let metadata = &observation["metadata"];
    let places = [metadata, &metadata["attributes"]];
    let names = [
        "ls_provider",
        "gen_ai.provider.name",
        "gen_ai.system",
        "llm.provider",
    ];
    let found = places
        .iter()
        .find_map(|place| names.iter().find_map(|name| words(place, name)));
    let families = [
        ("gpt-", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("claude", "anthropic"),
        ("gemini", "google"),
    ];
    let of_model = || {
        families
            .iter()
            .find(|(family, _)| model.is_some_and(|it| it.starts_with(family)))
    };
    found
        .map(str::to_owned)
        .or_else(|| of_model().map(|(_, provider)| (*provider).to_owned()))
}
