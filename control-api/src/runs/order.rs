//! What is asked for with `POST /v1/runs`.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use squall_harness::runner::Trial;
use squall_harness::suite::{Active, ContractPart, Suite};
use squall_journal::reach::Rules;
use squall_journal::run::{DocumentVersion, RunKind, RunRecord};
use squall_profiles::library::{Library, Source};
use squall_profiles::profile::Profile;

use super::{demands, documents};
use crate::ApiState;
use crate::access::Caller;
use crate::document;
use crate::nearest::nearest;
use crate::problem::{Detail, Problem};
use crate::store::{self, DEFAULT_WORKSPACE, DocumentKind};
use crate::stored_documents::Collection;
use crate::trust::Sent;

const MEMBERS: [&str; 5] = ["kind", "suite", "suite_name", "secrets", "options"];

const OPTIONS: [&str; 9] = [
    "seed",
    "concurrency",
    "strict",
    "profile",
    "min_score",
    "repeat",
    "baseline",
    "fail_on",
    "contract",
];

/// What a run is asked for with.
#[derive(JsonSchema)]
#[schemars(rename = "RunRequest", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a run is asked for with")]
pub(crate) struct RunRequest {
    /// What it tries; this version runs `chaos`, `contract`, `ci` and `verify`.
    kind: RunKind,
    /// The suite itself, or `suite_name`.
    suite: Option<documents::SuiteDocument>,
    /// The name of a suite that was put, or `suite`.
    suite_name: Option<String>,
    /// Variables that the suite may name as `${NAME}`, and what they stand for: never stored, logged or
    /// returned.
    secrets: Option<BTreeMap<String, String>>,
    /// How it is tried.
    options: Option<OptionsRequest>,
}

/// How a run is tried.
#[derive(JsonSchema)]
#[schemars(rename = "RunOptions", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a run is asked for with")]
struct OptionsRequest {
    /// Seed of every draw; the daemon's if absent.
    seed: Option<u64>,
    /// Askings of the agent at once.
    #[schemars(range(min = 1, max = 100))]
    concurrency: Option<u64>,
    /// Whether a single cell that proves nothing makes the run inconclusive.
    strict: Option<bool>,
    /// The profile, in the place of the suite's `chaos`.
    profile: Option<String>,
    /// The score to reach: 0 to 100, or a share up to 1.
    #[schemars(range(min = 0, max = 100))]
    min_score: Option<f64>,
    /// How often everything is done.
    #[schemars(range(min = 1, max = 100))]
    repeat: Option<u64>,
    /// The run to compare with: its id, or the run itself, as `GET /v1/runs/{id}` and reports have it.
    baseline: Option<Baseline>,
    /// What else fails the run: `regression`, where it is worse than `baseline`.
    fail_on: Option<FailOn>,
    /// The contract, in the place of the suite's own.
    contract: Option<String>,
}

/// What fails a run, beside what is demanded of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailOn {
    /// A cell fails that did not in the baseline, or the score is lower.
    Regression,
}

/// The run to compare with.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(untagged)]
enum Baseline {
    /// The id of one that the store has.
    Id(String),
    /// One that another store had.
    Run(Arc<RunRecord>),
}

impl Baseline {
    fn read(given: &Value) -> Option<Self> {
        match given {
            Value::String(id) if !id.is_empty() => Some(Self::Id(id.clone())),
            Value::Object(_) => RunRecord::deserialize(given)
                .ok()
                .map(Arc::new)
                .map(Self::Run),
            _ => None,
        }
    }
}

/// What was asked for, read and looked up.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) kind: RunKind,
    pub(crate) name: String,
    pub(crate) suite: Arc<Suite>,
    pub(crate) chaos: Option<Trial>,
    pub(crate) documents: Vec<DocumentVersion>,
    pub(crate) baseline: Option<Arc<RunRecord>>,
    pub(crate) options: Options,
}

/// How it is to be tried.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) concurrency: Option<NonZeroUsize>,
    pub(crate) strict: Option<bool>,
    pub(crate) profile: Option<String>,
    /// 0 to 100.
    pub(crate) min_score: Option<f64>,
    pub(crate) repeat: Option<u64>,
    baseline: Option<Baseline>,
    pub(crate) fail_on: Option<FailOn>,
    contract: Option<String>,
}

/// What the chaos of a suite is called in reports.
const CHAOS: &str = "chaos";

/// Reads what was posted, and looks up the documents that it names.
pub(crate) async fn read(
    state: &ApiState,
    caller: &Caller,
    posted: &Value,
) -> Result<Wish, Problem> {
    let mut reading = Reading {
        state,
        workspace: caller.workspace(),
        wrong: Vec::new(),
        documents: Vec::new(),
    };
    let Some(members) = posted.as_object() else {
        let detail = "the document must be an object, like {\"kind\": \"chaos\", \"suite_name\": \"checkout\"}";
        return Err(Problem::invalid(vec![Detail::at("", detail)]));
    };
    reading.unknown("", members, &MEMBERS);
    let kind = reading.kind(members);
    let options = reading.options(members.get("options"));
    let sent = reading.secrets(members.get("secrets"));
    let suite = reading.suite(members).await?;
    let suite = match suite {
        Some((name, suite)) => reading.read(name, suite, &options, &sent).await?,
        None => None,
    };
    let baseline = reading.baseline(&options).await?;
    let suite_chaos = suite.as_ref().and_then(|(_, suite)| suite.chaos.as_ref());
    let suite_chaos = suite_chaos.map(|chaos| Trial::of(CHAOS, chaos));
    let chaos = match &options.profile {
        Some(name) => reading.profile(name),
        None => suite_chaos,
    };
    if let Some((_, suite)) = &suite {
        reading.extended(suite, options.profile.is_some());
    }
    match (kind, suite) {
        (Some(kind), Some((name, suite))) if reading.wrong.is_empty() => Ok(Wish {
            kind,
            name,
            suite: Arc::new(suite),
            chaos,
            documents: reading.documents,
            baseline,
            options,
        }),
        _ => Err(Problem::invalid(reading.wrong)),
    }
}

struct Reading<'a> {
    state: &'a ApiState,
    workspace: &'a str,
    wrong: Vec<Detail>,
    documents: Vec<DocumentVersion>,
}

impl Reading<'_> {
    fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.wrong.push(Detail::at(pointer, detail));
    }

    fn unknown(&mut self, at: &str, members: &Map<String, Value>, known: &[&str]) {
        for name in members
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
        {
            let shown: String = name.chars().take(40).collect();
            let detail = match nearest(name, known.iter().copied()) {
                Some(near) => format!("unknown field `{shown}`, did you mean `{near}`?"),
                None => format!("unknown field `{shown}`; there are {}", known.join(", ")),
            };
            let escaped = name.replace('~', "~0").replace('/', "~1");
            self.add(format!("{at}/{escaped}"), detail);
        }
    }

    fn kind(&mut self, members: &Map<String, Value>) -> Option<RunKind> {
        let given = members
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let kind = RunKind::parse(given);
        if kind.is_none() {
            let all: Vec<_> = RunKind::ALL.into_iter().map(RunKind::as_str).collect();
            self.add("/kind", format!("`kind` is one of {}", all.join(", ")));
        }
        kind
    }

    fn options(&mut self, given: Option<&Value>) -> Options {
        let empty = Map::new();
        let members = match given {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(members)) => members,
            Some(_) => {
                self.add("/options", "`options` is a map of fields");
                &empty
            }
        };
        self.unknown("/options", members, &OPTIONS);
        let few = |value: &Value| value.as_u64().filter(|few| (1..=100).contains(few));
        let name = |value: &Value| {
            value
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
        };
        let score = |value: &Value| {
            let score = value
                .as_f64()
                .filter(|score| (0.0..=100.0).contains(score))?;
            // A share of up to 1 is one of 100.
            Some(if score <= 1.0 { score * 100.0 } else { score })
        };
        let a_run = "the id of a run, or a run as the API and reports have it";
        let seed = "a whole number from 0 to 18446744073709551615";
        Options {
            seed: self.option(members, "seed", seed, Value::as_u64),
            concurrency: self
                .option(members, "concurrency", "a number from 1 to 100", few)
                .and_then(|few| NonZeroUsize::new(usize::try_from(few).ok()?)),
            strict: self.option(members, "strict", "true or false", Value::as_bool),
            profile: self.option(members, "profile", "the name of a profile", name),
            min_score: self.option(members, "min_score", "a number from 0 to 100", score),
            repeat: self.option(members, "repeat", "a number from 1 to 100", few),
            baseline: self.option(members, "baseline", a_run, Baseline::read),
            fail_on: self.option(members, "fail_on", "`regression`", |value| {
                serde_json::from_value(value.clone()).ok()
            }),
            contract: self.option(members, "contract", "the name of a contract", name),
        }
    }

    fn option<T>(
        &mut self,
        members: &Map<String, Value>,
        name: &str,
        expected: &str,
        read: impl FnOnce(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = members.get(name).filter(|value| !value.is_null())?;
        let read = read(value);
        if read.is_none() {
            let shown: String = value.to_string().chars().take(40).collect();
            self.add(
                format!("/options/{name}"),
                format!("`{name}` is {shown}; it must be {expected}"),
            );
        }
        read
    }

    /// Variables that were sent with the suite.
    fn secrets(&mut self, given: Option<&Value>) -> Sent {
        Sent::read(given).unwrap_or_else(|wrong| {
            self.add("/secrets", wrong);
            Sent::default()
        })
    }

    /// The suite as a document, and its name.
    async fn suite(
        &mut self,
        members: &Map<String, Value>,
    ) -> Result<Option<(String, Value)>, Problem> {
        let given = |name: &str| members.get(name).filter(|value| !value.is_null());
        match (given("suite"), given("suite_name")) {
            (Some(suite), None) => {
                let name = suite["name"].as_str().unwrap_or("inline");
                let name: String = name.chars().take(64).collect();
                self.note("suite", &name, None, &suite.to_string());
                self.note_own_version(suite);
                return Ok(Some((name, suite.clone())));
            }
            (None, Some(Value::String(name))) => {
                if let Some(suite) = self.stored(DocumentKind::Suite, name).await? {
                    return Ok(Some((name.clone(), suite)));
                }
                let shown: String = name.chars().take(64).collect();
                self.add("/suite_name", format!("there is no suite `{shown}`"));
            }
            (None, Some(_)) => self.add("/suite_name", "`suite_name` is the name of a suite"),
            (Some(_), Some(_)) => {
                self.add("/suite_name", "give `suite` or `suite_name`, not both");
            }
            (None, None) => self.add(
                "",
                "give `suite`, the suite itself, or `suite_name`, the name of one that was put",
            ),
        }
        Ok(None)
    }

    /// The suite as it is run, with the contract in it that it or the order names.
    async fn read(
        &mut self,
        name: String,
        mut suite: Value,
        options: &Options,
        sent: &Sent,
    ) -> Result<Option<(String, Suite)>, Problem> {
        let own = suite.get("contract").and_then(Value::as_str);
        let named = match (&options.contract, own) {
            (Some(name), _) => Some((name.clone(), "/options/contract")),
            (None, Some(name)) => Some((name.to_owned(), "/suite/contract")),
            (None, None) => None,
        };
        if let Some((contract, at)) = named
            && let Some(members) = suite.as_object_mut()
        {
            match self.contract(&contract, at).await? {
                Some(contract) => drop(members.insert("contract".to_owned(), contract)),
                // What else is wrong with the suite is told too.
                None => drop(members.insert("contract".to_owned(), Value::String(contract))),
            }
        }
        match demands::suite(&name, &suite, sent, &self.state.trust) {
            Ok(suite) => Ok(Some((name, suite))),
            Err(wrong) => {
                self.wrong.extend(wrong);
                Ok(None)
            }
        }
    }

    /// A contract that was put, under the name it was put as unless it has one of its own.
    async fn contract(&mut self, name: &str, at: &str) -> Result<Option<Value>, Problem> {
        let Some(mut contract) = self.stored(DocumentKind::Contract, name).await? else {
            let shown: String = name.chars().take(64).collect();
            self.add(
                at,
                format!(
                    "there is no contract `{shown}`; write it here in the place of its name, or put it under \
                     /v1/contracts first; the commands also take a file, as in `./contract.yaml`"
                ),
            );
            return Ok(None);
        };
        if let Some(members) = contract.as_object_mut() {
            let own = members.entry("name").or_insert(Value::Null);
            if own.is_null() {
                *own = json!(name);
            }
        }
        Ok(Some(contract))
    }

    /// The run to compare with.
    async fn baseline(&mut self, options: &Options) -> Result<Option<Arc<RunRecord>>, Problem> {
        let (id, found) = match &options.baseline {
            None => return Ok(None),
            Some(Baseline::Run(run)) => (&run.id, Some(RunRecord::clone(run))),
            Some(Baseline::Id(id)) => {
                let found = self.state.runs.find(self.workspace, id).await;
                (id, found.map_err(|error| Problem::store(&error))?)
            }
        };
        let shown: String = id.chars().take(40).collect();
        match found {
            Some(run) if run.state.is_over() => return Ok(Some(Arc::new(run))),
            Some(run) => self.add(
                "/options/baseline",
                format!(
                    "the run `{shown}` is {}; there is nothing to compare with yet",
                    run.state.as_str()
                ),
            ),
            None => self.add("/options/baseline", format!("there is no run `{shown}`")),
        }
        Ok(None)
    }

    /// What the suite's chaos extends is there. A profile that is asked for stands in the place of `chaos`.
    fn extended(&mut self, suite: &Suite, names_profile: bool) {
        let contract = match &suite.contract {
            Some(ContractPart::Written(contract)) => &contract.scenarios[..],
            Some(ContractPart::Named(_)) | None => &[],
        };
        let scenarios = contract.iter().enumerate().map(|(number, scenario)| {
            let at = format!("/suite/contract/chaos_matrix/{number}");
            (at, &scenario.chaos)
        });
        let own = suite.chaos.iter().filter(|_| !names_profile);
        let own = own.map(|chaos| ("/suite/chaos".to_owned(), chaos));
        let library = self.library();
        for (at, chaos) in scenarios.chain(own) {
            // Without its name: it may be called as what it extends.
            let mut nameless = Profile::clone(chaos);
            nameless.name = None;
            if nameless.extends.is_empty() {
                continue;
            }
            if let Err(error) = library.rule_set_of(&nameless, &suite.tools.names) {
                self.add(format!("{at}{}", error.pointer), error.message);
            }
            self.note_extended(&library, &nameless);
        }
    }

    /// The profiles that there are for the caller.
    fn library(&self) -> Library {
        match self.workspace {
            DEFAULT_WORKSPACE => self.state.chaos.library(),
            workspace => self.state.chaos.library().of_workspace(workspace),
        }
    }

    /// The chaos of a profile, which is called as the profile in reports.
    fn profile(&mut self, name: &str) -> Option<Trial> {
        let library = self.library();
        let Some((source, profile)) = library.get(name) else {
            let listed = library.list();
            let names = listed.iter().map(|profile| profile.name.as_str());
            let shown: String = name.chars().take(64).collect();
            let near = nearest(name, names).map(|near| format!(", did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            self.add(
                "/options/profile",
                format!("there is no profile `{shown}`{near}"),
            );
            return None;
        };
        self.note_profile(name, source, profile);
        self.note_extended(&library, profile);
        Some(Trial {
            name: name.to_owned(),
            rules: Rules::Profile(name.to_owned()),
            active: Active::of(profile),
        })
    }

    /// The newest version of a document; `None` when there is none.
    async fn stored(&mut self, kind: DocumentKind, name: &str) -> Result<Option<Value>, Problem> {
        let collection = Collection {
            workspace: self.workspace.to_owned(),
            kind,
        };
        let found = self.state.documents.newest(&collection, name).await;
        let Some(found) = found.map_err(|error| Problem::store(&error))? else {
            return Ok(None);
        };
        let tree = document::tree(&found.body).map_err(|error| {
            Problem::internal(format!("the stored document cannot be read: {error}"))
        })?;
        self.note(kind.as_str(), name, Some(found.version), &found.body);
        if kind == DocumentKind::Suite {
            self.note_own_version(&tree);
        }
        Ok(Some(tree))
    }

    /// The run is made of what this profile extends, and of what that extends in its turn.
    fn note_extended(&mut self, library: &Library, profile: &Profile) {
        let names = |profile: &Profile| {
            let names = profile.extends.iter().rev();
            names.map(|one| one.name.clone()).collect::<Vec<_>>()
        };
        let mut left = names(profile);
        while let Some(name) = left.pop() {
            let is_noted = |one: &DocumentVersion| one.kind == "profile" && one.name == name;
            if self.documents.iter().any(is_noted) {
                continue;
            }
            if let Some((source, extended)) = library.get(&name) {
                self.note_profile(&name, source, extended);
                left.extend(names(extended));
            }
        }
    }

    fn note_profile(&mut self, name: &str, source: Source, profile: &Profile) {
        let version = match source {
            Source::Api => self.state.profiles.version(self.workspace, name),
            Source::Builtin | Source::File => None,
        };
        self.note("profile", name, version, &profile.text);
    }

    /// The run is made of this version.
    fn note(&mut self, kind: &str, name: &str, version: Option<i64>, text: &str) {
        self.documents.push(DocumentVersion {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version,
            own_version: None,
            digest: store::digest_of(text),
        });
    }

    /// What the suite that was just noted says of its own version.
    fn note_own_version(&mut self, suite: &Value) {
        let own = match &suite["version"] {
            Value::String(own) => Some(own.clone()),
            Value::Number(own) => Some(own.to_string()),
            _ => None,
        };
        if let Some(noted) = self.documents.last_mut() {
            noted.own_version = own.map(|own| own.chars().take(64).collect());
        }
    }
}
