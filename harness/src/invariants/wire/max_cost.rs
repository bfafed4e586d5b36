//! `max_cost`: the model calls of an invocation cost no more than that.

use squall_journal::record::Kind as ExchangeKind;

use super::max_tokens::tokens;
use super::{Narrow, holds, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};

/// `usd`, US dollars at the suite's `prices`. A model without a price is an error.
pub(super) const MAX_COST: Kind = wire("max_cost", |fields| {
    let narrow = Narrow::read(fields);
    let about = "The greatest cost in US dollars.";
    let most = fields.real("usd", about, 0.0..=f64::MAX, " US dollars");
    fields.require("usd", "the greatest cost in US dollars");
    Some(Box::new(MaxCost {
        narrow: narrow?,
        most: most?,
    }))
});

#[derive(Debug)]
struct MaxCost {
    narrow: Narrow,
    most: f64,
}

const MILLION: f64 = 1e6;

impl Check for MaxCost {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let (mut spent, mut uncounted) = (0.0, None);
        for attempt in self.narrow.attempts(subject.trace) {
            if attempt.kind != ExchangeKind::Llm {
                continue;
            }
            let Some((input, output)) = tokens(subject, attempt) else {
                // An error costs nothing.
                uncounted = uncounted.or(attempt.failure.is_none().then_some(attempt));
                continue;
            };
            let model = attempt.model.as_deref().unwrap_or_default();
            let Some(price) = subject.prices.of(model) else {
                return Verdict::Error(format!(
                    "model `{model}` has no price; write it under `prices`, as \
                     `{model}: {{input: 2.5, output: 10}}`"
                ));
            };
            #[expect(clippy::cast_precision_loss, reason = "to multiply with a price")]
            let cost = (input as f64 * price.input + output as f64 * price.output) / MILLION;
            spent += cost;
        }
        let told = format!("{spent:.6} USD were spent of at most {}", self.most);
        match uncounted {
            _ if spent > self.most => Verdict::Fails(told),
            Some(attempt) => {
                let told = format!("{told}; the tokens of {} were not counted", attempt.name());
                Verdict::Insufficient(told)
            }
            None => holds(subject.trace, told),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged_with_prices;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn the_suites_prices_decide() {
        // 2 dollars a million in, 10 out.
        let call = |model: &str| Sent::model("[]").used(model, 500_000, 100_000);
        for (written, sent, expected) in [
            ("{type: max_cost, usd: 2}", vec![call("gpt-4o")], Holds),
            ("{type: max_cost, usd: 1.99}", vec![call("gpt-4o")], Fails),
            (
                "{type: max_cost, usd: 3}",
                vec![call("gpt-4o"), call("gpt-4o-mini")],
                Fails,
            ),
            ("{type: max_cost, usd: 3}", vec![call("llama3")], Errs),
            (
                "{type: max_cost, usd: 3}",
                vec![Sent::model("[]")],
                Unproven,
            ),
        ] {
            assert_eq!(judged_with_prices(written, &sent), expected, "{written}");
        }
    }
}
