//! One direction of a WebSocket, from anybody, in any chunks: nothing panics, no byte is lost or
//! changed, no chunking shows, and no more than the limit is held. Texts that the proxy sends can be read.
//!
//! The first two bytes choose sender, compression, limit and chunk size; the rest is the direction.

#![no_main]

#[allow(dead_code, reason = "the proxy uses the rest")]
#[path = "../../proxy/src/exchange/websocket/frames.rs"]
mod frames;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;

use self::frames::{
    MessageInflater, MessageReader, Sender, SocketMessage, close_frame, text_frame,
};

/// Longest incomplete control frame, or header of another, bytes.
const INCOMPLETE: usize = 130;

fuzz_target!(|input: &[u8]| {
    let [choice, size, direction @ ..] = input else {
        return;
    };
    let size = usize::from(*size).max(1);
    let whole = read(*choice, direction, direction.len().max(1));
    assert_eq!(read(*choice, direction, size), whole);
    let (_, _, texts, code) = whole;
    for text in texts {
        sent(&text);
    }
    closed(code.unwrap_or(1000));
});

/// The bytes of data frames and of control frames, the texts, and the code of a violation.
fn read(choice: u8, direction: &[u8], size: usize) -> (Vec<u8>, Vec<u8>, Vec<Bytes>, Option<u16>) {
    let from = [Sender::Agent, Sender::Upstream][usize::from(choice & 1)];
    let inflate = (choice & 2 != 0).then(|| MessageInflater::new(choice & 4 != 0));
    let limit = [32, 1 << 20][usize::from(choice & 8 != 0)];
    let mut reader = MessageReader::new(from, limit, inflate);
    let (mut data, mut control, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    let mut pushed = 0;
    for chunk in direction.chunks(size) {
        reader.push(chunk);
        pushed += chunk.len();
        loop {
            match reader.next() {
                Ok(Some(message)) => {
                    let stream = match &message {
                        SocketMessage::Text { text, .. } => {
                            assert!(text.len() <= limit && str::from_utf8(text).is_ok());
                            texts.push(text.clone());
                            &mut data
                        }
                        SocketMessage::Unread { .. } => &mut data,
                        SocketMessage::Control { .. } | SocketMessage::Close { .. } => &mut control,
                    };
                    stream.extend_from_slice(&message.into_frames());
                }
                Ok(None) => break,
                Err(violation) => return (data, control, texts, Some(violation.code())),
            }
        }
        let held = pushed - data.len() - control.len();
        assert!(held <= limit + INCOMPLETE);
        assert!(held == 0 || !reader.is_between_messages());
    }
    if control.is_empty() {
        assert!(direction.starts_with(&data));
    }
    (data, control, texts, None)
}

fn sent(text: &Bytes) {
    for (from, mask) in [
        (Sender::Agent, Some([1, 2, 3, 4])),
        (Sender::Upstream, None),
    ] {
        let frames = text_frame(text.clone(), mask);
        let mut reader = MessageReader::new(from, frames.len(), None);
        reader.push(&frames);
        let text = text.clone();
        assert_eq!(
            reader.next(),
            Ok(Some(SocketMessage::Text { text, frames }))
        );
        assert!(reader.is_between_messages());
    }
}

fn closed(code: u16) {
    let frames = close_frame(code, "", None);
    let mut reader = MessageReader::new(Sender::Upstream, 0, None);
    reader.push(&frames);
    assert_eq!(reader.next(), Ok(Some(SocketMessage::Close { frames })));
}
