//! Why a rule that matched did not fire, and what helps: the same words in reasons and in advice, without what
//! differs from run to run.

use squall_journal::record::RuleRecord;

/// By words of what the journal says of it.
const CAUSES: [(&str, &str); 10] = [
    (
        "`after_calls: ",
        "`after_calls` lets more calls pass than were made; lower it, or have one invocation make more calls (counters begin \
         at zero with each, unless `advanced.counters` is `run`)",
    ),
    (
        "`every: ",
        "`every` counts to more calls than were made; lower it, or have one invocation make more calls (counters begin at \
         zero with each, unless `advanced.counters` is `run`)",
    ),
    (
        "`calls: [",
        "none of the calls that were made is one of its `calls`; list others, or have one invocation make more calls",
    ),
    ("its `limit`", "its `limit` was used up; raise it"),
    (
        "`window`",
        "no call was made while its `window` was open; widen it",
    ),
    (
        "`armed_by`",
        "what its `armed_by` names had not happened; see what that rule or call lacks",
    ),
    (
        "`rpm` and `tpm`",
        "fewer calls were made than its `rpm` and `tpm` allow; lower them",
    ),
    (
        " of `after_",
        "less was used up than it allows; lower its `after_tokens` or `after_usd`",
    ),
    ("probability is 0", "its probability is 0; raise it"),
    (
        "drew ",
        "its draw went against it; raise its probability, or ask more prompts",
    ),
];

/// Why a rule was not drawn, and what helps.
pub(crate) fn why_undrawn(rule: &RuleRecord) -> &'static str {
    let said = rule.reason.as_deref().unwrap_or_default();
    let known = CAUSES.iter().find(|(words, _)| said.contains(words));
    known.map_or(
        "its trigger did not fire; `squall explain` says why",
        |(_, why)| why,
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use squall_profiles::trigger::NotDrawn;

    use super::*;
    use crate::trace::testing::Sent;

    #[test]
    fn what_helps_is_said_of_each_cause() {
        for (cause, helps) in [
            (NotDrawn::AfterCalls { call: 3, pass: 500 }, "`after_calls`"),
            (NotDrawn::Every { call: 1, every: 2 }, "`every`"),
            (
                NotDrawn::Calls {
                    call: 1,
                    calls: [2, 3].into(),
                },
                "`calls`",
            ),
            (NotDrawn::Limit { limit: 2 }, "`limit`"),
            (
                NotDrawn::Window {
                    elapsed: Duration::ZERO,
                    after: Duration::from_secs(1),
                    open_for: None,
                },
                "`window`",
            ),
            (NotDrawn::NotArmed, "`armed_by`"),
            (NotDrawn::Allowed, "`rpm`"),
            (
                NotDrawn::WithinBudget {
                    tokens: Some((1, 2)),
                    cost: None,
                },
                "`after_tokens`",
            ),
            (NotDrawn::Impossible, "probability is 0"),
            (
                NotDrawn::Drew {
                    value: 500_000,
                    below: 100_000,
                },
                "raise its probability",
            ),
        ] {
            let sent = Sent::get("https://t.test/").injected("error", serde_json::json!({}));
            let mut rule = sent.record.rules[0].clone();
            rule.reason = Some(cause.to_string());
            let told = why_undrawn(&rule);
            assert!(told.contains(helps), "{cause}: {told}");
            let of_chance = matches!(cause, NotDrawn::Drew { .. } | NotDrawn::Impossible);
            assert_eq!(told.contains("probability"), of_chance, "{cause}: {told}");
        }
    }
}
