//! The rounds of a run under rising concurrency: one level a round.

use std::collections::BTreeMap;
use std::time::Duration;

use squall_journal::record::ExchangeRecord;

use super::plan::{Component, LoadLimits, RunPart, Trial, TrialPrompt, TrialPrompts};
use super::result::InvocationResult;
use super::rounds::{RanInvocation, Rounds};
use super::spec::{RunSpec, judging};
use super::{RunError, Tell};
use crate::invariants::measures::quantile;
use crate::prompt::Prompt;
use crate::reach::Seen;
use crate::report::breaking;
use crate::run::{CellState, LatencyQuantiles, LimitReaction, LoadLevel, LoadRecord};
use crate::scores::{RunOutcome, score_of};

/// How long the invocations of a level may begin.
const LEVEL_TIME: Duration = Duration::from_mins(10);

/// The success below which the agent breaks, without a minimum score.
const LIMIT: f64 = 90.0;

/// The most calls per call needed of an agent that does not thrash: the clients of model providers retry twice.
const MOST_AMPLIFIED: f64 = 3.0;

/// The status of a limited call.
const TOO_MANY_REQUESTS: u16 = 429;

/// A load run in progress.
pub(super) struct Loading<'s> {
    spec: &'s RunSpec,
    tell: &'s dyn Tell,
    record: LoadRecord,
    /// The calls of each prompt in the clean baseline.
    needed: BTreeMap<Prompt, u64>,
    /// The levels, the highest first.
    left: Vec<usize>,
    /// The level that is executed; `None`: the clean baseline.
    at_once: Option<usize>,
    /// The calls of a level whose invocations cannot be told apart.
    seen: Option<Seen>,
    /// How long the invocations of a level may begin.
    pub(super) within: Duration,
}

impl<'s> Loading<'s> {
    pub(super) fn new(spec: &'s RunSpec, tell: &'s dyn Tell) -> Self {
        let mut left = spec.concurrency.levels();
        left.reverse();
        let record = LoadRecord {
            limit: spec.criteria.min_score.unwrap_or(LIMIT),
            ..LoadRecord::default()
        };
        Self {
            spec,
            tell,
            record,
            needed: BTreeMap::new(),
            left,
            at_once: None,
            seen: None,
            within: LEVEL_TIME,
        }
    }

    /// What was measured.
    pub(super) fn into_record(self) -> LoadRecord {
        self.record
    }

    /// The part of a level.
    fn part(&self, at_once: usize) -> Result<RunPart<'s>, RunError> {
        let prompts = self.spec.suite.golden_prompts.iter().cycle();
        let prompts = prompts.take(self.spec.invocations_at(at_once));
        let prompts = prompts.map(|prompt| TrialPrompt {
            prompt: prompt.clone(),
            original: Some(prompt.clone()),
            mutant: None,
        });
        let name = format!("{at_once} at once");
        let chaos = self.spec.chaos.clone();
        let trial = Trial {
            name: name.clone(),
            prompts: TrialPrompts::Own(prompts.collect()),
            ..chaos.unwrap_or_else(|| Trial::clean(&name))
        };
        let limits = LoadLimits {
            at_once,
            within: self.within,
        };
        let invariants = judging(&self.spec.suite);
        let invariants = invariants.map_err(|wrong| RunError::Agent(wrong.message))?;
        let component = Component::Load(limits);
        Ok(RunPart::new(component, invariants, vec![trial]))
    }

    /// The figures of an executed level.
    fn level(&self, at_once: usize, ran: &[RanInvocation<'_>]) -> LoadLevel {
        let (left_out, ran): (Vec<&RanInvocation<'_>>, Vec<_>) =
            ran.iter().partition(|ran| ran.result.is_left_out);
        let mut level = LoadLevel {
            concurrency: at_once as u64,
            invocations: ran.len() as u64,
            left_out: left_out.len() as u64,
            ..LoadLevel::default()
        };
        let mut latencies = Vec::new();
        for one in &ran {
            count_outcome(&mut level, one);
            level.calls_needed += self.needed.get(one.job.prompt).copied().unwrap_or(0);
            level.calls += one.result.trace.lost();
            if one.result.wrong.is_none() {
                latencies.push(one.result.answer.latency.as_secs_f64() * 1000.0);
            }
        }
        let shared = self.seen.iter().flat_map(|seen| &seen.exchanges);
        level.calls += self.seen.as_ref().map_or(0, |seen| seen.lost);
        let records = ran.iter().flat_map(|ran| ran.result.records());
        for record in records.chain(shared.map(|seen| &seen.record)) {
            count_call(&mut level, record);
        }
        level.latency_ms = quantiles(&latencies);
        level.success = score_of(level.succeeded, level.judged());
        #[expect(clippy::cast_precision_loss, reason = "counts of a run")]
        let amplification = level.calls as f64 / level.calls_needed as f64;
        level.amplification = (level.calls_needed > 0).then_some(amplification);
        level.reaction = self.reaction(&level);
        level
    }

    fn reaction(&self, level: &LoadLevel) -> Option<LimitReaction> {
        let is_limited = level.limited_by_squall + level.limited_by_upstream > 0;
        let times = level.amplification.unwrap_or(0.0);
        let success = level.success.unwrap_or(0.0);
        is_limited.then_some(if times > MOST_AMPLIFIED {
            LimitReaction::Thrashes
        } else if success < self.record.limit {
            LimitReaction::GivesUp
        } else {
            LimitReaction::Converges
        })
    }
}

impl<'s> Rounds<'s> for Loading<'s> {
    fn level_seen(&mut self, seen: Seen) {
        self.record.calls_by_level = true;
        self.seen = Some(seen);
    }

    fn next(&mut self, last: &[RanInvocation<'_>]) -> Result<Vec<RunPart<'s>>, RunError> {
        if let Some(at_once) = self.at_once {
            let level = self.level(at_once, last);
            let breaks = level
                .success
                .is_some_and(|success| success < self.record.limit);
            if breaks && self.record.breaks_at.is_none() {
                self.record.breaks_at = Some(level.concurrency);
            }
            self.record.levels.push(level);
            self.seen = None;
            self.tell.loaded(self.record.clone());
        } else {
            let single = last.iter().filter(|ran| ran.job.is_single());
            let calls = single.map(|ran| (ran.job.prompt.clone(), calls(ran.result)));
            self.needed.extend(calls);
        }
        self.at_once = self.left.pop();
        self.at_once
            .map(|at_once| self.part(at_once))
            .into_iter()
            .collect()
    }
}

fn calls(result: &InvocationResult) -> u64 {
    result.records().count() as u64 + result.trace.lost()
}

/// Counts an invocation, if it was judged.
fn count_outcome(level: &mut LoadLevel, ran: &RanInvocation<'_>) {
    let any = |state| ran.verdicts.iter().any(|verdict| verdict.state == state);
    let mut records = ran.result.records();
    let counter = if ran.result.failure().is_none() && !any(CellState::Failed) {
        if any(CellState::Error) {
            return;
        }
        &mut level.succeeded
    } else if records.any(|record| record.status == Some(TOO_MANY_REQUESTS)) {
        &mut level.failures.limited
    } else if ran.result.answer.timed_out {
        &mut level.failures.timed_out
    } else if ran.result.failure().is_some() {
        &mut level.failures.errors
    } else {
        &mut level.failures.wrong_answers
    };
    *counter += 1;
}

fn count_call(level: &mut LoadLevel, record: &ExchangeRecord) {
    level.calls += 1;
    if record.status == Some(TOO_MANY_REQUESTS) {
        let is_upstreams = record.upstream_status == record.status;
        level.limited_by_upstream += u64::from(is_upstreams);
        level.limited_by_squall += u64::from(!is_upstreams);
    }
    if let Some(llm) = &record.llm {
        level.input_tokens += llm.input_tokens.unwrap_or(0);
        level.output_tokens += llm.output_tokens.unwrap_or(0);
    }
}

fn quantiles(latencies: &[f64]) -> Option<LatencyQuantiles> {
    let at = |share| quantile(latencies, share);
    (!latencies.is_empty()).then(|| LatencyQuantiles {
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
        max: at(1.0),
    })
}

/// The verdict on a load run.
pub(super) fn outcome(record: &LoadRecord, has_minimum: bool) -> RunOutcome {
    match breaking(record) {
        Some(why) if has_minimum && record.breaks_at.is_some() => RunOutcome::Failed(why),
        Some(why) => RunOutcome::Passed(why),
        None => RunOutcome::Inconclusive("no invocation under load could be judged".to_owned()),
    }
}
