//! A suite: the file that describes an agent and its invariants.
//!
//! Suites support the format of flakestorm v1 and v2 files. The text is parsed into a tree that keeps every
//! position. Variables are expanded, and each block is read field by field into types. All errors are reported at
//! once, with file, line, column, the value found, the allowed values and the nearest valid name.
//!
//! ```text
//! text ──▶ tree ──▶ variables ──▶ blocks (agent, contract, …) ──▶ Suite, or errors
//!                                                            └──▶ notes: allowed, and odd
//! ```

mod chaos;
mod check;
mod contract;
mod digests;
mod files;
mod machine;
mod replays;
pub mod session;
mod settings;
#[cfg(test)]
mod tests;
mod told;

use std::sync::Arc;

use serde_json::{Map, Value, json};
use squall_documents::{
    self as documents, DocumentError, DocumentReader, Fields, SourceText, ValueReader, Variables,
    describe,
};
use squall_journal::redact::Redactor;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;

pub(crate) use self::check::counted_tool;
pub use self::contract::{Contract, ContractPart, Isolation, Scenario};
use self::files::Laid;
pub use self::files::{Open, escape_variables};
pub use self::machine::{Touched, touched_by_contract};
pub use self::replays::{Replays, SessionSource, SuiteSession};
pub use self::session::ReplaySession;
pub use self::settings::{Advanced, CertificateSettings, Counters, ReportOutput, SuiteTools};
pub use self::told::rule_lines;
use crate::agents::settings::{self as agent, Agent, variables};
use crate::dial::Dialler;
use crate::explore::actions::Exploration;
use crate::explore::actions::settings as explore;
use crate::invariants::{self, Invariant, Prices};
use crate::model::{self, Embeddings, Model};
use crate::mutations::{self, Mutations};
use crate::outside::Outside;
use crate::prompt::{self, Prompt};
use crate::scores::Scoring;

/// One error or warning in a suite: `file:line:column: message`.
pub type SuiteError = DocumentError;

/// An agent and its invariants.
#[derive(Debug)]
pub struct Suite {
    /// The file name that was passed to the reader.
    pub file: Arc<str>,
    /// The text of the suite, variables not expanded.
    pub text: Arc<str>,
    /// The suite's own version. It has no effect. Default `1.0`.
    pub version: String,
    /// The name of its runs; absent: the file name without its extension.
    pub name: Option<String>,
    /// The purpose of the suite.
    pub description: Option<String>,
    /// The agent under test.
    pub agent: Agent,
    /// The model that judges and writes mutations.
    pub model: Option<Model>,
    /// The embeddings that compare texts; `None`: texts are compared by their words.
    pub embeddings: Option<Embeddings>,
    /// How golden prompts are changed; `None`: they are not.
    pub mutations: Option<Mutations>,
    /// The prompts for the agent; empty only if the suite has nothing but replays.
    pub golden_prompts: Vec<Prompt>,
    /// The invariants of every answer; empty only if a contract or replays define what to check.
    pub invariants: Vec<Invariant>,
    /// The chaos of `chaos` and `mutate --chaos` runs.
    pub chaos: Option<Arc<Profile>>,
    /// Invariants × scenarios.
    pub contract: Option<ContractPart>,
    /// Incidents that must not happen again.
    pub replays: Replays,
    /// The weights of the components in the overall score.
    pub scoring: Scoring,
    /// Where reports are written.
    pub output: ReportOutput,
    /// Settings for how runs are executed.
    pub advanced: Advanced,
    /// The contents of certificates for its runs.
    pub certificate: CertificateSettings,
    /// Names for upstreams.
    pub tools: SuiteTools,
    /// An application with state that `explore` searches for failures; `None`: there is none.
    pub explore: Option<Exploration>,
    /// Prices of model tokens.
    pub prices: Prices,
    /// Warnings: settings that are ignored or are probably mistakes, with their positions.
    pub notes: Vec<SuiteError>,
    /// Removes the values of variables from texts.
    pub redactor: Redactor,
}

/// Reads a suite, YAML or JSON. Errors name `file`; `variables` resolves `${VAR}`.
pub fn parse(file: &str, text: &str, variables: Variables<'_>) -> Result<Suite, Vec<SuiteError>> {
    of_files(file, &files::read(file, text, variables, None)?, variables)
}

/// A suite with the files that it names, as the commands read it.
#[derive(Debug)]
pub struct SuiteOfFiles {
    /// The suite.
    pub suite: Suite,
    /// All of it as the single document that the API accepts. Files are embedded and variables are not expanded;
    /// values of set variables are written as `${VAR}` throughout.
    pub document: Value,
    /// The places of its values in the files.
    pub places: SuitePlaces,
}

/// The places of a document's values in the files that it was read from.
#[derive(Debug)]
pub struct SuitePlaces(Laid);

impl SuitePlaces {
    /// `file:line:column` of the value at a JSON pointer into the document, or of its nearest ancestor.
    pub fn find(&self, pointer: &str) -> String {
        let node = self.0.tree.nearest(pointer);
        let (file, position) = self.0.source.place(node.position);
        format!("{file}:{}:{}", position.line, position.column)
    }
}

/// Reads a suite and the files that it names. `sessions` are files that replace the suite's `replays`, if there are
/// any.
pub fn read_local(
    file: &str,
    text: &str,
    variables: Variables<'_>,
    open: Open<'_>,
    sessions: &[String],
) -> Result<SuiteOfFiles, Vec<SuiteError>> {
    let mut laid = files::read(file, text, variables, Some((open, sessions)))?;
    variables::spell_out(&mut laid.tree, variables);
    Ok(SuiteOfFiles {
        suite: of_files(file, &laid, variables)?,
        document: laid.tree.value.to_json(),
        places: SuitePlaces(laid),
    })
}

/// Reads a standalone contract, YAML or JSON: a suite's `contract:` block, in which `name` and `chaos_matrix` are
/// optional. `name` is its default name. Also returns warnings about settings that are ignored or are probably
/// mistakes.
pub fn parse_contract(
    name: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<(Contract, Vec<SuiteError>), Vec<SuiteError>> {
    let mut tree = documents::parse(name, text).map_err(|error| vec![error])?;
    let mut reader = DocumentReader::new(SourceText::new(name, text));
    reader.expand(&mut tree, variables);
    let contract = reader.read(&tree, |value| contract_alone(value, name));
    let (contract, mut notes) = reader.finish(contract)?;
    notes.extend(check::doubts_of_contract(&contract));
    notes.sort_by_key(|note| note.position);
    Ok((contract, notes))
}

fn contract_alone(value: &mut ValueReader<'_, '_>, name: &str) -> Option<Contract> {
    let (library, tools) = (Library::builtin(), ToolNames::default());
    let context = chaos::Context {
        library: &library,
        tools: &tools,
    };
    let what = "a contract: a map with `invariants` and `chaos_matrix`";
    value.fields(what, |fields| contract::alone(fields, context, name))
}

/// The JSON Schema (draft 2020-12) of a suite.
pub fn suite_schema() -> Value {
    describe("Suite", "An agent and what is demanded of it.", root)
}

/// The JSON Schema of a replay session.
pub fn replay_schema() -> Value {
    describe(
        "Replay session",
        "A production incident.",
        session::read_whole,
    )
}

fn of_files(file: &str, laid: &Laid, variables: Variables<'_>) -> Result<Suite, Vec<SuiteError>> {
    let mut tree = laid.tree.clone();
    variables::spell_out(&mut tree, variables);
    let mut reader = DocumentReader::new(laid.source.clone());
    reader.expand(&mut tree, variables);
    let suite = reader.read(&tree, root);
    let secret = reader.expanded();
    let (suite, mut notes) = match reader.finish(suite) {
        Ok(read) if !laid.lacks_files() => read,
        Ok(_) => return Err(laid.and_unread(Vec::new())),
        Err(errors) => return Err(laid.and_unread(errors)),
    };
    let doubts = check::doubts(&suite).into_iter();
    notes.extend(doubts.map(|doubt| laid.source.placed(doubt)));
    notes.sort_by_key(|note| note.position);
    Ok(Suite {
        file: file.into(),
        text: laid.source.text().into(),
        notes,
        redactor: Redactor::with_values(secret.values().map(str::to_owned)),
        ..suite
    })
}

fn root(value: &mut ValueReader<'_, '_>) -> Option<Suite> {
    let what = "a map with `agent`, `golden_prompts` and `invariants`";
    value.fields(what, read)
}

fn read(fields: &mut Fields<'_, '_>) -> Option<Suite> {
    let library = Library::builtin();
    let about = "Of the file's own; nothing depends on it.";
    let version = fields.text("version", about);
    let name = fields.name("name", "Name of its runs; default: the file's name.");
    let description = fields.text("description", "What the suite is for.");
    let tools = settings::tools(fields);
    let context = chaos::Context {
        library: &library,
        tools: &tools.names,
    };
    let has_agent = has_agent(fields);
    let agent = fields.field("agent", "The agent under test.", |value| {
        value.named("Agent", |value| {
            value.fields("a map with `endpoint`", agent::read)
        })
    });
    let model = model(fields);
    let what = "a map with `name` and `base_url`";
    let about = "An endpoint of embeddings, by which texts are compared.";
    let embeddings = fields.block("embeddings", about, what, model::embeddings::read);
    let settings = "a map of settings";
    let about = "How golden prompts are changed.";
    let mutations = fields.block("mutations", about, settings, |fields| {
        Some(mutations::settings::read(fields))
    });
    let golden_prompts = prompt::read(fields, "golden_prompts", "What the agent is asked.");
    let invariants = invariants::read(fields, "What must hold.", false);
    let chaos = fields.field("chaos", "Chaos of `squall chaos`.", |value| {
        chaos::read(value, context)
    });
    let matrix = fields.field("chaos_matrix", "A contract's scenarios.", |value| {
        contract::scenarios(value, context)
    });
    let about = "Invariants × scenarios, or the name or file of them.";
    let contract = fields.field("contract", about, |value| {
        contract::read(value, context, matrix)
    });
    let about = "Incidents that must not happen again.";
    let what = "a map with `sessions` or `sources`";
    let replays = fields.block("replays", about, what, |fields| {
        Some(replays::read(fields, context))
    });
    let about = "Weights of the parts of the overall score; together 1.";
    let scoring = fields.field("scoring", about, settings::scoring);
    let output = fields.block("output", "Where reports go.", settings, |fields| {
        Some(settings::output(fields))
    });
    let mut output = output.unwrap_or_default();
    let advanced = fields.block("advanced", "How runs are made.", settings, |fields| {
        Some(settings::advanced(fields, &mut output))
    });
    let what = "a map with `tester_name`, `pass_threshold` and `output_format`";
    let about = "What certificates of runs say.";
    let certificate = fields.block("certificate", about, what, |fields| {
        Some(settings::certificate(fields))
    });
    let about = "An application with state, for `squall explore`.";
    let what = "a map with `base_url`, `actions` and `anomalies`";
    let explore = fields.block("explore", about, what, explore::read);
    let prices = prices(fields, mutations.as_ref());
    if has_agent {
        demanded(fields);
    }
    if let (Some(agent), Some(prompts)) = (&agent, &golden_prompts) {
        check::template(fields, agent, prompts);
    }
    let of_contracts = contract
        .iter()
        .chain(replays.iter().flat_map(Replays::contracts));
    let of_contracts = of_contracts.flat_map(ContractPart::invariants);
    judged_by_a_model(fields, invariants.iter().flatten().chain(of_contracts));
    Some(Suite {
        file: "".into(),
        text: "".into(),
        version: version.map_or_else(|| "1.0".to_owned(), |version| version.value),
        name: name.map(|name| name.value),
        description: description.map(|text| text.value),
        agent: if has_agent { agent? } else { Agent::absent() },
        model,
        embeddings,
        mutations,
        golden_prompts: golden_prompts.unwrap_or_default(),
        invariants: invariants.unwrap_or_default(),
        chaos,
        contract,
        replays: replays.unwrap_or_default(),
        scoring: scoring.unwrap_or_default(),
        output,
        advanced: advanced.unwrap_or_default(),
        certificate: certificate.unwrap_or_default(),
        tools,
        explore,
        prices,
        notes: Vec::new(),
        redactor: Redactor::default(),
    })
}

/// What an agent is for. A suite with none of it may explore an application without an agent.
const OF_AGENTS: [&str; 6] = [
    "agent",
    "golden_prompts",
    "invariants",
    "contract",
    "replays",
    "mutations",
];

/// Whether the suite has an agent, which is required unless it only explores an application.
fn has_agent(fields: &mut Fields<'_, '_>) -> bool {
    let only_explores = fields.has("explore") && !OF_AGENTS.iter().any(|name| fields.has(name));
    if !only_explores && !fields.has("agent") && !fields.reader.is_describing() {
        let what = "how the agent is reached: `agent: {endpoint: http://localhost:8000/invoke}`";
        fields.missing("agent", what);
    }
    fields.add_to_schema(|| {
        let either = json!([{ "required": ["agent"] }, { "required": ["explore"] }]);
        Map::from_iter([("anyOf".to_owned(), either)])
    });
    !only_explores
}

/// Reads `model:`, which some of flakestorm's documents call `llm:`.
fn model(fields: &mut Fields<'_, '_>) -> Option<Model> {
    let mut read = |name, about| {
        fields.field(name, about, |value| {
            value.named("Model", |value| {
                value.fields("a map with `provider` and `name`", model::settings::read)
            })
        })
    };
    let model = read("model", "The model that writes mutations and judges.");
    let other = read("llm", "The same as `model`.");
    if fields.has("model") && fields.has("llm") {
        fields.error(
            "llm",
            "`llm` is another word for `model`, which stands here too; keep one",
        );
    }
    model.or(other)
}

impl Suite {
    /// The contract, unless it is one that the daemon stores.
    pub fn written_contract(&self) -> Option<&Contract> {
        match &self.contract {
            Some(ContractPart::Written(contract)) => Some(contract),
            Some(ContractPart::Named(_)) | None => None,
        }
    }

    /// The scenarios of the written contract.
    pub fn scenarios(&self) -> &[Scenario] {
        let contract = self.written_contract();
        contract.map_or(&[], |contract| &contract.scenarios)
    }

    /// The external services that the suite names, reached through this dialler.
    pub(crate) fn outside(&self, dialler: Dialler) -> Outside<'_> {
        Outside::new(self.model.as_ref(), self.embeddings.as_ref(), dialler)
    }

    /// Whether the suite's model judges an invariant of the suite or of its contract.
    pub(crate) fn is_judged_by_model(&self) -> bool {
        let contracts = self.contract.iter().chain(self.replays.contracts());
        let of_contracts = contracts.flat_map(ContractPart::invariants);
        let mut all = self.invariants.iter().chain(of_contracts);
        all.any(|invariant| invariant.check.needs_model)
    }
}

/// Reports an error if an invariant needs a judge model and the suite has none.
fn judged_by_a_model<'i>(
    fields: &mut Fields<'_, '_>,
    invariants: impl Iterator<Item = &'i Invariant>,
) {
    if fields.has("model") || fields.has("llm") {
        return;
    }
    for invariant in invariants.filter(|invariant| invariant.check.needs_model) {
        let message = format!(
            "`{}` is judged by the suite's model, and there is none; write `model: {{provider: openai, \
             name: gpt-4o-mini, api_key: ${{OPENAI_API_KEY}}}}`",
            invariant.id
        );
        let place = &invariant.place;
        let error = |reader: &mut DocumentReader| reader.error(place.position, message);
        fields.reader.below_pointer(&place.pointer, error);
    }
}

/// Reads `prices:`, which a budget of search in dollars needs.
fn prices(fields: &mut Fields<'_, '_>, mutations: Option<&Mutations>) -> Prices {
    let prices = invariants::prices::read(fields);
    let search = mutations.and_then(|one| one.search.as_ref());
    let has_budget = search.is_some_and(|search| search.dollars.is_some());
    if !has_budget || !prices.is_empty() {
        return prices;
    }
    let mutations = fields.node("mutations");
    let position = mutations.map_or(fields.position, |mutations| {
        mutations.nearest("/search/dollars").position
    });
    let message = "a budget in dollars needs the suite's `prices`; write `prices: {gpt-4o-mini: {input: 0.15, \
                   output: 0.6}}`, or use `invocations`";
    let error = |reader: &mut DocumentReader| reader.error(position, message);
    let at = "/mutations/search/dollars";
    fields.reader.below_pointer(at, error);
    prices
}

/// Reports an error if a suite has no prompts or no invariants.
fn demanded(fields: &mut Fields<'_, '_>) {
    let replays = fields.has("replays");
    if !fields.has("golden_prompts") && !replays {
        fields.missing("golden_prompts", "what the agent is asked, a list of texts");
    }
    if !fields.has("invariants") && !fields.has("contract") && !replays {
        fields.missing("invariants", "what must hold of the answers, a list");
    }
    if fields.has("chaos_matrix") && !fields.has("contract") {
        let message = "`chaos_matrix` belongs to a contract, and there is none; write `contract:` \
                       with `name` and `invariants`";
        fields.error("chaos_matrix", message);
    }
}
