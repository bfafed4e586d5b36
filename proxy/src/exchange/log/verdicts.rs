//! The verdicts of the rules in an exchange's plan.

use std::sync::Arc;

use squall_profiles::changes::StreamFault;
use squall_profiles::decide::Decision;
use squall_profiles::plan::{Edit, Plan, Planting, SocketChange, VerdictIndex};
use squall_profiles::rule::Rule;
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

/// The verdicts of one exchange.
#[derive(Default)]
pub(crate) struct Verdicts {
    pub(crate) all: Vec<RuleVerdict>,
    /// Rules that only delay; they leave the outcome `ok`.
    delays: Vec<VerdictIndex>,
    /// Rules whose changes of earlier exchanges were repeated.
    pub(super) again: Vec<RuleVerdict>,
    /// Canaries that rules plant once they are applied.
    pub(super) plantings: Vec<Planting>,
}

impl Verdicts {
    pub(super) fn of(decision: &Decision) -> Self {
        Self {
            all: decision.verdicts.clone(),
            delays: delays_alone(&decision.plan),
            again: Vec::new(),
            plantings: decision.plan.canaries.clone(),
        }
    }

    /// Adds new verdicts, and updates earlier ones that a later rule made ineffective. Applied
    /// rules stay applied.
    pub(crate) fn update(&mut self, decision: &Decision) {
        for (known, now) in self.all.iter_mut().zip(&decision.verdicts) {
            if known.outcome == VerdictOutcome::Chosen {
                known.outcome.clone_from(&now.outcome);
            }
        }
        let known = self.all.len();
        self.all
            .extend(decision.verdicts.iter().skip(known).cloned());
        self.delays = delays_alone(&decision.plan);
        self.plantings.clone_from(&decision.plan.canaries);
    }

    /// The first chosen rule, and the number of this matching call.
    pub(super) fn first_chosen(&self) -> Option<(&str, u64)> {
        let mut chosen = self
            .all
            .iter()
            .filter(|it| it.outcome == VerdictOutcome::Chosen);
        chosen
            .next()
            .map(|verdict| (&*verdict.rule.id, verdict.ordinal))
    }

    /// Bypasses the rules that have not taken effect, except those that still may.
    pub(crate) fn bypass_rest(&mut self, still_may: &[VerdictIndex], why: &str) {
        for (index, verdict) in (0..).zip(&mut self.all) {
            if verdict.outcome == VerdictOutcome::Chosen && !still_may.contains(&index) {
                verdict.outcome = VerdictOutcome::Bypassed(why.to_owned());
            }
        }
    }

    pub(crate) fn modes_in_work(&self) -> Vec<&'static str> {
        let in_work = self
            .all
            .iter()
            .filter(|it| matches!(it.outcome, VerdictOutcome::Applied | VerdictOutcome::Chosen));
        in_work.map(|verdict| verdict.rule.mode()).collect()
    }

    /// Marks a rule as applied; returns it the first time.
    pub(super) fn apply(&mut self, index: VerdictIndex) -> Option<Arc<Rule>> {
        let verdict = self.all.get_mut(usize::from(index))?;
        let before = std::mem::replace(&mut verdict.outcome, VerdictOutcome::Applied);
        (before != VerdictOutcome::Applied).then(|| Arc::clone(&verdict.rule))
    }

    pub(super) fn bypass(&mut self, index: VerdictIndex, why: String) {
        if let Some(verdict) = self.all.get_mut(usize::from(index)) {
            verdict.outcome = VerdictOutcome::Bypassed(why);
        }
    }

    pub(super) fn changed_results(&mut self, index: VerdictIndex, tools: Vec<String>) {
        if let Some(verdict) = self.all.get_mut(usize::from(index)) {
            let mut all = verdict.tools_told_of().to_vec();
            for tool in tools {
                if !all.contains(&tool) {
                    all.push(tool);
                }
            }
            verdict.told_of = Some(all.into());
        }
    }

    /// Whether a rule was applied that does more than delay.
    pub(super) fn changed(&self) -> bool {
        let applied = |(index, verdict): (usize, &RuleVerdict)| {
            verdict.outcome == VerdictOutcome::Applied
                && !self.delays.iter().any(|it| usize::from(*it) == index)
        };
        !self.again.is_empty() || self.all.iter().enumerate().any(applied)
    }

    /// All verdicts, as listed in the journal.
    pub(super) fn listed(&self) -> Vec<RuleVerdict> {
        [&self.all[..], &self.again].concat()
    }
}

/// The verdicts of a plan that only delay.
fn delays_alone(plan: &Plan) -> Vec<VerdictIndex> {
    if plan.is_empty() {
        return Vec::new();
    }
    let shape = &plan.shape;
    let slow = |edit: &Edit| {
        let Edit::Stream(fault) = edit else {
            return false;
        };
        matches!(fault, StreamFault::Slow { .. } | StreamFault::Stall { .. })
    };
    let on_websockets = plan.websocket.iter().filter_map(|(verdict, fault)| {
        let delays = match &fault.change {
            SocketChange::Delay(_) => true,
            SocketChange::Shape(shape) => shape.cut.is_none(),
            SocketChange::HalfOpen | SocketChange::Close(_) => false,
        };
        delays.then_some(*verdict)
    });
    let slow_streams = plan
        .edits
        .iter()
        .filter_map(|(verdict, edit)| slow(edit).then_some(*verdict));
    plan.wait_before
        .iter()
        .chain(&plan.wait_after)
        .map(|(verdict, _)| *verdict)
        .chain(shape.down.map(|(verdict, _)| verdict))
        .chain(shape.up.map(|(verdict, _)| verdict))
        .chain(shape.slices.map(|(verdict, _)| verdict))
        .chain(shape.slow_close.map(|(verdict, _)| verdict))
        .chain(slow_streams)
        .chain(on_websockets)
        .collect()
}
