//! What an agent says over a WebSocket: the payload of its frames without the mask (RFC 6455 §5).

/// Longest header of a frame: two bytes, a length of eight, a mask of four.
const HEADER: usize = 14;

/// Bytes that are unmasked at once.
const PIECE: usize = 1 << 10;

/// A reader of frames, fed as they come.
#[derive(Debug, Default)]
pub(super) struct Frames {
    header: [u8; HEADER],
    /// Bytes of the header so far; all of it while there is payload left.
    known: usize,
    /// Payload that is still to come.
    left: u64,
    /// Where in the mask the next byte of the payload is.
    at: usize,
}

impl Frames {
    /// The next bytes; `said` gets the payload of text and binary frames. What is compressed, and
    /// what control frames carry, is left out.
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

    /// How long the header is, as far as is known.
    fn header_length(&self) -> usize {
        if self.known < 2 {
            return 2;
        }
        2 + self.length_length() + if self.is_masked() { 4 } else { 0 }
    }

    /// How many bytes tell the payload's length, beside the seven bits.
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

    /// Neither compressed (RFC 7692 §6: the first reserved bit) nor a control frame.
    fn is_readable(&self) -> bool {
        self.header[0] & 0x48 == 0
    }
}
