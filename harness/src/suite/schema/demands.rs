//! What is demanded, and under which chaos.

use serde_json::{Map, Value, json};
use squall_profiles::schema::profile_schema;

use super::shapes::{
    Field, block, either, flag, number, reference, some, text, texts, whole, words,
};
use crate::invariants::{self, SEVERITIES, When};
use crate::suite::contract::ISOLATIONS;

/// An invariant: its type says which parameters it takes.
pub(super) fn invariant(required: &[&str]) -> Value {
    let mut fields = vec![
        ("type", "What is demanded.", words(invariants::type_names())),
        ("id", "What reports call it; unique.", text()),
        ("description", "What it is for.", text()),
        (
            "severity",
            "What it counts; default `medium`.",
            words(SEVERITIES.map(|(name, _)| name)),
        ),
        (
            "when",
            "Under which chaos it is demanded; default `always`.",
            words(When::ALL.map(When::as_str)),
        ),
        ("negate", "The opposite must hold.", flag()),
        (
            "probes",
            "Asked in invocations of their own, in the place of the golden prompts.",
            some(reference("prompt")),
        ),
        (
            "baseline",
            "What is compared with: `auto`, a clean run, or a text.",
            text(),
        ),
        (
            "prompt_filter",
            "A regular expression: only prompts that it matches are judged.",
            text(),
        ),
    ];
    let common: Vec<_> = fields.iter().map(|(name, ..)| *name).collect();
    let takes: Vec<_> = invariants::kinds()
        .map(|kind| (kind.name, invariants::parameters(kind)))
        .collect();
    for name in takes.iter().flat_map(|(_, names)| names) {
        if !fields.iter().any(|(known, ..)| known == name) {
            fields.push((name, "", parameter(name)));
        }
    }
    let by_type = takes.iter().map(|(kind, names)| {
        let mut allowed: Vec<_> = common.iter().chain(names).copied().collect();
        let beside = invariants::without_effect::names().filter(|name| !names.contains(name));
        allowed.extend(beside);
        json!({
            "if": { "properties": { "type": { "const": kind } } },
            "then": { "propertyNames": { "enum": allowed } },
        })
    });
    let by_type: Vec<_> = by_type.collect();
    let mut schema = block("What must hold.", required, fields);
    schema["allOf"] = json!(by_type);
    schema
}

/// A parameter of an invariant, by its name.
pub(super) fn parameter(name: &str) -> Value {
    match name {
        "max" | "max_ms" | "within_ms" | "min" | "timeout_ms" => whole(0, None),
        "threshold" | "similarity_threshold" => number(0.0, Some(1.0)),
        "usd" => number(0.0, None),
        "dangerous_prompts" | "case_sensitive" => flag(),
        "judge" => words(invariants::JUDGES.map(|(name, _)| name)),
        "values" | "patterns" | "tools" | "allow" | "hosts" | "command" => texts(),
        "methods" => {
            let method = || words(invariants::METHODS);
            either([method(), some(method())])
        }
        "schema" => either([json!({ "type": ["object", "boolean"] }), text()]),
        _ => text(),
    }
}

pub(super) fn contract_block() -> Value {
    block(
        "Invariants × scenarios.",
        &["name", "invariants"],
        vec![
            ("name", "What reports call it.", text()),
            ("description", "What it is for.", text()),
            (
                "isolation",
                "What the agent is asked for: each prompt once in a scenario (default), or once for each \
            cell.",
                words(ISOLATIONS.map(|(name, _)| name)),
            ),
            (
                "invariants",
                "What must hold; each has an `id`.",
                some(reference("contract_invariant")),
            ),
            (
                "chaos_matrix",
                "The scenarios.",
                some(reference("scenario")),
            ),
        ],
    )
}

pub(super) fn scenario() -> Value {
    let mut fields = vec![
        ("name", "What reports call it.", text()),
        ("description", "What it is.", text()),
        (
            "extends",
            "Profiles whose rules come after its own.",
            texts(),
        ),
    ];
    fields.extend(families());
    block(
        "A column of the matrix; without rules it is a clean one.",
        &["name"],
        fields,
    )
}

pub(super) fn chaos() -> Value {
    block("Rules by family.", &[], families())
}

/// The families of rules, as profiles have them.
pub(super) fn families() -> Vec<Field> {
    let profile = profile_schema();
    let family = |name: &'static str, what: &'static str| {
        let mut schema = profile["$defs"]["Chaos"]["properties"][name].clone();
        if let Some(members) = schema.as_object_mut() {
            members.remove("default");
        }
        (name, what, schema)
    };
    vec![
        family("network_faults", "What happens to connections and bytes."),
        family("tool_faults", "What happens to tools' answers."),
        family("llm_faults", "What happens to models' answers."),
        family("context_attacks", "What is slipped into what models read."),
    ]
}

/// What the families' schemas refer to.
pub(super) fn rules() -> Map<String, Value> {
    let mut definitions = profile_schema()["$defs"].take();
    let members = definitions.as_object_mut().map(std::mem::take);
    members.unwrap_or_default()
}
