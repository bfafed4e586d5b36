//! Messages that end late.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::broken::Broken;
use crate::carry_out::Report;
use crate::carry_out::body::AgentBody;
use crate::carry_out::hold::Hold;

/// A body whose end (its trailers, if it has some) comes late. Its length is not known to hyper,
/// which would otherwise end the message with the last byte.
pub(super) struct SlowClose {
    body: AgentBody,
    wait: Duration,
    ended: bool,
    /// Trailers that wait with the end.
    trailers: Option<Frame<Bytes>>,
    hold: Option<Hold>,
    report: Report,
}

impl SlowClose {
    pub(super) fn new(body: AgentBody, wait: Duration, report: Report) -> Self {
        Self {
            body,
            wait,
            ended: false,
            trailers: None,
            hold: None,
            report,
        }
    }
}

impl Body for SlowClose {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        if !this.ended {
            this.trailers = match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) if frame.is_trailers() => Some(frame),
                Some(Ok(frame)) => return Poll::Ready(Some(Ok(frame))),
                Some(Err(broken)) => {
                    this.report.bypassed("the body broke off before its end");
                    return Poll::Ready(Some(Err(broken)));
                }
                None => None,
            };
            this.ended = true;
            this.report.applied();
            this.hold = Some(Hold::lasting(this.wait, this.report.ledger()));
        }
        if let Some(hold) = &mut this.hold {
            ready!(Pin::new(hold).poll(cx));
            this.hold = None;
        }
        Poll::Ready(this.trailers.take().map(Ok))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::new()
    }
}
