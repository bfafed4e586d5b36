//! Responses that rules may replay: `stale` and `swapped`.
//!
//! A response is copied while it passes, without delay. It is stored once its body has ended
//! regularly. In an event stream it is stored once the reply to an MCP call has passed, because the
//! next call may come before the stream ends. Two are stored per rule and scope: the latest, and
//! the latest to another call.
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

use super::has_body;
use crate::body::buffer::{Buffer, Inspect};
use crate::body::scripted::Scripted;
use crate::body::tapped::{Passed, tapped};
use crate::body::whole::collect;
use crate::body::{self, AgentBody};
use crate::bounded_map::BoundedMap;
use crate::headers::declared_length;
use crate::lock::lock;

/// The owner of stored responses: one rule in one scope, under one activation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    /// The activation's id, so that a new activation starts without responses.
    pub activation: String,
    /// The key that represents the scope in draws.
    pub key: String,
    /// The rule's id.
    pub rule: String,
}

/// A store of responses, shared by all workers and bounded in total. The least recently used owner
/// is evicted first.
#[derive(Debug, Clone)]
pub(crate) struct Recall {
    answers: Arc<Mutex<BoundedMap<Owner, OwnerAnswers>>>,
    /// Memory limit of copies in progress.
    copies: Inspect,
}

/// A stored response: head and encoded body.
#[derive(Debug, Clone)]
pub(crate) struct StoredAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
    trailers: Option<HeaderMap>,
}

impl Recall {
    /// A store for bodies of at most `largest` bytes each (larger ones are not stored) and `memory`
    /// bytes in total. Copies in progress may use the same amount again.
    pub(crate) fn new(largest: u64, memory: u64) -> Self {
        let bytes = usize::try_from(memory).unwrap_or(usize::MAX);
        Self {
            answers: Arc::new(Mutex::new(BoundedMap::new(usize::MAX, bytes))),
            copies: Inspect::new(largest, memory),
        }
    }

    /// Stores `response`, the owner's response to `call` (its fingerprint), once its body has
    /// passed completely.
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
            answer: StoredAnswer {
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

    /// Stores a `response` that another one replaces, without sending it. So a rule that always
    /// fires stays one response behind. It gives up at the limits of `inspect`; then the earlier
    /// response stays the latest.
    ///
    /// It waits for a response with a declared length, so that the next exchange finds it. Others
    /// may be endless, and are read in the background. Call it inside a `LocalSet`.
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

    /// The previous response of this owner, if any.
    pub(crate) fn stale(&self, owner: &Owner) -> Option<StoredAnswer> {
        self.store()
            .get(owner)?
            .latest
            .as_ref()
            .map(|(_, kept)| kept.clone())
    }

    /// The owner's latest response to another call than `call`, if any.
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
        lock(&self.answers)
    }
}

impl Default for Recall {
    /// Responses of up to 1 MiB, 64 MiB in total.
    fn default() -> Self {
        Self::new(1 << 20, 64 << 20)
    }
}

impl StoredAnswer {
    /// The stored response, for a request with this method: HEAD gets no body.
    pub(crate) fn into_response(self, method: &Method) -> Response<AgentBody> {
        let body = match self.trailers {
            _ if !has_body(method, self.status) => body::empty(),
            None => body::full(self.body),
            // Without an exact length, because trailers need chunks on HTTP/1.1.
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
    /// The call and its response.
    latest: Option<(u64, StoredAnswer)>,
    /// The latest response to another call than the latest one.
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

/// A copy in progress.
struct Copying {
    recall: Recall,
    owner: Owner,
    call: u64,
    answer: StoredAnswer,
    body: Buffer,
    /// Parses an event stream, in which the reply may pass before the end.
    events: Option<Splitter>,
}

impl Copying {
    /// Copies a piece; false if nothing more is needed.
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
                self.answer.trailers = Some(trailers.clone());
                return true;
            }
            Passed::End => {}
        }
        self.keep();
        false
    }

    fn keep(&mut self) {
        // A piece may refer to a large buffer, so the stored body is copied.
        self.answer.body = self.body.copied();
        let answer = self.answer.clone();
        let note = |answers: &mut OwnerAnswers| answers.note(self.call, answer);
        let mut store = self.recall.store();
        store.update(&self.owner, note, OwnerAnswers::weight);
    }
}

mod reply;
#[cfg(test)]
mod tests;
