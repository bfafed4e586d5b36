//! Bodies in small pieces.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use squall_profiles::fault::Slices;

use crate::broken::Broken;
use crate::carry_out::Report;
use crate::carry_out::body::AgentBody;
use crate::carry_out::hold::Hold;

/// A body that goes out in pieces with pauses between them.
///
/// Nothing is held back to fill a piece: what the upstream has sent of one goes out, and the rest
/// of it follows without a pause.
pub(super) struct Sliced {
    body: AgentBody,
    slices: Slices,
    draws: Draws,
    /// What came and is not sent yet.
    waiting: Bytes,
    /// Bytes missing in the current piece; zero: the next byte begins a piece.
    missing: u64,
    sent: u64,
    hold: Option<Hold>,
    report: Report,
}

impl Sliced {
    pub(super) fn new(body: AgentBody, slices: Slices, seed: u64, report: Report) -> Self {
        Self {
            body,
            slices,
            draws: Draws(seed),
            waiting: Bytes::new(),
            missing: 0,
            sent: 0,
            hold: None,
            report,
        }
    }

    /// Begins a piece; true when there was one before it.
    fn begin_piece(&mut self) -> bool {
        let Slices {
            average_size,
            size_variation,
            ..
        } = self.slices;
        let smallest = average_size.saturating_sub(size_variation);
        let spread = size_variation.saturating_mul(2).saturating_add(1);
        self.missing = smallest.saturating_add(self.draws.next() % spread).max(1);
        self.sent > 0
    }

    fn piece(&mut self) -> Bytes {
        let length = self.missing.min(self.waiting.len() as u64);
        self.missing -= length;
        self.sent += length;
        let length = usize::try_from(length).unwrap_or(self.waiting.len());
        self.waiting.split_to(length)
    }

    fn note_end(&mut self) {
        let why = format!("the body of {} bytes fits one slice", self.sent);
        self.report.bypassed(why);
    }
}

impl Body for Sliced {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        if let Some(hold) = &mut this.hold {
            ready!(Pin::new(hold).poll(cx));
            this.hold = None;
        }
        while this.waiting.is_empty() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.waiting = data,
                    Err(trailers) => {
                        this.note_end();
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                },
                None => {
                    this.note_end();
                    return Poll::Ready(None);
                }
                Some(Err(broken)) => return Poll::Ready(Some(Err(broken))),
            }
        }
        if this.missing == 0 && this.begin_piece() {
            this.report.applied();
            if !this.slices.delay.is_zero() {
                let hold = Hold::lasting(this.slices.delay, this.report.ledger());
                if Pin::new(this.hold.insert(hold)).poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.hold = None;
            }
            // A turn without data makes hyper write what it has: a piece of its own.
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let piece = this.piece();
        // hyper does not ask again for the end of a body whose length it knows.
        if this.is_end_stream() {
            this.note_end();
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        super::and(self.waiting.len(), &self.body.size_hint())
    }
}

/// Draws that hang on nothing but the seed: `SplitMix64` (Steele, Lea, Flood 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Draws;

    #[test]
    fn the_draws_are_those_of_the_published_generator() {
        let mut draws = Draws(1_234_567);
        let numbers = [draws.next(), draws.next(), draws.next()];
        assert_eq!(
            numbers,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }
}
