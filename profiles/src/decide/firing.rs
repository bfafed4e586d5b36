//! Whether a matching rule fires: its trigger, its limit or budget, and its draw.

use std::time::Duration;

use squall_dialects::tokens::{self, Counting};

use crate::activation::Counter;
use crate::allowance::OverAllowance;
use crate::budget::BudgetState;
use crate::dice::{Dice, MILLION};
use crate::facts::Facts;
use crate::fault::AllowedUse;
use crate::rule::Rule;
use crate::spending::Spent;
use crate::trigger::NotDrawn;
use crate::verdict::{Draw, VerdictOutcome};

/// The outcome of a rule's trigger.
pub(super) struct Firing {
    /// Chosen, not drawn, or bypassed.
    pub(super) outcome: VerdictOutcome,
    pub(super) drawn: Option<Draw>,
    /// The exceeded limit of a rule with an allowance.
    pub(super) over: Option<OverAllowance>,
    /// For a rule with a budget: what its calls had used before.
    pub(super) spent: Option<Box<Spent>>,
}

impl Firing {
    /// Counts a firing of the rule, if it fires on its `call`-th matching call. `facts` are those of
    /// the request; `None` when the response has arrived. `read`: usage is read from bodies.
    pub(super) fn of(
        rule: &Rule,
        call: u64,
        counter: &Counter,
        dice: &Dice,
        facts: Option<&Facts<'_>>,
        elapsed: Duration,
        read: bool,
    ) -> Self {
        let mut firing = Self {
            outcome: VerdictOutcome::Chosen,
            drawn: None,
            over: None,
            spent: None,
        };
        let permitted = rule.trigger.permits(call, elapsed, counter.is_armed());
        let used = permitted
            .map_err(VerdictOutcome::NotDrawn)
            .and_then(|()| firing.check_usage(rule, counter, facts, elapsed, read));
        let drawn = used.and_then(|()| {
            let drawn = firing.draw(rule, counter, dice, elapsed);
            drawn.map_err(VerdictOutcome::NotDrawn)
        });
        if let Err(outcome) = drawn {
            firing.outcome = outcome;
            firing.over = None;
        }
        firing
    }

    /// Checks the rule's limit or budget against the usage so far.
    fn check_usage(
        &mut self,
        rule: &Rule,
        counter: &Counter,
        facts: Option<&Facts<'_>>,
        elapsed: Duration,
        read: bool,
    ) -> Result<(), VerdictOutcome> {
        let budget = match rule.fault.allowed {
            None => return Ok(()),
            Some(AllowedUse::Rate(allowance)) => {
                let taken = counter.take(allowance, request_tokens(facts), elapsed);
                self.over = taken.err();
                return match self.over {
                    Some(_) => Ok(()),
                    None => Err(VerdictOutcome::NotDrawn(NotDrawn::Allowed)),
                };
            }
            Some(AllowedUse::Budget(budget)) => budget,
        };
        if !read {
            let why = "usage is not read with `observe: headers`; activate the profile with `observe: model`";
            return Err(VerdictOutcome::Bypassed(why.to_owned()));
        }
        let spent = counter.spending.now();
        let state = budget.standing(&spent, facts.and_then(|facts| facts.model));
        self.spent = Some(Box::new(spent));
        match state {
            BudgetState::Exhausted => Ok(()),
            BudgetState::Within => Err(VerdictOutcome::NotDrawn(NotDrawn::WithinBudget)),
            BudgetState::Unknown(why) => Err(VerdictOutcome::Bypassed(why)),
        }
    }

    fn draw(
        &mut self,
        rule: &Rule,
        counter: &Counter,
        dice: &Dice,
        elapsed: Duration,
    ) -> Result<(), NotDrawn> {
        let (chance, limit) = (rule.trigger.chance, rule.trigger.limit);
        let below = chance.at(elapsed);
        if chance.draws() {
            let value = dice.trigger();
            self.drawn = Some(Draw { value, below });
            if value >= below {
                return Err(NotDrawn::Drew);
            }
        } else if below < MILLION {
            return Err(NotDrawn::Impossible);
        }
        if counter.fire(limit) {
            Ok(())
        } else {
            Err(NotDrawn::Limit)
        }
    }
}

/// Number of tokens in the request.
fn request_tokens(facts: Option<&Facts<'_>>) -> u64 {
    let text = facts.and_then(|facts| std::str::from_utf8(facts.body.as_ref()?.bytes).ok());
    let counting = Counting::of(facts.and_then(|facts| facts.model));
    text.map_or(0, |text| tokens::count(counting, text))
}
