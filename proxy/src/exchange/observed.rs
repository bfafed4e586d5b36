//! The response's body as hyper polls it. It counts bytes and detects the exchange's end.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http::header::TRAILER;
use http_body::{Body, Frame, SizeHint};
use squall_journal::record::Outcome;

use super::connection::Connection;
use super::log::ExchangeLog;
use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::agent::AgentSide;
use crate::body::trailers;
use crate::chaos::ActivationEnd;
use crate::headers;

/// A body on its way to the agent, with the exchange's log.
///
/// Dropping it after its end completes the exchange. Dropping it before means that the agent has
/// closed.
pub(crate) struct Observed {
    body: AgentBody,
    connection: Rc<Connection>,
    log: Option<Rc<ExchangeLog>>,
    /// Resolves when a new activation replaces that of the exchange's scope.
    over: Option<ActivationEnd>,
    /// The response's head, if it announces trailers.
    announces: Option<Box<HeaderMap>>,
    /// Trailers that are being sent.
    last: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl Observed {
    /// Records `body` in `log`.
    pub(crate) fn new(
        body: AgentBody,
        connection: &Rc<Connection>,
        log: Option<Rc<ExchangeLog>>,
    ) -> Self {
        if let Some(log) = &log {
            log.head_passes();
        }
        Self {
            body,
            connection: Rc::clone(connection),
            over: log.as_ref().and_then(|log| log.chaos().over()),
            log,
            announces: None,
            last: None,
        }
    }

    /// Passes on the trailers that `head` announces, even if the agent did not send `TE: trailers`.
    pub(crate) fn announced_by(mut self, head: &HeaderMap) -> Self {
        if let Some(names) = head.contains_key(TRAILER).then(|| head.get_all(TRAILER)) {
            let fields = names.iter().map(|names| (TRAILER, names.clone()));
            self.announces = Some(Box::new(fields.collect()));
        }
        self
    }

    /// Sends announced trailers instead of hyper, which does not pass them on to every agent.
    fn takes_over(&mut self, trailers: &HeaderMap) -> bool {
        let (Some(announced), AgentSide::Http1(side)) = (&self.announces, self.connection.agent())
        else {
            return false;
        };
        let Some(bytes) = trailers::last_chunk(trailers, announced) else {
            return false;
        };
        self.last = Some(Box::pin(Rc::clone(side).end_with(bytes)));
        true
    }

    fn ended(&mut self) {
        if let Some(log) = self.log.take() {
            log.complete();
        }
    }

    fn broke(&mut self, broken: &Abort) {
        self.connection.break_off(broken);
        if let Some(log) = self.log.take() {
            log.sent_all();
            log.broke_off();
            if broken.is_by_rule() {
                log.end(Outcome::Injected, None);
            } else {
                log.end(Outcome::UpstreamError, Some(broken.why().to_owned()));
            }
        }
    }
}

impl Body for Observed {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let this = &mut *self;
        if let Some(over) = &mut this.over
            && over.as_mut().poll(cx).is_ready()
            && let Some(log) = this.log.take()
        {
            let broken = log.is_over();
            this.connection.break_off(&broken);
            log.sent_all();
            return Poll::Ready(Some(Err(broken)));
        }
        if let Some(last) = &mut this.last {
            ready!(last.as_mut().poll(cx));
            this.last = None;
            this.ended();
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if let Some(log) = &this.log {
            log.waits_for_agent(polled.is_ready());
        }
        let mut polled = ready!(polled);
        if let Some(Ok(frame)) = &mut polled
            && let Some(trailers) = frame.trailers_mut()
        {
            headers::clean_trailers(trailers);
        }
        match &polled {
            Some(Ok(frame)) => {
                if let (Some(bytes), Some(log)) = (frame.data_ref(), &this.log) {
                    log.sent_to_agent(bytes);
                    // hyper may not poll again, so these may be the last bytes.
                    if this.body.is_end_stream() {
                        log.sent_whole();
                    }
                }
                if let Some(trailers) = frame.trailers_ref()
                    && this.takes_over(trailers)
                {
                    return self.poll_frame(cx);
                }
                // Trailers are the end of a body, and hyper does not poll after them.
                if frame.is_trailers() {
                    this.ended();
                }
            }
            Some(Err(broken)) => this.broke(broken),
            None => this.ended(),
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        // hyper stops polling once a declared length is reached, or for responses without a body.
        if self.last.is_none() && self.body.is_end_stream() {
            self.ended();
        }
    }
}
