//! The unmasked payload of an agent's WebSocket frames (RFC 6455 §5).

/// Longest header of a frame: two bytes, an 8-byte length and a 4-byte mask.
const HEADER: usize = 14;

/// Bytes that are unmasked at once.
const PIECE: usize = 1 << 10;

/// An incremental reader of frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// Known bytes of the header; all of them while payload remains.
    known: usize,
    /// Remaining bytes of the payload.
    left: u64,
    /// Position of the next payload byte in the mask.
    at: usize,
}

impl Frames {
    /// Reads the next bytes; `said` gets the payload of text and binary frames. Compressed and
    /// control frames are skipped.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut said: impl FnMut(&[u8])) {
        while !bytes.is_empty() {
            if self.left == 0 {
                bytes = self.read_header(bytes);
            } else {
                bytes = self.read_payload(bytes, &mut said);
            }
        }
    }

    fn read_header<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let missing = self.header_length() - self.known;
        let (now, rest) = bytes.split_at(missing.min(bytes.len()));
        self.header[self.known..self.known + now.len()].copy_from_slice(now);
        self.known += now.len();
        if self.known >= 2 && self.known == self.header_length() {
            self.left = self.payload_length();
            self.at = 0;
            self.known = if self.left == 0 { 0 } else { self.known };
        }
        rest
    }

    fn read_payload<'b>(&mut self, bytes: &'b [u8], said: &mut impl FnMut(&[u8])) -> &'b [u8] {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (now, rest) = bytes.split_at(most.min(bytes.len()).min(PIECE));
        if self.is_readable() {
            let mask = self.mask();
            let mut plain = [0; PIECE];
            for (number, (plain, masked)) in plain.iter_mut().zip(now).enumerate() {
                *plain = masked ^ mask[(self.at + number) % 4];
            }
            said(&plain[..now.len()]);
        }
        self.at = (self.at + now.len()) % 4;
        self.left -= now.len() as u64;
        if self.left == 0 {
            self.known = 0;
        }
        rest
    }

    /// Length of the header, as far as known.
    fn header_length(&self) -> usize {
        if self.known < 2 {
            return 2;
        }
        2 + self.length_length() + if self.is_masked() { 4 } else { 0 }
    }

    /// Number of additional bytes that contain the payload's length.
    fn length_length(&self) -> usize {
        match self.header[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn payload_length(&self) -> u64 {
        let told = &self.header[2..2 + self.length_length()];
        if told.is_empty() {
            return u64::from(self.header[1] & 0x7f);
        }
        told.iter()
            .fold(0, |length, byte| length << 8 | u64::from(*byte))
    }

    fn is_masked(&self) -> bool {
        self.header[1] & 0x80 != 0
    }

    fn mask(&self) -> [u8; 4] {
        let mut mask = [0; 4];
        if self.is_masked() {
            let from = 2 + self.length_length();
            mask.copy_from_slice(&self.header[from..from + 4]);
        }
        mask
    }

    /// Neither compressed (RFC 7692 §6: first reserved bit) nor a control frame.
    fn is_readable(&self) -> bool {
        self.header[0] & 0x48 == 0
    }
}
