//! Why no planned fault was applied in an invocation.

use std::fmt;

use squall_journal::record::RuleOutcome;

use crate::agents::conversation::FAMILY;
use crate::reach::{NearestMiss, Seen};

/// Why no planned fault was applied. Greater values are closer to an applied fault.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NoFault {
    /// No call of the agent was seen.
    Unseen,
    /// No call of the agent was seen, and the agent itself failed.
    Failed {
        /// The agent's error.
        error: String,
    },
    /// Calls were seen, but no rule matches that kind of call.
    NoMatch {
        /// The nearest miss of all calls.
        nearest: Option<NearestMiss>,
    },
    /// A rule matched, but its trigger did not fire.
    NotDrawn {
        /// The rule's id.
        rule: String,
        /// Why it did not fire.
        why: String,
    },
    /// A fault of the conversation could not be applied.
    Conversation {
        /// Why, and what to write.
        why: String,
    },
    /// A rule fired, but it could not be applied.
    Bypassed {
        /// The rule's id.
        rule: String,
        /// Why it could not be applied.
        why: String,
    },
}

impl NoFault {
    /// `None`: a fault was applied.
    pub(super) fn of(seen: &Seen, failure: Option<&str>) -> Option<Self> {
        if seen.applied().next().is_some() {
            return None;
        }
        let rules = seen.exchanges.iter().flat_map(|one| &one.record.rules);
        let nearest = rules.map(|rule| match rule.outcome {
            RuleOutcome::Bypassed => Self::Bypassed {
                rule: rule.rule.clone(),
                why: rule.reason.clone().unwrap_or_default(),
            },
            RuleOutcome::NotDrawn | RuleOutcome::Applied => Self::NotDrawn {
                rule: rule.rule.clone(),
                why: rule.reason.clone().unwrap_or_default(),
            },
        });
        let otherwise = match failure {
            _ if !seen.exchanges.is_empty() => Self::NoMatch {
                nearest: (seen.exchanges.iter())
                    .filter_map(|one| one.nearest_miss.clone())
                    .max(),
            },
            Some(error) => Self::Failed {
                error: error.to_owned(),
            },
            None => Self::Unseen,
        };
        Some(nearest.max().unwrap_or(otherwise))
    }
}

impl fmt::Display for NoFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen => {
                f.write_str("no call of the agent came through the proxy; is it pointed there?")
            }
            Self::Failed { error } => write!(
                f,
                "no call of the agent came through the proxy, and it failed: {error}"
            ),
            Self::NoMatch { nearest } => {
                f.write_str("the agent's calls came through the proxy, and no rule matched one: ")?;
                match nearest {
                    Some(miss) => write!(f, "rule `{}` missed: {}", miss.rule, miss.why),
                    None => f.write_str("which rule came nearest is not known"),
                }
            }
            Self::NotDrawn { rule, why } => {
                write!(f, "rule `{rule}` matched, and did not fire: {why}")
            }
            Self::Conversation { why } => write!(f, "`{FAMILY}`: {why}"),
            Self::Bypassed { rule, why } => {
                write!(f, "rule `{rule}` fired and could not be carried out: {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trace::testing::{Sent, exchange};

    #[test]
    #[rustfmt::skip]
    fn the_cause_that_is_nearest_to_a_fault_is_told() {
        let ruled = |outcome| {
            let mut sent = Sent::get("https://t.test/").injected("error", json!({}));
            let rule = &mut sent.record.rules[0];
            (rule.outcome, rule.rule) = (outcome, "r".to_owned());
            rule.reason = Some(match outcome {
                RuleOutcome::NotDrawn => "call 1: `every: 2` fires on calls 2, 4 …".to_owned(),
                RuleOutcome::Bypassed | RuleOutcome::Applied => "it was cut".to_owned(),
            });
            sent
        };
        let plain = || Sent::get("https://t.test/");
        let failed = Some("exited with 3");
        for (sent, failure, expected) in [
            (vec![], None, Some("is it pointed there?")),
            (vec![], failed, Some("it failed: exited with 3")),
            (vec![plain()], failed, Some("no rule matched one: which rule came nearest is not known")),
            (
                vec![
                    plain(),
                    plain().missed_by(700, "far"),
                    plain().missed_by(900, "near"),
                    plain().missed_by(800, "middle"),
                ],
                None,
                Some("no rule matched one: rule `near` missed: its `tool` is `serch`"),
            ),
            (
                vec![plain(), ruled(RuleOutcome::NotDrawn)],
                None,
                Some(
                    "rule `r` matched, and did not fire: call 1: `every: 2` fires on calls 2, 4 …",
                ),
            ),
            (
                vec![ruled(RuleOutcome::Bypassed), ruled(RuleOutcome::NotDrawn)],
                None,
                Some("could not be carried out: it was cut"),
            ),
            (vec![ruled(RuleOutcome::NotDrawn), ruled(RuleOutcome::Applied)], None, None),
        ] {
            let exchanges = sent.iter().enumerate();
            let seen = Seen {
                exchanges: exchanges.map(|(place, one)| exchange(place, one)).collect(),
                ..Seen::default()
            };
            let found = NoFault::of(&seen, failure).map(|idle| idle.to_string());
            match (found, expected) {
                (Some(found), Some(said)) => assert!(found.contains(said), "{found}"),
                (found, expected) => assert_eq!(found.as_deref(), expected),
            }
        }
    }
}
