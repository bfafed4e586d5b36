//! What one session is waited for, and what is to be said in it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use bytes::Bytes;
use squall_dialects::mcp::{Call, Id};
use squall_profiles::plan::VerdictIndex;

use super::awaited::{Awaited, Teller, Told};

/// Why a rule did nothing whose session is over.
pub(super) const ENDED: &str = "the session's stream ended before the answer was handed over";

/// A session: shared by the POSTs of it and by its streams, on whichever threads they are.
#[derive(Debug, Default)]
pub(crate) struct Session {
    /// It may have several streams, one after the other: what was handed to the agent in one may be
    /// asked for again in another.
    is_resumable: bool,
    /// Answers that are awaited and have not come, and what is to be said: while there is nothing,
    /// no stream is parsed.
    open: AtomicUsize,
    /// The same, with the answers that have come.
    kept: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    awaited: VecDeque<Entry>,
    to_say: VecDeque<Saying>,
    /// Things that are being said over and over.
    repeated: usize,
    /// The stream that says them.
    speaker: Option<Waker>,
    /// Why nothing comes any more.
    closed: Option<&'static str>,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Awaited>,
    came: bool,
}

/// Something that no server said.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// Events, at once.
    Once(Bytes),
    /// Notifications that a call is being worked on, so far apart, as long as the stream lasts.
    Progress(Call, Duration),
}

/// Something to be said between two events, and who is told of it.
#[derive(Debug)]
pub(super) struct Saying {
    pub(super) says: Says,
    pub(super) verdict: VerdictIndex,
    pub(super) teller: Teller,
}

impl Session {
    /// A session that ends with the one stream it has.
    pub(super) fn of_one_stream() -> Self {
        Self::default()
    }

    /// A session that outlives its streams.
    pub(super) fn of_many_streams() -> Self {
        Self {
            is_resumable: true,
            ..Self::default()
        }
    }

    /// Waits for an answer; to be called before its call goes upstream. Over `most` the one that
    /// waits longest is given up.
    pub(crate) fn await_answer(&self, answer: Arc<Awaited>, most: usize) {
        let mut state = self.state();
        if let Some(why) = state.closed {
            return answer.gives_up(why);
        }
        // Another call under this id: the one before it is over.
        let is_before = |entry: &Entry| entry.answer.id() == answer.id();
        if let Some(at) = state.awaited.iter().position(is_before)
            && let Some(before) = state.awaited.remove(at)
        {
            before
                .answer
                .gives_up("another call of the session took its id");
        }
        if state.awaited.len() >= most {
            let came = state.awaited.iter().position(|entry| entry.came);
            if let Some(oldest) = state.awaited.remove(came.unwrap_or(0)) {
                let why = format!("more than {most} answers are awaited in the session");
                oldest.answer.gives_up(&why);
            }
        }
        state.awaited.push_back(Entry {
            answer,
            came: false,
        });
        self.count(&state);
    }

    /// Has something said between two events of the session's stream; over `most` it is not.
    pub(crate) fn say(&self, says: Says, verdict: VerdictIndex, teller: Teller, most: usize) {
        let mut state = self.state();
        let why = match state.closed {
            Some(why) => why.to_owned(),
            None if state.to_say.len() + state.repeated >= most => {
                format!("more than {most} made-up answers wait in the session")
            }
            None => {
                state.to_say.push_back(Saying {
                    says,
                    verdict,
                    teller,
                });
                self.count(&state);
                let speaker = state.speaker.take();
                drop(state);
                if let Some(speaker) = speaker {
                    speaker.wake();
                }
                return;
            }
        };
        teller.tell([Told::Bypassed(verdict, why)]);
    }

    /// What is to be said next; who asks is woken when there is more.
    pub(super) fn next_to_say(&self, speaker: &Waker) -> Option<Saying> {
        let mut state = self.state();
        let next = state.to_say.pop_front();
        match &next {
            None => state.speaker = Some(speaker.clone()),
            Some(saying) => {
                if matches!(saying.says, Says::Progress(..)) {
                    state.repeated += 1;
                }
                self.count(&state);
            }
        }
        next
    }

    /// The answer with this id, if it is awaited; `again`: or has come before.
    pub(super) fn find(&self, id: &Id, again: bool) -> Option<Arc<Awaited>> {
        let state = self.state();
        let mut open = state.awaited.iter().filter(|entry| again || !entry.came);
        let found = open.find(|entry| entry.answer.id() == Some(id));
        found.map(|entry| Arc::clone(&entry.answer))
    }

    /// An answer was handed to the agent.
    pub(super) fn came(&self, answer: &Arc<Awaited>) {
        let mut state = self.state();
        if self.is_resumable {
            for entry in &mut state.awaited {
                entry.came |= Arc::ptr_eq(&entry.answer, answer);
            }
        } else {
            state.forget(answer);
        }
        self.count(&state);
    }

    /// An answer is not waited for any more.
    pub(crate) fn forget(&self, answer: &Arc<Awaited>) {
        let mut state = self.state();
        state.forget(answer);
        self.count(&state);
    }

    /// Nothing comes any more, and why.
    pub(super) fn close(&self, why: &'static str) {
        let mut state = self.state();
        state.closed = Some(why);
        let awaited = std::mem::take(&mut state.awaited);
        let to_say = std::mem::take(&mut state.to_say);
        self.count(&state);
        drop(state);
        for entry in awaited {
            entry.answer.gives_up(why);
        }
        for saying in to_say {
            let told = Told::Bypassed(saying.verdict, why.to_owned());
            saying.teller.tell([told]);
        }
    }

    /// Whether a stream has to be read: something is awaited or to be said. One that was resumed
    /// may bring again what came before.
    pub(crate) fn wants(&self, resumed: bool) -> bool {
        let what = if resumed { &self.kept } else { &self.open };
        what.load(Ordering::SeqCst) > 0
    }

    /// Whether somebody waits to be told of something that has not come yet.
    pub(super) fn is_awaiting(&self) -> bool {
        let state = self.state();
        let mut open = state.awaited.iter().filter(|entry| !entry.came);
        !state.to_say.is_empty() || open.any(|entry| entry.answer.is_told_of())
    }

    /// Whether it outlives its streams.
    pub(super) fn is_resumable(&self) -> bool {
        self.is_resumable
    }

    fn count(&self, state: &State) {
        let came = state.awaited.iter().filter(|entry| entry.came).count();
        let all = state.awaited.len() + state.to_say.len();
        self.kept.store(all, Ordering::SeqCst);
        self.open.store(all - came, Ordering::SeqCst);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole, so a panic elsewhere is no reason to stop.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget(&mut self, answer: &Arc<Awaited>) {
        self.awaited
            .retain(|entry| !Arc::ptr_eq(&entry.answer, answer));
    }
}
