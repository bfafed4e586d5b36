//! `truncated_stream_not_consumed`: the agent does not use a truncated model answer. It must not be history, nor
//! the agent's answer, and its tool calls must not be made. An agent that continues it by its id has it as history.
//!
//! After a truncated answer, the agent may retry or give up, but must not treat it as complete.

use super::{Narrow, holds};
use crate::count::count;
use crate::invariants::words::quoted;
use crate::invariants::{Check, InvariantKind, Subject, Verdict};
use crate::trace::ModelTurn;

pub(super) const TRUNCATED_STREAM_NOT_CONSUMED: InvariantKind =
    InvariantKind::wire("truncated_stream_not_consumed", |fields| {
        let narrow = Narrow::read(fields)?;
        Some(Check::new(move |subject| judged(subject, &narrow)))
    });

/// Minimum length in characters: shorter texts occur in others by chance.
const TELLING: usize = 8;

fn judged(subject: &Subject<'_>, narrow: &Narrow) -> Verdict {
    let turns = subject.trace.turns();
    let complete = || turns.iter().filter(|turn| !turn.is_cut);
    let mut cut = 0_u64;
    let (mut unread, mut gap) = (false, None);
    for (place, turn) in turns.iter().enumerate() {
        if !turn.is_cut || !narrow.wants(turn.attempt) {
            continue;
        }
        cut += 1;
        let later = &turns[place + 1..];
        let name = turn.attempt.name();
        let whole: Vec<_> = complete().flat_map(|other| &other.requests).collect();
        match is_answered(turn, &whole, later) {
            Some(false) => {}
            Some(true) => {
                return Verdict::fails(format!(
                    "{name} broke off in a tool call, and the model is told a result of that call"
                ))
                .at(turn.attempt);
            }
            None => unread = true,
        }
        if let Some(next) = later.iter().find(|later| later.previous == Some(place)) {
            return Verdict::fails(format!(
                "{name} broke off, and {} continues it",
                next.attempt.id
            ))
            .at(turn.attempt);
        }
        gap = gap.or_else(|| later.iter().find_map(|later| later.gap.clone()));
        let partial = turn.said.trim();
        if partial.chars().count() < TELLING {
            // Too short to be recognised.
            unread |= !partial.is_empty() && !later.is_empty();
            continue;
        }
        unread |= later.iter().any(|later| later.history.is_none());
        let known = turn
            .chain(&turns)
            .flat_map(|turn| turn.history.iter().flatten());
        let whole: Vec<_> = (complete().map(|other| &other.said).chain(known))
            .map(|said| said.trim())
            .filter(|said| said.contains(partial))
            .collect();
        let ends_there = |said: &str| {
            let behind = said.rsplit_once(partial).map(|(_, behind)| behind);
            behind.is_some_and(|behind| !behind.chars().any(char::is_alphanumeric))
                && !whole.iter().any(|whole| said.contains(whole))
        };
        let holds_it = |later: &&ModelTurn<'_>| {
            let mut history = later.history.iter().flatten();
            history.any(|said| ends_there(said))
        };
        let consumer = match later.iter().find(holds_it) {
            Some(later) => format!("{} has that as history", later.attempt.id),
            // An answer with an error is not presented as complete.
            None if subject.answer.error.is_none() && ends_there(&subject.answer.text) => {
                "the agent's answer ends there".to_owned()
            }
            None => continue,
        };
        return Verdict::fails(format!(
            "{name} broke off after {}, and {consumer}",
            quoted(partial)
        ))
        .at(turn.attempt);
    }
    match (cut, gap) {
        (0, _) => Verdict::insufficient("no answer of a model broke off"),
        (_, Some(gap)) => Verdict::insufficient(gap),
        _ if unread => {
            Verdict::insufficient("not all turns that broke off, or came after, could be read")
        }
        (cut, None) => holds(
            subject.trace,
            format!(
                "{} broke off, and none came back as history or as the answer",
                count(cut, "turn")
            ),
        ),
    }
}

/// Whether a tool call from a truncated request was made: a later request has its result, and no complete turn
/// requested it (`whole`). `None`: the calls have no ids, or a request was not kept.
fn is_answered(
    turn: &ModelTurn<'_>,
    whole: &[&Option<String>],
    later: &[ModelTurn<'_>],
) -> Option<bool> {
    if turn.requests.is_empty() || later.is_empty() {
        return Some(false);
    }
    if turn.requests.contains(&None) || later.iter().any(|turn| turn.reports.is_none()) {
        return None;
    }
    let mut results = later.iter().flat_map(|turn| turn.reports.iter().flatten());
    Some(
        results
            .any(|result| turn.requests.contains(&result.call) && !whole.contains(&&result.call)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::testing::{judged, judged_answer, reason};
    use crate::answer::AgentAnswer;
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
    fn a_tool_call_that_broke_off_must_not_be_made() {
        let user = r#"{"role":"user","content":"sum"}"#;
        let asked = || Sent::model(&format!("[{user}]"));
        let call = |id: &str, arguments: &str| {
            format!(
                r#"{{"id":"{id}","type":"function","function":{{"name":"add","arguments":"{arguments}"}}}}"#
            )
        };
        let cut = |id: &str| {
            let delta = call(id, "{\\\"a\\\"").replacen('{', r#"{"index":0,"#, 1);
            let event =
                format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{delta}]}}}}]}}"#);
            asked()
                .answer_header("content-type", "text/event-stream")
                .answer_body(&format!("data: {event}\n\n"))
                .cut()
        };
        let whole = |id: &str| {
            let call = call(id, "{}");
            asked()
                .answer_header("content-type", "application/json")
                .answer_body(&format!(
                    r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","tool_calls":[{call}]}},"finish_reason":"tool_calls"}}]}}"#
                ))
        };
        let with = |id: &str| {
            let call = call(id, "{}");
            Sent::model(&format!(
                r#"[{user},{{"role":"assistant","tool_calls":[{call}]}},{{"role":"tool","tool_call_id":"{id}","content":"2"}}]"#
            ))
        };
        for (sent, expected) in [
            (vec![cut("c1")], Holds),
            (vec![cut("c1"), whole("c2")], Holds),
            (vec![cut("c1"), whole("c2"), with("c2")], Holds),
            (vec![cut("c1"), whole("c1"), with("c1")], Holds),
            (vec![cut("c1"), with("c1")], Fails),
            (vec![cut("c1"), with("c1").unread()], Unproven),
        ] {
            let found = judged("{type: truncated_stream_not_consumed}", &sent);
            assert_eq!(found, expected, "{sent:#?}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn what_broke_off_must_not_be_continued() {
        let turn = |fields: &str, id: &str| Sent::responses(fields, id, "");
        let first = || turn(r#""input":"sum""#, "resp_0");
        let again = || turn(r#""input":"more","previous_response_id":"resp_0""#, "resp_2");
        let cut = || {
            let events = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_1\"}}\n\n\
                data: {\"type\":\"response.output_text.delta\",\"delta\":\"The total is forty\"}\n\n\
                data: {\"type\":\"response.output_item.added\",\"output_index\":1,\
                \"item\":{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"add\"}}\n\n";
            again().streamed(events).cut()
        };
        let next = |previous: &str| turn(&format!(r#""input":"and?","previous_response_id":"{previous}""#), "resp_3");
        let said = r#""previous_response_id":"resp_0","input":[{"role":"assistant","content":"The total is forty"}]"#;
        let result = r#""previous_response_id":"resp_0","input":[{"type":"function_call_output","call_id":"c1","output":"1"}]"#;
        for (sent, expected) in [
            (vec![first(), cut(), again(), next("resp_2")], Holds),
            (vec![first(), cut(), next("resp_1")], Fails),
            (vec![first(), cut(), again(), next("resp_2"), next("resp_1")], Fails),
            (vec![first(), cut(), turn(said, "resp_2")], Fails),
            (vec![first(), cut(), turn(result, "resp_2")], Fails),
            (vec![first(), cut(), next("resp_9")], Unproven),
            (vec![first(), cut(), turn(r#""input":"and?","conversation":{"id":"conv_1"}"#, "resp_2")], Unproven),
            // Also where only its own beginning was not seen.
            (vec![cut(), again()], Unproven),
            (vec![cut(), next("resp_1")], Fails),
        ] {
            let found = judged("{type: truncated_stream_not_consumed}", &sent);
            assert_eq!(found, expected, "{sent:#?}");
        }
        let why = reason("{type: truncated_stream_not_consumed}", &[first(), cut(), next("resp_9")]);
        assert_eq!(why, "the conversation began before Squall saw it (x3 continues resp_9)");
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
            (vec![asked(), with("The total is forty apples.")], Holds),
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

    #[test]
    fn half_an_answer_is_not_the_agents_answer() {
        let events =
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"The total is\"}}]}\n\n";
        let asked = || Sent::model(r#"[{"role":"user","content":"sum"}]"#);
        let cut = || {
            asked()
                .answer_header("content-type", "text/event-stream")
                .answer_body(events)
                .cut()
        };
        let whole = || {
            asked()
                .answer_header("content-type", "application/json")
                .answer_body(r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"The total is forty-two."},"finish_reason":"stop"}]}"#)
        };
        let failed = |text: &str| AgentAnswer {
            error: Some("it ended with 1".to_owned()),
            ..AgentAnswer::of(text)
        };
        for (sent, answer, expected) in [
            (vec![cut()], AgentAnswer::of("The total is"), Fails),
            (
                vec![cut()],
                AgentAnswer::of(r#"{"answer": "The total is"}"#),
                Fails,
            ),
            (vec![cut()], failed("The total is"), Holds),
            (
                vec![cut()],
                AgentAnswer::of("The total is … (it broke off)"),
                Holds,
            ),
            (vec![cut()], AgentAnswer::of("No answer, try again."), Holds),
            (
                vec![cut(), whole()],
                AgentAnswer::of("The total is forty-two."),
                Holds,
            ),
            (vec![cut(), whole()], AgentAnswer::of("The total is"), Fails),
        ] {
            let found = judged_answer("{type: truncated_stream_not_consumed}", &sent, &answer);
            assert_eq!(found, expected, "{answer:?} {sent:#?}");
        }
    }
}
