//! Whole answers that end early.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::Reading;
use squall_dialects::tokens;

use super::super::budget::{self, Budget, Share};
use super::super::call::Call;
use super::super::written;
use super::{Ended, Instead, Words};

/// A whole answer, ended early; or why it is not.
pub(in crate::faults::llm_stream) fn whole(
    how: &Ended,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &Call,
) -> Result<Bytes, String> {
    let mut edits = Edits::new(document);
    let edited = match &how.words {
        Words::AtMost(max_tokens) => {
            truncated(&mut edits, *max_tokens, how, document, reading, call)
        }
        Words::Instead(instead) => replaced(&mut edits, instead, how, document, reading, call),
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
    how: &Ended,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &Call,
) -> bool {
    let mut budgets: BTreeMap<u64, Budget> = BTreeMap::new();
    let mut cut: BTreeSet<u64> = BTreeSet::new();
    for delta in &reading.deltas {
        let budget = budgets
            .entry(delta.choice)
            .or_insert_with(|| Budget::new(max_tokens));
        let share = if cut.contains(&delta.choice) {
            Share::Nothing
        } else {
            budget.spend(delta, document)
        };
        if share != Share::All {
            cut.insert(delta.choice);
            budget::cut(edits, document, delta, share);
        }
    }
    let ends = reading.finishes.iter();
    for finished in ends.filter(|end| cut.contains(&end.choice)) {
        call.dialect
            .put_finish(edits, document, finished, Some(&how.finish));
    }
    budget::forget_mirrors(edits, reading, |choice| cut.contains(&choice));
    if let Some(usage) = reading.usage.as_ref().filter(|_| !cut.is_empty()) {
        let kept = budgets.values().map(Budget::spent).sum();
        budget::count_anew(edits, usage, kept);
    }
    !cut.is_empty()
}

/// Every choice in other words; false when there is none, or no other words are needed.
fn replaced(
    edits: &mut Edits<'_>,
    instead: &Instead,
    how: &Ended,
    document: &Document<'_>,
    reading: &Reading<'_>,
    call: &Call,
) -> bool {
    let already = instead.text.is_empty()
        && written(reading) == 0
        && reading.finishes.iter().all(|end| end.finish == how.finish);
    if already {
        return false;
    }
    let mut choices: BTreeSet<u64> = reading.finishes.iter().map(|end| end.choice).collect();
    choices.extend(reading.deltas.iter().map(|delta| delta.choice));
    let mut said = 0;
    for choice in choices {
        if call
            .dialect
            .say(edits, document, choice, instead.saying(), &how.finish)
        {
            said += 1;
        }
    }
    if let Some(usage) = reading.usage.as_ref().filter(|_| said > 0) {
        budget::count_instead(
            edits,
            usage,
            tokens::count(call.counting, &instead.text) * said,
        );
    }
    said > 0
}
