//! `truncated_stream_not_consumed`: a turn that broke off does not come back as history.
//!
//! After an answer of the model broke off, the agent may ask again or give up; it must not go on as
//! if what it had got of it were all that was said.

use super::{Narrow, holds, wire};
use crate::invariants::words::quoted;
use crate::invariants::{Check, Kind, Subject, Verdict};

pub(super) const TRUNCATED_STREAM_NOT_CONSUMED: Kind =
    wire("truncated_stream_not_consumed", |fields| {
        Some(Box::new(NotConsumed(Narrow::read(fields)?)))
    });

#[derive(Debug)]
struct NotConsumed(Narrow);

/// Fewer characters stand in many a text by chance.
const TELLING: usize = 8;

impl Check for NotConsumed {
    fn judge(&self, subject: &Subject<'_>) -> Verdict {
        let turns = subject.trace.turns();
        let mut cut = 0;
        let mut unread = false;
        for (place, turn) in turns.iter().enumerate() {
            if !turn.is_cut || !self.0.wants(turn.attempt) {
                continue;
            }
            cut += 1;
            let partial = turn.said.trim();
            if partial.chars().count() < TELLING {
                // What came of it says too little to be known again.
                unread |= place + 1 < turns.len();
                continue;
            }
            for later in &turns[place + 1..] {
                let Some(history) = &later.history else {
                    unread = true;
                    continue;
                };
                // A whole answer may begin with the same words; it then goes on behind them.
                if history.iter().any(|said| said.trim() == partial) {
                    return Verdict::Fails(format!(
                        "{} broke off after {}, and {} has that as history",
                        turn.attempt.name(),
                        quoted(partial),
                        later.attempt.id
                    ));
                }
            }
        }
        match cut {
            0 => Verdict::Insufficient("no answer of a model broke off".to_owned()),
            _ if unread => {
                let reason = "what was said in the turns that broke off, or after, was not read";
                Verdict::Insufficient(reason.to_owned())
            }
            cut => holds(
                subject.trace,
                format!("{cut} turns broke off, and none came back as history"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::judged;
    use crate::invariants::testing::Outcome::*;
    use crate::trace::testing::Sent;

    #[test]
    fn what_broke_off_must_not_come_back() {
        let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The total is\"}}]}\n\n\
                      data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" forty\"}}]}\n\n";
        let cut = || {
            Sent::model(r#"[{"role":"user","content":"sum"}]"#)
                .answer_header("content-type", "text/event-stream")
                .answer_body(events)
                .cut()
        };
        let with = |text: &str| {
            Sent::model(&format!(
                r#"[{{"role":"user","content":"sum"}},{{"role":"assistant","content":"{text}"}},{{"role":"user","content":"and?"}}]"#
            ))
        };
        let again = || Sent::model(r#"[{"role":"user","content":"sum"}]"#);
        let written = "{type: truncated_stream_not_consumed}";
        for (sent, expected) in [
            (vec![cut(), with("The total is forty")], Fails),
            (vec![cut(), again(), with("The total is forty-two.")], Holds),
            (vec![cut(), again()], Holds),
            (vec![cut()], Holds),
            (vec![again(), with("The total is forty")], Unproven),
            (vec![cut(), again().unread()], Unproven),
        ] {
            assert_eq!(judged(written, &sent), expected, "{sent:#?}");
        }
    }
}
