//! What is asked for with `POST /v1/runs`.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};
use squall_journal::reach::{Rules, Values};
use squall_journal::run::{DocumentVersion, RunKind};
use squall_profiles::library::Source;
use squall_profiles::variables::{Variables, expand_document};

use super::demands;
use crate::ApiState;
use crate::access::Caller;
use crate::document;
use crate::nearest::nearest;
use crate::problem::{Detail, Problem};
use crate::store::{self, DEFAULT_WORKSPACE, DocumentKind};
use crate::stored_documents::Collection;

const MEMBERS: [&str; 4] = ["kind", "suite", "suite_name", "options"];

const OPTIONS: [&str; 8] = [
    "seed",
    "concurrency",
    "strict",
    "profile",
    "min_score",
    "repeat",
    "baseline",
    "contract",
];

/// What a run is asked for with.
#[derive(JsonSchema)]
#[schemars(rename = "RunRequest", deny_unknown_fields)]
#[expect(dead_code, reason = "says what a run is asked for with")]
pub(crate) struct RunRequest {
    /// What it tries; this version runs `chaos`.
    kind: RunKind,
    /// The suite itself, or `suite_name`.
    suite: Option<demands::SuiteDocument>,
    /// The name of a suite that was put, or `suite`.
    suite_name: Option<String>,
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
    /// Id of the run to compare with.
    baseline: Option<String>,
    /// The contract, in the place of the suite's own.
    contract: Option<String>,
}

/// What was asked for, read and looked up.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) kind: RunKind,
    pub(crate) name: String,
    /// Its variables expanded.
    pub(crate) suite: Value,
    pub(crate) contract: Option<Value>,
    pub(crate) rules: Option<Rules>,
    pub(crate) scenario: String,
    pub(crate) documents: Vec<DocumentVersion>,
    pub(crate) options: Options,
}

/// How it is to be tried.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) concurrency: Option<u64>,
    pub(crate) strict: bool,
    profile: Option<String>,
    /// 0 to 100.
    pub(crate) min_score: Option<f64>,
    pub(crate) repeat: Option<u64>,
    pub(crate) baseline: Option<String>,
    contract: Option<String>,
}

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
    let suite = reading.suite(members).await?;
    let contract = reading.contract(&options, suite.as_ref()).await?;
    let (rules, scenario) = reading.rules(&options, suite.as_ref());
    match (kind, suite) {
        (Some(kind), Some((name, suite))) if reading.wrong.is_empty() => Ok(Wish {
            kind,
            name,
            suite,
            contract,
            rules,
            scenario,
            documents: reading.documents,
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
        let seed = "a whole number from 0 to 18446744073709551615";
        Options {
            seed: self.option(members, "seed", seed, Value::as_u64),
            concurrency: self.option(members, "concurrency", "a number from 1 to 100", few),
            strict: self
                .option(members, "strict", "true or false", Value::as_bool)
                .unwrap_or(false),
            profile: self.option(members, "profile", "the name of a profile", name),
            min_score: self.option(members, "min_score", "a number from 0 to 100", score),
            repeat: self.option(members, "repeat", "a number from 1 to 100", few),
            baseline: self.option(members, "baseline", "the id of a run", name),
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

    /// The suite and its name.
    async fn suite(
        &mut self,
        members: &Map<String, Value>,
    ) -> Result<Option<(String, Value)>, Problem> {
        let given = |name: &str| members.get(name).filter(|value| !value.is_null());
        let (name, mut suite) = match (given("suite"), given("suite_name")) {
            (Some(suite), None) => {
                let name = suite["name"].as_str().unwrap_or("inline");
                let name: String = name.chars().take(64).collect();
                self.note("suite", &name, None, &suite.to_string());
                (name, suite.clone())
            }
            (None, Some(Value::String(name))) => {
                let Some(suite) = self.stored(DocumentKind::Suite, name).await? else {
                    let shown: String = name.chars().take(64).collect();
                    self.add("/suite_name", format!("there is no suite `{shown}`"));
                    return Ok(None);
                };
                (name.clone(), suite)
            }
            (None, Some(_)) => {
                self.add("/suite_name", "`suite_name` is the name of a suite");
                return Ok(None);
            }
            (Some(_), Some(_)) => {
                self.add("/suite_name", "give `suite` or `suite_name`, not both");
                return Ok(None);
            }
            (None, None) => {
                self.add(
                    "",
                    "give `suite`, the suite itself, or `suite_name`, the name of one that was put",
                );
                return Ok(None);
            }
        };
        let wrong = demands::complaints(DocumentKind::Suite, &suite, &self.state.trust);
        if !wrong.is_empty() {
            self.wrong.extend(wrong.into_iter().map(|detail| Detail {
                pointer: detail.pointer.map(|at| format!("/suite{at}")),
                ..detail
            }));
            return Ok(None);
        }
        if let Some(agent) = suite.get_mut("agent") {
            let expanded = self
                .state
                .trust
                .variables(|variables: Variables<'_>| expand_document(agent, variables));
            if let Err(error) = expanded {
                self.add("/suite/agent", error);
                return Ok(None);
            }
        }
        Ok(Some((name, suite)))
    }

    async fn contract(
        &mut self,
        options: &Options,
        suite: Option<&(String, Value)>,
    ) -> Result<Option<Value>, Problem> {
        let own = suite.map(|(_, suite)| &suite["contract"]);
        let (name, at) = match (&options.contract, own) {
            (Some(name), _) => (name.clone(), "/options/contract"),
            (None, Some(Value::String(name))) => (name.clone(), "/suite/contract"),
            (None, Some(contract @ Value::Object(_))) => return Ok(Some(contract.clone())),
            (None, _) => return Ok(None),
        };
        let contract = self.stored(DocumentKind::Contract, &name).await?;
        if contract.is_none() {
            let shown: String = name.chars().take(64).collect();
            self.add(
                at,
                format!("there is no contract `{shown}`; put it under /v1/contracts first"),
            );
        }
        Ok(contract)
    }

    /// The rules, and what they are called in reports.
    fn rules(
        &mut self,
        options: &Options,
        suite: Option<&(String, Value)>,
    ) -> (Option<Rules>, String) {
        let Some(name) = &options.profile else {
            let chaos = suite.and_then(|(_, suite)| suite.get("chaos"));
            let chaos = chaos.filter(|chaos| !chaos.is_null());
            let rules = chaos.map(|chaos| Rules::Document {
                text: json!({ "chaos": chaos }).to_string(),
                variables: Values::default(),
            });
            return (rules, "chaos".to_owned());
        };
        let library = match self.workspace {
            DEFAULT_WORKSPACE => self.state.chaos.library(),
            workspace => self.state.chaos.library().of_workspace(workspace),
        };
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
            return (None, String::new());
        };
        let version = match source {
            Source::Api => self.state.profiles.version(self.workspace, name),
            Source::Builtin | Source::File => None,
        };
        self.note("profile", name, version, &profile.text);
        (Some(Rules::Profile(name.clone())), name.clone())
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
        Ok(Some(tree))
    }

    /// The run is made of this version.
    fn note(&mut self, kind: &str, name: &str, version: Option<i64>, text: &str) {
        self.documents.push(DocumentVersion {
            kind: kind.to_owned(),
            name: name.to_owned(),
            version,
            digest: store::digest_of(text),
        });
    }
}
