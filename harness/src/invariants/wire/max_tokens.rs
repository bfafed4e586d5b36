//! `max_tokens`: the model calls of an invocation use up no more than that.

use squall_journal::record::Kind as ExchangeKind;

use super::{Narrow, holds, wire};
use crate::invariants::{Check, Kind, Subject, Verdict};

/// `max`, tokens in and out together.
pub(super) const MAX_TOKENS: Kind = wire("max_tokens", |fields| {
    let narrow = Narrow::read(fields);
    let most = fields.whole("max", "Most tokens.", 0..=u64::MAX, " tokens");
    fields.require("max", "the greatest number of tokens");
    Some(Box::new(MaxTokens {
        narrow: narrow?,
        most: most?,
    }))
});

#[derive(Debug)]
struct MaxTokens {
    narrow: Narrow,
    most: u64,
}

impl Check for MaxTokens {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let (mut used, mut uncounted) = (0_u64, None);
        for attempt in self.narrow.attempts(subject.trace) {
            if attempt.kind != ExchangeKind::Llm {
                continue;
            }
            match tokens(subject, attempt) {
                Some((input, output)) => used = used.saturating_add(input).saturating_add(output),
                // An error costs nothing.
                None if attempt.failure.is_none() => uncounted = Some(attempt),
                None => {}
            }
        }
        let told = format!("{used} tokens were used of at most {}", self.most);
        match uncounted {
            _ if used > self.most => Verdict::Fails(told),
            Some(attempt) => Verdict::Insufficient(format!(
                "{told}; those of {} were not counted",
                attempt.name()
            )),
            None => holds(subject.trace, told),
        }
    }
}

/// Tokens in and out; `None`: neither is known.
pub(super) fn tokens(subject: &Subject<'_>, attempt: &crate::trace::Attempt) -> Option<(u64, u64)> {
    let llm = subject.trace.exchange(attempt).record.llm.as_ref()?;
    let known = llm.input_tokens.is_some() || llm.output_tokens.is_some();
    known.then(|| {
        (
            llm.input_tokens.unwrap_or(0),
            llm.output_tokens.unwrap_or(0),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
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
}
