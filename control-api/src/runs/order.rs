//! What is asked for with `POST /v1/runs`.

mod named;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use squall_harness::run::{DocumentVersion, RunKind, RunRecord};
use squall_harness::runner::Trial;
use squall_harness::scores::least_of;
use squall_harness::suite::Suite;

use super::documents;
use crate::ApiState;
use crate::access::Caller;
use crate::nearest::nearest;
use crate::problem::{Detail, Problem};
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
    /// Invocations of the agent at once.
    #[schemars(range(min = 1, max = 100))]
    concurrency: Option<u64>,
    /// Whether a single cell that proves nothing makes the run inconclusive.
    strict: Option<bool>,
    /// The profile, in the place of the suite's `chaos`: its name, or the profile itself.
    profile: Option<ProfileWanted>,
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

/// A profile.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum ProfileWanted {
    /// The name of one that the daemon has.
    Named(String),
    /// One that the daemon need not have.
    Sent(#[schemars(with = "BTreeMap<String, Value>")] Map<String, Value>),
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
    /// What of a contract that was put by itself changes nothing, or surely is not meant.
    pub(crate) doubts: Vec<String>,
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
    pub(crate) profile: Option<ProfileWanted>,
    /// 0 to 100.
    pub(crate) min_score: Option<f64>,
    pub(crate) repeat: Option<u64>,
    baseline: Option<Baseline>,
    pub(crate) fail_on: Option<FailOn>,
    contract: Option<String>,
}

/// What the chaos of a suite is called in reports.
const CHAOS: &str = "chaos";

/// The profile of `ci` runs of suites with neither chaos nor a contract, as flakestorm's v1 suites are. It touches every
/// exchange, and holds none up for long.
const INSTEAD: &str = "flaky_network";

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
        doubts: Vec::new(),
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
        Some(ProfileWanted::Named(name)) => reading.profile(name),
        Some(ProfileWanted::Sent(profile)) => reading.sent_profile(profile, &sent),
        None => suite_chaos,
    };
    let has_nothing = |suite: &Suite| {
        let prompts = !suite.golden_prompts.is_empty() && !suite.invariants.is_empty();
        prompts && suite.chaos.is_none() && suite.contract.is_none()
    };
    let chaos = match &suite {
        Some((_, suite)) if kind == Some(RunKind::Ci) && chaos.is_none() && has_nothing(suite) => {
            reading.doubts.push(format!(
                "the suite has neither `chaos` nor `contract`: its prompts run under the profile `{INSTEAD}`; name \
                 another one as the run's `profile`, or write `chaos`"
            ));
            reading.profile(INSTEAD)
        }
        _ => chaos,
    };
    if let Some((_, suite)) = &suite {
        reading.extended(suite, options.profile.is_some());
    }
    match (kind, suite) {
        (Some(kind), Some((name, suite))) if reading.wrong.is_empty() => Ok(Wish {
            kind,
            name,
            suite: Arc::new(suite),
            doubts: reading.doubts,
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
    doubts: Vec<String>,
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
            Some(least_of(score))
        };
        let a_profile = "the name of a profile, or a profile";
        let a_run = "the id of a run, or a run as the API and reports have it";
        let seed = "a whole number from 0 to 18446744073709551615";
        let is_given = |name| members.get(name).is_some_and(|value| !value.is_null());
        if is_given("fail_on") && !is_given("baseline") {
            let what = "`fail_on` says what fails beside a `baseline`, and none is given; give one, or leave it out";
            self.add("/options/fail_on", what);
        }
        Options {
            seed: self.option(members, "seed", seed, Value::as_u64),
            concurrency: self
                .option(members, "concurrency", "a number from 1 to 100", few)
                .and_then(|few| NonZeroUsize::new(usize::try_from(few).ok()?)),
            strict: self.option(members, "strict", "true or false", Value::as_bool),
            profile: self.option(members, "profile", a_profile, |value| match value {
                Value::Object(profile) => Some(ProfileWanted::Sent(profile.clone())),
                value => name(value).map(ProfileWanted::Named),
            }),
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
}
