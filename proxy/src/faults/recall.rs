//! Answers that rules may give again: `stale` and `swapped`.
//!
//! An answer is copied while it passes, never held back, and kept when its body has ended as it
//! should, or in a stream of events when the reply to an MCP call has passed: the agent may send its next call
//! before the stream ends. Per rule and scope two are kept: the latest, and the latest to another call than that
//! one; more is never needed.
//!
//! ```text
//! answers of a rule in a scope:   A₁   B₁   B₂   (letters are calls)
//! kept after each:                A₁   B₁,A₁   B₂,A₁
//! stale gives                      A₁   B₁      B₂
//! swapped, asked by A / B          –/A₁ B₁/A₁   B₂/A₁
//! ```

use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::{Body as _, SizeHint};
use squall_dialects::stream::Splitter;

use super::{declared_length, has_body};
use crate::body::buffer::{Buffer, Inspect};
use crate::body::scripted::Scripted;
use crate::body::tapped::{Passed, tapped};
use crate::body::whole::collect;
use crate::body::{self, AgentBody};
use crate::bounded_map::BoundedMap;
use crate::lock::lock;

/// Whose answers: one rule's in one scope, under one activation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The activation's id, so that a new one begins with nothing.
    pub activation: String,
    /// What stands for the scope in the draws.
    pub key: String,
    /// The rule's id.
    pub rule: String,
}

/// A store of answers, shared by all workers and bounded as a whole; the owner that was idle
/// longest is forgotten first.
#[derive(Debug, Clone)]
pub(crate) struct Recall {
    kept: Arc<Mutex<BoundedMap<Owner, OwnerAnswers>>>,
    /// What copies in the making may take.
    copies: Inspect,
}

/// An answer as it was given: head and encoded body.
#[derive(Debug, Clone)]
pub(crate) struct StoredAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Recall {
    /// A store of answers whose bodies have at most `largest` bytes each (larger ones are not
    /// kept) and `memory` in all; copies in the making may take as much once more.
    pub(crate) fn new(largest: u64, memory: u64) -> Self {
        let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        Self {
            kept: Arc::new(Mutex::new(BoundedMap::new(usize::MAX, bytes))),
            copies: Inspect::new(largest, memory),
        }
    }

    /// Keeps `response`, the owner's answer to `call` (its fingerprint), once its body has passed
    /// to its end.
    pub(crate) fn note(
        &self,
        owner: Owner,
        call: u64,
        response: Response<AgentBody>,
    ) -> Response<AgentBody> {
        let (head, body) = response.into_parts();
        let events = reply::events(&head.headers, self.copies.limit());
        let mut copy = Copying {
            recall: self.clone(),
            owner,
            call,
            kept: StoredAnswer {
                status: head.status,
                headers: head.headers.clone(),
                body: Bytes::new(),
                trailers: None,
            },
            body: Buffer::within(&self.copies),
            events,
        };
        if body.is_end_stream() {
            copy.keep();
            return Response::from_parts(head, body);
        }
        let body = tapped(body, move |passed| copy.see(passed));
        Response::from_parts(head, body)
    }

    /// Keeps `response` without giving it to anybody: the answer that another one replaced. So a
    /// rule that always fires stays one answer behind. Gives up at the bounds of `inspect`; what
    /// was kept before then stays the latest.
    ///
    /// Waits for an answer of declared length, so that what comes next finds it kept; one without
    /// may be endless, and is read in the background. To be called inside a `LocalSet`.
    pub(crate) async fn note_unseen(
        &self,
        owner: Owner,
        call: u64,
        response: Response<AgentBody>,
        inspect: &Inspect,
    ) {
        let declared = declared_length(response.headers()).is_some();
        let noted = self.note(owner, call, response).into_body();
        let inspect = inspect.clone();
        let read = async move {
            if let Err((_, why)) = collect(noted, &inspect).await {
                tracing::debug!(%why, "an answer that was replaced is not kept");
            }
        };
        if declared {
            read.await;
        } else {
            tokio::task::spawn_local(read);
        }
    }

    /// The previous answer of this owner. `None`: there is none to give again.
    pub(crate) fn stale(&self, owner: &Owner) -> Option<StoredAnswer> {
        self.store()
            .get(owner)?
            .latest
            .as_ref()
            .map(|(_, kept)| kept.clone())
    }

    /// The latest answer of this owner to another call than `call`. `None`: there is none.
    pub(crate) fn swapped(&self, owner: &Owner, call: u64) -> Option<StoredAnswer> {
        let mut store = self.store();
        let entry = store.get(owner)?;
        [&entry.latest, &entry.other]
            .into_iter()
            .flatten()
            .find(|(of, _)| *of != call)
            .map(|(_, kept)| kept.clone())
    }

    fn store(&self) -> MutexGuard<'_, BoundedMap<Owner, OwnerAnswers>> {
        lock(&self.kept)
    }
}

impl Default for Recall {
    /// Answers of up to 1 MiB, 64 MiB in all.
    fn default() -> Self {
        Self::new(1 << 20, 64 << 20)
    }
}

impl StoredAnswer {
    /// The answer again, to a request with this method: to HEAD without its body.
    pub(crate) fn into_response(self, method: &Method) -> Response<AgentBody> {
        let body = match self.trailers {
            _ if !has_body(method, self.status) => body::empty(),
            None => body::full(self.body),
            // No exact length: on HTTP/1.1 trailers need chunks.
            Some(trailers) => body::boxed(Scripted::new(SizeHint::new(), |out| async move {
                out.data(self.body, false).await;
                out.trailers(trailers).await;
                Ok(())
            })),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    fn weight(&self) -> usize {
        let headers: usize = self
            .headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len())
            .sum();
        self.body.len() + headers
    }
}

#[derive(Debug, Default)]
struct OwnerAnswers {
    /// The call, and the answer to it.
    latest: Option<(u64, StoredAnswer)>,
    /// The latest to another call than the latest one's.
    other: Option<(u64, StoredAnswer)>,
}

impl OwnerAnswers {
    fn weight(&self) -> usize {
        [&self.latest, &self.other]
            .into_iter()
            .flatten()
            .map(|(_, kept)| kept.weight())
            .sum()
    }

    fn note(&mut self, call: u64, kept: StoredAnswer) {
        let before = self.latest.replace((call, kept));
        if before.as_ref().is_some_and(|(of, _)| *of != call) {
            self.other = before;
        }
    }
}

/// A copy in the making.
struct Copying {
    recall: Recall,
    owner: Owner,
    call: u64,
    kept: StoredAnswer,
    body: Buffer,
    /// Reads a stream of events, in which the reply may pass before the end.
    events: Option<Splitter>,
}

impl Copying {
    /// Whether there is more to be copied.
    fn see(&mut self, passed: Passed<'_>) -> bool {
        match passed {
            Passed::Data(data) => {
                self.body.push(data);
                let events = self.events.as_mut();
                if self.body.is_cut() || !events.is_some_and(|it| reply::passed(it, data)) {
                    return !self.body.is_cut();
                }
            }
            Passed::Trailers(trailers) => {
                self.kept.trailers = Some(trailers.clone());
                return true;
            }
            Passed::End => {}
        }
        self.keep();
        false
    }

    fn keep(&mut self) {
        // A piece may be a small part of a large buffer; what is kept is not.
        self.kept.body = self.body.copied();
        let kept = self.kept.clone();
        let note = |answers: &mut OwnerAnswers| answers.note(self.call, kept);
        let mut store = self.recall.store();
        store.update(&self.owner, note, OwnerAnswers::weight);
    }
}

mod reply;
#[cfg(test)]
mod tests;
