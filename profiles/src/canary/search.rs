//! Finds canaries in bytes that pass by, however they are written.
//!
//! ```text
//! bytes ─▶ JSON's escapes ─┬────────────────────▶ reading ─┬─ as they are          ─▶ mark
//!                          │                               ├─ hexadecimal, 2 ways  ─▶ mark
//!                          └─ percent-decoding ─▶ reading  └─ base64, 4 ways       ─▶ mark
//! ```
//!
//! It only stores the state of a few automata (less than a kilobyte), so chunk boundaries do not
//! matter. Every byte is read once. It searches for the format of a canary and not for a list, so
//! the cost does not depend on the number of planted canaries. The caller checks whether a find was
//! planted.
//!
//! It ignores letter case, white space, characters beyond ASCII and a missing hyphen, because an
//! agent may send a canary spelled out, wrapped or with invisible characters.

use squall_journal::record::Encoding;

use super::{Canary, LENGTH};

/// A canary that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Found {
    /// The canary, which may not be a planted one.
    pub canary: Canary,
    /// Its encoding.
    pub encoding: Encoding,
}

/// A search through one stream of bytes.
#[derive(Debug, Clone, Default)]
pub struct Search {
    sent: ByteReading,
    /// The percent-decoded stream.
    decoded: ByteReading,
    percent: Percent,
    escape: Escape,
}

/// State of a JSON escape (RFC 8259 §7). JSON inside a JSON string doubles its backslashes, so
/// several count as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Escape {
    #[default]
    Nothing,
    /// A backslash.
    Backslash,
    /// A backslash, `u` and so many digits.
    Unicode { digits: u8, value: u16 },
}

/// The encoding of a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteEncoding {
    Plainly,
    InPercent,
    InJson,
}

/// State of a percent-encoded byte.
#[derive(Debug, Clone, Copy, Default)]
enum Percent {
    #[default]
    Nothing,
    /// `%`.
    Sign,
    /// `%` and this digit.
    Digit(u8),
}

impl Search {
    /// A search without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// All canaries in a complete text. A canary may be reported twice if it has two readings.
    pub fn all(text: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        Self::new().push(text, |canary| found.push(canary));
        found
    }

    /// Reads the next bytes of the stream, and reports each canary to `found` at its last byte.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Found)) {
        for byte in bytes {
            self.unescape(*byte, &mut found);
        }
    }

    /// Decodes JSON escapes; invalid ones stay unchanged.
    fn unescape(&mut self, byte: u8, found: &mut impl FnMut(Found)) {
        match (self.escape, byte) {
            (Escape::Nothing | Escape::Backslash, b'\\') => self.escape = Escape::Backslash,
            (Escape::Nothing, _) => self.step(byte, ByteEncoding::Plainly, found),
            (Escape::Backslash, b'u') => {
                let (digits, value) = (0, 0);
                self.escape = Escape::Unicode { digits, value };
            }
            (Escape::Backslash, _) => {
                self.escape = Escape::Nothing;
                self.escaped(byte, found);
            }
            (Escape::Unicode { digits, value }, _) => {
                self.escape = Escape::Nothing;
                self.unicode(digits, value, byte, found);
            }
        }
    }

    /// The character after a backslash.
    fn escaped(&mut self, byte: u8, found: &mut impl FnMut(Found)) {
        match byte {
            // White space, or nothing that shows.
            b'n' | b'r' | b't' | b'b' | b'f' => self.step(b' ', ByteEncoding::InJson, found),
            b'/' | b'"' => self.step(byte, ByteEncoding::InJson, found),
            _ => {
                self.step(b'\\', ByteEncoding::Plainly, found);
                self.step(byte, ByteEncoding::Plainly, found);
            }
        }
    }

    /// A character after a backslash, `u` and `digits` digits.
    fn unicode(&mut self, digits: u8, value: u16, byte: u8, found: &mut impl FnMut(Found)) {
        if let Some(digit) = hex_digit(byte) {
            let (digits, value) = (digits + 1, value << 4 | u16::from(digit));
            if digits < 4 {
                self.escape = Escape::Unicode { digits, value };
            } else {
                // All characters beyond ASCII are treated alike.
                let byte = u8::try_from(value).unwrap_or(0x80);
                self.step(byte, ByteEncoding::InJson, found);
            }
            return;
        }
        self.step(b'\\', ByteEncoding::Plainly, found);
        self.step(b'u', ByteEncoding::Plainly, found);
        for place in (0..digits).rev() {
            let digit = usize::from(value >> (4 * u16::from(place)) & 0xf);
            self.step(b"0123456789abcdef"[digit], ByteEncoding::Plainly, found);
        }
        self.unescape(byte, found);
    }

    fn step(&mut self, byte: u8, written: ByteEncoding, found: &mut impl FnMut(Found)) {
        self.sent.step(byte, written, &mut |one, _| found(one));
        // Both readings find what is not percent-encoded.
        let mut in_percent = |one: Found, escaped: bool| {
            if escaped {
                found(one);
            }
        };
        let decoded = &mut self.decoded;
        let mut decode = |byte, written| decoded.step(byte, written, &mut in_percent);
        let before = std::mem::take(&mut self.percent);
        match (before, hex_digit(byte)) {
            (Percent::Sign, Some(_)) => self.percent = Percent::Digit(byte),
            (Percent::Digit(first), Some(low)) => {
                let high = hex_digit(first).unwrap_or_default();
                decode(high << 4 | low, ByteEncoding::InPercent);
            }
            (unfinished, _) => {
                // The percent sign does not start an encoded byte, so it counts as itself.
                match unfinished {
                    Percent::Nothing => {}
                    Percent::Sign => decode(b'%', ByteEncoding::Plainly),
                    Percent::Digit(first) => {
                        decode(b'%', ByteEncoding::Plainly);
                        decode(first, ByteEncoding::Plainly);
                    }
                }
                if byte == b'%' {
                    self.percent = Percent::Sign;
                } else {
                    decode(byte, written);
                }
            }
        }
    }
}

/// One reading of the stream's bytes: plain, hexadecimal and base64 at the same time.
#[derive(Debug, Clone, Default)]
struct ByteReading {
    plain: Mark,
    /// By which digit of a pair comes next.
    hex: [Mark; 2],
    /// By which of four characters comes next.
    base64: [Mark; 4],
    /// The last hexadecimal digit, if the last character was one.
    nibble: Option<u8>,
    /// The last six bits in base64, white space left out.
    sextet: Option<u8>,
    /// Counts characters of base64; only its two last bits matter.
    characters: u8,
}

impl ByteReading {
    /// Reads a byte. `found` gets each canary, and whether a part of it was percent-encoded.
    fn step(&mut self, byte: u8, written: ByteEncoding, found: &mut impl FnMut(Found, bool)) {
        if let Some((canary, changed, escaped)) = self.plain.step(byte, written) {
            let encoding = match (escaped, changed) {
                (true, _) => Encoding::Url,
                (false, true) => Encoding::Normalised,
                (false, false) => Encoding::Raw,
            };
            found(Found { canary, encoding }, escaped);
        }
        if let Some((canary, _, escaped)) = self.step_hex(byte, written) {
            let encoding = Encoding::Hex;
            found(Found { canary, encoding }, escaped);
        }
        for (canary, _, escaped) in self.step_base64(byte, written).into_iter().flatten() {
            let encoding = Encoding::Base64;
            found(Found { canary, encoding }, escaped);
        }
    }

    fn step_hex(&mut self, byte: u8, written: ByteEncoding) -> Option<CompleteMark> {
        let last = std::mem::replace(&mut self.nibble, hex_digit(byte));
        let Some(digit) = self.nibble else {
            // Between two bytes there may be a space or a colon.
            if !is_space(byte) && byte != b':' {
                self.hex = Default::default();
            }
            return None;
        };
        self.hex.swap(0, 1);
        self.hex[0].step(last? << 4 | digit, written)
    }

    fn step_base64(&mut self, byte: u8, written: ByteEncoding) -> [Option<CompleteMark>; 4] {
        let mut found = [None; 4];
        if is_space(byte) {
            return found;
        }
        let last = std::mem::replace(&mut self.sextet, sextet(byte));
        self.characters = self.characters.wrapping_add(1);
        let Some(this) = self.sextet else {
            self.base64 = Default::default();
            return found;
        };
        let Some(last) = last else {
            return found;
        };
        for ((way, mark), found) in (0u8..).zip(&mut self.base64).zip(&mut found) {
            let byte = match self.characters.wrapping_add(way) % 4 {
                // The first of four makes no byte alone.
                0 => continue,
                1 => last << 2 | this >> 4,
                2 => last << 4 | this >> 2,
                _ => last << 6 | this,
            };
            *found = mark.step(byte, written);
        }
        found
    }
}

/// A canary, whether it differs from the planted form, and whether a part was percent-encoded.
type CompleteMark = (Canary, bool, bool);

/// The matched part of a canary.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Characters, the hyphen included: below [`LENGTH`].
    seen: u8,
    /// Some difference was ignored.
    changed: bool,
    /// A character of it was percent-encoded.
    escaped: bool,
    /// The digits so far.
    bits: u64,
}

impl Mark {
    fn is_idle(&self) -> bool {
        self.seen == 0
    }

    /// Reads a byte; returns a canary at its last one.
    fn step(&mut self, byte: u8, written: ByteEncoding) -> Option<CompleteMark> {
        let lower = byte.to_ascii_lowercase();
        if self.is_idle() && lower != b's' {
            return None;
        }
        match (self.seen, lower) {
            (1, b'q') | (2, b'-') => self.seen += 1,
            (2, b'_') => {
                self.seen += 1;
                self.changed = true;
            }
            (2.., b'0'..=b'9' | b'a'..=b'f') => {
                let digit = hex_digit(lower).unwrap_or_default();
                self.bits = self.bits << 4 | u64::from(digit);
                self.changed |= self.seen == 2;
                self.seen = self.seen.max(3) + 1;
            }
            (1.., _) if may_stand_between(byte) => self.changed = true,
            (_, b's') => {
                *self = Self {
                    seen: 1,
                    ..Self::default()
                };
            }
            _ => {
                *self = Self::default();
                return None;
            }
        }
        self.changed |= byte != lower || written == ByteEncoding::InJson;
        self.escaped |= written == ByteEncoding::InPercent;
        if usize::from(self.seen) < LENGTH {
            return None;
        }
        let whole = std::mem::take(self);
        Some((Canary(whole.bits), whole.changed, whole.escaped))
    }
}

/// White space, a plus (a space in a form), nothing, and all that is not ASCII: invisible characters,
/// and the other half of UTF-16.
fn may_stand_between(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'+' | 0 | 0x80..)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The six bits of a character of base64, in either alphabet.
fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
