//! What became of the rules that an exchange's plan is made of.

use std::sync::Arc;

use squall_profiles::changes::StreamFault;
use squall_profiles::decide::Decision;
use squall_profiles::plan::{Edit, Plan, Planting, VerdictIndex};
use squall_profiles::rule::Rule;
use squall_profiles::verdict::{RuleVerdict, VerdictOutcome};

/// The verdicts of one exchange.
#[derive(Default)]
pub(super) struct Verdicts {
    pub(super) all: Vec<RuleVerdict>,
    /// Those whose part of the plan only takes time: they leave the outcome `ok`.
    delays: Vec<VerdictIndex>,
    /// Rules whose changes of earlier exchanges were made again.
    pub(super) again: Vec<RuleVerdict>,
    /// What rules plant once they are applied.
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

    /// Takes over verdicts that were added, and earlier ones that a later rule has put out of work. What was carried out
    /// stays so.
    pub(super) fn update(&mut self, decision: &Decision) {
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

    /// The rule that was chosen first, and which of its matching calls this is.
    pub(super) fn first_chosen(&self) -> Option<(&str, u64)> {
        let mut chosen = self
            .all
            .iter()
            .filter(|it| it.outcome == VerdictOutcome::Chosen);
        chosen
            .next()
            .map(|verdict| (&*verdict.rule.id, verdict.ordinal))
    }

    pub(super) fn bypass_rest(&mut self, why: &str) {
        for verdict in &mut self.all {
            if verdict.outcome == VerdictOutcome::Chosen {
                verdict.outcome = VerdictOutcome::Bypassed(why.to_owned());
            }
        }
    }

    pub(super) fn modes_in_work(&self) -> Vec<&'static str> {
        let in_work = self
            .all
            .iter()
            .filter(|it| matches!(it.outcome, VerdictOutcome::Applied | VerdictOutcome::Chosen));
        in_work.map(|verdict| verdict.rule.mode()).collect()
    }

    /// A rule took effect; the rule, if it is the first time.
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

    /// A rule that did more than take time was applied.
    pub(super) fn changed(&self) -> bool {
        let applied = |(index, verdict): (usize, &RuleVerdict)| {
            verdict.outcome == VerdictOutcome::Applied
                && !self.delays.iter().any(|it| usize::from(*it) == index)
        };
        !self.again.is_empty() || self.all.iter().enumerate().any(applied)
    }

    /// As the journal lists them.
    pub(super) fn listed(&self) -> Vec<RuleVerdict> {
        [&self.all[..], &self.again].concat()
    }
}

/// The verdicts of a plan whose part only takes time.
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
        .collect()
}
