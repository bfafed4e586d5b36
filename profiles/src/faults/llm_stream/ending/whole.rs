//! Whole answers that end early.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Delta, DeltaKind, Reading};
use squall_dialects::tokens;

use super::super::budget::{self, Budget, ReceivedTokens, Share};
use super::super::{AnsweredCall, written};
use super::{ChoiceWords, EndedAnswer, Instead};

/// A whole answer, ended early; or why it is not.
pub(in crate::faults::llm_stream) fn whole(
    how: &EndedAnswer,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &AnsweredCall,
) -> Result<Bytes, String> {
    let mut edits = Edits::new(document);
    let edited = match &how.words {
        ChoiceWords::AtMost(max_tokens) => {
            truncated(&mut edits, *max_tokens, how, document, reading, call)
        }
        ChoiceWords::Instead(instead) => {
            replaced(&mut edits, instead, how, document, reading, call)
        }
    };
    if edited {
        Ok(Bytes::from(edits.apply()))
    } else {
        Err(how.idle_because(written(reading)))
    }
}

/// Every choice cut after `max_tokens` tokens; false when none is longer.
fn truncated(
    edits: &mut Edits<'_>,
    max_tokens: u64,
    how: &EndedAnswer,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &AnsweredCall,
) -> bool {
    let mut budgets: BTreeMap<u64, Budget> = BTreeMap::new();
    let mut cut: BTreeSet<u64> = BTreeSet::new();
    let mut shortened: BTreeSet<(u64, u64)> = BTreeSet::new();
    for delta in &reading.deltas {
        let budget = budgets
            .entry(delta.choice)
            .or_insert_with(|| Budget::new(max_tokens));
        if delta.is_thinking() && !cut.contains(&delta.choice) {
            budget.think(delta);
            continue;
        }
        let share = if cut.contains(&delta.choice) {
            Share::Nothing
        } else {
            budget.spend(delta, document)
        };
        if share != Share::All {
            if cut.insert(delta.choice) {
                for (_, result) in reading
                    .results
                    .iter()
                    .filter(|(part, _)| *part > delta.part)
                {
                    edits.remove(*result);
                }
            }
            if delta.kind == DeltaKind::Text {
                shortened.insert((delta.choice, delta.part));
            }
            budget::cut(edits, document, delta, share);
            budget::mark_cut(edits, document, delta, share);
        }
    }
    let overdrawn = budgets.iter().filter(|(_, budget)| budget.is_overdrawn());
    cut.extend(overdrawn.map(|(choice, _)| *choice));
    let ends = reading.finishes.iter();
    for finished in ends.filter(|end| cut.contains(&end.choice)) {
        call.dialect
            .put_finish(edits, document, finished, Some(&how.finish));
    }
    budget::forget_mirrors(edits, reading, |choice| cut.contains(&choice));
    budget::forget_sources(edits, reading, |choice, part| {
        shortened.contains(&(choice, part))
    });
    if let Some(usage) = reading.usage.as_ref().filter(|_| !cut.is_empty()) {
        let received = ReceivedTokens {
            words: budgets.values().map(Budget::spent).sum(),
            thought: budgets.values().map(Budget::thought).sum(),
        };
        budget::count_anew(edits, usage, received);
    }
    !cut.is_empty()
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
    thoughts.map(Delta::tokens).sum()
}

/// Tokens that the model wrote beside its thinking.
fn spoken(reading: &Reading<'_>) -> u64 {
    let words = reading.deltas.iter().filter(|delta| !delta.is_thinking());
    words.map(Delta::tokens).sum()
}
