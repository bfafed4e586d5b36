//! One direction of a WebSocket as messages (RFC 6455 §5), without changing a byte.
//!
//! tungstenite reads and writes the frames' headers. Frames that pass are never made anew: a
//! [`SocketMessage`] holds the bytes that it came in. Control frames between the fragments of a message
//! pass before it.

use std::io::{Cursor, Write as _};

use bytes::{Buf as _, Bytes, BytesMut};
use flate2::write::DeflateDecoder;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tungstenite::protocol::frame::{CloseFrame, Frame, FrameHeader};

/// Longest payload of a control frame, bytes (RFC 6455 §5.5).
const CONTROL: u64 = 125;

/// Compressed bytes between two checks of the limit.
const PIECE: usize = 4 << 10;

/// What ends the data of each message under `permessage-deflate` (RFC 7692 §7.2.2).
const DEFLATE_TAIL: &[u8] = &[0, 0, 0xff, 0xff];

/// The sender of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The agent, which masks its frames.
    Agent,
    /// The upstream, which does not.
    Upstream,
}

/// Why a side's messages end the socket, with the Close code for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    /// A header, an order of frames or a Close code that the RFC forbids.
    #[error("{0}")]
    Protocol(&'static str),
    /// A message that must be read is longer than can be held.
    #[error("a message is longer than `inspect_limit` or `inspect_memory` allows")]
    TooLong,
    /// A text that is no UTF-8.
    #[error("a text is not UTF-8")]
    NotUtf8,
}

impl Violation {
    /// The code of the Close frame for it (RFC 6455 §7.4.1).
    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Protocol(_) => 1002,
            Self::NotUtf8 => 1007,
            Self::TooLong => 1009,
        }
    }
}

/// The next unit of a direction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SocketMessage {
    /// A text, and the frames that it came in. Where binary messages are read, also one of those.
    Text { text: Bytes, frames: Bytes },
    /// A binary message, or a piece of a message that cannot be read: longer than the limit, or
    /// compressed in an unknown way.
    Unread { frames: Bytes },
    /// A ping or a pong.
    Control { frames: Bytes },
    /// A Close frame.
    Close { frames: Bytes },
}

impl SocketMessage {
    /// The bytes that it came in.
    pub(crate) fn into_frames(self) -> Bytes {
        match self {
            Self::Text { frames, .. }
            | Self::Unread { frames }
            | Self::Control { frames }
            | Self::Close { frames } => frames,
        }
    }
}

/// Reads one direction.
pub(crate) struct MessageReader {
    from: Sender,
    /// A binary message that is UTF-8 is read as a text.
    reads_binary: bool,
    /// Longest message that is read, bytes: its frames, and its text.
    limit: usize,
    /// `permessage-deflate` is in use.
    inflate: Option<MessageInflater>,
    bytes: BytesMut,
    /// The message whose final frame has not arrived.
    open: Option<OpenMessage>,
    /// Bytes of a frame that passes that have not arrived.
    rest: u64,
}

struct OpenMessage {
    /// The header of its first frame.
    first: FrameHeader,
    /// Its frames; `None` if it is longer than the limit, so that they pass as they arrive.
    frames: Option<BytesMut>,
}

impl OpenMessage {
    fn new(first: &FrameHeader) -> Self {
        Self {
            first: first.clone(),
            frames: Some(BytesMut::new()),
        }
    }
}

/// The decompressor of a direction.
pub(crate) struct MessageInflater {
    /// The sender compresses each message alone (`no_context_takeover`).
    resets: bool,
    /// Its window holds the messages before; `None` after a message that was not read.
    decoder: Option<DeflateDecoder<Vec<u8>>>,
}

impl MessageInflater {
    /// `resets`: the sender compresses each message alone (`no_context_takeover`).
    pub(crate) fn new(resets: bool) -> Self {
        Self {
            resets,
            decoder: Some(DeflateDecoder::new(Vec::new())),
        }
    }

    /// The data of a message; `None` if it is longer than `limit` or cannot be decompressed.
    fn read(&mut self, payload: &[u8], limit: usize) -> Option<Bytes> {
        let mut decoder = self.decoder.take()?;
        self.skip();
        for piece in payload.chunks(PIECE).chain([DEFLATE_TAIL]) {
            let written = decoder.write_all(piece).and_then(|()| decoder.flush());
            if written.is_err() || decoder.get_ref().len() > limit {
                return None;
            }
        }
        let data = std::mem::take(decoder.get_mut());
        if !self.resets {
            self.decoder = Some(decoder);
        }
        Some(data.into())
    }

    /// Leaves out a message. Messages that depend on it cannot be read.
    fn skip(&mut self) {
        self.decoder = self.resets.then(|| DeflateDecoder::new(Vec::new()));
    }
}

impl MessageReader {
    /// Reads what `from` sends.
    pub(crate) fn new(from: Sender, limit: usize, inflate: Option<MessageInflater>) -> Self {
        Self {
            from,
            reads_binary: false,
            limit,
            inflate,
            bytes: BytesMut::new(),
            open: None,
            rest: 0,
        }
    }

    /// Sets whether a binary message that is UTF-8 is read as a text.
    pub(crate) fn reading_binary(mut self, reads_binary: bool) -> Self {
        self.reads_binary = reads_binary;
        self
    }

    /// Adds received bytes; [`Self::next`] returns their messages.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether everything pushed was returned, up to the end of a message.
    pub(crate) fn is_between_messages(&self) -> bool {
        self.bytes.is_empty() && self.open.is_none() && self.rest == 0
    }

    /// Whether the last unit was a part of a message.
    pub(crate) fn is_inside_message(&self) -> bool {
        self.open.is_some() || self.rest > 0
    }

    /// The next complete unit; `None` if more bytes are needed.
    pub(crate) fn next(&mut self) -> Result<Option<SocketMessage>, Violation> {
        if self.rest > 0 {
            let frames = self.take(self.rest).freeze();
            return Ok((!frames.is_empty()).then_some(SocketMessage::Unread { frames }));
        }
        while let Some((header, length)) = self.header()? {
            let is_control = matches!(header.opcode, OpCode::Control(_));
            if !is_control && !self.is_readable(length) {
                return Ok(Some(self.pass(&header, length)));
            }
            if (self.bytes.len() as u64) < length {
                return Ok(None);
            }
            let frame = self.take(length);
            if is_control {
                return control(&header, frame.freeze()).map(Some);
            }
            let open = self.open.get_or_insert_with(|| OpenMessage::new(&header));
            open.frames.get_or_insert_default().unsplit(frame);
            if header.is_final {
                return self.message().transpose();
            }
        }
        Ok(None)
    }

    /// The header of the next frame, and the length of the whole frame.
    fn header(&self) -> Result<Option<(FrameHeader, u64)>, Violation> {
        let parsed = parse(&self.bytes)?;
        if let Some((header, _, payload)) = &parsed {
            self.check(header, *payload)?;
        }
        Ok(parsed.map(|(header, head, payload)| (header, head as u64 + payload)))
    }

    fn check(&self, header: &FrameHeader, payload: u64) -> Result<(), Violation> {
        let is_control = matches!(header.opcode, OpCode::Control(_));
        let continues = header.opcode == OpCode::Data(Data::Continue);
        let begins = !is_control && !continues;
        let may_compress = begins && self.inflate.is_some();
        let rules = [
            (
                header.rsv2 || header.rsv3 || (header.rsv1 && !may_compress),
                "a frame has a reserved bit",
            ),
            (
                is_control && !header.is_final,
                "a control frame is fragmented",
            ),
            (
                is_control && payload > CONTROL,
                "a control frame is longer than 125 bytes",
            ),
            (
                header.mask.is_some() != (self.from == Sender::Agent),
                "a frame is masked on the wrong side",
            ),
            (payload > i64::MAX as u64, "a frame is too long"),
            (
                continues && self.open.is_none(),
                "a continuation frame has no beginning",
            ),
            (
                begins && self.open.is_some(),
                "a message begins inside another",
            ),
        ];
        match rules.into_iter().find(|(is_broken, _)| *is_broken) {
            Some((_, why)) => Err(Violation::Protocol(why)),
            None => Ok(()),
        }
    }

    /// Whether a data frame of this length leaves its message within the limit.
    fn is_readable(&self, length: u64) -> bool {
        let held = match &self.open {
            Some(open) => open.frames.as_ref().map(BytesMut::len),
            None => Some(0),
        };
        held.is_some_and(|held| held as u64 + length <= self.limit as u64)
    }

    /// The next bytes, `length` at most; those that have not arrived are the `rest`.
    fn take(&mut self, length: u64) -> BytesMut {
        let arrived = usize::try_from(length)
            .unwrap_or(usize::MAX)
            .min(self.bytes.len());
        self.rest = length - arrived as u64;
        self.bytes.split_to(arrived)
    }

    /// Passes a frame of a message beyond the limit, after those held.
    fn pass(&mut self, header: &FrameHeader, length: u64) -> SocketMessage {
        let mut open = self.open.take().unwrap_or_else(|| OpenMessage::new(header));
        if let Some(inflate) = &mut self.inflate
            && open.first.rsv1
        {
            inflate.skip();
        }
        let mut frames = open.frames.take().unwrap_or_default();
        frames.unsplit(self.take(length));
        if !header.is_final {
            self.open = Some(open);
        }
        SocketMessage::Unread {
            frames: frames.freeze(),
        }
    }

    /// The open message, which is whole.
    fn message(&mut self) -> Option<Result<SocketMessage, Violation>> {
        let OpenMessage { first, frames } = self.open.take()?;
        let frames = frames?.freeze();
        let payload = payload(&frames);
        let data = match &mut self.inflate {
            Some(inflate) if first.rsv1 => inflate.read(&payload, self.limit),
            _ => Some(payload),
        };
        Some(match data {
            Some(text) if first.opcode == OpCode::Data(Data::Text) => {
                utf8(&text).map(|()| SocketMessage::Text { text, frames })
            }
            Some(text) if self.reads_binary && utf8(&text).is_ok() => {
                Ok(SocketMessage::Text { text, frames })
            }
            _ => Ok(SocketMessage::Unread { frames }),
        })
    }
}

/// The header of a frame, its length and the payload's; `None` if more bytes are needed.
fn parse(bytes: &[u8]) -> Result<Option<(FrameHeader, usize, u64)>, Violation> {
    let mut cursor = Cursor::new(bytes);
    let header = FrameHeader::parse(&mut cursor)
        .map_err(|_| Violation::Protocol("a frame has a reserved opcode"))?;
    Ok(header.map(|(header, payload)| {
        let head = bytes.len() - cursor.remaining();
        (header, head, payload)
    }))
}

/// The payload of whole frames.
fn payload(mut frames: &[u8]) -> Bytes {
    let mut payload = BytesMut::with_capacity(frames.len());
    while let Ok(Some((header, head, length))) = parse(frames) {
        let begin = payload.len();
        let end = usize::try_from(length).map_or(frames.len(), |length| head + length);
        let (Some(data), Some(rest)) = (frames.get(head..end), frames.get(end..)) else {
            break;
        };
        payload.extend_from_slice(data);
        frames = rest;
        if let Some(mask) = header.mask {
            for chunk in payload[begin..].chunks_mut(mask.len()) {
                for (byte, mask) in chunk.iter_mut().zip(mask) {
                    *byte ^= mask;
                }
            }
        }
    }
    payload.freeze()
}

fn control(header: &FrameHeader, frames: Bytes) -> Result<SocketMessage, Violation> {
    if header.opcode != OpCode::Control(Control::Close) {
        return Ok(SocketMessage::Control { frames });
    }
    let mut reason = payload(&frames);
    if !reason.is_empty() {
        let code = reason
            .try_get_u16()
            .map_err(|_| Violation::Protocol("a Close frame has half a code"))?;
        if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
            return Err(Violation::Protocol("a Close frame has a reserved code"));
        }
        utf8(&reason)?;
    }
    Ok(SocketMessage::Close { frames })
}

fn utf8(text: &[u8]) -> Result<(), Violation> {
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(Violation::NotUtf8),
    }
}

/// A text in one frame, as `from` would send it; `mask` for an agent's.
pub(crate) fn text_frame(text: Bytes, mask: Option<[u8; 4]>) -> Bytes {
    framed(Frame::message(text, OpCode::Data(Data::Text), true), mask)
}

/// A text in one binary frame of an upstream.
pub(crate) fn binary_frame(text: Bytes) -> Bytes {
    framed(Frame::message(text, OpCode::Data(Data::Binary), true), None)
}

/// An upstream's reply to a control frame: a pong, or the same Close.
pub(crate) fn reply(frames: &[u8]) -> Option<Bytes> {
    let (header, ..) = parse(frames).ok()??;
    let opcode = match header.opcode {
        OpCode::Control(Control::Ping) => OpCode::Control(Control::Pong),
        OpCode::Control(Control::Close) => header.opcode,
        OpCode::Control(Control::Pong | Control::Reserved(_)) | OpCode::Data(_) => return None,
    };
    let header = FrameHeader {
        opcode,
        ..FrameHeader::default()
    };
    Some(framed(Frame::from_payload(header, payload(frames)), None))
}

/// Whether a message's frames are binary.
pub(crate) fn is_binary(frames: &[u8]) -> bool {
    let parsed = parse(frames).ok().flatten();
    parsed.is_some_and(|(header, ..)| header.opcode == OpCode::Data(Data::Binary))
}

/// A Close frame.
pub(crate) fn close_frame(code: u16, reason: &str, mask: Option<[u8; 4]>) -> Bytes {
    let close = CloseFrame {
        code: code.into(),
        reason: reason.into(),
    };
    framed(Frame::close(Some(close)), mask)
}

fn framed(mut frame: Frame, mask: Option<[u8; 4]>) -> Bytes {
    frame.header_mut().mask = mask;
    let mut bytes = Vec::with_capacity(frame.len());
    // A vector takes everything.
    let _ = frame.format(&mut bytes);
    bytes.into()
}

#[cfg(test)]
#[path = "frames/tests.rs"]
mod tests;
