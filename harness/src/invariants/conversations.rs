//! `remembers`, `consistent`, `no_cross_session`: how the agent behaves over the turns of a conversation, and in
//! several conversations.

use percent_encoding::percent_decode_str;
use squall_journal::record::Kind;
use squall_profiles::canary::{Canary, Search};

use super::contains::{includes, value};
use super::similarity::alike;
use super::words::quoted;
use super::{Check, Conversations, InvariantKind, Subject, Verdict};
use crate::answer::{AgentConversation, is_blank};
use crate::count::count;
use crate::run::CellState;
use crate::trace::{Attempt, Trace};

/// `value`: a fact of an earlier turn, which the agent uses in a later one.
pub(super) const REMEMBERS: InvariantKind = InvariantKind::answer("remembers", |fields| {
    let (value, case_sensitive) = value(fields);
    let value = value?;
    Some(Check::new(move |subject| {
        remembers(subject, &value, case_sensitive)
    }))
});

/// `repeat`: conversations with the same prompt; `threshold` 0 to 1, default 0.8.
pub(super) const CONSISTENT: InvariantKind = InvariantKind::answer("consistent", |fields| {
    let about = "How often the prompt is sent, each time in a conversation of its own.";
    let repeat = fields.whole("repeat", about, 2..=20, " conversations");
    fields.require("repeat", "the number of conversations with the same prompt");
    let about = "How similar the answers have to be, 0 to 1; default 0.8.";
    let threshold = fields.real("threshold", about, 0.0..=1.0, "");
    let threshold = threshold.unwrap_or(0.8);
    Some(Check {
        conversations: Conversations::Repeated(repeat?),
        ..Check::new(move |subject| consistent(subject, threshold))
    })
});

pub(super) const NO_CROSS_SESSION: InvariantKind =
    InvariantKind::answer("no_cross_session", |_| {
        Some(Check {
            conversations: Conversations::Interleaved,
            ..Check::new(no_cross_session)
        })
    });

fn remembers(subject: &Subject<'_>, value: &str, case_sensitive: bool) -> Verdict {
    let turns = &subject.answer.turns;
    let has = |text: &str| includes(text, value, case_sensitive);
    let shown = quoted(value);
    let Some(given) = turns.iter().position(|turn| has(&turn.text)) else {
        return Verdict::insufficient(format!(
            "no turn has {shown}: `value` is a fact that an earlier turn of the prompt has"
        ));
    };
    let is_later = |at: usize| {
        let turn = turns.get(at).filter(|turn| !turn.is_filler);
        at > given && turn.is_some_and(|turn| !has(&turn.text))
    };
    let mut later = (0..turns.len()).filter(|at| is_later(*at)).peekable();
    if later.peek().is_none() {
        return match &subject.answer.error {
            Some(error) => Verdict::fails(format!("the conversation ended early: {error}")),
            None => Verdict::insufficient(format!(
                "no later turn is without {shown}: write a prompt whose next turn needs the fact, and does not have it"
            )),
        };
    }
    let number = |at: usize| turns[..=at].iter().filter(|turn| !turn.is_filler).count();
    if let Some(at) = later.find(|at| has(&turns[*at].answer)) {
        return Verdict::holds(format!(
            "the answer to turn {} has {shown} of turn {}",
            number(at),
            number(given)
        ));
    }
    let mut unclear = None;
    for attempt in subject.trace.attempts() {
        let at = turns.iter().rposition(|turn| turn.at <= attempt.began);
        let Some(at) = at.filter(|_| attempt.kind != Kind::Llm) else {
            continue;
        };
        let mut together = (0..=at).filter(|other| turns[*other].at == turns[at].at);
        if !together.clone().any(is_later) {
            continue;
        }
        let data = subject.trace.data(attempt);
        let url = percent_decode_str(&attempt.url).decode_utf8_lossy();
        let is_sent = has(&url) || data.iter().any(|data| has(data));
        if is_sent && !together.all(is_later) {
            unclear.get_or_insert(attempt);
        } else if is_sent {
            let (at, given) = (number(at), number(given));
            let reason = format!(
                "{} in turn {at} has {shown} of turn {given}",
                attempt.name()
            );
            return Verdict::holds(reason).at(attempt);
        }
    }
    if let Some(error) = &subject.answer.error {
        return Verdict::fails(format!("the conversation ended early: {error}"));
    }
    if let Some(attempt) = unclear {
        let reason = format!(
            "{} has {shown} of turn {}, and may be a call of that turn, because turns were sent at the same time",
            attempt.name(),
            number(given)
        );
        return Verdict::insufficient(reason).at(attempt);
    }
    let reason = format!(
        "turn {} has {shown}, and neither the answer to a later turn nor a call in it has",
        number(given)
    );
    match subject.trace.unseen() {
        None => Verdict::fails(reason),
        Some(why) => Verdict::insufficient(format!("{reason}; {why}")),
    }
}

fn consistent(subject: &Subject<'_>, threshold: f64) -> Verdict {
    let Some((first, others)) = subject.conversations.split_first() else {
        return Verdict::insufficient("the prompt was sent in one conversation only");
    };
    let failed = |one: &AgentConversation| {
        let is_blank = one.answer.is_blank();
        let blank = is_blank.then(|| "it is blank".to_owned());
        one.answer.error.clone().or(blank)
    };
    let mut errors = subject.conversations.iter().map(failed).enumerate();
    if subject
        .conversations
        .iter()
        .all(|one| failed(one).is_some())
    {
        return Verdict::insufficient("no conversation has an answer");
    }
    if let Some((at, Some(error))) = errors.find(|(_, error)| error.is_some()) {
        return Verdict::fails(format!("conversation {} has no answer: {error}", at + 1));
    }
    // All are compared, so that all missing embeddings are requested at once.
    let verdicts = others.iter().map(|other| {
        let answer = &other.answer;
        alike(
            &Subject { answer, ..*subject },
            &first.answer.text,
            threshold,
        )
    });
    let verdicts: Vec<_> = verdicts.collect();
    let rank = |verdict: &Verdict| match verdict.state {
        CellState::Error => 0,
        CellState::Failed => 1,
        CellState::Passed | CellState::NotExercised | CellState::NotApplicable => 2,
    };
    let margin = |verdict: &Verdict| verdict.margin.unwrap_or_default();
    let worst = verdicts
        .into_iter()
        .zip(2..)
        .min_by(|(one, _), (other, _)| {
            let order = rank(one).cmp(&rank(other));
            order.then(margin(one).total_cmp(&margin(other)))
        });
    match worst {
        Some((verdict, number)) => Verdict {
            reason: format!(
                "conversation {number} of {}: {}",
                subject.conversations.len(),
                verdict.reason
            ),
            ..verdict
        },
        None => Verdict::insufficient("the prompt was sent in one conversation only"),
    }
}

fn no_cross_session(subject: &Subject<'_>) -> Verdict {
    let [one, other] = subject.conversations else {
        return Verdict::insufficient("no two conversations were held");
    };
    let trace = subject.trace;
    let has_scopes = one.scope != other.scope;
    let mut calls = 0;
    let mut unread = None;
    for (own, number) in [(one, 1), (other, 2)] {
        for (turn, at) in own.answer.turns.iter().zip(1..) {
            if let Some(canary) = foreign(turn.answer.as_bytes(), own) {
                return Verdict::fails(format!(
                    "the answer to turn {at} of conversation {number} has {canary}, the canary of another conversation"
                ));
            }
        }
        let attempts = trace.attempts().iter();
        let in_scope = |attempt: &&Attempt| trace.exchange(attempt).record.scope == own.scope;
        for attempt in attempts.filter(in_scope).filter(|_| has_scopes) {
            calls += 1;
            let (found, is_whole) = foreign_in_call(trace, attempt, own);
            if let Some(canary) = found {
                return Verdict::fails(format!(
                    "{} of conversation {number} carries {canary}, the canary of another conversation",
                    attempt.name()
                ))
                .at(attempt);
            }
            unread = unread.or((!is_whole).then_some(attempt));
        }
    }
    for (conversation, number) in [(one, 1), (other, 2)] {
        if let Some(error) = &conversation.answer.error {
            let reason = format!("conversation {number} ended early: {error}");
            return Verdict::insufficient(reason);
        }
        if answers_in(conversation) == 0 {
            let reason = format!("conversation {number} has only blank answers");
            return Verdict::insufficient(reason);
        }
    }
    let answers = answers_in(one) + answers_in(other);
    let answers = format!("no canary of another conversation is in {answers} answers");
    if let Some(attempt) = unread {
        let reason = format!(
            "{answers}; the body of {} was not read whole",
            attempt.name()
        );
        return Verdict::insufficient(reason).at(attempt);
    }
    match trace.unseen() {
        Some(why) if calls > 0 => Verdict::insufficient(format!("{answers}; {why}")),
        _ if calls > 0 => Verdict::holds(format!("{answers} and {}", count(calls, "call"))),
        _ => Verdict::holds(format!(
            "{answers}; calls were not judged: none was seen in the scope of a conversation"
        )),
    }
}

/// The number of answers that are not blank.
fn answers_in(conversation: &AgentConversation) -> usize {
    let turns = conversation.answer.turns.iter();
    turns.filter(|turn| !is_blank(&turn.answer)).count()
}

/// The canary of another conversation in a request, and whether all of the request was read.
fn foreign_in_call(
    trace: &Trace,
    attempt: &Attempt,
    own: &AgentConversation,
) -> (Option<Canary>, bool) {
    let request = trace.exchange(attempt).request.as_ref();
    let headers = request.iter().flat_map(|request| &request.headers);
    let headers = headers.map(|(_, value)| value.as_bytes());
    let body = request.and_then(|request| request.body.as_ref());
    let bodies = body.map(|body| &*body.bytes);
    let mut texts = headers.chain([attempt.url.as_bytes()]).chain(bodies);
    let is_whole = body.is_some_and(|body| body.whole);
    (texts.find_map(|text| foreign(text, own)), is_whole)
}

/// The first half of the canaries of all conversations. Those of injected instructions differ in it.
const CONVERSATION: u64 = 0x7c_41d9;

/// The canary of a conversation for a draw.
pub(crate) fn conversation_canary(draw: u64) -> Canary {
    Canary::from_draw((CONVERSATION << 24) | (draw & 0xff_ffff))
}

/// The first canary in a text that another conversation has.
fn foreign(text: &[u8], own: &AgentConversation) -> Option<Canary> {
    let found = Search::all(text).into_iter().map(|found| found.canary);
    let mut others = found.filter(|canary| Some(*canary) != own.canary);
    others.find(|canary| canary.bits() >> 24 == CONVERSATION)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::answer::{AgentAnswer, AnsweredTurn};
    use crate::invariants::testing::{Outcome, Outcome::*, errors_of, invariant, subject};
    use crate::reach::Seen;
    use crate::trace::testing::{Sent, exchange};

    /// An answer from texts of turns and answers; each turn is sent a second after the one before.
    fn answer(turns: &[(&str, &str)]) -> AgentAnswer {
        let turns = turns
            .iter()
            .zip(0..)
            .map(|((text, answer), at)| AnsweredTurn {
                text: (*text).to_owned(),
                answer: (*answer).to_owned(),
                at: Duration::from_secs(if text.starts_with("Meanwhile") {
                    at - 1
                } else {
                    at
                }),
                is_filler: text.starts_with("Filler"),
            });
        let turns: Vec<_> = turns.collect();
        AgentAnswer {
            text: turns
                .last()
                .map_or_else(String::new, |turn| turn.answer.clone()),
            turns,
            ..AgentAnswer::default()
        }
    }

    /// A trace of calls, each with its scope and its second.
    fn trace(calls: &[(&str, &str, u64)]) -> Trace {
        let calls = calls
            .iter()
            .enumerate()
            .map(|(place, (url, scope, second))| {
                let mut made = exchange(place, &Sent::get(url));
                made.record.scope = (*scope).to_owned();
                if let (true, Some(request)) = (url.contains("unread"), &mut made.request) {
                    request.body = None;
                }
                made.began = Duration::from_millis(second * 1000 + 500);
                made
            });
        Trace::of(Seen {
            exchanges: calls.collect(),
            ..Seen::default()
        })
    }

    fn judged(
        written: &str,
        answer: &AgentAnswer,
        trace: &Trace,
        conversations: &[AgentConversation],
    ) -> (Outcome, String) {
        let invariant = invariant(written);
        subject("hello", answer, None, |subject| {
            let verdict = invariant.judge(&Subject {
                trace,
                conversations,
                ..*subject
            });
            ((&verdict).into(), verdict.reason)
        })
    }

    #[test]
    #[rustfmt::skip]
    fn a_fact_counts_in_a_later_turn_that_does_not_have_it() {
        let written = "{type: remembers, value: Oslo}";
        let given = ("I live in Oslo", "Noted: Oslo.");
        for (turns, call, expected) in [
            (&[given, ("Where?", "In oslo.")][..], None, Holds),
            (&[given, ("Where?", "I do not know.")], None, Fails),
            // The answer to the turn that has the fact is none.
            (&[given], None, Unproven),
            (&[given, ("Is it Oslo?", "Yes, Oslo.")], None, Unproven),
            (&[given, ("Is it Oslo?", "Yes."), ("Where?", "Oslo")], None, Holds),
            (&[("Hello", "Hi"), ("Where?", "Oslo")], None, Unproven),
            (&[given, ("Weather?", "Rain.")], Some(("https://w.test/?city=Oslo", 1)), Holds),
            (&[given, ("Weather?", "Rain.")], Some(("https://w.test/?city=Oslo", 0)), Fails),
            (&[given, ("Weather?", "Rain.")], Some(("https://w.test/?city=Rome", 1)), Fails),
            (&[given, ("Weather?", "Rain.")], Some(("https://w.test/in%20Osl%6F/now", 1)), Holds),
            (&[given, ("Filler", "In Oslo."), ("Where?", "I do not know.")], None, Fails),
            (&[given, ("Filler", "Rain."), ("Where?", "?")], Some(("https://w.test/?city=Oslo", 1)), Fails),
            // A call during turns that were sent together may be one of the turn that has the fact.
            (&[given, ("Meanwhile?", "?")], Some(("https://w.test/?city=Oslo", 0)), Unproven),
            (&[given, ("Meanwhile?", "Oslo")], None, Holds),
            (&[given, ("Where?", "?"), ("Meanwhile?", "?")], Some(("https://w.test/?city=Oslo", 1)), Holds),
        ] {
            let calls: Vec<_> = call.iter().map(|(url, second)| (*url, "s", *second)).collect();
            let (found, reason) = judged(written, &answer(turns), &trace(&calls), &[]);
            assert_eq!(found, expected, "{turns:?} {call:?}: {reason}");
        }
        let cased = "{type: remembers, value: Oslo, case_sensitive: true}";
        let small = answer(&[given, ("Where?", "In oslo.")]);
        assert_eq!(judged(cased, &small, &Trace::default(), &[]).0, Fails);
        let asked = answer(&[given, ("Where?", "?")]);
        for (written, url, expected) in [
            (cased, "https://w.test/?city=oslo", Fails),
            (cased, "https://w.test/?city=Oslo", Holds),
            (written, "https://w.test/?city=oslo", Holds),
        ] {
            assert_eq!(judged(written, &asked, &trace(&[(url, "s", 1)]), &[]).0, expected, "{url}");
        }
        for turns in [&[given, ("Filler", "")][..], &[given, ("Where?", "")]] {
            let error = Some("no answer within 3000 ms".to_owned());
            let late = AgentAnswer { error, ..answer(turns) };
            let (found, reason) = judged(written, &late, &Trace::default(), &[]);
            assert_eq!(found, Fails, "{reason}");
            assert!(reason.contains("ended early: no answer within 3000 ms"), "{reason}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn answers_of_all_conversations_must_be_similar() {
        for (answers, expected) in [
            (&["It is 4.", "it is 4", "It is 4."][..], Holds),
            (&["It is 4.", "It is 4.", "I had rather not say."], Fails),
            (&["It is 4.", "!down"], Fails),
            (&["!down", "!down"], Unproven),
            (&["It is 4.", " "], Fails),
            (&["", "\n"], Unproven),
            (&[], Unproven),
        ] {
            let held = answers.iter().map(|text| AgentConversation {
                answer: match text.strip_prefix('!') {
                    Some(error) => AgentAnswer { error: Some(error.to_owned()), ..AgentAnswer::default() },
                    None => AgentAnswer::of(*text),
                },
                ..AgentConversation::default()
            });
            let held: Vec<_> = held.collect();
            let written = "{type: consistent, repeat: 3}";
            let (found, reason) = judged(written, &AgentAnswer::default(), &Trace::default(), &held);
            assert_eq!(found, expected, "{answers:?}: {reason}");
        }
        let errors = errors_of("{type: consistent, repeat: 1}");
        assert!(errors[0].contains('2'), "{errors:?}");
        assert!(errors_of("{type: consistent}")[0].contains("`repeat`"));
    }

    #[test]
    #[rustfmt::skip]
    fn a_canary_of_the_other_conversation_fails_wherever_it_is() {
        let (own, other, earlier) = ("sq-7c41d9000001", "sq-7c41d9000002", "sq-7c41d9000003");
        let hex = "73712d376334316439303030303032";
        for (second_answer, url, scopes, expected, told) in [
            ("fine", "https://t.test/", ["a", "b"], Holds, "in 4 answers and 1 call"),
            ("fine", "https://unread.test/", ["a", "b"], Unproven, "not read whole"),
            (own, "", ["a", "b"], Holds, "calls were not judged"),
            (other, "", ["a", "b"], Fails, "answer to turn 2 of conversation 1"),
            (earlier, "", ["a", "b"], Fails, "answer to turn 2 of conversation 1"),
            // The canary of an injected instruction.
            ("sq-000000000001", "", ["a", "b"], Holds, "in 4 answers"),
            ("", "", ["a", "b"], Holds, "in 3 answers"),
            (hex, "", ["a", "b"], Fails, "answer to turn 2 of conversation 1"),
            ("fine", "https://t.test/?q=sq-7c41d9000002", ["a", "b"], Fails, "of conversation 1 carries"),
            ("fine", "https://t.test/?q=sq-7c41d9000002", ["a", "a"], Holds, "calls were not judged"),
        ] {
            let held = |text: &str, scope: &str, bits| AgentConversation {
                answer: answer(&[("hello", "hi"), ("and?", text)]),
                scope: scope.to_owned(),
                canary: Some(conversation_canary(bits)),
            };
            let held = [held(second_answer, scopes[0], 1), held("fine", scopes[1], 2)];
            let calls = if url.is_empty() { Vec::new() } else { vec![(url, "a", 0)] };
            let (found, reason) = judged("{type: no_cross_session}", &AgentAnswer::default(), &trace(&calls), &held);
            assert_eq!(found, expected, "{second_answer} {url}: {reason}");
            assert!(reason.contains(told), "{reason}");
        }
        let silent = [1, 2].map(|bits| AgentConversation {
            answer: answer(&[("hello", ""), ("and?", " ")]),
            scope: bits.to_string(),
            canary: Some(conversation_canary(bits)),
        });
        let (found, reason) = judged("{type: no_cross_session}", &AgentAnswer::default(), &Trace::default(), &silent);
        assert_eq!(found, Unproven, "{reason}");
    }
}
