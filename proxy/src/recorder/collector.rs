//! The thread that takes notes off the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use prometheus::IntCounter;
use squall_journal::record::Outcome;
use squall_journal::ring::Entry;
use squall_profiles::facts::Kind;
use squall_profiles::plan::Outcome as Verdicted;

use super::{BATCH, Event, ExchangeNote, PERIOD, Shared, lock};
use crate::metrics::TokenDirection;

/// Longest URL and error kept, bytes.
const TEXT: usize = 4096;

/// What exchanges are counted by.
type CounterKey = (Kind, Option<&'static str>, Outcome);

pub(super) struct Collector {
    shared: Arc<Shared>,
    /// Handles looked up once; the sorts of exchanges are few.
    exchanges: Vec<(CounterKey, IntCounter)>,
    taken: Vec<Arc<ExchangeNote>>,
}

impl Collector {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            exchanges: Vec::new(),
            taken: Vec::with_capacity(BATCH),
        }
    }

    /// Runs until the recorder is stopped and the queue is empty.
    pub(super) fn run(mut self) {
        loop {
            // Read before the queue is: what was pushed before someone asked is taken in by then.
            let asked = self.shared.flush.asked.load(Ordering::SeqCst);
            let stopping = self.shared.stopping.load(Ordering::SeqCst);
            self.take_all();
            self.answer_flush(asked);
            if stopping {
                // Whoever flushes from now on must not wait for ever.
                self.answer_flush(u64::MAX);
                return;
            }
            // A full batch, a flush and the end cut the wait short.
            std::thread::park_timeout(PERIOD);
        }
    }

    fn answer_flush(&self, asked: u64) {
        let mut done = lock(&self.shared.flush.done);
        if *done < asked {
            *done = asked;
            self.shared.flush.moved.notify_all();
        }
    }

    /// Empties the queue.
    fn take_all(&mut self) {
        loop {
            while self.taken.len() < BATCH
                && let Some(note) = self.shared.queue.pop()
            {
                self.taken.push(note);
            }
            if self.taken.is_empty() {
                return;
            }
            self.take_in();
        }
    }

    fn take_in(&mut self) {
        let mut taken = std::mem::take(&mut self.taken);
        taken.retain_mut(|note| {
            // A panic costs the exchange that caused it its record, and not the thread.
            let read = catch_unwind(AssertUnwindSafe(|| self.read(note)));
            if read.is_err() {
                tracing::error!(id = %note.id, "an exchange is lost: reading it failed");
                self.shared.lose(note);
            }
            read.is_ok()
        });
        let mut journal = self.shared.journal();
        for note in taken.drain(..) {
            if note.outcome != Outcome::Open {
                journal
                    .events
                    .push(Event::Exchange(note.clone()), note.size());
            }
            journal.ring.put(note);
        }
        drop(journal);
        self.shared.changed.send_replace(());
        self.taken = taken;
    }

    /// Redacts and reads what a worker wrote down, and reports it.
    fn read(&mut self, note: &mut Arc<ExchangeNote>) {
        // The queue held the only handle, so nothing is copied here.
        let raw = Arc::make_mut(note);
        self.shared.was_read(raw.unread());
        raw.read_traffic();
        raw.redactor = self.shared.redactor.and(&raw.redactor);
        let capture = raw.traffic.take().and_then(|traffic| traffic.capture);
        let redactor = match &capture {
            Some(capture) => capture.redactor(&raw.redactor),
            None => raw.redactor.clone(),
        };
        raw.redact(&redactor, TEXT);
        if let Some(capture) = capture {
            raw.recorded = capture.finish(raw, &redactor, &self.shared.redactor);
        }
        if note.outcome != Outcome::Open {
            self.count(note);
            if let Some(watch) = self.shared.watch.get() {
                watch.ended(note);
            }
            if let Some(keep) = self.shared.keep.get() {
                keep.keep(note);
            }
        }
    }

    fn count(&mut self, note: &ExchangeNote) {
        let metrics = &self.shared.metrics;
        let sort = (note.kind, note.dialect, note.outcome);
        if let Some((_, counter)) = self.exchanges.iter().find(|(known, _)| *known == sort) {
            counter.inc();
        } else {
            let counter = metrics.exchanges(note.kind, note.dialect, note.outcome);
            counter.inc();
            self.exchanges.push((sort, counter));
        }
        metrics.took(note.kind, note.duration, note.overhead);
        if !note.verdicts.is_empty() || note.verdicts_more > 0 {
            let (mut not_drawn, mut bypassed) = (note.verdicts_more, 0);
            for verdict in &note.verdicts {
                match verdict.outcome {
                    Verdicted::Applied => {}
                    Verdicted::NotDrawn(_) => not_drawn += 1,
                    Verdicted::Chosen | Verdicted::Bypassed(_) => bypassed += 1,
                }
            }
            metrics.skipped(not_drawn, bypassed);
        }
        if let (Some(llm), Some(dialect)) = (&note.llm, note.dialect) {
            let model = llm.model.as_deref().unwrap_or("unknown");
            for (direction, tokens) in [
                (TokenDirection::Input, llm.input_tokens),
                (TokenDirection::Output, llm.output_tokens),
            ] {
                if let Some(tokens) = tokens {
                    metrics.tokens(dialect, model, direction, tokens);
                }
            }
        }
    }
}
