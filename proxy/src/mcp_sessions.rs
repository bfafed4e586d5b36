//! MCP sessions: answers that do not come in the answer to the POST that asked.
//!
//! ```text
//! 2024-11-05        GET ◀── event: endpoint ── … ── event: message (the answer) ──
//!                   POST endpoint ─▶ 202
//! 2025-03-26 …      POST ─▶ stream of events that ends early
//!                   GET, Last-Event-ID ─▶ … the answer
//! ```
//!
//! What rules do to such an answer is registered under the session and the call's id before the
//! POST goes upstream ([`Session::await_answer`]). A [`SessionStream`] around the body of every GET
//! that is answered with events looks up what it carries, and changes that event alone. What came
//! of it goes back to the thread of the POST, whose account stays open until then.
//!
//! A session belongs to a [`Party`]: the upstream, the scope and the credentials. It is named by
//! `Mcp-Session-Id` or, in 2024-11-05, by the URL in the first event of its stream. Nothing but that
//! event is read of a stream in whose session nothing is awaited.

mod awaited;
mod endpoint;
mod session;
mod stream;
mod tail;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use self::awaited::{Awaited, Teller, Told, emitted};
pub(crate) use self::endpoint::Base;
use self::session::ENDED;
pub(crate) use self::session::{Says, Session};
pub(crate) use self::stream::SessionStream;
use crate::upstream::Origin;

/// Bounds of what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Sessions in all; default 1,024.
    pub(crate) sessions: usize,
    /// Answers that are awaited in one session; default 64. What was made up and waits to be said
    /// is counted apart, with the same bound.
    pub(crate) answers: usize,
    /// How long an answer is awaited; default five minutes.
    pub(crate) age: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            sessions: 1024,
            answers: 64,
            age: Duration::from_mins(5),
        }
    }
}

/// Whose sessions: those of others never meet them, whatever they are called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Party {
    /// The upstream.
    pub(crate) origin: Origin,
    /// The scope.
    pub(crate) scope: Arc<str>,
    /// A hash of what `Authorization` says; 0 for nothing.
    pub(crate) credentials: u64,
}

/// What a session is known by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    /// `Mcp-Session-Id`.
    Given(String),
    /// Path and query of the endpoint that its stream begins with, as the agent calls it.
    Endpoint(String),
}

/// What a session is found by.
pub(crate) type Key = (Party, Name);

/// The sessions of all workers; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sessions(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    bounds: Bounds,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Key, Known>,
    /// Counts uses: tells which session was idle longest.
    clock: u64,
}

#[derive(Debug)]
struct Known {
    session: Arc<Session>,
    /// Streams of it that are open.
    streams: usize,
    used: u64,
}

/// A stream's place in its session; given up when it is dropped.
#[derive(Debug)]
pub(crate) struct Attached {
    session: Arc<Session>,
    sessions: Sessions,
    key: Key,
}

impl Sessions {
    /// No sessions yet.
    #[cfg(test)]
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Shared {
            bounds,
            table: Mutex::default(),
        }))
    }

    /// The bounds.
    pub(crate) fn bounds(&self) -> Bounds {
        self.0.bounds
    }

    /// Takes in a stream of a session. `None`: too many are open, and it passes unseen.
    pub(crate) fn attach(&self, key: Key) -> Option<Attached> {
        let mut table = self.table();
        if matches!(key.1, Name::Endpoint(_)) {
            // What was there under this name was another stream's.
            table.known.remove(&key);
        }
        let known = table.open(&key, self.0.bounds)?;
        known.streams += 1;
        Some(Attached {
            session: Arc::clone(&known.session),
            sessions: self.clone(),
            key,
        })
    }

    /// The session of that name. One that was given a name need not have a stream yet; one with an
    /// endpoint has begun with one. `None`: there is none, or too many are open.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Session>> {
        let mut table = self.table();
        let known = match key.1 {
            Name::Given(_) => table.open(key, self.0.bounds)?,
            Name::Endpoint(_) => table.known.get_mut(key)?,
        };
        Some(Arc::clone(&known.session))
    }

    /// A session was ended by the agent.
    pub(crate) fn end(&self, key: &Key) {
        let ended = self.table().known.remove(key);
        if let Some(known) = ended {
            known.session.close("the agent has ended the session");
        }
    }

    /// How many are kept.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.table().known.len()
    }

    fn left(&self, attached: &Attached) {
        let mut table = self.table();
        if let Some(known) = table.known.get_mut(&attached.key)
            && Arc::ptr_eq(&known.session, &attached.session)
        {
            known.streams -= 1;
            if !attached.session.is_resumable() {
                table.known.remove(&attached.key);
            }
        }
        drop(table);
        if !attached.session.is_resumable() {
            attached.session.close(ENDED);
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Each change leaves it whole, so a panic elsewhere is no reason to stop.
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attached {
    /// The session.
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.sessions.left(self);
    }
}

impl Table {
    /// The session of that name, a new one if need be.
    fn open(&mut self, key: &Key, bounds: Bounds) -> Option<&mut Known> {
        if !self.known.contains_key(key) {
            self.make_room(bounds)?;
        }
        self.clock += 1;
        let used = self.clock;
        let known = self.known.entry(key.clone()).or_insert_with(|| Known {
            session: Arc::new(match key.1 {
                Name::Given(_) => Session::of_many_streams(),
                Name::Endpoint(_) => Session::of_one_stream(),
            }),
            streams: 0,
            used,
        });
        known.used = used;
        Some(known)
    }

    /// Makes room for one more: the session that was idle longest goes. `None`: all are in use.
    fn make_room(&mut self, bounds: Bounds) -> Option<()> {
        if self.known.len() < bounds.sessions {
            return Some(());
        }
        let idle = self.known.iter();
        let idle = idle.filter(|(_, known)| known.streams == 0 && !known.session.is_awaiting());
        let oldest = idle.min_by_key(|(_, known)| known.used);
        let oldest = oldest.map(|(key, _)| key.clone())?;
        self.known.remove(&oldest).map(drop)
    }
}
