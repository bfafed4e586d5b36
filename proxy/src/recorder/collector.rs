//! The collector thread, which takes notes from the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use squall_journal::record::Outcome;
use squall_journal::ring::Entry;
use squall_profiles::verdict::VerdictOutcome;

use super::{BATCH, ExchangeNote, JournalEvent, Noted, PERIOD, Queued, Shared};
use crate::lock::lock;

/// Longest stored URL and error, bytes.
const TEXT: usize = 4096;

pub(super) struct Collector {
    shared: Arc<Shared>,
    taken: Vec<Noted>,
}

impl Collector {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            taken: Vec::with_capacity(BATCH),
        }
    }

    /// Runs until the recorder is stopped and the queue is empty.
    pub(super) fn run(mut self) {
        loop {
            let stopping = self.shared.stopping.load(Ordering::SeqCst);
            self.take_all();
            if stopping {
                // A later flush must not wait for the collector.
                self.shared.ended.store(true, Ordering::SeqCst);
                self.take_all();
                return;
            }
            // A full batch, a flush and the end interrupt the wait.
            std::thread::park_timeout(PERIOD);
        }
    }

    /// Empties the queue.
    fn take_all(&mut self) {
        while let Some(queued) = self.shared.queue.pop() {
            match queued {
                Queued::Exchange(noted) => {
                    self.taken.push(noted);
                    if self.taken.len() == BATCH {
                        self.take_in();
                    }
                }
                Queued::Flush(done) => {
                    self.take_in();
                    // An error means that the sender no longer waits.
                    let _ = done.send(());
                }
            }
        }
        self.take_in();
    }

    fn take_in(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        let mut taken = std::mem::take(&mut self.taken);
        taken.retain_mut(|noted| {
            // A panic loses one record, but must not end the thread.
            let read = catch_unwind(AssertUnwindSafe(|| self.read(noted)));
            if read.is_err() {
                tracing::error!(id = %noted.note.id, "an exchange is lost: reading it failed");
                self.shared.lose(&noted.note);
            }
            read.is_ok()
        });
        let mut journal = self.shared.journal();
        for Noted { note, .. } in taken.drain(..) {
            if note.outcome != Outcome::Open {
                journal
                    .events
                    .push(JournalEvent::Exchange(note.clone()), note.size());
            }
            journal.ring.put(note);
        }
        drop(journal);
        self.shared.changed.send_replace(());
        self.taken = taken;
    }

    /// Redacts and parses a worker's note, and reports it.
    fn read(&self, noted: &mut Noted) {
        // The queue held the only reference, so this does not copy.
        let raw = Arc::make_mut(&mut noted.note);
        let traffic = noted.traffic.take();
        let unread = traffic.as_ref().map_or(0, |traffic| traffic.unread());
        self.shared.was_read(unread);
        let capture = traffic.and_then(|traffic| traffic.read_into(raw));
        raw.redactor = self.shared.redactor.and(&raw.redactor);
        let redactor = match &capture {
            Some(capture) => capture.redactor(&raw.redactor),
            None => raw.redactor.clone(),
        };
        raw.redact(&redactor, TEXT);
        if let Some(capture) = capture {
            raw.recorded = capture.finish(raw, &redactor, &self.shared.redactor);
        }
        let note = &noted.note;
        if note.outcome != Outcome::Open {
            self.count(note);
            for observer in &*lock(&self.shared.observers) {
                observer.ended(note);
            }
        }
    }

    fn count(&self, note: &ExchangeNote) {
        let metrics = &self.shared.metrics;
        metrics
            .exchanges(note.kind, note.dialect, note.outcome)
            .inc();
        metrics.took(note.kind, note.duration, note.overhead);
        if !note.verdicts.is_empty() || note.verdicts_more > 0 {
            let (mut not_drawn, mut bypassed) = (note.verdicts_more, 0);
            for verdict in &note.verdicts {
                match verdict.outcome {
                    VerdictOutcome::Applied => {}
                    VerdictOutcome::NotDrawn(_) => not_drawn += 1,
                    VerdictOutcome::Chosen | VerdictOutcome::Bypassed(_) => bypassed += 1,
                }
            }
            metrics.skipped(not_drawn, bypassed);
        }
        if let (Some(llm), Some(dialect)) = (&note.llm, note.dialect) {
            let model = llm.model.as_deref().unwrap_or("unknown");
            for (direction, tokens) in [("input", llm.input_tokens), ("output", llm.output_tokens)]
            {
                if let Some(tokens) = tokens {
                    metrics.tokens(dialect, model, direction, tokens);
                }
            }
        }
    }
}
