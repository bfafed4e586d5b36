//! What an answer is worth in tokens, counted as it comes.

use std::collections::BTreeMap;

use super::{Delta, DeltaKind, Reading};
use crate::tokens::{self, Counter, Counting};

/// Parts whose text is counted across deltas at a time; when there are more, the first is taken to be
/// complete.
const WEIGHED: usize = 256;

/// Which text of an answer: the choice, the part, what it is.
type TextKey = (u64, u64, DeltaKind);

/// Counts what an answer is worth as it comes: pieces of one text as that text, not one by one.
///
/// It counts as the provider does for the model that was asked for; where that is not known, for the
/// one that the answer names before it says anything.
#[derive(Debug, Clone, Default)]
pub struct Weights {
    /// `None`: the model is not known yet.
    counting: Option<Counting>,
    counters: BTreeMap<TextKey, Counter>,
    /// Tokens of texts that are in no counter.
    apart: u64,
    /// What was noted and not counted so far.
    noted: Vec<(TextKey, String)>,
}

impl Weights {
    /// Nothing counted yet. `counting`: how; `None` when it is not known which model was asked.
    pub fn new(counting: Option<Counting>) -> Self {
        Self {
            counting,
            ..Self::default()
        }
    }

    /// How it counts, as far as that is known.
    pub fn counting(&self) -> Counting {
        self.counting.unwrap_or_default()
    }

    /// Tokens of all that was weighed and noted so far: the same however the texts were cut.
    pub fn tokens(&mut self) -> u64 {
        for (key, text) in std::mem::take(&mut self.noted) {
            self.push(key, &text);
        }
        self.weighed()
    }

    /// Tokens of what was weighed so far.
    pub fn weighed(&self) -> u64 {
        let counters = self.counters.values().map(Counter::tokens);
        counters.sum::<u64>() + self.apart
    }

    /// Finds out what each of the next deltas is worth.
    pub fn weigh(&mut self, reading: &mut Reading<'_>) {
        self.learn(reading);
        for delta in reading.deltas.iter_mut().filter(|delta| delta.counts()) {
            delta.worth = Some(self.push(key_of(delta), &delta.text));
        }
    }

    /// Keeps what the next deltas say until somebody asks for [`Weights::tokens`].
    pub fn note(&mut self, reading: &Reading<'_>) {
        self.learn(reading);
        for delta in reading.deltas.iter().filter(|delta| delta.counts()) {
            let key = key_of(delta);
            match self.noted.last_mut() {
                Some((last, text)) if *last == key && !stands_alone(key) => {
                    text.push_str(&delta.text);
                }
                _ => self.noted.push((key, delta.text.to_string())),
            }
        }
    }

    /// Settles how it counts before anything is counted.
    fn learn(&mut self, reading: &Reading<'_>) {
        if self.counting.is_none() {
            self.counting = reading.model.as_deref().map(Counting::of_model);
            if reading.deltas.iter().any(Delta::counts) {
                self.counting.get_or_insert_default();
            }
        }
    }

    fn push(&mut self, key: TextKey, text: &str) -> tokens::Worth {
        let counting = self.counting();
        if stands_alone(key) {
            let worth = Counter::new(counting).push(text);
            self.apart += worth.tokens();
            return worth;
        }
        if self.counters.len() == WEIGHED
            && !self.counters.contains_key(&key)
            && let Some((_, first)) = self.counters.pop_first()
        {
            self.apart += first.tokens();
        }
        let counter = self.counters.entry(key);
        counter.or_insert_with(|| Counter::new(counting)).push(text)
    }
}

fn key_of(delta: &Delta<'_>) -> TextKey {
    (delta.choice, delta.part, delta.kind)
}

/// Whether a text never comes in pieces.
fn stands_alone((_, _, kind): TextKey) -> bool {
    kind == DeltaKind::ToolName
}
