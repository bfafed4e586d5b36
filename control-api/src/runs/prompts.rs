//! Runs of kind `chaos`: golden prompts, one after the other, under chaos.
//!
//! Each asking of the agent is an activation of its own, so counters begin at zero and the same seed
//! draws the same. The agent is asked once without chaos before: that tells which scope its calls
//! come in. An agent that passes baggage on is in the run's own scope; one whose calls come without any
//! scope is asked while the run has the default scope for itself.

use serde_json::Value;
use squall_journal::reach::{Observe, Pending, ReachError, Rules, Seen, Wanted};
use squall_journal::record::RuleOutcome;
use squall_journal::run::{
    CellRecord, CellState, CoverageRecord, EvidenceRecord, RunKind, ScoresRecord,
};

use super::agent::{Asked, HttpAgent};
use super::judge::Demand;
use super::runner::{Order, RunError, Runner, SETTLE, Tools, Verdict};
use crate::problem::Detail;

/// Golden prompts under chaos.
#[derive(Debug, Clone, Copy)]
pub struct ChaosRunner {
    http: fn() -> reqwest::Result<reqwest::Client>,
}

/// What a suite asks for, as far as this kind goes.
#[derive(Debug, Clone)]
struct Plan {
    agent: HttpAgent,
    prompts: Vec<String>,
    demands: Vec<Demand>,
}

/// One prompt, asked.
struct Tried {
    prompt: String,
    asked: Asked,
    applied: u64,
    exchanges: Vec<String>,
    is_complete: bool,
}

impl ChaosRunner {
    /// Asks agents by what `http` makes for each run, which goes through no proxy.
    pub fn new(http: fn() -> reqwest::Result<reqwest::Client>) -> Self {
        Self { http }
    }

    async fn carry_out(&self, order: &Order, tools: &Tools<'_>) -> Result<Verdict, RunError> {
        let plan = Plan::read(order).map_err(|wrong| {
            let wrong: Vec<_> = wrong.into_iter().map(|detail| detail.detail).collect();
            RunError::Agent(wrong.join("; "))
        })?;
        let http = (self.http)().map_err(|error| RunError::Agent(error.to_string()))?;
        let Some(rules) = &order.rules else {
            return Err(RunError::Agent("no chaos is asked for".to_owned()));
        };
        let exclusive = tools.exclusive.lock().await;
        let scope = scope_of(&http, &plan, order, tools).await?;
        let _held = (scope != order.scope).then_some(exclusive);
        let of = plan.prompts.len() as u64 + 1;
        let mut tried = Vec::new();
        for (number, prompt) in (1_u64..).zip(&plan.prompts) {
            tools.report.progress(number, of).await;
            let asking = ask(
                &http,
                &plan.agent,
                order,
                tools,
                scope,
                number,
                rules,
                prompt,
            );
            tried.push(asking.await?);
            tools.report.coverage(coverage(&plan, &tried));
        }
        tools.report.progress(of, of).await;
        tools.reach.end_run(&order.id).await?;
        for cell in cells(&plan, order, &tried) {
            tools.report.cell(cell).await;
        }
        Ok(verdict(&plan, order, &tried))
    }
}

/// The scope that the agent's calls come in: asked for without chaos.
async fn scope_of<'o>(
    http: &reqwest::Client,
    plan: &Plan,
    order: &'o Order,
    tools: &'o Tools<'_>,
) -> Result<&'o str, RunError> {
    let clean = |scope: &'o str| {
        let wanted = wanted(order, 0, Rules::Nothing);
        async move { tools.reach.begin(scope, wanted).await }
    };
    let own = clean(&order.scope).await?;
    let shared = match &tools.shared_scope {
        Some(scope) => Some((scope, clean(scope).await?)),
        None => None,
    };
    let prompt = plan.prompts.first().map_or("", String::as_str);
    let asked = plan.agent.ask(http, prompt, &order.scope).await;
    if let Err(why) = &asked.answer {
        return Err(RunError::Agent(format!("without chaos: {why}")));
    }
    let calls = async |activation: Option<&String>| {
        let activation = activation.map_or("", String::as_str);
        let seen = tools.reach.seen(activation, SETTLE).await?;
        Ok::<_, ReachError>(!seen.exchanges.is_empty())
    };
    let Some((scope, clean)) = shared else {
        return Ok(&order.scope);
    };
    if !calls(own.activation.as_ref()).await? && calls(clean.activation.as_ref()).await? {
        return Ok(scope);
    }
    tools.reach.end(scope).await?;
    Ok(&order.scope)
}

#[expect(clippy::too_many_arguments, reason = "one call, read where it is made")]
async fn ask(
    http: &reqwest::Client,
    agent: &HttpAgent,
    order: &Order,
    tools: &Tools<'_>,
    scope: &str,
    number: u64,
    rules: &Rules,
    prompt: &str,
) -> Result<Tried, RunError> {
    let begun = tools
        .reach
        .begin(scope, wanted(order, number, rules.clone()))
        .await?;
    let asked = agent.ask(http, prompt, &order.scope).await;
    let activation = begun.activation.unwrap_or_default();
    let seen = tools.reach.seen(&activation, SETTLE).await?;
    Ok(Tried {
        prompt: prompt.to_owned(),
        asked,
        applied: applied(&seen),
        is_complete: seen.is_complete(),
        exchanges: seen
            .exchanges
            .into_iter()
            .map(|seen| seen.record.id)
            .collect(),
    })
}

impl Runner for ChaosRunner {
    fn kind(&self) -> RunKind {
        RunKind::Chaos
    }

    fn check(&self, order: &Order) -> Vec<Detail> {
        let mut wrong = Plan::read(order).err().unwrap_or_default();
        if order.rules.is_none() {
            wrong.push(Detail::at(
                "/options/profile",
                "say which chaos: `options.profile`, or `chaos` in the suite",
            ));
        }
        for (name, is_given) in [
            ("repeat", order.repeat.is_some_and(|repeat| repeat != 1)),
            ("baseline", order.baseline.is_some()),
            (
                "concurrency",
                order.concurrency.is_some_and(|at_once| at_once != 1),
            ),
        ] {
            if is_given {
                wrong.push(Detail::at(
                    format!("/options/{name}"),
                    format!("`{name}` means nothing to this version in a run of kind chaos; leave it out"),
                ));
            }
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

impl Plan {
    fn read(order: &Order) -> Result<Self, Vec<Detail>> {
        let suite = &order.suite;
        let mut wrong = Vec::new();
        let agent = HttpAgent::read(&suite["agent"], "/suite/agent");
        let agent = agent.map_err(|mut errors| wrong.append(&mut errors)).ok();
        let mut prompts = Vec::new();
        for (index, prompt) in suite["golden_prompts"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            match prompt.as_str() {
                Some(prompt) => prompts.push(prompt.to_owned()),
                None => wrong.push(Detail::at(
                    format!("/suite/golden_prompts/{index}"),
                    "a golden prompt is a text for this version",
                )),
            }
        }
        let invariants = suite["invariants"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate();
        let mut demands: Vec<_> = invariants
            .filter_map(|(index, invariant)| {
                Demand::read(invariant, &format!("/suite/invariants/{index}"), &mut wrong)
            })
            .collect();
        if demands.is_empty() {
            demands.push(Demand::completes());
        }
        match agent {
            Some(agent) if wrong.is_empty() => Ok(Self {
                agent,
                prompts,
                demands,
            }),
            _ => Err(wrong),
        }
    }
}

fn wanted(order: &Order, number: u64, rules: Rules) -> Wanted {
    Wanted {
        run: order.id.clone(),
        rules,
        seed: order.seed,
        key: format!("prompt-{number}"),
        observe: Observe::Bodies,
        ttl: None,
    }
}

/// How often a rule was applied.
fn applied(seen: &Seen) -> u64 {
    let rules = seen.exchanges.iter().flat_map(|seen| &seen.record.rules);
    rules
        .filter(|rule| rule.outcome == RuleOutcome::Applied)
        .count() as u64
}

fn coverage(plan: &Plan, tried: &[Tried]) -> CoverageRecord {
    let cells = plan.demands.len() as u64;
    let rules_applied = tried.iter().map(|tried| tried.applied).sum();
    CoverageRecord {
        cells,
        chaos_cells: cells,
        exercised: if rules_applied > 0 { cells } else { 0 },
        rules_applied,
        // One of them without chaos.
        agent_invocations: tried.len() as u64 + 1,
    }
}

fn cells(plan: &Plan, order: &Order, tried: &[Tried]) -> Vec<CellRecord> {
    let cells = plan.demands.iter().map(|demand| cell(demand, order, tried));
    cells.collect()
}

fn cell(demand: &Demand, order: &Order, tried: &[Tried]) -> CellRecord {
    let exercised = tried.iter().filter(|tried| tried.applied > 0);
    let mut state = CellState::NotExercised;
    let mut reason = Some(NOT_EXERCISED.to_owned());
    for tried in exercised {
        match demand.judge(&tried.asked) {
            Ok(()) if state == CellState::NotExercised => {
                (state, reason) = (CellState::Passed, None);
            }
            Ok(()) => {}
            Err(why) => {
                let prompt: String = tried.prompt.chars().take(60).collect();
                (state, reason) = (CellState::Failed, Some(format!("`{prompt}`: {why}")));
                break;
            }
        }
    }
    CellRecord {
        invariant: demand.id.clone(),
        scenario: order.scenario.clone(),
        severity: demand.severity.to_owned(),
        state,
        reason,
        faults_applied: tried.iter().map(|tried| tried.applied).sum(),
        mutation: None,
        baseline_failed: false,
        evidence: tried.iter().map(Tried::evidence).collect(),
    }
}

const NOT_EXERCISED: &str = "no fault was applied: either the agent's calls do not pass the proxy, or the \
     rules match none of them";

impl Tried {
    fn evidence(&self) -> EvidenceRecord {
        EvidenceRecord {
            prompt: self.prompt.clone(),
            answer: self.asked.answer.as_ref().ok().cloned(),
            latency_ms: (self.asked.latency.as_secs_f64() * 1e6).round() / 1e3,
            exchanges: self.exchanges.clone(),
            state: None,
            reason: None,
            faults_applied: self.applied,
        }
    }
}

/// Exercised prompts whose demands all hold, of the exercised ones.
fn verdict(plan: &Plan, order: &Order, tried: &[Tried]) -> Verdict {
    let exercised: Vec<_> = tried.iter().filter(|tried| tried.applied > 0).collect();
    let holds = |tried: &&&Tried| {
        plan.demands
            .iter()
            .all(|demand| demand.judge(&tried.asked).is_ok())
    };
    let held = exercised.iter().filter(holds).count();
    let nothing = |why: &str| Verdict {
        passed: None,
        score: None,
        scores: ScoresRecord::default(),
        reason: Some(why.to_owned()),
    };
    if exercised.is_empty() {
        return nothing(NOT_EXERCISED);
    }
    #[expect(clippy::cast_precision_loss, reason = "prompts are few")]
    let score = 100.0 * held as f64 / exercised.len() as f64;
    let verdict = Verdict {
        passed: Some(order.min_score.map_or(score > 0.0, |least| score >= least)),
        score: Some(score),
        scores: ScoresRecord {
            chaos_resilience: Some(score),
            overall: Some(score),
            ..ScoresRecord::default()
        },
        reason: None,
    };
    let missed = tried.len() - exercised.len();
    let incomplete = tried.iter().filter(|tried| !tried.is_complete).count();
    let unproved = if incomplete > 0 {
        Some(format!(
            "in {incomplete} of {} askings exchanges were still open at the end, or were lost",
            tried.len()
        ))
    } else if order.strict && missed > 0 {
        Some(format!("{missed} of {} prompts met no fault", tried.len()))
    } else {
        None
    };
    match unproved {
        // What failed has failed, whatever was not seen.
        Some(why) if verdict.passed == Some(true) => Verdict {
            passed: None,
            reason: Some(why),
            ..verdict
        },
        why => Verdict {
            reason: why,
            ..verdict
        },
    }
}

/// The hosts that a suite's agent and tools are at, and the suite's name.
pub(super) fn touched(name: &str, suite: &Value) -> Vec<String> {
    let mut touched = vec![name.to_owned()];
    let endpoint = suite["agent"]["endpoint"].as_str();
    let tools = suite["tools"].as_object().into_iter().flatten();
    let urls = tools.flat_map(|(_, tool)| match &tool["match_url"] {
        Value::Array(urls) => urls.iter().filter_map(Value::as_str).collect(),
        url => url.as_str().into_iter().collect::<Vec<_>>(),
    });
    for url in endpoint.into_iter().chain(urls) {
        touched.extend(super::approval::hosts(url));
    }
    touched
}
