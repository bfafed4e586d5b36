//! Executes a run, from its spec to its result.

use std::path::PathBuf;
use std::sync::Arc;

use super::exploring::Exploring;
use super::loading::Loading;
use super::outcome::{self, RunResult};
use super::rounds::{OneRound, Rounds};
use super::search::SearchRounds;
use super::spec::{RunSpec, SpecError, judging};
use super::{RunError, RunScopes, Tell, run};
use crate::agents::pointing::ProxyVariables;
use crate::agents::{self, Driver, InvocationPlace, Surroundings};
use crate::dial::Dialler;
use crate::mutations::{MutantCache, Mutants, MutationSearch, Writing};
use crate::reach::{Pending, Reach};
use crate::run::{CoverageRecord, RunKind};
use crate::suite::Suite;
use crate::verify::{self, Verifying};

/// Executes runs: an [`Executor`], or a test double.
pub trait Execute: Send + Sync {
    /// All errors in a spec, before the run is queued.
    fn check(&self, spec: &RunSpec) -> Vec<SpecError>;

    /// Executes a run. The future is dropped when the run is cancelled.
    fn run<'a>(
        &'a self,
        spec: &'a RunSpec,
        context: RunContext<'a>,
    ) -> Pending<'a, Result<RunResult, RunError>>;
}

/// What the daemon provides to a run.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// The run's id.
    pub run: &'a str,
    /// Prefix of the scopes that the run uses.
    pub scope: &'a str,
    /// The proxy.
    pub reach: Arc<dyn Reach>,
    /// Observes the run.
    pub tell: &'a dyn Tell,
    /// Keeps the mutants that the suite's model writes.
    pub mutants: &'a dyn MutantCache,
    /// The scope of calls that carry none.
    pub shared_scope: &'a str,
    /// Locked while chaos is in force in a scope that is not the run's own: one run at a time.
    pub exclusive: &'a tokio::sync::Mutex<()>,
    /// Whether the run is approved. Otherwise it must not reach hosts that require approval.
    pub approved: bool,
}

/// Invokes agents and judges their answers.
pub struct Executor {
    /// Environment variables that configure the proxy for the processes started here.
    pub variables: ProxyVariables,
    /// Opens the connections that suites need.
    pub dialler: Dialler,
    /// The folder in which Python modules are searched.
    pub folder: PathBuf,
}

impl Execute for Executor {
    fn check(&self, spec: &RunSpec) -> Vec<SpecError> {
        let mut wrong = spec.errors();
        let denied = denied(&self.dialler, &spec.suite);
        wrong.extend(denied.map(|(at, why)| SpecError::at(format!("/suite{at}"), why)));
        wrong
    }

    fn run<'a>(
        &'a self,
        spec: &'a RunSpec,
        context: RunContext<'a>,
    ) -> Pending<'a, Result<RunResult, RunError>> {
        Box::pin(self.carry_out(spec, context))
    }
}

impl Executor {
    async fn carry_out(
        &self,
        spec: &RunSpec,
        context: RunContext<'_>,
    ) -> Result<RunResult, RunError> {
        let dialler = if context.approved {
            self.dialler.clone()
        } else {
            self.dialler.unapproved()
        };
        // The run may have waited in the queue, and the allowed hosts may have changed.
        if let Some((_, why)) = denied(&dialler, &spec.suite).next() {
            return Err(RunError::Agent(why));
        }
        let surroundings = Surroundings {
            variables: Arc::clone(&self.variables),
            slots: spec.at_once().get(),
            retries: spec.suite.advanced.retries,
            dialler: dialler.clone(),
            folder: self.folder.clone(),
        };
        let driver = agents::driver(&spec.suite.agent, &surroundings);
        let result = if spec.kind == RunKind::Verify {
            verified(spec, &*driver, &dialler, &context).await
        } else {
            tried(spec, &*driver, dialler, &context).await
        };
        driver.stop().await;
        result
    }
}

/// Invokes the agent and judges the results.
async fn tried(
    spec: &RunSpec,
    driver: &dyn Driver,
    dialler: Dialler,
    context: &RunContext<'_>,
) -> Result<RunResult, RunError> {
    let suite = &*spec.suite;
    let settings = suite.mutations.as_ref().filter(|_| spec.mutates());
    let writing = settings.map(|settings| Writing {
        settings,
        agent: &suite.agent,
        model: suite.model.as_ref(),
        dialler: &dialler,
        cache: context.mutants,
        redactor: &suite.redactor,
        seed: spec.seed,
    });
    let prompts = &suite.golden_prompts;
    let mutants = match &writing {
        Some(writing) => writing.write(prompts).await?,
        None => Mutants::default(),
    };
    let plan = spec.plan(context.run, dialler.clone(), &mutants);
    let plan = plan.map_err(|wrong| RunError::Agent(wrong.message))?;
    let scopes = RunScopes {
        own: context.scope,
        at_once: spec.at_once(),
        shared: context.shared_scope,
        exclusive: context.exclusive,
    };
    // Steps of search apply to texts that are new, so the model's are of no use.
    let templates = writing.as_ref().map(|writing| Writing {
        model: None,
        ..*writing
    });
    let mut search = templates.as_ref().and_then(|writing| {
        let settings = writing.settings.search.as_ref()?;
        let search = MutationSearch::new(writing, settings, prompts, &mutants);
        Some(SearchRounds::new(spec, settings, search))
    });
    let mut one = OneRound;
    let rounds: &mut dyn Rounds<'_> = match &mut search {
        Some(search) => search,
        None => &mut one,
    };
    let (reach, tell) = (&*context.reach, context.tell);
    let mut ran = if spec.kind == RunKind::Explore {
        let invariants = judging(&spec.suite).map_err(|wrong| RunError::Agent(wrong.message))?;
        let (budget, earlier) = (spec.invocations(), spec.resumed.as_deref());
        let mut exploring = Exploring::new(&spec.suite, invariants, budget, earlier, tell);
        exploring.report_earlier().await;
        let mut ran = run(&plan, &mut exploring, driver, reach, &scopes, tell).await?;
        exploring.finish(&mut ran)?;
        ran
    } else if spec.kind == RunKind::Load {
        let mut loading = Loading::new(spec, tell);
        let mut ran = run(&plan, &mut loading, driver, reach, &scopes, tell).await?;
        ran.load = Some(loading.into_record());
        ran
    } else {
        run(&plan, rounds, driver, reach, &scopes, tell).await?
    };
    let unreachable = ran.unreachable.take();
    ran.warnings.extend(mutants.warnings);
    let mut result = outcome::result(spec, ran);
    result.search = search.map(SearchRounds::into_record);
    match unreachable {
        // A failed run stays failed, even if the judge model was unreachable.
        Some(why) if result.passed != Some(false) => Err(RunError::Model(why)),
        Some(_) | None => Ok(result),
    }
}

/// URLs of a suite that must not be dialled, and the reasons.
fn denied(dialler: &Dialler, suite: &Suite) -> impl Iterator<Item = (&'static str, String)> {
    let dials = suite.dials().into_iter();
    dials.filter_map(|(at, url)| Some((at, dialler.check(url).err()?)))
}

/// Checks what a run requires.
async fn verified(
    spec: &RunSpec,
    driver: &dyn Driver,
    dialler: &Dialler,
    context: &RunContext<'_>,
) -> Result<RunResult, RunError> {
    let _held = context.exclusive.lock().await;
    let place = InvocationPlace {
        slot: format!("{}-slot-1", context.scope),
        scope: format!("{}-1", context.scope),
    };
    let verifying = Verifying {
        suite: &spec.suite,
        driver,
        reach: &*context.reach,
        dialler,
        run: context.run,
        place: &place,
        shared: context.shared_scope,
    };
    let checks = verify::verify(&verifying).await?;
    context.tell.coverage(CoverageRecord {
        agent_invocations: u64::from(!spec.suite.golden_prompts.is_empty()),
        ..CoverageRecord::default()
    });
    let holds = verify::holds(&checks);
    Ok(RunResult {
        passed: Some(holds),
        reason: (!holds)
            .then(|| "the suite is not ready for a run; `checks` lists what failed".to_owned()),
        checks,
        ..RunResult::default()
    })
}
