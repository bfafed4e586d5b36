//! Whether a document makes sense as a suite or a contract, as far as it can be told before a run.
//!
//! What arrives by API is another's text: it may not start programs here nor read files, so a suite
//! that would is refused at the door, not when a run comes to it.

use schemars::JsonSchema;
use serde_json::{Map, Value};
use squall_journal::redact::is_secret_header;
use squall_journal::tape::Session;
use squall_profiles::variables::{expand, is_one_variable};

use crate::Trust;
use crate::nearest::nearest;
use crate::openapi::{NameOrNumber, TextOrNumber};
use crate::problem::Detail;
use crate::store::DocumentKind;

/// What a suite has.
const SUITE: [&str; 15] = [
    "version",
    "name",
    "description",
    "agent",
    "model",
    "mutations",
    "golden_prompts",
    "invariants",
    "output",
    "advanced",
    "chaos",
    "contract",
    "replays",
    "scoring",
    "tools",
];

/// What else a suite may have: beside `contract:`, and for prices of models.
const SUITE_TOO: [&str; 2] = ["chaos_matrix", "prices"];

/// What a contract has.
const CONTRACT: [&str; 5] = [
    "name",
    "description",
    "isolation",
    "invariants",
    "chaos_matrix",
];

/// All that is wrong with a document; nothing for one that can be put. Kinds that are not read here
/// have nothing wrong with them.
pub(crate) fn complaints(kind: DocumentKind, tree: &Value, trust: &Trust) -> Vec<Detail> {
    let mut complaints = Complaints::default();
    match kind {
        DocumentKind::Suite => complaints.suite(tree, trust),
        DocumentKind::Contract => complaints.contract("", tree),
        DocumentKind::Replay => complaints.replay(tree),
        DocumentKind::Profile => {}
    }
    complaints.0
}

/// A suite, as far as it is checked when it is put.
#[derive(JsonSchema)]
#[schemars(rename = "Suite")]
#[expect(dead_code, reason = "says what a suite looks like")]
pub(crate) struct SuiteDocument {
    /// Where the agent is, and how it is asked: at least its `endpoint`, a URL.
    agent: AgentDocument,
    /// What the agent is asked.
    #[schemars(length(min = 1))]
    golden_prompts: Vec<String>,
    /// What is demanded of its answers.
    #[schemars(length(min = 1))]
    invariants: Option<Vec<InvariantDocument>>,
}

/// An agent.
#[derive(JsonSchema)]
#[schemars(rename = "Agent")]
#[expect(dead_code, reason = "says what a suite looks like")]
struct AgentDocument {
    /// Its URL.
    #[schemars(regex(pattern = r"^https?://[a-z0-9.-]+(:[0-9]{1,4})?(/[a-z0-9/_-]*)?$"))]
    endpoint: String,
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

#[derive(Default)]
struct Complaints(Vec<Detail>);

impl Complaints {
    fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.0.push(Detail::at(pointer, detail));
    }

    fn replay(&mut self, tree: &Value) {
        if let Err(errors) = Session::parse("replay", &tree.to_string()) {
            for error in errors {
                self.add(error.pointer, error.message);
            }
        }
    }

    fn suite(&mut self, tree: &Value, trust: &Trust) {
        let Some(suite) = self.map("", tree, "a suite") else {
            return;
        };
        let known: Vec<&str> = SUITE.iter().chain(&SUITE_TOO).copied().collect();
        self.unknown("", suite, &known);
        match suite.get("agent") {
            Some(agent) => self.agent(agent, trust),
            None => self.add(
                "",
                "a suite has an `agent`: where the agent is, and how it is asked",
            ),
        }
        self.prompts(suite.get("golden_prompts"));
        if let Some(invariants) = suite.get("invariants") {
            self.invariants("/invariants", invariants);
        }
        match suite.get("contract") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) => self.name_of_contract(name),
            Some(contract) => self.contract("/contract", contract),
        }
        self.api_key(suite);
        let sessions = suite
            .get("replays")
            .and_then(|replays| replays.get("sessions"));
        for (index, session) in sessions
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .enumerate()
        {
            if session.get("file").is_some() {
                self.file(&format!("/replays/sessions/{index}/file"));
            }
        }
    }

    fn agent(&mut self, agent: &Value, trust: &Trust) {
        let Some(members) = self.map("/agent", agent, "`agent`") else {
            return;
        };
        let kind = members.get("type").map_or(Some("http"), Value::as_str);
        let is_program = match kind {
            Some("http" | "openai") => false,
            Some("command" | "python" | "langchain") => true,
            other => {
                let shown = other.unwrap_or("no text");
                let shown: String = shown.chars().take(40).collect();
                self.add(
                    "/agent/type",
                    format!("`{shown}` is no agent's type; there are http, openai, command, python, langchain"),
                );
                false
            }
        };
        if !trust.may_start_programs() {
            let starts = ["command", "start", "reset_function"];
            let mut starting: Vec<&str> = starts
                .into_iter()
                .filter(|name| members.contains_key(*name))
                .collect();
            if is_program {
                starting.push("type");
            }
            for member in starting {
                self.add(
                    format!("/agent/{member}"),
                    format!(
                        "`agent.{member}` would start a program on the daemon's machine; a document that \
                         arrives by API may do that only with `safety.commands: true` in squall.yaml"
                    ),
                );
            }
        }
        self.variables("/agent", agent, trust);
        if !is_program {
            self.endpoint(members.get("endpoint"), trust);
        }
        let headers = members.get("headers").and_then(Value::as_object);
        for (name, value) in headers.into_iter().flatten() {
            let at = format!("/agent/headers/{}", escaped(name));
            match value.as_str() {
                None => self.add(at, format!("the header `{}` is no text", shortened(name))),
                Some(value) if is_secret_header(name) && !is_one_variable(value) => self.add(
                    at,
                    format!(
                        "`{0}` holds a secret, which is never written into a document; write `{0}: ${{NAME}}` \
                         and list NAME under `api.env` in squall.yaml",
                        shortened(name)
                    ),
                ),
                Some(_) => {}
            }
        }
    }

    /// The daemon's environment is not for documents that arrive by API, but for what the config lists.
    fn variables(&mut self, at: &str, value: &Value, trust: &Trust) {
        match value {
            Value::String(text) => {
                if let Err(error) = trust.variables(|variables| expand(text, variables)) {
                    self.add(at, error);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.variables(&format!("{at}/{index}"), item, trust);
                }
            }
            Value::Object(members) => {
                for (name, value) in members {
                    self.variables(&format!("{at}/{}", escaped(name)), value, trust);
                }
            }
            _ => {}
        }
    }

    fn endpoint(&mut self, endpoint: Option<&Value>, trust: &Trust) {
        let at = "/agent/endpoint";
        let Some(text) = endpoint.and_then(Value::as_str) else {
            self.add(
                at,
                "`agent.endpoint` is the agent's URL, like http://127.0.0.1:8000/invoke",
            );
            return;
        };
        // A variable that cannot be had is complained of elsewhere.
        let Ok(expanded) = trust.variables(|variables| expand(text, variables)) else {
            return;
        };
        let uri: Option<http::Uri> = expanded.parse().ok();
        let is_http = uri.is_some_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        if !is_http {
            let shown = shortened(text);
            self.add(
                at,
                format!(
                    "`{shown}` is no URL of an agent; write one like http://127.0.0.1:8000/invoke"
                ),
            );
        }
    }

    fn prompts(&mut self, prompts: Option<&Value>) {
        let at = "/golden_prompts";
        match prompts.map(Value::as_array) {
            Some(Some(prompts)) if !prompts.is_empty() => {}
            _ => self.add(
                at,
                "`golden_prompts` lists at least one thing to ask the agent",
            ),
        }
    }

    fn contract(&mut self, at: &str, tree: &Value) {
        let Some(contract) = self.map(at, tree, "a contract") else {
            return;
        };
        self.unknown(at, contract, &CONTRACT);
        match contract.get("invariants") {
            Some(invariants) => self.invariants(&format!("{at}/invariants"), invariants),
            None => self.add(at, "a contract has `invariants`: what is demanded"),
        }
        if contract
            .get("chaos_matrix")
            .is_some_and(|matrix| !matrix.is_array())
        {
            self.add(
                format!("{at}/chaos_matrix"),
                "`chaos_matrix` is a list of scenarios",
            );
        }
    }

    fn name_of_contract(&mut self, name: &str) {
        let extension = std::path::Path::new(name).extension();
        let is_yaml = extension.is_some_and(|end| {
            ["yaml", "yml"]
                .iter()
                .any(|known| end.eq_ignore_ascii_case(known))
        });
        let is_file = is_yaml || name.contains(['/', '\\']);
        if is_file {
            self.file("/contract");
        } else if name.is_empty() || name.len() > 64 {
            self.add(
                "/contract",
                "`contract` is the name of a contract, or the contract itself",
            );
        }
    }

    fn invariants(&mut self, at: &str, invariants: &Value) {
        let Some(list) = invariants.as_array().filter(|list| !list.is_empty()) else {
            self.add(at, "`invariants` lists at least one demand");
            return;
        };
        for (index, invariant) in list.iter().enumerate() {
            if invariant.get("type").and_then(Value::as_str).is_none() {
                self.add(format!("{at}/{index}"), "an invariant has a `type`");
            }
        }
    }

    fn api_key(&mut self, suite: &Map<String, Value>) {
        let key = suite.get("model").and_then(|model| model.get("api_key"));
        let is_variable = |key: &Value| key.is_null() || key.as_str().is_some_and(is_one_variable);
        if key.is_some_and(|key| !is_variable(key)) {
            self.add(
                "/model/api_key",
                "`api_key` is a secret, which is never written into a document; write `api_key: ${NAME}` and \
                 list NAME under `api.env` in squall.yaml",
            );
        }
    }

    fn file(&mut self, at: &str) {
        self.add(
            at.to_owned(),
            "this names a file, and the daemon reads none for a document that arrives by API; write what \
             is in it here",
        );
    }

    fn map<'v>(
        &mut self,
        at: &str,
        value: &'v Value,
        what: &str,
    ) -> Option<&'v Map<String, Value>> {
        let map = value.as_object();
        if map.is_none() {
            self.add(at, format!("{what} is a map of fields"));
        }
        map
    }

    fn unknown(&mut self, at: &str, map: &Map<String, Value>, known: &[&str]) {
        for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
            let shown = shortened(name);
            let detail = match nearest(name, known.iter().copied()) {
                Some(near) => format!("unknown field `{shown}`, did you mean `{near}`?"),
                None => format!("unknown field `{shown}`; there are {}", known.join(", ")),
            };
            self.add(format!("{at}/{}", escaped(name)), detail);
        }
    }
}

/// A member's name in a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What is shown of a text that somebody sent.
fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(40).collect()
}
