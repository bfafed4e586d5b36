//! What rules would have done to exchanges that were recorded.
//!
//! Conditions and triggers are those of [`crate::decide`]. A record lacks headers and bodies; a condition on them is
//! counted as unknown.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use http::Method;

use crate::decide::is_of_the_connection;
use crate::dice::{Dice, MILLION, RuleKey};
use crate::facts::{Facts, Kind};
use crate::fingerprint::Fingerprint;
use crate::matching::{Condition, Holds, Touches};
use crate::rule::Rule;
use crate::ruleset::{Candidate, RuleSet};

/// A recorded exchange.
#[derive(Debug)]
pub struct PastExchange<'a> {
    /// Its scope, which is also the key of its draws.
    pub scope: &'a str,
    /// Its properties, as far as the record has them; without headers and body.
    pub facts: &'a Facts<'a>,
    /// The upstream's status.
    pub status: Option<u16>,
    /// The request's fingerprint and attempt, if a draw needed them.
    pub draw: Option<(Fingerprint, u64)>,
    /// The time since the first recorded exchange, which takes the place of the time since activation.
    pub elapsed: Duration,
}

/// What a rule would have done.
#[derive(Debug)]
pub struct RuleTally {
    /// The rule.
    pub rule: Arc<Rule>,
    /// Exchanges that it matches.
    pub matched: u64,
    /// Exchanges that it may match: the record does not show it.
    pub unknown: u64,
    /// The conditions that the record does not show.
    pub unknown_conditions: BTreeSet<&'static str>,
    /// Exchanges on which it fires; `None` if its trigger depends on what no record shows.
    pub fires: Option<f64>,
    /// Matched exchanges without a recorded fingerprint: their draws count by their probability.
    pub estimated: u64,
}

/// Counts what rules would have done to exchanges, which are added oldest first.
#[derive(Debug)]
pub struct DryRun {
    rules: Arc<RuleSet>,
    seed: u64,
    tallies: Vec<RuleTally>,
    /// Matching calls and firings of a rule in a scope.
    counts: HashMap<(String, usize), (u64, f64)>,
}

impl DryRun {
    /// Without exchanges.
    pub fn new(rules: Arc<RuleSet>, seed: u64) -> Self {
        let tally = |rule: &Arc<Rule>| RuleTally {
            rule: rule.clone(),
            matched: 0,
            unknown: 0,
            unknown_conditions: BTreeSet::new(),
            fires: (rule.trigger.armed_by.is_none() && rule.fault.allowed.is_none()).then_some(0.0),
            estimated: 0,
        };
        Self {
            tallies: rules.rules().iter().map(tally).collect(),
            rules,
            seed,
            counts: HashMap::new(),
        }
    }

    /// Adds an exchange.
    pub fn add(&mut self, past: &PastExchange<'_>) {
        for number in 0..self.tallies.len() {
            let mut unknown = Vec::new();
            match self.matches(number, past, &mut unknown) {
                Holds::No => {}
                Holds::Unknown => {
                    let tally = &mut self.tallies[number];
                    tally.unknown += 1;
                    let fields = unknown.iter().map(|condition| condition.field());
                    tally.unknown_conditions.extend(fields);
                }
                Holds::Yes => self.count(number, past),
            }
        }
    }

    /// The tallies, in order of precedence.
    pub fn finish(self) -> Vec<RuleTally> {
        self.tallies
    }

    fn matches(
        &self,
        number: usize,
        past: &PastExchange<'_>,
        unknown: &mut Vec<Condition>,
    ) -> Holds {
        let rule = &self.rules.rules()[number];
        let (facts, matching) = (past.facts, &rule.matching);
        if facts.method == Method::CONNECT && !is_of_the_connection(rule, facts.url) {
            return Holds::No;
        }
        let (_, tool_urls) = self.rules.conditions(Candidate::Rule(number));
        for condition in Condition::ALL.into_iter().chain([Condition::Status]) {
            let holds = match condition {
                Condition::Headers if !matching.headers.is_empty() => Holds::Unknown,
                Condition::Status => match (&matching.status, past.status) {
                    (None, _) => Holds::Yes,
                    (Some(wanted), Some(status)) => wanted.holds(status).into(),
                    (Some(_), None) => Holds::Unknown,
                },
                _ => matching.holds(condition, Some(rule.family()), facts, tool_urls),
            };
            // The session of an MCP request is in its headers.
            let may_be_of_a_session = condition == Condition::Kind
                && matching.touches == Touches::Sessions
                && facts.kind == Kind::Mcp;
            match holds {
                Holds::No if may_be_of_a_session => unknown.push(condition),
                Holds::No => return Holds::No,
                Holds::Unknown => unknown.push(condition),
                Holds::Yes => {}
            }
        }
        if unknown.is_empty() {
            Holds::Yes
        } else {
            Holds::Unknown
        }
    }

    fn count(&mut self, number: usize, past: &PastExchange<'_>) {
        let tally = &mut self.tallies[number];
        tally.matched += 1;
        let Some(sum) = &mut tally.fires else {
            return;
        };
        let trigger = &tally.rule.trigger;
        let key = (past.scope.to_owned(), number);
        let (calls, fired) = self.counts.entry(key).or_default();
        *calls += 1;
        if trigger.permits(*calls, past.elapsed, false).is_err() {
            return;
        }
        let below = trigger.chance.at(past.elapsed);
        let chance = match past.draw {
            Some((fingerprint, attempt)) if trigger.chance.draws() => {
                let key = RuleKey::new(self.seed, past.scope, &tally.rule.id);
                let draw = Dice::new(key, fingerprint, attempt).trigger();
                f64::from(u8::from(draw < below))
            }
            _ => {
                tally.estimated += u64::from(trigger.chance.draws());
                f64::from(below) / f64::from(MILLION)
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a limit above 2^52 is none")]
        let left = trigger
            .limit
            .map_or(f64::INFINITY, |limit| limit as f64 - *fired);
        let chance = chance.min(left);
        *fired += chance;
        *sum += chance;
    }
}
