//! Bandwidth.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use squall_profiles::fault::Throttle;
use tokio::time::Instant;

use crate::carry_out::Report;
use crate::carry_out::hold::Hold;

/// A piece is what passes in a fiftieth of a second, within these bounds: fine enough to look
/// like a slow line, coarse enough not to be a wake-up per byte.
const PIECES_PER_SECOND: u64 = 50;
const LARGEST_PIECE: u64 = 64 << 10;

/// A timer that was late by less than this is made up for, so that lateness does not add up.
const MADE_UP: Duration = Duration::from_millis(5);

/// The pace of one body.
pub(super) struct Pacing {
    throttle: Throttle,
    largest: usize,
    /// When what was sent so far was due.
    due: Option<Instant>,
    report: Report,
}

impl Pacing {
    pub(super) fn new(throttle: Throttle, report: Report) -> Self {
        let largest = (throttle.bytes_per_second / PIECES_PER_SECOND).clamp(1, LARGEST_PIECE);
        Self {
            throttle,
            largest: usize::try_from(largest).unwrap_or(1),
            due: None,
            report,
        }
    }

    /// When a piece that is at hand now may go.
    fn next(&mut self, length: usize) -> Instant {
        let now = Instant::now();
        let from = match self.due {
            Some(due) if due + MADE_UP > now => due,
            _ => now,
        };
        let due = from + self.takes(length);
        self.due = Some(due);
        due
    }

    fn takes(&self, bytes: usize) -> Duration {
        let rate = u128::from(self.throttle.bytes_per_second.max(1));
        let nanos = (bytes as u128 * 1_000_000_000).div_ceil(rate);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A body at a bandwidth: every piece waits as long as it would take on such a line.
pub(super) struct Paced<B> {
    body: B,
    pacing: Pacing,
    /// What came and is not sent yet.
    waiting: Bytes,
    hold: Option<Hold>,
}

impl<B> Paced<B> {
    pub(super) fn new(body: B, pacing: Pacing) -> Self {
        Self {
            body,
            pacing,
            waiting: Bytes::new(),
            hold: None,
        }
    }
}

impl<B> Body for Paced<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = &mut *self;
        while this.waiting.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.waiting = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    this.pacing.report.bypassed("the body is empty");
                    return Poll::Ready(None);
                }
            }
        }
        let length = this.waiting.len().min(this.pacing.largest);
        if this.hold.is_none() {
            this.pacing.report.applied();
            let due = this.pacing.next(length);
            this.hold = Some(Hold::until(due, this.pacing.report.ledger()));
        }
        if let Some(hold) = &mut this.hold {
            ready!(Pin::new(hold).poll(cx));
            this.hold = None;
        }
        Poll::Ready(Some(Ok(Frame::data(this.waiting.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        super::and(self.waiting.len(), &self.body.size_hint())
    }
}
