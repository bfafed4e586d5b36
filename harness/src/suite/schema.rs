//! JSON Schemas of suites and replay sessions, for editors.
//!
//! Words and parameters come from the tables that the reader uses; a test holds every block's fields to
//! those that are read. What a schema cannot say (which rules can match, which ids are taken) `squall
//! contract validate` does.

mod blocks;
mod demands;
mod incidents;
mod shapes;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use self::blocks::{
    advanced_block, agent_block, certificate_block, embeddings_block, model_block, mutations_block,
    output_block, prices_block, scoring_block, tools_block,
};
use self::demands::{chaos, contract_block, invariant, rules, scenario};
use self::incidents::{prompt, replays_block, session};
use self::shapes::{Field, block, either, reference, some, text};

/// The JSON Schema (draft 2020-12) of a suite.
pub fn suite_schema() -> Value {
    let mut definitions = rules();
    for (name, schema) in [
        ("agent", agent_block()),
        ("model", model_block()),
        ("invariant", invariant(&["type"])),
        ("contract_invariant", invariant(&["type", "id"])),
        ("contract", contract_block()),
        ("scenario", scenario()),
        ("prompt", prompt()),
        ("replay_session", session()),
    ] {
        definitions.insert(name.to_owned(), schema);
    }
    let mut schema = block("An agent and what is demanded of it.", &["agent"], root());
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Suite");
    schema["$defs"] = Value::Object(definitions);
    schema
}

/// The JSON Schema (draft 2020-12) of a replay session.
pub fn replay_schema() -> Value {
    let mut schema = session();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Replay session");
    schema
}

fn root() -> Vec<Field> {
    vec![
        ("version", "Of the file's own; nothing hangs on it.", text()),
        (
            "name",
            "What runs are called; default: as the file.",
            text(),
        ),
        ("description", "What the suite is for.", text()),
        ("tools", "Names for upstreams.", tools_block()),
        ("agent", "The agent under test.", reference("agent")),
        (
            "model",
            "Who writes mutations and judges.",
            reference("model"),
        ),
        ("llm", "Another word for `model`.", reference("model")),
        ("embeddings", "Who compares texts.", embeddings_block()),
        ("mutations", "How prompts are changed.", mutations_block()),
        (
            "golden_prompts",
            "What is asked.",
            some(reference("prompt")),
        ),
        (
            "invariants",
            "What must hold.",
            some(reference("invariant")),
        ),
        ("chaos", "Chaos of `squall chaos`.", chaos()),
        (
            "chaos_matrix",
            "A contract's scenarios.",
            some(reference("scenario")),
        ),
        (
            "contract",
            "Invariants × scenarios, or the name or file of them.",
            contract(),
        ),
        (
            "replays",
            "Incidents that must not come back.",
            replays_block(),
        ),
        (
            "scoring",
            "What parts of the score count; together 1.",
            scoring_block(),
        ),
        ("output", "Where reports go.", output_block()),
        ("advanced", "How runs go about it.", advanced_block()),
        ("certificate", "Who signs.", certificate_block()),
        (
            "prices",
            "What models' tokens cost, by a glob.",
            prices_block(),
        ),
    ]
}

fn contract() -> Value {
    either([reference("contract"), text()])
}
