//! A recorded body on its way to an agent: its pieces, each at its time, and the break at its end.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};
use squall_journal::tape::Content;
use tokio::time::Instant;

use super::playing::Playing;
use crate::broken::Broken;
use crate::timer;

/// Pieces that come one after the other.
pub(crate) struct PlayedBody {
    /// With the time at which each is due.
    pieces: VecDeque<(Instant, Bytes)>,
    waits: Option<Pin<Box<dyn Future<Output = ()>>>>,
    breaks: bool,
}

impl PlayedBody {
    /// A body whose time begins now, and that ends as the recorded one did.
    pub(crate) fn new(content: &Content, breaks: bool, playing: &Playing) -> Self {
        let begins = Instant::now();
        let pieces = match content {
            Content::Body(body) => vec![(begins, body.0.clone())],
            Content::Stream(pieces) => pieces
                .iter()
                .map(|piece| (begins + playing.lasts(piece.at_ms), piece.data.0.clone()))
                .collect(),
        };
        let pieces = pieces.into_iter().filter(|(_, bytes)| !bytes.is_empty());
        Self {
            pieces: pieces.collect(),
            waits: None,
            breaks,
        }
    }
}

impl Body for PlayedBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        let Some((due, _)) = this.pieces.front() else {
            let broken = std::mem::take(&mut this.breaks);
            return Poll::Ready(broken.then(|| {
                Err(Broken::close(
                    "the recorded answer broke off here, and so does this one",
                ))
            }));
        };
        if this.waits.is_none() && *due > Instant::now() {
            this.waits = Some(Box::pin(timer::sleep_until(*due)));
        }
        if let Some(waits) = &mut this.waits {
            ready!(waits.as_mut().poll(cx));
            this.waits = None;
        }
        let next = this.pieces.pop_front();
        Poll::Ready(next.map(|(_, bytes)| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && !self.breaks
    }
}
