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
                let before = turn.history.iter().flatten();
                let whole: Vec<&str> = turns
                    .iter()
                    .filter(|other| !other.is_cut && other.attempt.began < later.attempt.began)
                    .map(|other| other.said.trim())
                    .chain(before.map(|said| said.trim()))
                    .collect();
                let held = history
                    .iter()
                    .map(|said| is_half(said.trim(), partial, &whole));
                match held.max() {
                    Some(Half::Yes) => {
                        return Verdict::Fails(format!(
                            "{} broke off after {}, and {} has that as history",
                            turn.attempt.name(),
                            quoted(partial),
                            later.attempt.id
                        ));
                    }
                    Some(Half::Perhaps) => unread = true,
                    Some(Half::No) | None => {}
                }
            }
        }
        match cut {
            0 => Verdict::Insufficient("no answer of a model broke off".to_owned()),
            _ if unread => {
                let reason = "of what was said in the turns that broke off, or after, not all was read, or it \
                              goes on nobody knows how";
                Verdict::Insufficient(reason.to_owned())
            }
            cut => holds(
                subject.trace,
                format!("{cut} turns broke off, and none came back as history"),
            ),
        }
    }
}

/// Whether a text of the history is half an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Half {
    No,
    /// It goes on behind that half, and nobody knows by whom.
    Perhaps,
    Yes,
}

/// Whether the half of an answer that came stands in a text, whatever is put before it, and nothing of what is
/// known `whole` explains it.
fn is_half(said: &str, partial: &str, whole: &[&str]) -> Half {
    let Some((_, behind)) = said.rsplit_once(partial) else {
        return Half::No;
    };
    let goes_on = behind.chars().any(char::is_alphanumeric);
    let explains = |whole: &&str| {
        let is_part = goes_on && whole.contains(said);
        whole.contains(partial) && (said.contains(*whole) || is_part)
    };
    match goes_on {
        _ if whole.iter().any(explains) => Half::No,
        true => Half::Perhaps,
        false => Half::Yes,
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
        let again = || {
            Sent::model(r#"[{"role":"user","content":"sum"}]"#)
                .answer_header("content-type", "application/json")
                .answer_body(r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"The total is forty-two."},"finish_reason":"stop"}]}"#)
        };
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

    #[test]
    fn words_around_a_half_answer_do_not_hide_it() {
        let events = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The total is\"}}]}\n\n\
                      data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" forty\"}}]}\n\n";
        let cut = |messages: &str| {
            Sent::model(messages)
                .answer_header("content-type", "text/event-stream")
                .answer_body(events)
                .cut()
        };
        let user = r#"{"role":"user","content":"sum"}"#;
        let with = |text: &str| {
            Sent::model(&format!(
                r#"[{user},{{"role":"assistant","content":"{text}"}},{{"role":"user","content":"and?"}}]"#
            ))
        };
        let whole = || {
            Sent::model(&format!("[{user}]"))
                .answer_header("content-type", "application/json")
                .answer_body(r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"The total is forty-two."},"finish_reason":"stop"}]}"#)
        };
        let asked = || cut(&format!("[{user}]"));
        let shown =
            format!(r#"[{{"role":"assistant","content":"Say: The total is forty"}},{user}]"#);
        for (sent, expected) in [
            (vec![asked(), with("Answer: The total is forty")], Fails),
            (vec![asked(), with("The total is forty …")], Fails),
            (vec![asked(), with("The total is forty apples.")], Unproven),
            (
                vec![asked(), whole(), with("The total is forty-two.")],
                Holds,
            ),
            (
                vec![asked(), whole(), with("Answer: The total is forty-two.")],
                Holds,
            ),
            (
                vec![asked(), whole(), with("Answer: The total is forty")],
                Fails,
            ),
            (vec![cut(&shown), with("Say: The total is forty")], Holds),
        ] {
            let found = judged("{type: truncated_stream_not_consumed}", &sent);
            assert_eq!(found, expected, "{sent:#?}");
        }
    }
}
