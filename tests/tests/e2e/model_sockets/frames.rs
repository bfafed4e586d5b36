//! WebSocket frames (RFC 6455 §5, RFC 7692), as a client or as a server.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

/// What ends the data of each compressed message, which is not sent.
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// A message that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    Text(String),
    Close(u16),
    /// The opcode and the payload of another.
    Other(u8, Vec<u8>),
}

/// One end of a WebSocket.
pub(crate) struct End {
    /// The mask of its frames; a server has none.
    mask: Option<[u8; 4]>,
    /// `permessage-deflate` with context takeover.
    deflate: Option<(Compress, Decompress)>,
    bytes: Vec<u8>,
    /// The opcode, the first bit of compression and the payload of a message in progress.
    open: Option<(u8, bool, Vec<u8>)>,
}

/// A frame: its first byte, and its payload in clear.
pub(crate) fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let flag = if mask.is_some() { 0x80 } else { 0 };
    let mut bytes = vec![first];
    let length = payload.len();
    if let Some(length) = u8::try_from(length).ok().filter(|length| *length < 126) {
        bytes.push(flag | length);
    } else if let Ok(length) = u16::try_from(length) {
        bytes.push(flag | 0x7e);
        bytes.extend(length.to_be_bytes());
    } else {
        bytes.push(flag | 0x7f);
        bytes.extend((length as u64).to_be_bytes());
    }
    bytes.extend(mask.unwrap_or_default().iter().take(mask.map_or(0, |_| 4)));
    let mask = mask.unwrap_or_default();
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
    bytes
}

impl End {
    pub(crate) fn new(mask: Option<[u8; 4]>, compresses: bool) -> Self {
        let deflate = (
            Compress::new(Compression::default(), false),
            Decompress::new(false),
        );
        Self {
            mask,
            deflate: compresses.then_some(deflate),
            bytes: Vec::new(),
            open: None,
        }
    }

    /// The frame of a text.
    pub(crate) fn text(&mut self, text: &str) -> Vec<u8> {
        match &mut self.deflate {
            None => frame(0x81, self.mask, text.as_bytes()),
            Some((compress, _)) => {
                let mut payload = Vec::with_capacity(text.len() + 1024);
                compress
                    .compress_vec(text.as_bytes(), &mut payload, FlushCompress::Sync)
                    .expect("room for all of it");
                assert!(payload.ends_with(&TAIL), "a message ends with a flush");
                payload.truncate(payload.len() - TAIL.len());
                frame(0xc1, self.mask, &payload)
            }
        }
    }

    /// The frame of a Close.
    pub(crate) fn close(&self, code: u16) -> Vec<u8> {
        frame(0x88, self.mask, &code.to_be_bytes())
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole message.
    pub(crate) fn next(&mut self) -> Option<Message> {
        loop {
            let (first, payload) = self.frame()?;
            let opcode = first & 0x0f;
            if opcode >= 8 {
                return Some(match (opcode, &payload[..]) {
                    (8, [high, low, ..]) => Message::Close(u16::from_be_bytes([*high, *low])),
                    (8, _) => Message::Close(1005),
                    _ => Message::Other(opcode, payload),
                });
            }
            let open = self
                .open
                .get_or_insert((opcode, first & 0x40 != 0, Vec::new()));
            open.2.extend(payload);
            if first & 0x80 == 0 {
                continue;
            }
            let (opcode, is_compressed, payload) = self.open.take()?;
            let payload = if is_compressed {
                self.inflate(payload)
            } else {
                payload
            };
            return Some(match (opcode, String::from_utf8(payload)) {
                (1, Ok(text)) => Message::Text(text),
                (_, Ok(text)) => Message::Other(opcode, text.into_bytes()),
                (_, Err(bytes)) => Message::Other(opcode, bytes.into_bytes()),
            });
        }
    }

    fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let (&first, &second) = (self.bytes.first()?, self.bytes.get(1)?);
        assert_eq!(
            second & 0x80 == 0,
            self.mask.is_some(),
            "only a client masks"
        );
        let extended = match second & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let length = self.bytes.get(2..2 + extended)?;
        let length = match extended {
            0 => usize::from(second & 0x7f),
            _ => length
                .iter()
                .fold(0, |all, byte| all << 8 | usize::from(*byte)),
        };
        let begin = 2 + extended + if second & 0x80 == 0 { 0 } else { 4 };
        let mut payload = self.bytes.get(begin..begin + length)?.to_vec();
        if second & 0x80 != 0 {
            let mask = &self.bytes[2 + extended..begin];
            payload
                .iter_mut()
                .zip(mask.iter().cycle())
                .for_each(|(a, b)| *a ^= b);
        }
        self.bytes.drain(..begin + length);
        Some((first, payload))
    }

    fn inflate(&mut self, mut payload: Vec<u8>) -> Vec<u8> {
        payload.extend(TAIL);
        let (_, decompress) = self.deflate.as_mut().expect("compression was agreed on");
        let mut text = Vec::with_capacity(1 << 20);
        decompress
            .decompress_vec(&payload, &mut text, FlushDecompress::Sync)
            .expect("a message that continues the window");
        text
    }
}
