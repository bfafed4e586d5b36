//! A recorded body on its way to an agent: its pieces with their timing, and its recorded end.

use http_body::SizeHint;
use squall_journal::tape::Content;
use tokio::time::Instant;

use super::playing::Playing;
use crate::abort::Abort;
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::timer;

/// Plays a body from now on; it ends like the recorded one.
pub(crate) fn played(content: &Content, breaks: bool, playing: &Playing) -> AgentBody {
    let begins = Instant::now();
    let mut pieces = match content {
        Content::Body(body) => vec![(begins, body.0.clone())],
        Content::Stream(pieces) => pieces
            .iter()
            .map(|piece| (begins + playing.lasts(piece.at_ms), piece.data.0.clone()))
            .collect(),
    };
    pieces.retain(|(_, bytes)| !bytes.is_empty());
    if pieces.is_empty() && !breaks {
        return body::empty();
    }
    body::boxed(Scripted::new(SizeHint::new(), |out| async move {
        let mut pieces = pieces.into_iter().peekable();
        while let Some((due, bytes)) = pieces.next() {
            timer::sleep_until(due).await;
            out.data(bytes, pieces.peek().is_none() && !breaks).await;
        }
        if breaks {
            let why = "the recorded answer broke off here, and so does this one";
            return Err(Abort::close(why));
        }
        Ok(())
    }))
}
