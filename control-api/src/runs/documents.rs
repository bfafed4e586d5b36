//! Suites, contracts and replay sessions as the API describes them.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::openapi::{NameOrNumber, TextOrNumber};

/// A suite, in outline: `squall schema suite` has every field.
#[derive(JsonSchema)]
#[schemars(rename = "Suite")]
#[expect(dead_code, reason = "says what a suite looks like")]
pub(crate) struct SuiteDocument {
    /// How the agent is reached: its `endpoint`, or of another `type` its `command`.
    agent: Map<String, Value>,
    /// What the agent is asked: texts, and conversations, which are lists of texts.
    #[schemars(length(min = 1))]
    golden_prompts: Option<Vec<Value>>,
    /// What is demanded of its answers.
    #[schemars(length(min = 1))]
    invariants: Option<Vec<InvariantDocument>>,
}

/// A contract, as far as it is checked when it is put.
#[derive(JsonSchema)]
#[schemars(rename = "Contract", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a contract looks like")]
pub(crate) struct ContractDocument {
    /// Its name.
    name: Option<String>,
    /// What it is for.
    description: Option<String>,
    /// `scenario` or `cell`.
    isolation: Option<String>,
    /// What is demanded.
    #[schemars(length(min = 1))]
    invariants: Vec<InvariantDocument>,
    /// Under which chaos.
    chaos_matrix: Option<Vec<Map<String, Value>>>,
}

/// A demand.
#[derive(JsonSchema)]
#[schemars(rename = "Invariant")]
#[expect(dead_code, reason = "says what a contract looks like")]
struct InvariantDocument {
    /// Of which sort.
    r#type: String,
}

/// A replay session: an incident, and the answers that were recorded with it.
#[derive(JsonSchema)]
#[schemars(rename = "Replay", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a replay session looks like")]
pub(crate) struct ReplayDocument {
    /// Its name, as the path has it.
    id: NameOrNumber,
    /// What the agent is asked.
    input: Option<TextOrNumber>,
    /// A title.
    name: Option<TextOrNumber>,
    /// Where it comes from.
    source: Option<TextOrNumber>,
    /// When it was captured.
    captured_at: Option<TextOrNumber>,
    /// What the agent knew.
    context: Option<Vec<Map<String, Value>>>,
    /// Answers of tools, by tool and in order.
    tool_responses: Option<Vec<ToolResponseDocument>>,
    /// Answers of models, in order.
    llm_responses: Option<Vec<RecordedDocument>>,
    /// Answers to requests, in order per method, URL and body.
    exchanges: Option<Vec<ExchangeDocument>>,
    /// What went wrong.
    expected_failure: Option<TextOrNumber>,
    /// Name of the contract that it must meet.
    contract: Option<TextOrNumber>,
    /// `error` or `passthrough`.
    #[schemars(regex(pattern = "^(error|passthrough)$"))]
    on_miss: Option<String>,
    /// `error` or `passthrough`.
    #[schemars(regex(pattern = "^(error|passthrough)$"))]
    on_exhausted: Option<String>,
}

/// The status of an answer that names none.
fn usual_status() -> u16 {
    200
}

/// What a tool answered.
#[derive(JsonSchema)]
#[schemars(rename = "ToolResponse", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a replay session looks like")]
struct ToolResponseDocument {
    /// The tool's name.
    tool: TextOrNumber,
    /// A text as it is, anything else as JSON.
    response: Option<Value>,
    /// Status, 200 if absent; 0: there was no answer.
    #[schemars(schema_with = "status", default = "usual_status")]
    status: u16,
    /// How long it took, milliseconds.
    #[schemars(range(min = 0, max = 86_400_000))]
    latency_ms: Option<f64>,
}

/// An answer, and which request it is the answer to.
#[derive(JsonSchema)]
#[schemars(rename = "RecordedExchange")]
#[expect(dead_code, reason = "says what a replay session looks like")]
struct ExchangeDocument {
    /// Which request.
    r#match: MatchDocument,
    #[serde(flatten)]
    answer: RecordedDocument,
}

/// Which request.
#[derive(JsonSchema)]
#[schemars(rename = "RecordedMatch")]
#[expect(dead_code, reason = "says what a replay session looks like")]
struct MatchDocument {
    /// Its URL; `*` stands for anything where neither body nor fingerprint is given.
    url: TextOrNumber,
}

/// An answer.
#[derive(JsonSchema)]
#[schemars(rename = "RecordedAnswer")]
#[expect(dead_code, reason = "says what a replay session looks like")]
struct RecordedDocument {
    /// Status, 200 if absent; 0: there was no answer.
    #[schemars(schema_with = "status", default = "usual_status")]
    status: u16,
}

fn status(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "anyOf": [
            { "type": "integer", "const": 0 },
            { "type": "integer", "minimum": 200, "maximum": 999 },
        ]
    })
}
