//! Runs of suites, carried out by the harness.
//!
//! What is asked for is made into a plan, the harness drives the agent through [`Tools::reach`] and judges,
//! and what comes of it is made into a verdict.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use squall_harness::agents::pointing::ProxyVariables;
use squall_harness::agents::{self, Surroundings};
use squall_harness::runner::{self, Plan, Ran, Scopes};
use squall_harness::scores::{Column, Matrix, Outcome, Recovery, overall};
use squall_harness::suite::agent::{Reset, Way};
use squall_harness::suite::{ContractPart, Suite};
use squall_journal::reach::Pending;
use squall_journal::run::{RecoveryRecord, RunKind, ScenarioRecord, ScoresRecord};

use super::approval;
use super::runner::{Order, RunError, Runner, Tools, Verdict};
use crate::problem::Detail;

/// Carries runs of one kind out.
pub struct SuiteRunner {
    kind: RunKind,
    variables: ProxyVariables,
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
const KINDS: [RunKind; 2] = [RunKind::Chaos, RunKind::Contract];

impl SuiteRunner {
    /// One for every kind. `variables` point programs at the proxy, for agents that are started here, and
    /// `folder` is where Python modules are looked for.
    pub fn all(variables: &ProxyVariables, folder: &Path) -> Vec<Arc<dyn Runner>> {
        let runner = |kind| -> Arc<dyn Runner> {
            Arc::new(Self {
                kind,
                variables: Arc::clone(variables),
                folder: folder.to_owned(),
            })
        };
        KINDS.into_iter().map(runner).collect()
    }

    async fn carry_out(&self, order: &Order, tools: &Tools<'_>) -> Result<Verdict, RunError> {
        let plan = plan(order).map_err(|wrong| RunError::Agent(wrong.detail))?;
        let suite = &order.suite;
        let surroundings = Surroundings {
            variables: Arc::clone(&self.variables),
            slots: order.concurrency.get(),
            retries: suite.advanced.retries,
            folder: self.folder.clone(),
        };
        let driver = agents::driver(&suite.agent, &surroundings);
        let scopes = Scopes {
            own: &order.scope,
            at_once: order.concurrency,
            shared: tools.shared_scope.as_deref(),
            exclusive: &tools.exclusive,
        };
        let ran = runner::run(&plan, &*driver, &*tools.reach, &scopes, tools.tell).await;
        driver.stop().await;
        let ran = ran.map_err(|error| match error {
            runner::RunError::Reach(error) => RunError::Reach(error),
            runner::RunError::Unreachable(error) => RunError::Agent(error.to_string()),
        })?;
        let mut coverage = ran.matrix.coverage();
        coverage.agent_invocations = ran.invocations;
        tools.tell.coverage(coverage);
        Ok(verdict(order, ran))
    }
}

impl Runner for SuiteRunner {
    fn kind(&self) -> RunKind {
        self.kind
    }

    fn check(&self, order: &Order) -> Vec<Detail> {
        let mut wrong: Vec<_> = plan(order).err().into_iter().collect();
        let nothing = |option: &str| {
            Detail::at(
                format!("/options/{option}"),
                format!(
                    "`{option}` means nothing to this version in a run of kind {}; leave it out",
                    order.kind.as_str()
                ),
            )
        };
        if order.repeat != 1 {
            wrong.push(nothing("repeat"));
        }
        if order.baseline.is_some() {
            wrong.push(nothing("baseline"));
        }
        if order.kind == RunKind::Contract && order.names_profile {
            wrong.push(nothing("profile"));
        }
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

fn plan(order: &Order) -> Result<Plan<'_>, Detail> {
    let plan = if order.kind == RunKind::Contract {
        contract(order)?
    } else {
        chaos(order)?
    };
    if plan.invariants.is_empty() {
        let wanted = "a run of kind chaos judges by the suite's `invariants`, and it has none";
        return Err(Detail::at("/suite/invariants", wanted));
    }
    if plan.prompts.is_empty() {
        let wanted = "the agent is asked the suite's `golden_prompts`, and it has none";
        return Err(Detail::at("/suite/golden_prompts", wanted));
    }
    Ok(Plan {
        seed: order.seed,
        repeat: order.repeat,
        ..plan
    })
}

fn contract(order: &Order) -> Result<Plan<'_>, Detail> {
    if let Some(ContractPart::Written(contract)) = &order.suite.contract {
        return Ok(Plan::contract(&order.suite, contract, &order.id));
    }
    let wanted = "a run of kind contract needs one: `contract` in the suite, or `options.contract`";
    Err(Detail::at("/suite/contract", wanted))
}

fn chaos(order: &Order) -> Result<Plan<'_>, Detail> {
    if let Some(chaos) = &order.chaos {
        return Ok(Plan::chaos(&order.suite, &order.id, chaos.clone()));
    }
    let wanted = "say which chaos: `options.profile`, or `chaos` in the suite";
    Err(Detail::at("/options/profile", wanted))
}

fn verdict(order: &Order, ran: Ran) -> Verdict {
    let contract = ran.matrix.score();
    let mut scores = match order.kind {
        RunKind::Contract => ScoresRecord {
            contract_compliance: contract,
            ..ScoresRecord::default()
        },
        _ => ScoresRecord {
            chaos_resilience: ran.chaos_resilience,
            ..ScoresRecord::default()
        },
    };
    scores.overall = overall(&scores, &order.suite.scoring);
    let score = match order.kind {
        RunKind::Contract => contract,
        _ => ran.chaos_resilience,
    };
    let outcome = match order.kind {
        RunKind::Contract => ran.matrix.outcome(order.bar),
        _ => ran.matrix.outcome_of_chaos(ran.chaos_resilience, order.bar),
    };
    let (passed, reason) = match outcome {
        Outcome::Passed(_) if ran.incomplete > 0 => (None, incomplete(&ran)),
        Outcome::Passed(reason) => (Some(true), reason),
        Outcome::Failed(reason) => (Some(false), reason),
        Outcome::Inconclusive(reason) => (None, reason),
    };
    let Matrix { columns, .. } = ran.matrix;
    Verdict {
        passed,
        score,
        scores,
        reason: Some(reason),
        scenarios: columns.into_iter().map(scenario).collect(),
        recoveries: ran.recoveries.into_iter().map(recovery).collect(),
        warnings: ran.warnings,
        ..Verdict::default()
    }
}

fn incomplete(ran: &Ran) -> String {
    format!(
        "in {} of {} askings exchanges were still open at the end, or were lost",
        ran.incomplete, ran.invocations
    )
}

fn scenario(column: Column) -> ScenarioRecord {
    ScenarioRecord {
        name: column.name,
        under_chaos: column.under_chaos,
        rules_applied: column.rules_applied,
        invocations: column.invocations,
    }
}

fn recovery(recovery: Recovery) -> RecoveryRecord {
    RecoveryRecord {
        family: recovery.family,
        passed: recovery.passed,
        judged: recovery.judged,
        rate: recovery.share,
        low: recovery.interval.low,
        high: recovery.interval.high,
    }
}

/// The hosts that a run touches beside those that its agent finds by itself: where the agent and its tools are,
/// and the suite's name.
pub(super) fn touched(name: &str, suite: &Suite) -> Vec<String> {
    let mut touched = vec![name.to_owned()];
    let endpoint = match &suite.agent.way {
        Way::Http(http) => Some(&http.endpoint),
        Way::OpenAi(chat) => Some(&chat.endpoint),
        Way::Command(_) | Way::Python { .. } => None,
    };
    let reset = match &suite.agent.reset {
        Some(Reset::Endpoint(endpoint)) => Some(endpoint),
        Some(Reset::Function(_) | Reset::Command(_)) | None => None,
    };
    let tools = suite.tools.written.iter().flat_map(|(_, globs)| globs);
    for url in endpoint.into_iter().chain(reset).chain(tools) {
        touched.extend(approval::hosts(url));
    }
    touched
}
