//! A suite: the file that describes an agent and what is demanded of it.
//!
//! A flakestorm v1 or v2 file is one. The text is read as a tree that keeps every place; variables are
//! expanded; each block is then read field by field into types, and everything that makes no sense is
//! said at once, with file, line, column, what was found, what is allowed, and the nearest valid name.
//!
//! ```text
//! text ──▶ tree ──▶ variables ──▶ blocks (agent, contract, …) ──▶ Suite, or errors
//!                                                            └──▶ notes: allowed, and odd
//! ```

pub mod agent;
mod chaos;
mod check;
mod contract;
mod embeddings;
mod files;
mod headers;
mod machine;
mod model;
mod mutations;
mod prompts;
pub mod reader;
mod replays;
mod schema;
mod settings;
#[cfg(test)]
mod tests;
mod told;
mod variables;

use std::sync::Arc;

use serde_json::Value;
use squall_profiles::document::{self, At, Tree};
use squall_profiles::error::ProfileError;
use squall_profiles::library::Library;
use squall_profiles::profile::Profile;
use squall_profiles::tools::ToolNames;
use squall_profiles::variables::{Expanded, Variables};

pub use self::agent::{Agent, Way};
pub use self::contract::{Active, Contract, ContractPart, Isolation, Scenario};
pub use self::embeddings::Embeddings;
use self::files::Laid;
pub use self::files::Open;
pub use self::machine::{Touched, touched_by_contract};
pub use self::model::{Model, Provider};
pub use self::mutations::{MutationType, Mutations};
pub use self::prompts::Prompt;
pub(crate) use self::prompts::read as read_prompts;
use self::reader::{Fields, Reader};
pub use self::replays::{Filter, FilterStatus, ReplaySession, Replays, Session, Source};
pub use self::schema::{replay_schema, suite_schema};
pub use self::settings::{
    Advanced, Certificate, Counters, Format, Output, Price, Prices, Scoring, Tools,
};
pub(crate) use self::told::told_members;
pub use self::told::told_rules;
use crate::invariants::{self, Invariant};

/// One thing wrong with a suite, or only odd: `file:line:column: message`.
pub type SuiteError = ProfileError;

/// An agent and what is demanded of it.
#[derive(Debug)]
pub struct Suite {
    /// The file as it was named when it was read.
    pub file: Arc<str>,
    /// The text it was read from, variables not expanded.
    pub text: Arc<str>,
    /// What it says of its own version; nothing hangs on it. Default `1.0`.
    pub version: String,
    /// What runs of it are called; absent: the file's name without its ending.
    pub name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The agent under test.
    pub agent: Agent,
    /// The model that writes mutations and judges.
    pub model: Option<Model>,
    /// By what texts are compared; `None`: by their words.
    pub embeddings: Option<Embeddings>,
    /// How golden prompts are changed.
    pub mutations: Mutations,
    /// Whether the suite says how; otherwise it asks for none.
    pub mutates: bool,
    /// What the agent is asked; empty only where replays are all there is.
    pub golden_prompts: Vec<Prompt>,
    /// What must hold of every answer; empty only where a contract or replays say it.
    pub invariants: Vec<Invariant>,
    /// Chaos of `chaos` and `mutate --chaos` runs.
    pub chaos: Option<Arc<Profile>>,
    /// Invariants × scenarios.
    pub contract: Option<ContractPart>,
    /// Incidents that must not happen again.
    pub replays: Replays,
    /// What the components of the overall score count.
    pub scoring: Scoring,
    /// Where reports go.
    pub output: Output,
    /// How runs go about it.
    pub advanced: Advanced,
    /// What certificates of its runs say.
    pub certificate: settings::Certificate,
    /// Names for upstreams.
    pub tools: Tools,
    /// What models' tokens cost.
    pub prices: Prices,
    /// What is allowed and changes nothing, or surely is not meant, each with its place.
    pub notes: Vec<SuiteError>,
    /// What variables stood for: never to be shown.
    pub expanded: Expanded,
}

/// Reads a suite, YAML or JSON. `file` is named in errors; `variables` says what `${VAR}` stands for.
pub fn parse(file: &str, text: &str, variables: Variables<'_>) -> Result<Suite, Vec<SuiteError>> {
    let (laid, written) = files::read(file, text, variables, None)?;
    parse_tree(file, &laid, &written, variables)
}

/// The same with the files that it names, and the whole as the one document that the API takes: files in
/// the places of their names, variables not expanded, and those that are set written as `${VAR}` throughout.
pub fn read_local(
    file: &str,
    text: &str,
    variables: Variables<'_>,
    open: Open<'_>,
) -> Result<(Suite, Value), Vec<SuiteError>> {
    let (laid, mut written) = files::read(file, text, variables, Some(open))?;
    let suite = parse_tree(file, &laid, &written, variables)?;
    variables::spell_out(&mut written, variables);
    Ok((suite, written.value.to_json()))
}

/// Reads a contract that stands by itself, YAML or JSON: a suite's `contract:` block, whose `name` and
/// `chaos_matrix` may be left out. `name` is what it is called then. With it comes what is allowed and changes
/// nothing, or surely is not meant.
pub fn parse_contract(
    name: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<(Contract, Vec<SuiteError>), Vec<SuiteError>> {
    let library = Library::builtin();
    let tools = ToolNames::default();
    let written = document::read(name, text).map_err(|error| vec![error])?;
    let what = "a contract: a map with `invariants` and `chaos_matrix`";
    let read = read((name, text), &written, variables, what, |fields| {
        let context = chaos::Context {
            variables,
            library: &library,
            tools: &tools,
            written: &written,
            laid: &Laid::alone(name, text),
        };
        contract::alone(fields, context, name)
    })?;
    let mut notes = read.notes;
    notes.extend(check::doubts_of_contract(&read.value));
    notes.sort_by_key(|note| note.position);
    Ok((read.value, notes))
}

fn parse_tree(
    file: &str,
    laid: &Laid,
    written: &At<Tree>,
    variables: Variables<'_>,
) -> Result<Suite, Vec<SuiteError>> {
    let library = Library::builtin();
    let what = "a map with `agent`, `golden_prompts` and `invariants`";
    let read = read((file, &laid.text), written, variables, what, |fields| {
        root(fields, written, laid, &library, variables)
    });
    let read = match read {
        Ok(read) if !laid.lacks_files() => read,
        Ok(_) => return Err(laid.all_led_back(Vec::new())),
        Err(errors) => return Err(laid.all_led_back(errors)),
    };
    let mut notes = read.notes;
    notes.extend(check::doubts(&read.value));
    notes.sort_by_key(|note| note.position);
    Ok(Suite {
        file: file.into(),
        text: laid.text.as_str().into(),
        notes: notes.into_iter().map(|note| laid.led_back(note)).collect(),
        expanded: read.expanded,
        ..read.value
    })
}

/// What was read, and what was noticed.
struct Read<T> {
    value: T,
    notes: Vec<SuiteError>,
    expanded: Expanded,
}

fn read<T>(
    (file, text): (&str, &str),
    written: &At<Tree>,
    variables: Variables<'_>,
    what: &str,
    root: impl FnOnce(&mut Fields<'_, '_, '_>) -> Option<T>,
) -> Result<Read<T>, Vec<SuiteError>> {
    let mut reader = Reader::new(file, text, variables::places(written));
    let mut tree = written.clone();
    let expanded = variables::expand(&mut reader, &mut tree, variables);
    reader.redactor = expanded.redactor();
    let value = reader.fields(&tree, what, root);
    let mut errors = std::mem::take(&mut reader.errors);
    errors.sort_by_key(|error| error.position);
    errors.dedup();
    match value.flatten() {
        Some(value) if errors.is_empty() => Ok(Read {
            value,
            notes: reader.notes,
            expanded,
        }),
        _ => Err(errors),
    }
}

fn root(
    fields: &mut Fields<'_, '_, '_>,
    written: &At<Tree>,
    laid: &Laid,
    library: &Library,
    variables: Variables<'_>,
) -> Option<Suite> {
    let version = fields.text("version").map(|text| text.value);
    let name = fields.name("name").map(|name| name.value);
    let description = fields.text("description").map(|text| text.value);
    let tools = settings::tools(fields);
    let context = chaos::Context {
        variables,
        library,
        tools: &tools.names,
        written,
        laid,
    };
    if !fields.has("agent") {
        fields.missing(
            "agent",
            "how the agent is reached: `agent: {endpoint: http://localhost:8000/invoke}`",
        );
    }
    let agent = fields.read("agent", |reader, node| {
        reader.fields(node, "a map with `endpoint`", agent::read)?
    });
    let model = model(fields);
    let embeddings = fields.read("embeddings", |reader, node| {
        reader.fields(node, "a map with `name` and `base_url`", embeddings::read)?
    });
    let mutations = fields.read("mutations", |reader, node| {
        reader.fields(node, "a map of settings", mutations::read)
    });
    let golden_prompts = prompts::read(fields, "golden_prompts");
    let invariants = invariants::read(fields, false);
    let chaos = fields.read("chaos", |reader, node| chaos::read(reader, node, context));
    let matrix = fields.read("chaos_matrix", |reader, node| {
        contract::scenarios(reader, node, context)
    });
    let contract = fields.read("contract", |reader, node| {
        contract::read(reader, node, context, matrix.as_ref())
    });
    let replays = fields.read("replays", |reader, node| {
        reader.fields(node, "a map with `sessions` or `sources`", replays::read)
    });
    let scoring = fields.read("scoring", settings::scoring);
    let output = fields.read("output", |reader, node| {
        reader.fields(node, "a map of settings", settings::output)
    });
    let mut output = output.unwrap_or_default();
    let advanced = fields.read("advanced", |reader, node| {
        reader.fields(node, "a map of settings", |fields| {
            settings::advanced(fields, &mut output)
        })
    });
    let certificate = settings::certificate(fields);
    let prices = settings::prices(fields);
    demanded(fields, has_replays(written));
    if let (Some(agent), Some(prompts)) = (&agent, &golden_prompts) {
        check::template(fields, written, agent, prompts);
    }
    if let Some(replays) = &replays {
        check::contracts_of_sessions(fields, written, contract.as_ref(), replays);
    }
    let of_contract = match &contract {
        Some(ContractPart::Written(contract)) => &contract.invariants[..],
        Some(ContractPart::Named(_)) | None => &[],
    };
    judged_by_a_model(fields, invariants.iter().flatten().chain(of_contract));
    Some(Suite {
        file: "".into(),
        text: "".into(),
        version: version.unwrap_or_else(|| "1.0".to_owned()),
        name,
        description,
        agent: agent?,
        model,
        embeddings,
        mutates: mutations.is_some(),
        mutations: mutations.unwrap_or_default(),
        golden_prompts: golden_prompts.unwrap_or_default(),
        invariants: invariants.unwrap_or_default(),
        chaos,
        contract,
        replays: replays.unwrap_or_default(),
        scoring: scoring.unwrap_or_default(),
        output,
        advanced: advanced.unwrap_or_default(),
        certificate,
        tools,
        prices,
        notes: Vec::new(),
        expanded: Expanded::default(),
    })
}

/// `model:`, which some of flakestorm's documents call `llm:`.
fn model(fields: &mut Fields<'_, '_, '_>) -> Option<Model> {
    let mut read = |name| {
        fields.read(name, |reader, node| {
            reader.fields(node, "a map with `provider` and `name`", model::read)?
        })
    };
    let (model, other) = (read("model"), read("llm"));
    if fields.has("model") && fields.has("llm") {
        fields.error(
            "llm",
            "`llm` is another word for `model`, which stands here too; keep one",
        );
    }
    model.or(other)
}

impl Suite {
    /// Whether an invariant, of the suite or of its contract, is judged by the suite's model.
    pub(crate) fn is_judged_by_model(&self) -> bool {
        let of_contract = match &self.contract {
            Some(ContractPart::Written(contract)) => &contract.invariants[..],
            Some(ContractPart::Named(_)) | None => &[],
        };
        let mut all = self.invariants.iter().chain(of_contract);
        all.any(|invariant| invariant.check.needs_model())
    }
}

/// What a model judges needs one.
fn judged_by_a_model<'i>(
    fields: &mut Fields<'_, '_, '_>,
    invariants: impl Iterator<Item = &'i Invariant>,
) {
    if fields.has("model") || fields.has("llm") {
        return;
    }
    for invariant in invariants.filter(|invariant| invariant.check.needs_model()) {
        let message = format!(
            "`{}` is judged by the suite's model, and there is none; write `model: {{provider: openai, \
             name: gpt-4o-mini, api_key: ${{OPENAI_API_KEY}}}}`",
            invariant.id
        );
        let error = invariant.place.error(message);
        fields.reader.errors.push(error);
    }
}

/// Whether incidents, or where more come from, are written, whatever may be wrong with them.
fn has_replays(written: &At<Tree>) -> bool {
    let lists = ["/replays/sessions", "/replays/sources"];
    let mut lists = lists.iter().map(|list| written.nearest(list));
    lists.any(|list| matches!(&list.value, Tree::List(items) if !items.is_empty()))
}

/// A suite asks something and demands something.
fn demanded(fields: &mut Fields<'_, '_, '_>, replays: bool) {
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
