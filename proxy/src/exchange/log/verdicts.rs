//! What became of the rules that an exchange's plan is made of.

use std::sync::Arc;

use squall_profiles::fault::StreamFault;
use squall_profiles::plan::{Edit, Outcome, Plan, Planting, Verdict, VerdictIndex};
use squall_profiles::rule::Rule;

/// The verdicts of one exchange.
#[derive(Default)]
pub(super) struct Verdicts {
    pub(super) all: Vec<Verdict>,
    /// Those whose part of the plan only takes time: they leave the outcome `ok`.
    delays: Vec<VerdictIndex>,
    /// Rules whose changes of earlier exchanges were made again.
    pub(super) again: Vec<Verdict>,
    /// What rules plant once they are applied.
    pub(super) plantings: Vec<Planting>,
}

impl Verdicts {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            all: plan.verdicts.clone(),
            delays: delays_alone(plan),
            again: Vec::new(),
            plantings: plan.canaries.clone(),
        }
    }

    /// Takes over verdicts that were added, and earlier ones that a later rule has put out of work. What was carried out
    /// stays so.
    pub(super) fn update(&mut self, plan: &Plan) {
        for (known, now) in self.all.iter_mut().zip(&plan.verdicts) {
            if known.outcome == Outcome::Chosen {
                known.outcome.clone_from(&now.outcome);
            }
        }
        let known = self.all.len();
        self.all.extend(plan.verdicts.iter().skip(known).cloned());
        self.delays = delays_alone(plan);
        self.plantings.clone_from(&plan.canaries);
    }

    /// The rule that was chosen first, and which of its matching calls this is.
    pub(super) fn first_chosen(&self) -> Option<(&str, u64)> {
        let mut chosen = self.all.iter().filter(|it| it.outcome == Outcome::Chosen);
        chosen
            .next()
            .map(|verdict| (&*verdict.rule.id, verdict.ordinal))
    }

    pub(super) fn bypass_rest(&mut self, why: &str) {
        for verdict in &mut self.all {
            if verdict.outcome == Outcome::Chosen {
                verdict.outcome = Outcome::Bypassed(why.to_owned());
            }
        }
    }

    pub(super) fn modes_in_work(&self) -> Vec<&'static str> {
        let in_work = self
            .all
            .iter()
            .filter(|it| matches!(it.outcome, Outcome::Applied | Outcome::Chosen));
        in_work.map(|verdict| verdict.rule.mode).collect()
    }

    /// A rule took effect; the rule, if it is the first time.
    pub(super) fn apply(&mut self, index: VerdictIndex) -> Option<Arc<Rule>> {
        let verdict = self.all.get_mut(usize::from(index))?;
        let before = std::mem::replace(&mut verdict.outcome, Outcome::Applied);
        (before != Outcome::Applied).then(|| Arc::clone(&verdict.rule))
    }

    pub(super) fn bypass(&mut self, index: VerdictIndex, why: String) {
        if let Some(verdict) = self.all.get_mut(usize::from(index)) {
            verdict.outcome = Outcome::Bypassed(why);
        }
    }

    pub(super) fn told_of(&mut self, index: VerdictIndex, tools: Vec<String>) {
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
        let applied = |(index, verdict): (usize, &Verdict)| {
            verdict.outcome == Outcome::Applied
                && !self.delays.iter().any(|it| usize::from(*it) == index)
        };
        !self.again.is_empty() || self.all.iter().enumerate().any(applied)
    }

    /// As the journal lists them.
    pub(super) fn listed(&self) -> Vec<Verdict> {
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
