//! A run from its spec to its result.

use std::path::PathBuf;
use std::sync::Arc;

use super::outcome::{self, RunResult};
use super::spec::{RunSpec, SpecError};
use super::{RunError, Scopes, Tell, run};
use crate::agents::pointing::ProxyVariables;
use crate::agents::{self, Driver, Place, Surroundings};
use crate::dial::Dialler;
use crate::reach::{Pending, Reach};
use crate::run::{CoverageRecord, RunKind};
use crate::suite::Suite;
use crate::verify::{self, Verifying};

/// Carries runs out: an [`Executor`], or a test in its place.
pub trait Execute: Send + Sync {
    /// All that is wrong with a spec, before the run is queued.
    fn check(&self, spec: &RunSpec) -> Vec<SpecError>;

    /// Carries a run out. It is dropped when the run is ended by others.
    fn run<'a>(
        &'a self,
        spec: &'a RunSpec,
        context: RunContext<'a>,
    ) -> Pending<'a, Result<RunResult, RunError>>;
}

/// What a run works with, of the daemon that makes it.
#[derive(Clone)]
pub struct RunContext<'a> {
    /// The run's id.
    pub run: &'a str,
    /// What the scopes that it works in begin with.
    pub scope: &'a str,
    /// The proxy.
    pub reach: Arc<dyn Reach>,
    /// Who is told what happens.
    pub tell: &'a dyn Tell,
    /// The scope of what names none.
    pub shared_scope: &'a str,
    /// Held while chaos is in force for scopes that are not the run's own: one run at a time.
    pub exclusive: &'a tokio::sync::Mutex<()>,
    /// Whether somebody has approved the run: else it reaches no host that needs approval.
    pub approved: bool,
}

/// Asks agents, and judges.
pub struct Executor {
    /// The variables that point what is started here at the proxy.
    pub variables: ProxyVariables,
    /// What dials for suites.
    pub dialler: Dialler,
    /// Where Python modules are looked for.
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
        // It may have waited, and what it may dial may have changed.
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

/// Tries the agent, and judges.
async fn tried(
    spec: &RunSpec,
    driver: &dyn Driver,
    dialler: Dialler,
    context: &RunContext<'_>,
) -> Result<RunResult, RunError> {
    let plan = spec.plan(context.run, dialler);
    let plan = plan.map_err(|wrong| RunError::Agent(wrong.message))?;
    let scopes = Scopes {
        own: context.scope,
        at_once: spec.at_once(),
        shared: context.shared_scope,
        exclusive: context.exclusive,
    };
    let mut ran = run(&plan, driver, &*context.reach, &scopes, context.tell).await?;
    let unreachable = ran.unreachable.take();
    let result = outcome::result(spec, ran);
    match unreachable {
        // What failed has failed, whatever could not be asked.
        Some(why) if result.passed != Some(false) => Err(RunError::Model(why)),
        Some(_) | None => Ok(result),
    }
}

/// What of a suite leads where nothing may be dialled, and why.
fn denied(dialler: &Dialler, suite: &Suite) -> impl Iterator<Item = (&'static str, String)> {
    let dials = suite.dials().into_iter();
    dials.filter_map(|(at, url)| Some((at, dialler.check(url).err()?)))
}

/// Looks at what a run needs.
async fn verified(
    spec: &RunSpec,
    driver: &dyn Driver,
    dialler: &Dialler,
    context: &RunContext<'_>,
) -> Result<RunResult, RunError> {
    let _held = context.exclusive.lock().await;
    let place = Place {
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
