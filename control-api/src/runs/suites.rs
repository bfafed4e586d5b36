//! Runs of suites, carried out by the harness.
//!
//! What is asked for is made into a plan, the harness drives the agent through [`Tools::reach`] and judges,
//! and what comes of it is made into a verdict.

mod plan;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use squall_harness::agents::pointing::ProxyVariables;
use squall_harness::agents::{self, Driver, Place, Surroundings};
use squall_harness::dial::Dialler;
use squall_harness::reach::Pending;
use squall_harness::run::{
    ComparisonRecord, CoverageRecord, RunKind, ScenarioRecord, ScoresRecord,
};
use squall_harness::runner::{self, Component, Ran, RanPart, Scopes};
use squall_harness::scores::{Bar, Column, Components, Outcome, comparison};
use squall_harness::suite::Suite;
use squall_harness::verify::{self, Verifying};

use super::agent_files::agent_files;
use super::runner::{Order, RunError, Runner, Tools, Verdict};
use crate::problem::Detail;

/// Carries runs of one kind out.
pub struct SuiteRunner {
    kind: RunKind,
    variables: ProxyVariables,
    dialler: Dialler,
    folder: PathBuf,
}

impl std::fmt::Debug for SuiteRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuiteRunner")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

/// The kinds that this version carries out.
const KINDS: [RunKind; 4] = [
    RunKind::Chaos,
    RunKind::Contract,
    RunKind::Ci,
    RunKind::Verify,
];

impl SuiteRunner {
    /// One for every kind. `variables` point programs at the proxy, for agents that are started here, and
    /// `folder` is where Python modules are looked for.
    pub fn all(
        variables: &ProxyVariables,
        dialler: &Dialler,
        folder: &Path,
    ) -> Vec<Arc<dyn Runner>> {
        let runner = |kind| -> Arc<dyn Runner> {
            Arc::new(Self {
                kind,
                variables: Arc::clone(variables),
                dialler: dialler.clone(),
                folder: folder.to_owned(),
            })
        };
        KINDS.into_iter().map(runner).collect()
    }

    async fn carry_out(&self, order: &Order, tools: &Tools<'_>) -> Result<Verdict, RunError> {
        let dialler = if tools.approved {
            self.dialler.clone()
        } else {
            self.dialler.unapproved()
        };
        // It may have waited, and what it may dial may have changed.
        if let Some((_, why)) = may_not_dial(&dialler, &order.suite).into_iter().next() {
            return Err(RunError::Agent(why));
        }
        let at_once = plan::at_once(order);
        let suite = &order.suite;
        let surroundings = Surroundings {
            variables: Arc::clone(&self.variables),
            slots: at_once.get(),
            retries: suite.advanced.retries,
            dialler: dialler.clone(),
            folder: self.folder.clone(),
        };
        let driver = agents::driver(&suite.agent, &surroundings);
        let verdict = if order.kind == RunKind::Verify {
            verified(order, &*driver, &dialler, tools).await
        } else {
            tried(self, order, &*driver, dialler, at_once, tools).await
        };
        driver.stop().await;
        verdict
    }
}

/// What of a suite leads where nothing may be dialled, and why.
fn may_not_dial(dialler: &Dialler, suite: &Suite) -> Vec<(&'static str, String)> {
    let dials = suite.dials().into_iter();
    dials
        .filter_map(|(at, url)| Some((at, dialler.check(url).err()?)))
        .collect()
}

impl Runner for SuiteRunner {
    fn kind(&self) -> RunKind {
        self.kind
    }

    fn check(&self, order: &Order) -> Vec<Detail> {
        let mut wrong = plan::wrong(order);
        let denied = may_not_dial(&self.dialler, &order.suite).into_iter();
        wrong.extend(denied.map(|(at, why)| Detail::at(format!("/suite{at}"), why)));
        wrong
    }

    fn run<'a>(
        &'a self,
        order: &'a Order,
        tools: Tools<'a>,
    ) -> Pending<'a, Result<Verdict, RunError>> {
        Box::pin(async move { self.carry_out(order, &tools).await })
    }
}

/// Looks at what a run needs.
async fn verified(
    order: &Order,
    driver: &dyn Driver,
    dialler: &Dialler,
    tools: &Tools<'_>,
) -> Result<Verdict, RunError> {
    let _held = tools.exclusive.lock().await;
    let place = Place {
        slot: format!("{}-slot-1", order.scope),
        scope: format!("{}-1", order.scope),
    };
    let verifying = Verifying {
        suite: &order.suite,
        driver,
        reach: &*tools.reach,
        dialler,
        run: &order.id,
        place: &place,
        shared: &tools.shared_scope,
    };
    let checks = verify::verify(&verifying).await?;
    tools.tell.coverage(CoverageRecord {
        agent_invocations: u64::from(!order.suite.golden_prompts.is_empty()),
        ..CoverageRecord::default()
    });
    let holds = verify::holds(&checks);
    Ok(Verdict {
        passed: Some(holds),
        reason: (!holds)
            .then(|| "a run cannot be made as things are; `checks` says why".to_owned()),
        checks,
        ..Verdict::default()
    })
}

/// Tries the agent, and judges.
async fn tried(
    runner: &SuiteRunner,
    order: &Order,
    driver: &dyn Driver,
    dialler: Dialler,
    at_once: NonZeroUsize,
    tools: &Tools<'_>,
) -> Result<Verdict, RunError> {
    let mut planned = plan::plan(order).map_err(|wrong| RunError::Agent(wrong.detail))?;
    planned.plan.outside = planned.plan.outside.through(dialler);
    let scopes = Scopes {
        own: &order.scope,
        at_once,
        shared: &tools.shared_scope,
        exclusive: &tools.exclusive,
    };
    let ran = runner::run(&planned.plan, driver, &*tools.reach, &scopes, tools.tell).await;
    let mut ran = ran.map_err(|error| match error {
        runner::RunError::Reach(error) => RunError::Reach(error),
        error @ (runner::RunError::Unreachable(_) | runner::RunError::NeverAnswers(_)) => {
            RunError::Agent(error.to_string())
        }
    })?;
    ran.warnings.extend(planned.warnings);
    ran.warnings.extend(plan::one_at_a_time(order, at_once));
    let unreachable = ran.unreachable.take();
    let agent = order.suite.agent.clone();
    let folder = runner.folder.clone();
    let files = tokio::task::spawn_blocking(move || agent_files(&agent, &folder));
    let verdict = Verdict {
        documents: files.await.unwrap_or_default(),
        ..verdict(order, ran)
    };
    match unreachable {
        // What failed has failed, whatever could not be asked.
        Some(why) if verdict.passed != Some(false) => Err(RunError::Model(why)),
        Some(_) | None => Ok(verdict),
    }
}

fn verdict(order: &Order, ran: Ran) -> Verdict {
    let of = |component| ran.parts.iter().find(|part| part.component == component);
    let components = Components {
        chaos: of(Component::Chaos).and_then(|part| part.chaos_resilience),
        contract: of(Component::Contract).and_then(|part| part.matrix.score()),
    };
    let scores = components.record(&order.suite.scoring);
    // With one part this is its own score.
    let score = scores.overall;
    let cells: Vec<_> = ran
        .parts
        .iter()
        .flat_map(|part| &part.matrix.cells)
        .collect();
    let compared = order.baseline.as_ref();
    let compared = compared.map(|baseline| comparison(baseline, cells.iter().copied()));
    let worse = compared
        .as_ref()
        .and_then(|compared| worse(compared, score));
    let (passed, reason) = match (outcome(order, &ran, score), worse) {
        (Outcome::Failed(reason), _) => (Some(false), reason),
        (_, Some(worse)) if order.fails_if_worse => (Some(false), worse),
        (Outcome::Passed(_), _) if let Some(why) = &ran.proves_nothing => (None, why.clone()),
        (Outcome::Passed(reason), _) => (Some(true), reason),
        (Outcome::Inconclusive(reason), _) => (None, reason),
    };
    // What holds of calm alone is no score of how an agent stands chaos.
    let proves_nothing = passed.is_none() && ran.coverage.exercised == 0;
    let columns = ran.parts.iter().flat_map(|part| &part.matrix.columns);
    Verdict {
        passed,
        score: score.filter(|_| !proves_nothing),
        scores: if proves_nothing {
            ScoresRecord::default()
        } else {
            scores
        },
        reason: Some(reason),
        scenarios: columns.map(scenario).collect(),
        demands: ran
            .parts
            .iter()
            .flat_map(|part| part.demands.clone())
            .collect(),
        documents: Vec::new(),
        recoveries: ran.recoveries,
        stability: ran.stability,
        comparison: compared,
        warnings: ran.warnings.into_iter().chain(of_another(order)).collect(),
        checks: Vec::new(),
    }
}

/// A word on a baseline that is no run of this suite.
fn of_another(order: &Order) -> Option<String> {
    let baseline = order.baseline.as_ref()?;
    (baseline.name != order.name).then(|| {
        format!(
            "the baseline is a run of suite `{}`, this is one of `{}`: cells are compared by the names of invariants \
             and scenarios, whatever those demand",
            baseline.name, order.name
        )
    })
}

/// What is worse than in the baseline, in words.
fn worse(compared: &ComparisonRecord, score: Option<f64>) -> Option<String> {
    if !compared.is_regression(score) {
        return None;
    }
    let cells = match compared.broken() {
        0 => None,
        1 => Some("1 cell fails that did not".to_owned()),
        more => Some(format!("{more} cells fail that did not")),
    };
    let fallen = compared.score_before.zip(score);
    let fallen = fallen.filter(|(before, now)| now < before);
    let fallen = fallen.map(|(before, now)| format!("the score fell from {before:.1} to {now:.1}"));
    let what: Vec<_> = cells.into_iter().chain(fallen).collect();
    Some(format!(
        "worse than run {}: {}",
        compared.baseline,
        what.join(", ")
    ))
}

/// The worst that any part comes to, and what the overall score does where there are several.
fn outcome(order: &Order, ran: &Ran, score: Option<f64>) -> Outcome {
    if let [only] = &ran.parts[..] {
        return outcome_of(order.kind, only, order.bar);
    }
    let apart = Bar {
        least: None,
        strict: order.bar.strict,
    };
    let mut outcomes: Vec<_> = (ran.parts.iter())
        .map(|part| match part.component {
            Component::Contract => part.matrix.outcome(apart),
            Component::Chaos => part.matrix.outcome_of(part.chaos_resilience, apart),
        })
        .collect();
    outcomes.push(match score {
        Some(score) => {
            let missed = order.bar.missed(score);
            missed
                .or_else(|| order.bar.missed_by_nothing(score))
                .unwrap_or_else(|| Outcome::Passed(format!("the score is {score:.1}")))
        }
        None => Outcome::Inconclusive("nothing was left to judge".to_owned()),
    });
    let worst = outcomes.into_iter().max_by_key(|outcome| match outcome {
        Outcome::Failed(_) => 2,
        Outcome::Inconclusive(_) => 1,
        Outcome::Passed(_) => 0,
    });
    worst.unwrap_or_else(|| Outcome::Inconclusive("nothing was tried".to_owned()))
}

fn outcome_of(kind: RunKind, part: &RanPart, bar: Bar) -> Outcome {
    match part.component {
        Component::Contract if kind == RunKind::Contract => part.matrix.outcome(bar),
        Component::Contract => part.matrix.outcome_in_ci(bar),
        Component::Chaos => part.matrix.outcome_unless_zero(part.chaos_resilience, bar),
    }
}

fn scenario(column: &Column) -> ScenarioRecord {
    ScenarioRecord {
        name: column.name.clone(),
        under_chaos: column.under_chaos,
        rules_applied: column.rules_applied,
        invocations: column.invocations,
        rules: column.rules.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_harness::run::{CellRecord, CellState};
    use squall_harness::scores::Matrix;
    use squall_harness::suite;
    use squall_profiles::variables::Variables;

    use super::*;

    fn order(least: Option<f64>) -> Order {
        let text = "agent: {endpoint: 'http://agent.test/'}\ngolden_prompts: [hello]\n\
                    invariants: [{type: completes}]\n";
        Order {
            id: "r".into(),
            kind: RunKind::Ci,
            name: "shop".into(),
            scope: "run-r".into(),
            suite: Arc::new(suite::parse("s", text, Variables::Refused).expect("valid")),
            doubts: Vec::new(),
            chaos: None,
            names_profile: false,
            seed: 1,
            concurrency: NonZeroUsize::MIN,
            bar: Bar {
                least,
                strict: false,
            },
            repeat: 1,
            baseline: None,
            fails_if_worse: false,
        }
    }

    #[test]
    fn what_is_doubtful_of_a_contract_is_told_with_the_run() {
        let mut order = order(None);
        order.kind = RunKind::Chaos;
        order.chaos = Some(squall_harness::runner::Trial {
            name: "down".into(),
            rules: squall_harness::reach::Rules::Nothing,
            active: suite::Active::default(),
            told: Vec::new(),
        });
        order.doubts = vec!["contract `c`: nothing".into()];
        let planned = plan::plan(&order).expect("a plan");
        assert_eq!(planned.warnings, order.doubts);
    }

    /// A part in which one cell was judged, under chaos.
    fn part(component: Component, severity: &str, state: CellState) -> RanPart {
        let cell = CellRecord {
            invariant: "i".into(),
            scenario: "down".into(),
            severity: severity.into(),
            state,
            reason: None,
            faults_applied: 1,
            mutation: None,
            baseline_failed: false,
            evidence: Vec::new(),
        };
        let column = Column {
            name: "down".into(),
            under_chaos: true,
            rules_applied: 1,
            invocations: 1,
            idle: None,
            rules: Vec::new(),
        };
        RanPart {
            component,
            matrix: Matrix {
                columns: vec![column],
                cells: vec![cell],
            },
            demands: Vec::new(),
            chaos_resilience: Some(40.0).filter(|_| component == Component::Chaos),
        }
    }

    fn ran(parts: Vec<RanPart>) -> Ran {
        Ran {
            parts,
            recoveries: Vec::new(),
            stability: None,
            coverage: CoverageRecord::default(),
            proves_nothing: None,
            unreachable: None,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_contract_alone_of_which_nothing_holds_fails_in_ci_only() {
        for (kind, passed) in [(RunKind::Ci, Some(false)), (RunKind::Contract, Some(true))] {
            let order = Order {
                kind,
                ..order(None)
            };
            let nothing = part(Component::Contract, "high", CellState::Failed);
            let verdict = verdict(&order, ran(vec![nothing]));
            assert_eq!(verdict.passed, passed, "{kind:?}: {verdict:?}");
        }
    }

    #[test]
    fn a_run_reaches_so_many_verdicts_and_no_more() {
        let list = |one: &str, many: usize| {
            let all = (0..many).map(|number| one.replace('#', &number.to_string()));
            all.collect::<Vec<_>>().join(", ")
        };
        for (prompts, invariants, scenarios, repeat, is_too_much) in [
            (1, 40, 500, 1, false),
            (1, 41, 500, 1, true),
            (10, 20, 20, 5, false),
            (10, 20, 21, 5, true),
        ] {
            let text = format!(
                "{{agent: {{endpoint: 'http://agent.test/'}}, golden_prompts: [{}], contract: {{name: c, \
                 invariants: [{}], chaos_matrix: [{}]}}}}",
                list("p#", prompts),
                list("{id: i#, type: completes}", invariants),
                list("{name: s#}", scenarios),
            );
            let suite = suite::parse("suite.yaml", &text, Variables::Refused).expect("valid");
            let order = Order {
                kind: RunKind::Contract,
                suite: Arc::new(suite),
                repeat,
                ..order(None)
            };
            let wrong = plan::wrong(&order);
            let told = wrong
                .iter()
                .any(|one| one.detail.contains("20000 verdicts"));
            assert_eq!(
                told, is_too_much,
                "{prompts} × {invariants} × {scenarios} × {repeat}: {wrong:?}"
            );
        }
    }

    #[test]
    fn a_baseline_of_another_suite_is_told_of() {
        let mut order = order(None);
        assert_eq!(of_another(&order), None);
        for (name, told) in [("shop", false), ("desk", true)] {
            let run = json!({
                "id": "0194", "kind": "ci", "name": name, "state": "passed", "score": null, "passed": null,
                "coverage": CoverageRecord::default(), "scores": ScoresRecord::default(), "seed": 1,
                "created_at": "", "started_at": null, "finished_at": null, "error": null, "reason": null,
                "daemon": "", "documents": [],
            });
            order.baseline = Some(Arc::new(serde_json::from_value(run).expect("a run")));
            let warning = of_another(&order).unwrap_or_default();
            assert_eq!(warning.contains("`desk`"), told, "{name}: {warning}");
        }
    }

    #[test]
    fn g51_the_overall_score_alone_is_held_to_the_bar_and_one_verdict_is_told() {
        // Chaos comes to 40, the contract to 100 or to nothing, and both weigh the same.
        for (least, severity, state, score, passed) in [
            (Some(60.0), "high", CellState::Passed, 70.0, true),
            (Some(80.0), "high", CellState::Passed, 70.0, false),
            (None, "high", CellState::Failed, 20.0, true),
            (None, "critical", CellState::Failed, 20.0, false),
        ] {
            let verdict = verdict(
                &order(least),
                ran(vec![
                    part(Component::Chaos, "medium", CellState::Failed),
                    part(Component::Contract, severity, state),
                ]),
            );
            let told = format!("{least:?} {severity} {state:?}: {verdict:?}");
            assert_eq!(verdict.passed, Some(passed), "{told}");
            let overall = verdict.score.expect("a score");
            assert!((overall - score).abs() < 1e-9, "{told}");
        }
    }
}
