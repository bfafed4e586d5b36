//! Whole answers that end early.

use std::collections::BTreeSet;

use bytes::Bytes;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::Reading;
use squall_dialects::stream::Framing;
use squall_dialects::{Event, tokens};

use super::super::budget::{self, ReceivedTokens};
use super::super::{AnsweredCall, written};
use super::{ChoiceWords, EarlyEnd, EndedAnswer, Instead};

/// A whole answer, ended early; or why it is not.
pub(in crate::faults::llm_stream) fn whole(
    how: &EndedAnswer,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &AnsweredCall,
) -> Result<Bytes, String> {
    let edits = match &how.words {
        ChoiceWords::AtMost(_) => {
            let mut early = EarlyEnd::new(how.clone(), Framing::Lines);
            let rest = early.remainder(Event::unnamed(document), reading, call);
            early.touched.then_some(rest.edits)
        }
        ChoiceWords::Instead(instead) => {
            let mut edits = Edits::new(document);
            replaced(&mut edits, instead, how, document, reading, call).then_some(edits)
        }
    };
    let edits = edits.ok_or_else(|| how.idle_because(written(reading)))?;
    Ok(Bytes::from(edits.apply()))
}

/// Every choice in other words; false when there is none, or no other words are needed.
fn replaced(
    edits: &mut Edits<'_>,
    instead: &Instead,
    how: &EndedAnswer,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &AnsweredCall,
) -> bool {
    let already = instead.text.is_empty()
        && spoken(reading) == 0
        && reading.finishes.iter().all(|end| end.finish == how.finish);
    if already {
        return false;
    }
    let mut choices: BTreeSet<u64> = reading.finishes.iter().map(|end| end.choice).collect();
    choices.extend(reading.deltas.iter().map(|delta| delta.choice));
    let mut received = ReceivedTokens::default();
    let mut edited = false;
    let text = tokens::count(call.counting(), &instead.text);
    for choice in choices {
        if call
            .dialect
            .say(edits, document, choice, instead.saying(call), &how.finish)
        {
            budget::forget_sources(edits, reading, |of, _| of == choice);
            received.words += text;
            received.thought += first_thoughts(reading, choice);
            edited = true;
        }
    }
    if let Some(usage) = reading.usage.as_ref().filter(|_| edited) {
        budget::count_instead(edits, usage, received);
    }
    edited
}

/// Tokens of a choice's thinking before its first words: they stay.
fn first_thoughts(reading: &Reading<'_>, choice: u64) -> u64 {
    let deltas = reading.deltas.iter().filter(|delta| delta.choice == choice);
    let thoughts = deltas.take_while(|delta| delta.is_thinking() || !delta.speaks());
    thoughts.map(|delta| delta.tokens).sum()
}

/// Tokens that the model wrote beside its thinking.
fn spoken(reading: &Reading<'_>) -> u64 {
    let words = reading.deltas.iter().filter(|delta| !delta.is_thinking());
    words.map(|delta| delta.tokens).sum()
}
