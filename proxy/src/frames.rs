//! Frames of a WebSocket by their headers (RFC 6455 §5.2). Payloads are neither kept nor read.

use std::io::Cursor;

use smallvec::SmallVec;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Data, OpCode};

/// Longest payload of a control frame, bytes (RFC 6455 §5.5).
const CONTROL: u64 = 125;

/// The bytes are no WebSocket frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not WebSocket frames")]
pub(crate) struct NotFrames;

/// Follows one direction of a WebSocket from frame to frame.
#[derive(Default)]
pub(crate) struct FrameScanner {
    /// The sender masks its frames.
    is_masked: bool,
    /// The beginning of a header that has not arrived whole.
    header: SmallVec<[u8; 14]>,
    /// The frame whose payload is passing, and how much of it is to come.
    frame: Option<(FrameHeader, u64)>,
    /// A message has begun, and its final frame has not.
    is_open: bool,
}

/// A part of a frame.
pub(crate) struct FramePart<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
    /// The frame ends with it.
    pub(crate) is_last: bool,
}

impl FrameScanner {
    /// Follows the agent's frames, which are masked.
    pub(crate) fn of_agent() -> Self {
        Self {
            is_masked: true,
            ..Self::default()
        }
    }

    /// Whether a message begins with the first of these bytes.
    pub(crate) fn begins_message(&self, bytes: &[u8]) -> bool {
        let is_between = self.header.is_empty() && self.frame.is_none();
        let opcode = bytes.first().map(|byte| byte & 0x0f);
        is_between && matches!(opcode, Some(1 | 2))
    }

    /// Takes the next part of a frame from `bytes`; `None` once nothing is left of them.
    pub(crate) fn next<'a>(
        &mut self,
        bytes: &mut &'a [u8],
    ) -> Result<Option<FramePart<'a>>, NotFrames> {
        let Some((header, rest)) = self.frame.take() else {
            let Some((header, length)) = self.header(bytes)? else {
                return Ok(None);
            };
            self.frame = Some((header, length));
            return self.next(bytes);
        };
        if rest > 0 && bytes.is_empty() {
            self.frame = Some((header, rest));
            return Ok(None);
        }
        let arrived = usize::try_from(rest).unwrap_or(usize::MAX).min(bytes.len());
        let (payload, others) = bytes.split_at(arrived);
        *bytes = others;
        let rest = rest - arrived as u64;
        if rest > 0 {
            self.frame = Some((header.clone(), rest));
        }
        Ok(Some(FramePart {
            header,
            payload,
            is_last: rest == 0,
        }))
    }

    /// Takes the next header, and the length of its payload.
    fn header(&mut self, bytes: &mut &[u8]) -> Result<Option<(FrameHeader, u64)>, NotFrames> {
        while let Some((byte, others)) = bytes.split_first() {
            self.header.push(*byte);
            *bytes = others;
            if self.header.len() < header_length(&self.header) {
                continue;
            }
            let header = std::mem::take(&mut self.header);
            let parsed = FrameHeader::parse(&mut Cursor::new(&header[..]));
            let (header, length) = parsed.map_err(|_| NotFrames)?.ok_or(NotFrames)?;
            self.check(&header, length)?;
            return Ok(Some((header, length)));
        }
        Ok(None)
    }

    /// Checks that the frame may follow those before.
    fn check(&mut self, header: &FrameHeader, length: u64) -> Result<(), NotFrames> {
        let is_sound = match header.opcode {
            OpCode::Control(_) => header.is_final && length <= CONTROL,
            OpCode::Data(data) => {
                let continues = std::mem::replace(&mut self.is_open, !header.is_final);
                continues == (data == Data::Continue)
            }
        };
        if is_sound && header.mask.is_some() == self.is_masked {
            Ok(())
        } else {
            Err(NotFrames)
        }
    }
}

/// The length of a header, as far as its first bytes show it.
fn header_length(begin: &[u8]) -> usize {
    let Some(second) = begin.get(1) else {
        return 2;
    };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
}

/// Finds the messages of one direction.
#[derive(Default)]
pub(crate) struct MessageFinder {
    scanner: FrameScanner,
    /// Messages whose first byte has passed.
    begun: u64,
}

impl MessageFinder {
    /// Number of bytes before the message with this number; `None` if it begins in later ones. A
    /// message that was found passes with the next call.
    pub(crate) fn find(&mut self, number: u64, bytes: &[u8]) -> Result<Option<usize>, NotFrames> {
        let mut left = bytes;
        while !left.is_empty() {
            if self.scanner.begins_message(left) {
                if self.begun + 1 == number {
                    return Ok(Some(bytes.len() - left.len()));
                }
                self.begun += 1;
            }
            self.scanner.next(&mut left)?;
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "frames/tests.rs"]
pub(crate) mod tests;
