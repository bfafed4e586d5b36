//! What is demanded of an answer, and whether it holds.

use std::time::Duration;

use serde_json::Value;

use super::agent::Asked;
use crate::problem::Detail;

/// A demand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demand {
    /// Its id, or its type.
    pub(super) id: String,
    /// `critical`, `high`, `medium` or `low`.
    pub(super) severity: &'static str,
    check: Check,
    negate: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Check {
    Completes,
    OutputNotEmpty,
    Contains(String),
    NotContains(String),
    Latency(Duration),
}

/// Types of demands that are understood.
const TYPES: [&str; 5] = [
    "completes",
    "output_not_empty",
    "contains",
    "not_contains",
    "latency",
];

/// Members of a demand that are understood.
const MEMBERS: [&str; 7] = [
    "id",
    "type",
    "description",
    "severity",
    "negate",
    "value",
    "max_ms",
];

const SEVERITIES: [&str; 4] = ["critical", "high", "medium", "low"];

impl Demand {
    /// That the agent answers at all: demanded of every asking.
    pub(super) fn completes() -> Self {
        Self {
            id: "completes".to_owned(),
            severity: "critical",
            check: Check::Completes,
            negate: false,
        }
    }

    /// Reads one; `None` and what is wrong with it, `at` its place.
    pub(super) fn read(invariant: &Value, at: &str, wrong: &mut Vec<Detail>) -> Option<Self> {
        let before = wrong.len();
        let mut complain = |member: &str, detail: String| {
            wrong.push(Detail::at(format!("{at}/{member}"), detail));
        };
        let kind = invariant["type"].as_str().unwrap_or_default();
        let value = invariant["value"].as_str().unwrap_or_default().to_owned();
        let check = match kind {
            "completes" => Some(Check::Completes),
            "output_not_empty" => Some(Check::OutputNotEmpty),
            "contains" => Some(Check::Contains(value.clone())),
            "not_contains" => Some(Check::NotContains(value.clone())),
            "latency" => {
                let most = invariant["max_ms"].as_u64();
                if most.is_none() {
                    complain(
                        "max_ms",
                        "`latency` needs `max_ms`, a whole number".to_owned(),
                    );
                }
                most.map(|ms| Check::Latency(Duration::from_millis(ms)))
            }
            other => {
                let types = TYPES.join(", ");
                complain(
                    "type",
                    format!("`{other}` cannot be judged by this version; there are {types}"),
                );
                None
            }
        };
        if matches!(check, Some(Check::Contains(_) | Check::NotContains(_))) && value.is_empty() {
            complain("value", format!("`{kind}` needs `value`, a text"));
        }
        for name in invariant
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            if !MEMBERS.contains(&name.as_str()) {
                complain(
                    name,
                    format!(
                        "`{name}` means nothing to this version; there are {}",
                        MEMBERS.join(", ")
                    ),
                );
            }
        }
        let given = invariant["severity"].as_str().unwrap_or("medium");
        let severity = SEVERITIES.into_iter().find(|severity| *severity == given);
        if severity.is_none() {
            complain(
                "severity",
                format!(
                    "`{given}` is no severity; there are {}",
                    SEVERITIES.join(", ")
                ),
            );
        }
        let fits = wrong.len() == before;
        Some(Self {
            id: invariant["id"].as_str().unwrap_or(kind).to_owned(),
            severity: severity?,
            check: check?,
            negate: invariant["negate"].as_bool().unwrap_or(false),
        })
        .filter(|_| fits)
    }

    /// Whether it holds of what came of asking; an error says why not.
    pub(super) fn judge(&self, asked: &Asked) -> Result<(), String> {
        match (self.holds(asked), self.negate) {
            (Ok(()), false) | (Err(_), true) => Ok(()),
            (Err(why), false) => Err(why),
            (Ok(()), true) => Err(format!("`{}` holds, and must not", self.id)),
        }
    }

    fn holds(&self, asked: &Asked) -> Result<(), String> {
        let answer = || asked.answer.as_deref().map_err(ToOwned::to_owned);
        match &self.check {
            Check::Completes => answer().map(drop),
            Check::OutputNotEmpty => match answer()?.trim() {
                "" => Err("the answer is empty".to_owned()),
                _ => Ok(()),
            },
            Check::Contains(value) if !answer()?.contains(value) => {
                Err(format!("the answer does not contain `{value}`"))
            }
            Check::NotContains(value) if answer()?.contains(value) => {
                Err(format!("the answer contains `{value}`"))
            }
            Check::Latency(most) if asked.latency > *most => Err(format!(
                "it took {} ms, more than {}",
                asked.latency.as_millis(),
                most.as_millis()
            )),
            Check::Contains(_) | Check::NotContains(_) | Check::Latency(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(answer: Result<&str, &str>) -> Asked {
        Asked {
            answer: answer.map(str::to_owned).map_err(str::to_owned),
            latency: Duration::from_millis(50),
        }
    }

    #[test]
    fn a_demand_holds_or_says_why_not() {
        for (demand, answer, holds) in [
            (json!({ "type": "completes" }), Ok(""), true),
            (json!({ "type": "completes" }), Err("down"), false),
            (json!({ "type": "output_not_empty" }), Ok(" "), false),
            (json!({ "type": "output_not_empty" }), Ok("x"), true),
            (
                json!({ "type": "contains", "value": "sun" }),
                Ok("sunny"),
                true,
            ),
            (
                json!({ "type": "contains", "value": "sun" }),
                Ok("rain"),
                false,
            ),
            (
                json!({ "type": "contains", "value": "sun" }),
                Err("down"),
                false,
            ),
            (
                json!({ "type": "not_contains", "value": "sun" }),
                Ok("sunny"),
                false,
            ),
            (json!({ "type": "latency", "max_ms": 50 }), Ok("x"), true),
            (json!({ "type": "latency", "max_ms": 49 }), Ok("x"), false),
            (
                json!({ "type": "contains", "value": "sun", "negate": true }),
                Ok("rain"),
                true,
            ),
            (
                json!({ "type": "contains", "value": "sun", "negate": true }),
                Ok("sunny"),
                false,
            ),
        ] {
            let mut wrong = Vec::new();
            let read = Demand::read(&demand, "", &mut wrong).expect("it can be read");
            assert_eq!(
                read.judge(&asked(answer)).is_ok(),
                holds,
                "{demand} {answer:?}"
            );
        }
    }

    #[test]
    fn a_demand_that_cannot_be_judged_is_refused() {
        for (demand, pointer) in [
            (json!({ "type": "llm_judge" }), "/type"),
            (json!({ "type": "contains" }), "/value"),
            (json!({ "type": "latency" }), "/max_ms"),
            (json!({ "type": "completes", "when": "always" }), "/when"),
            (
                json!({ "type": "completes", "severity": "huge" }),
                "/severity",
            ),
        ] {
            let mut wrong = Vec::new();
            assert_eq!(Demand::read(&demand, "", &mut wrong), None, "{demand}");
            assert_eq!(wrong[0].pointer.as_deref(), Some(pointer), "{demand}");
        }
    }
}
