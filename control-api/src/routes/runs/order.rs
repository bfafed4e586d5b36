//! Turns what was posted to `/v1/runs` into the spec of a run.

mod named;

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use squall_documents::{At, Fields, ScalarKind, Tree};
use squall_harness::run::{DocumentVersion, RunKind, RunRecord};
use squall_harness::runner::{ConcurrencyRange, RunSpec, Trial};
use squall_harness::scores::{PassCriteria, least_of};
use squall_harness::suite::Suite;
use squall_journal::tape::ModelSource;

use crate::document::RequestDocument;
use crate::problem::{ApiProblem, ProblemDetail};
use crate::state::ApiState;
use crate::trust::SentVariables;

/// What was posted.
struct Order {
    kind: RunKind,
    suite: OrderedSuite,
    sent: SentVariables,
    options: Options,
}

/// A suite, or the name of a stored one.
enum OrderedSuite {
    Sent(Value),
    Named(String),
}

/// The options of a run.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "options of a run")]
struct Options {
    seed: Option<u64>,
    concurrency: Option<ConcurrencyRange>,
    /// Invocations of each level of a load run.
    per_level: Option<u64>,
    strict: Option<bool>,
    /// A profile's name, or the profile itself.
    profile: Option<Value>,
    min_score: Option<f64>,
    repeat: Option<u64>,
    /// A run's id, or the run itself.
    baseline: Option<Result<Box<RunRecord>, String>>,
    fails_if_worse: bool,
    /// Whether mutants run under the suite's chaos.
    chaos: Option<bool>,
    contract: Option<String>,
    expects_failure: bool,
    /// Most invocations of an exploration.
    budget: Option<u64>,
    /// Whether an interrupted exploration is continued.
    resume: Option<bool>,
    shrinks: bool,
    /// Whether daemons of the fleet share the scenarios.
    spreads: bool,
    models: Option<ModelSource>,
    /// Ids of stored sessions, instead of the suite's.
    replays: Option<Vec<String>>,
    /// Warnings of the command that prepared the suite.
    warnings: Vec<String>,
    suite_file: Option<String>,
}

impl Order {
    fn read(fields: &mut Fields<'_, '_>) -> Option<Self> {
        fields.require("kind", "the kind of run");
        let kind = fields.word("kind", "", "kind of run", RunKind::NAMES);
        let suite = fields.any("suite", "");
        let suite = suite.map(|suite| OrderedSuite::Sent(suite.value.to_json()));
        let name = fields.exact_words("suite_name", "");
        let name = name.map(|name| OrderedSuite::Named(name.value));
        match (fields.has("suite"), fields.has("suite_name")) {
            (true, true) => fields.error("suite_name", "give `suite` or `suite_name`, not both"),
            (false, false) => {
                let detail =
                    "give `suite`, the suite itself, or `suite_name`, the name of one that was put";
                fields.reader.error(fields.position, detail);
            }
            (true, false) | (false, true) => {}
        }
        let sent = SentVariables::read(fields);
        let options = fields.block("options", "", "a map of options", |fields| {
            Some(Options::read(fields))
        });
        let options = options.unwrap_or_default();
        if options.spreads && !sent.is_empty() {
            let why = "a spread run has no `secrets`, because other daemons read its request in the store; list the \
                       variables in `api.env` of the daemons' configurations, or leave `spread` out";
            fields.error("secrets", why);
        }
        Some(Self {
            kind: kind?,
            suite: suite.or(name)?,
            sent,
            options,
        })
    }
}

impl Options {
    fn read(fields: &mut Fields<'_, '_>) -> Self {
        if fields.has("fail_on") && !fields.has("baseline") {
            let what = "`fail_on` says what fails beside a `baseline`, and none is given; give one, or leave it out";
            fields.error("fail_on", what);
        }
        let of_text = |node: &At<Tree>| match &node.value {
            Tree::Scalar {
                text,
                kind: ScalarKind::Text,
            } if !text.is_empty() => Some(text.clone()),
            _ => None,
        };
        let profile = fields.field("profile", "", |value| {
            let node = value.any()?;
            if matches!(node.value, Tree::Map(_)) || of_text(node).is_some() {
                return Some(node.value.to_json());
            }
            let expected = "the name of a profile, or a profile";
            value.reader.misplaced(node.position, expected)
        });
        let baseline = fields.field("baseline", "", |value| {
            let node = value.any()?;
            let read = match &node.value {
                Tree::Map(_) => RunRecord::deserialize(node.value.to_json())
                    .ok()
                    .map(|run| Ok(Box::new(run))),
                _ => of_text(node).map(Err),
            };
            read.or_else(|| {
                value.error("expected the id of a run, or a run as the API and reports have it");
                None
            })
        });
        Self {
            seed: fields.whole("seed", "", 0..=u64::MAX, ""),
            concurrency: fields.field("concurrency", "", |value| {
                let node = value.any()?;
                let range = match &node.value {
                    Tree::Scalar { text, .. } => text.parse().ok(),
                    Tree::Null | Tree::List(_) | Tree::Map(_) => None,
                };
                let expected = ConcurrencyRange::EXPECTED;
                range.or_else(|| value.reader.misplaced(node.position, expected))
            }),
            per_level: fields.whole("per_level", "", 1..=1000, ""),
            strict: fields.flag("strict", ""),
            profile,
            min_score: fields.real("min_score", "", 0.0..=100.0, "").map(least_of),
            repeat: fields.whole("repeat", "", 1..=100, ""),
            baseline,
            fails_if_worse: fields
                .word("fail_on", "", "value of `fail_on`", &[("regression", ())])
                .is_some(),
            contract: fields
                .exact_words("contract", "")
                .map(|contract| contract.value),
            chaos: fields.flag("chaos", ""),
            expects_failure: fields.flag("expect_failure", "").unwrap_or(false),
            budget: fields.whole("budget", "", 1..=14_000, ""),
            resume: fields.flag("resume", ""),
            shrinks: fields.flag("shrink", "").unwrap_or(false),
            spreads: fields.flag("spread", "").unwrap_or(false),
            suite_file: fields.exact_words("suite_file", "").map(|file| file.value),
            models: fields.word("models", "", "source", ModelSource::NAMES),
            replays: fields.field("replays", "", |value| {
                let empty = "the list is empty; leave it out to replay the suite's sessions";
                let ids = value.some("a list of ids", empty, |value| value.exact_words())?;
                Some(ids.into_iter().map(|id| id.value).collect())
            }),
            warnings: fields
                .field("warnings", "", |value| {
                    value.list("a list of texts", |value| Some(value.text()?.value))
                })
                .unwrap_or_default(),
        }
    }
}

/// Name of the suite's own chaos in reports.
const CHAOS: &str = "chaos";

/// The profile of `ci` runs of suites without chaos and contract, as flakestorm's v1 suites are. It affects every
/// exchange, with short delays.
const INSTEAD: &str = "flaky_network";

/// Reads the posted document, and looks up the documents that it names.
pub(crate) async fn read(
    state: &ApiState,
    workspace: &str,
    posted: &RequestDocument,
) -> Result<RunSpec, ApiProblem> {
    let Order {
        kind,
        suite,
        sent,
        options,
    } = posted.fields(Order::read)?;
    let mut reading = OrderReader {
        state,
        workspace,
        wrong: Vec::new(),
        warnings: options.warnings,
        documents: Vec::new(),
    };
    let ordered = reading.suite(kind, suite, options.contract, options.replays, &sent);
    let suite = ordered.await?;
    let baseline = reading.baseline(options.baseline).await?;
    let resumed = match &suite {
        Some((name, suite)) if options.resume == Some(true) => {
            reading
                .interrupted(name, suite, options.seed, options.budget)
                .await?
        }
        Some(_) | None => None,
    };
    let under_chaos = options.chaos.unwrap_or(false);
    let chaos = match (&options.profile, &suite) {
        (Some(Value::String(name)), _) => reading.profile(name).await?,
        (Some(profile), _) => reading.sent_profile(profile, &sent).await?,
        (None, Some(_)) if kind == RunKind::Mutation && !under_chaos => None,
        (None, Some((_, suite))) => match &suite.chaos {
            Some(chaos) => Some(Trial::of(CHAOS, chaos)),
            None if kind == RunKind::Ci && has_prompts_alone(suite) => {
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
    if under_chaos && kind != RunKind::Mutation {
        let kind = kind.as_str();
        let why = format!("`chaos` means nothing in a run of kind {kind}; leave it out");
        reading.add("/options/chaos", why);
    } else if under_chaos && chaos.is_none() {
        let why = "the suite has no `chaos`; add it, or name a profile";
        reading.add("/options/chaos", why);
    }
    if let Some((_, suite)) = &suite {
        reading.extended(suite, options.profile.is_some()).await?;
    }
    let Some((name, mut suite)) = suite.filter(|_| reading.wrong.is_empty()) else {
        return Err(ApiProblem::invalid(reading.wrong));
    };
    if let Some(models) = options.models {
        suite.replays.set_models(models);
    }
    let advanced = &suite.advanced;
    let concurrency = options.concurrency.unwrap_or_else(|| {
        if kind == RunKind::Load {
            return ConcurrencyRange::of_load();
        }
        ConcurrencyRange::one(usize::try_from(advanced.concurrency).unwrap_or(1))
    });
    Ok(RunSpec {
        kind,
        name,
        chaos,
        names_profile: options.profile.is_some(),
        seed: (resumed.as_ref().map(|run| run.seed))
            .or(options.seed)
            .or(advanced.seed)
            .unwrap_or_else(|| state.chaos.seed()),
        concurrency,
        per_level: options.per_level.and_then(|one| usize::try_from(one).ok()),
        criteria: PassCriteria {
            min_score: options.min_score.or(advanced.min_score),
            strict: options.strict.unwrap_or(advanced.strict),
        },
        repeat: options.repeat.unwrap_or(1),
        baseline,
        fails_if_worse: options.fails_if_worse,
        expects_failure: options.expects_failure,
        budget: options.budget,
        resumed,
        shrinks: options.shrinks,
        spreads: options.spreads,
        part_of: None,
        suite_file: options.suite_file,
        suite: Arc::new(suite),
        warnings: reading.warnings,
        documents: reading.documents,
    })
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
