//! Counts what a WebSocket carries while its bytes pass.

use squall_journal::record::{CloseRecord, MessageCounts, SocketRecord, SocketSide};
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, OpCode};

use crate::frames::{FrameScanner, NotFrames};

/// The counts of a WebSocket so far.
pub(crate) struct SocketTap {
    agent: FrameScanner,
    upstream: FrameScanner,
    /// `None` once the bytes were no frames.
    record: Option<SocketRecord>,
    /// The payloads of Close frames that have not arrived whole, the agent's first.
    closing: [Vec<u8>; 2],
}

impl SocketTap {
    pub(crate) fn new() -> Self {
        Self {
            agent: FrameScanner::of_agent(),
            upstream: FrameScanner::default(),
            record: Some(SocketRecord::default()),
            closing: [Vec::new(), Vec::new()],
        }
    }

    /// Counts bytes on their way from a side.
    pub(crate) fn pass(&mut self, side: SocketSide, bytes: &[u8]) {
        if let Some(record) = &mut self.record {
            let (scanner, counts, closing) = match side {
                SocketSide::Agent => (&mut self.agent, &mut record.agent, &mut self.closing[0]),
                SocketSide::Upstream => (
                    &mut self.upstream,
                    &mut record.upstream,
                    &mut self.closing[1],
                ),
            };
            match count(scanner, counts, closing, bytes) {
                Ok(None) => {}
                Ok(Some((code, reason))) => {
                    let close = || CloseRecord {
                        by: side,
                        code,
                        reason,
                    };
                    record.close.get_or_insert_with(close);
                }
                Err(NotFrames) => self.record = None,
            }
        }
    }

    /// The counts so far; `None` if the bytes were no frames.
    pub(crate) fn record(&self) -> Option<SocketRecord> {
        self.record.clone()
    }
}

/// Counts bytes of a direction; returns code and reason of a Close frame that ends in them.
fn count(
    scanner: &mut FrameScanner,
    counts: &mut MessageCounts,
    closing: &mut Vec<u8>,
    mut bytes: &[u8],
) -> Result<Option<(Option<u16>, String)>, NotFrames> {
    let mut close = None;
    while let Some(part) = scanner.next(&mut bytes)? {
        match part.header.opcode {
            OpCode::Control(Control::Close) => {
                closing.extend_from_slice(part.payload);
                if part.is_last {
                    close.get_or_insert_with(|| code_and_reason(&part.header, closing));
                    closing.clear();
                }
            }
            OpCode::Control(_) => {}
            OpCode::Data(_) => {
                counts.bytes += part.payload.len() as u64;
                counts.messages += u64::from(part.is_last && part.header.is_final);
            }
        }
    }
    Ok(close)
}

fn code_and_reason(header: &FrameHeader, payload: &mut [u8]) -> (Option<u16>, String) {
    if let Some(mask) = header.mask {
        let mask = mask.iter().cycle();
        payload
            .iter_mut()
            .zip(mask)
            .for_each(|(byte, mask)| *byte ^= mask);
    }
    match payload {
        [high, low, reason @ ..] => {
            let code = u16::from_be_bytes([*high, *low]);
            (Some(code), String::from_utf8_lossy(reason).into_owned())
        }
        _ => (None, String::new()),
    }
}

#[cfg(test)]
#[path = "websocket/tests.rs"]
mod tests;
