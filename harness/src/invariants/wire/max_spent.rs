//! `max_tokens`, `max_cost`: the maximum usage of an invocation's model calls.

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, holds};
use crate::invariants::{Check, InvariantKind, Prices, Subject, Verdict};
use crate::trace::{Attempt, Trace};

/// `max`: input and output tokens together.
pub(super) const MAX_TOKENS: InvariantKind = InvariantKind::wire("max_tokens", |fields| {
    let narrow = Narrow::read(fields);
    let most = fields.whole("max", "Most tokens.", 0..=u64::MAX, " tokens");
    fields.require("max", "the greatest number of tokens");
    let (narrow, most) = (narrow?, most?);
    Some(Check::new(move |subject| {
        let (mut used, mut uncounted) = (0_u64, None);
        for (attempt, tokens) in model_calls(subject.trace, narrow.attempts(subject.trace)) {
            match tokens {
                Some((input, output)) => used = used.saturating_add(input).saturating_add(output),
                None => uncounted = Some(attempt),
            }
        }
        let reason = format!("{used} tokens were used of at most {most}");
        spent(subject, reason, used > most, uncounted).with_margin_of(used, most)
    }))
});

/// `usd`: US dollars by the suite's `prices`. A model without a price is an error.
pub(super) const MAX_COST: InvariantKind = InvariantKind::wire("max_cost", |fields| {
    let narrow = Narrow::read(fields);
    let about = "The greatest cost in US dollars.";
    let most = fields.real("usd", about, 0.0..=f64::MAX, " US dollars");
    fields.require("usd", "the greatest cost in US dollars");
    let (narrow, most) = (narrow?, most?);
    Some(Check::new(move |subject| {
        let (mut cost, mut uncounted) = (0.0, None);
        for (attempt, tokens) in model_calls(subject.trace, narrow.attempts(subject.trace)) {
            let Some((input, output)) = tokens else {
                uncounted = Some(attempt);
                continue;
            };
            let model = attempt.model.as_deref().unwrap_or_default();
            let Some(of_all) = subject.prices.cost(model, input, output) else {
                return Verdict::error(format!(
                    "model `{model}` has no price; write it under `prices`, as \
                     `{model}: {{input: 2.5, output: 10}}`"
                ));
            };
            cost += of_all;
        }
        let reason = format!("{cost:.6} USD were spent of at most {most}");
        spent(subject, reason, cost > most, uncounted).with_margin(most - cost, most)
    }))
});

/// US dollars for all model calls; `None`: no price is configured, or a price or tokens are unknown.
pub(in crate::invariants) fn cost(trace: &Trace, prices: &Prices) -> Option<f64> {
    let mut calls = model_calls(trace, trace.attempts().iter());
    let cost = calls.try_fold(0.0, |sum, (attempt, tokens)| {
        let (input, output) = tokens?;
        let model = attempt.model.as_deref().unwrap_or_default();
        Some(sum + prices.cost(model, input, output)?)
    });
    cost.filter(|_| !prices.is_empty())
}

/// Model calls with their input and output tokens, `None` if neither is known. Failed calls without tokens cost
/// nothing.
fn model_calls<'s>(
    trace: &'s Trace,
    calls: impl Iterator<Item = &'s Attempt>,
) -> impl Iterator<Item = (&'s Attempt, Option<(u64, u64)>)> {
    let calls = calls.filter(|attempt| attempt.kind == ExchangeKind::Llm);
    calls.filter_map(|attempt| {
        let llm = trace.exchange(attempt).record.llm.as_ref();
        let tokens = llm.and_then(|llm| match (llm.input_tokens, llm.output_tokens) {
            (None, None) => None,
            (input, output) => Some((input.unwrap_or(0), output.unwrap_or(0))),
        });
        (tokens.is_some() || attempt.failure.is_none()).then_some((attempt, tokens))
    })
}

fn spent(
    subject: &Subject<'_>,
    reason: String,
    too_much: bool,
    uncounted: Option<&Attempt>,
) -> Verdict {
    match uncounted {
        _ if too_much => Verdict::fails(reason),
        Some(attempt) => {
            let name = attempt.name();
            Verdict::insufficient(format!("{reason}; the tokens of {name} were not counted"))
                .at(attempt)
        }
        None => holds(subject.trace, reason),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, judged_with_prices};
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn tokens_of_all_calls_are_summed() {
        let call = |input, output| Sent::model("[]").used("gpt-4o", input, output);
        let written = "{type: max_tokens, max: 100}";
        for (sent, expected) in [
            (vec![call(40, 10), call(40, 10)], Holds),
            (vec![call(40, 10), call(41, 10)], Fails),
            (vec![], Holds),
            (vec![call(40, 10), Sent::model("[]")], Unproven),
            (vec![call(90, 11), Sent::model("[]")], Fails),
            (vec![call(40, 10), Sent::model("[]").status(503)], Holds),
        ] {
            assert_eq!(judged(written, &sent), expected, "{}", sent.len());
        }
    }

    #[test]
    #[rustfmt::skip]
    fn the_suites_prices_decide() {
        // 2 dollars per million input tokens, 10 per million output tokens.
        let call = |model: &str| Sent::model("[]").used(model, 500_000, 100_000);
        for (written, sent, expected) in [
            ("{type: max_cost, usd: 2}", vec![call("gpt-4o")], Holds),
            ("{type: max_cost, usd: 1.99}", vec![call("gpt-4o")], Fails),
            ("{type: max_cost, usd: 3}", vec![call("gpt-4o"), call("gpt-4o-mini")], Fails),
            ("{type: max_cost, usd: 3}", vec![call("llama3")], Errs),
            ("{type: max_cost, usd: 3}", vec![Sent::model("[]")], Unproven),
        ] {
            assert_eq!(judged_with_prices(written, &sent), expected, "{written}");
        }
    }
}
