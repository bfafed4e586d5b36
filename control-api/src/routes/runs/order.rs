//! Turns what was posted to `/v1/runs` into the spec of a run.

mod named;

use std::num::NonZeroUsize;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use squall_harness::run::{DocumentVersion, RunKind, RunRecord};
use squall_harness::runner::{RunSpec, Trial};
use squall_harness::scores::{PassCriteria, least_of};
use squall_harness::suite::Suite;

use crate::access::Caller;
use crate::fields::{BodyFields, text};
use crate::problem::{ApiProblem, ProblemDetail};
use crate::state::ApiState;
use crate::trust::SentVariables;

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

/// The options of a run, as posted.
struct Options<'d> {
    seed: Option<u64>,
    concurrency: Option<NonZeroUsize>,
    strict: Option<bool>,
    /// A profile's name, or the profile itself.
    profile: Option<&'d Value>,
    min_score: Option<f64>,
    repeat: Option<u64>,
    /// A run's id, or the run itself.
    baseline: Option<Result<RunRecord, &'d str>>,
    fails_if_worse: bool,
    contract: Option<&'d str>,
}

impl<'d> Options<'d> {
    fn read(fields: &mut BodyFields<'d>) -> Self {
        let few = |value: &Value| value.as_u64().filter(|few| (1..=100).contains(few));
        let score = |value: &Value| {
            let score = value.as_f64()?;
            (0.0..=100.0).contains(&score).then(|| least_of(score))
        };
        let seed = "a whole number from 0 to 18446744073709551615";
        let a_profile = "the name of a profile, or a profile";
        let a_run = "the id of a run, or a run as the API and reports have it";
        if fields.given("fail_on").is_some() && fields.given("baseline").is_none() {
            let what = "`fail_on` says what fails beside a `baseline`, and none is given; give one, or leave it out";
            fields.wrong("fail_on", what);
        }
        let regression = |value: &Value| (value == "regression").then_some(());
        Self {
            seed: fields.read("seed", seed, Value::as_u64),
            concurrency: fields.read("concurrency", "a number from 1 to 100", |value| {
                NonZeroUsize::new(usize::try_from(few(value)?).ok()?)
            }),
            strict: fields.read("strict", "true or false", Value::as_bool),
            profile: fields.read("profile", a_profile, |value| {
                (value.is_object() || text(value).is_some()).then_some(value)
            }),
            min_score: fields.read("min_score", "a number from 0 to 100", score),
            repeat: fields.read("repeat", "a number from 1 to 100", few),
            baseline: fields.read("baseline", a_run, |value| match value {
                Value::Object(_) => RunRecord::deserialize(value).ok().map(Ok),
                value => text(value).map(Err),
            }),
            fails_if_worse: fields.read("fail_on", "`regression`", regression).is_some(),
            contract: fields.read("contract", "the name of a contract", text),
        }
    }
}

/// Name of the suite's own chaos in reports.
const CHAOS: &str = "chaos";

/// The profile of `ci` runs of suites without chaos and contract, as flakestorm's v1 suites are. It affects every
/// exchange, with short delays.
const INSTEAD: &str = "flaky_network";

/// Parses the posted document, and looks up the documents that it names.
pub(crate) async fn read(
    state: &ApiState,
    caller: &Caller,
    posted: &Value,
) -> Result<RunSpec, ApiProblem> {
    let example = "{\"kind\": \"chaos\", \"suite_name\": \"checkout\"}";
    let mut fields = BodyFields::of(posted, &MEMBERS, example).map_err(ApiProblem::invalid)?;
    let kinds: Vec<_> = RunKind::NAMES.iter().map(|(name, _)| *name).collect();
    let kinds = kinds.join(", ");
    let kind = fields.required("kind", &format!("one of {kinds}"), |value| {
        RunKind::parse(value.as_str()?)
    });
    let mut reading = OrderReader {
        state,
        workspace: caller.workspace(),
        wrong: Vec::new(),
        warnings: Vec::new(),
        documents: Vec::new(),
    };
    let mut given = fields.within("/options", &OPTIONS);
    let options = Options::read(&mut given);
    fields.add(given.into_errors());
    let sent = SentVariables::read(fields.given("secrets")).unwrap_or_else(|wrong| {
        fields.wrong("secrets", wrong);
        SentVariables::default()
    });
    let suite = reading.suite(&mut fields, &options, &sent).await?;
    let baseline = reading.baseline(options.baseline).await?;
    let chaos = match (&options.profile, &suite) {
        (Some(Value::String(name)), _) => reading.profile(name).await?,
        (Some(profile), _) => reading.sent_profile(profile, &sent).await?,
        (None, Some((_, suite))) => match &suite.chaos {
            Some(chaos) => Some(Trial::of(CHAOS, chaos)),
            None if kind == Some(RunKind::Ci) && has_prompts_alone(suite) => {
                reading.warnings.push(format!(
                    "the suite has neither `chaos` nor `contract`: its prompts run under the profile `{INSTEAD}`; \
                     write `chaos`, or name another with `--profile NAME` (`options.profile`)"
                ));
                reading.profile(INSTEAD).await?
            }
            None => None,
        },
        (None, None) => None,
    };
    if let Some((_, suite)) = &suite {
        reading.extended(suite, options.profile.is_some()).await?;
    }
    let spec = kind.zip(suite).map(|(kind, (name, suite))| {
        let advanced = &suite.advanced;
        let concurrency = usize::try_from(advanced.concurrency).ok();
        let concurrency = concurrency.and_then(NonZeroUsize::new);
        RunSpec {
            kind,
            name,
            chaos,
            names_profile: options.profile.is_some(),
            seed: (options.seed.or(advanced.seed)).unwrap_or_else(|| state.chaos.seed()),
            concurrency: (options.concurrency.or(concurrency)).unwrap_or(NonZeroUsize::MIN),
            criteria: PassCriteria {
                min_score: options.min_score.or(advanced.min_score),
                strict: options.strict.unwrap_or(advanced.strict),
            },
            repeat: options.repeat.unwrap_or(1),
            baseline,
            fails_if_worse: options.fails_if_worse,
            suite: Arc::new(suite),
            warnings: reading.warnings,
            documents: reading.documents,
        }
    });
    fields.add(reading.wrong);
    fields.finish(spec).map_err(ApiProblem::invalid)
}

fn has_prompts_alone(suite: &Suite) -> bool {
    let prompts = !suite.golden_prompts.is_empty() && !suite.invariants.is_empty();
    prompts && suite.chaos.is_none() && suite.contract.is_none()
}

/// State while named documents are looked up.
struct OrderReader<'a> {
    state: &'a ApiState,
    workspace: &'a str,
    wrong: Vec<ProblemDetail>,
    warnings: Vec<String>,
    documents: Vec<DocumentVersion>,
}

impl OrderReader<'_> {
    fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        self.wrong.push(ProblemDetail::at(pointer, detail));
    }
}
