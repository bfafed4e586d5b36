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

use super::{Canary, LENGTH};

/// How a canary was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Encoding {
    /// As it was planted.
    Raw,
    /// In another case, or with something between its characters.
    Normalised,
    /// Percent-encoded (RFC 3986 §2.1), in whole or in part.
    Url,
    /// Base64 (RFC 4648 §4, §5), at any alignment, in either alphabet.
    Base64,
    /// Two hexadecimal digits a character.
    Hex,
}

impl Encoding {
    /// The word in the journal.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Normalised => "normalised",
            Self::Url => "url",
            Self::Base64 => "base64",
            Self::Hex => "hex",
        }
    }
}

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
    /// The percent-decoded stream, if it differs.
    decoded: Option<ByteReading>,
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
    /// `%`. Whether [`Search::decoded`] was begun for it.
    Sign { fresh: bool },
    /// `%` and this digit.
    Digit { fresh: bool, byte: u8 },
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
        let mut rest = bytes;
        loop {
            let begun = self.decoded.is_some() || self.escape != Escape::Nothing;
            if !begun && self.sent.is_idle() {
                rest = self.sent.pass_over(rest);
            }
            let Some((byte, after)) = rest.split_first() else {
                return;
            };
            rest = after;
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
        match (self.percent, hex_digit(byte)) {
            (Percent::Sign { fresh }, Some(_)) => self.percent = Percent::Digit { fresh, byte },
            (Percent::Digit { byte: first, .. }, Some(low)) => {
                let high = hex_digit(first).unwrap_or_default();
                if let Some(decoded) = &mut self.decoded {
                    decoded.step(high << 4 | low, ByteEncoding::InPercent, found);
                }
                self.percent = Percent::Nothing;
            }
            (unfinished, _) => {
                self.give_up(unfinished, found);
                if byte == b'%' {
                    let fresh = self.decoded.is_none();
                    // Up to here both are one.
                    self.decoded.get_or_insert_with(|| self.sent.clone());
                    self.percent = Percent::Sign { fresh };
                } else if let Some(decoded) = &mut self.decoded {
                    decoded.step(byte, written, found);
                }
            }
        }
        self.sent.step(byte, written, found);
        self.join();
    }

    /// The percent sign does not start an encoded byte, so it counts as itself.
    fn give_up(&mut self, unfinished: Percent, found: &mut impl FnMut(Found)) {
        let (fresh, written) = match unfinished {
            Percent::Nothing => return,
            Percent::Sign { fresh } => (fresh, [Some(b'%'), None]),
            Percent::Digit { fresh, byte } => (fresh, [Some(b'%'), Some(byte)]),
        };
        self.percent = Percent::Nothing;
        if fresh {
            self.decoded = None;
        }
        if let Some(decoded) = &mut self.decoded {
            for byte in written.into_iter().flatten() {
                decoded.step(byte, ByteEncoding::Plainly, found);
            }
        }
    }

    /// Drops one reading if both are equal from now on.
    fn join(&mut self) {
        if let (Percent::Nothing, Some(decoded)) = (self.percent, &self.decoded)
            && decoded.is_like(&self.sent)
        {
            self.decoded = None;
        }
    }
}

/// One reading of the stream's bytes: plain, hexadecimal and base64 at the same time.
#[derive(Debug, Clone)]
struct ByteReading {
    plain: Mark,
    /// By which digit of a pair comes next.
    hex: [Mark; 2],
    /// By which of four characters comes next.
    base64: [Mark; 4],
    /// One of [`Self::hex`] has begun.
    in_hex: bool,
    /// One of [`Self::base64`] has begun.
    in_base64: bool,
    /// The last hexadecimal digit, if the last character was one.
    nibble: Option<u8>,
    /// The class of the last character, white space left out.
    last: u8,
    /// Counts characters, white space left out; only its two last bits matter, and only to what has
    /// begun in base64.
    characters: u8,
}

impl Default for ByteReading {
    fn default() -> Self {
        Self {
            plain: Mark::default(),
            hex: Default::default(),
            base64: Default::default(),
            in_hex: false,
            in_base64: false,
            nibble: None,
            last: OTHER,
            characters: 0,
        }
    }
}

impl ByteReading {
    /// Nothing has begun.
    fn is_idle(&self) -> bool {
        self.plain.is_idle() && !self.in_hex && !self.in_base64
    }

    /// Whether both will give the same results.
    fn is_like(&self, other: &Self) -> bool {
        let context = |reading: &Self| (reading.nibble, reading.last);
        self.is_idle() && other.is_idle() && context(self) == context(other)
    }

    /// Skips bytes that cannot start a canary in an idle reading.
    fn pass_over<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let mut last = self.last;
        let mut passed = 0;
        for byte in bytes {
            let class = CLASS[usize::from(*byte)];
            if class & BEGINS != 0 || begins(last, class) {
                break;
            }
            if class != SPACE {
                last = class;
            }
            passed += 1;
        }
        let (over, rest) = bytes.split_at(passed);
        self.last = last;
        if let Some(byte) = over.last() {
            self.nibble = hex_digit(*byte);
        }
        rest
    }

    fn step(&mut self, byte: u8, written: ByteEncoding, found: &mut impl FnMut(Found)) {
        if let Some((canary, changed, escaped)) = self.plain.step(byte, written) {
            let encoding = match (escaped, changed) {
                (true, _) => Encoding::Url,
                (false, true) => Encoding::Normalised,
                (false, false) => Encoding::Raw,
            };
            found(Found { canary, encoding });
        }
        self.step_hex(byte, found);
        self.step_base64(byte, found);
    }

    fn step_hex(&mut self, byte: u8, found: &mut impl FnMut(Found)) {
        let last = self.nibble;
        self.nibble = hex_digit(byte);
        if !self.in_hex && !matches!((last, byte), (Some(5 | 7), b'3')) {
            return;
        }
        let Some(digit) = self.nibble else {
            // Between two bytes there may be a space or a colon.
            if CLASS[usize::from(byte)] != SPACE && byte != b':' {
                self.hex = Default::default();
                self.in_hex = false;
            }
            return;
        };
        self.hex.swap(0, 1);
        if let Some(high) = last
            && let Some((canary, ..)) = self.hex[0].step(high << 4 | digit, ByteEncoding::Plainly)
        {
            let encoding = Encoding::Hex;
            found(Found { canary, encoding });
        }
        self.in_hex = !self.hex.iter().all(Mark::is_idle);
    }

    fn step_base64(&mut self, byte: u8, found: &mut impl FnMut(Found)) {
        let class = CLASS[usize::from(byte)];
        if class == SPACE {
            return;
        }
        let last = std::mem::replace(&mut self.last, class);
        self.characters = self.characters.wrapping_add(1);
        if !self.in_base64 && !begins(last, class) {
            return;
        }
        if !is_sextet(class) {
            self.base64 = Default::default();
            self.in_base64 = false;
            return;
        }
        let (last, this) = (last & SEXTET, class & SEXTET);
        for (way, mark) in (0u8..).zip(&mut self.base64) {
            let byte = match self.characters.wrapping_add(way) % 4 {
                // The first of four makes no byte alone.
                0 => continue,
                1 => last << 2 | this >> 4,
                2 => last << 4 | this >> 2,
                _ => last << 6 | this,
            };
            if let Some((canary, ..)) = mark.step(byte, ByteEncoding::Plainly) {
                let encoding = Encoding::Base64;
                found(Found { canary, encoding });
            }
        }
        self.in_base64 = !self.base64.iter().all(Mark::is_idle);
    }
}

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

    /// One more byte. At the last of a canary: it, whether something was forgiven, and whether
    /// something was percent-encoded.
    fn step(&mut self, byte: u8, written: ByteEncoding) -> Option<(Canary, bool, bool)> {
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
    CLASS[usize::from(byte)] == SPACE || matches!(byte, b'+' | 0 | 0x80..)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// In a class: the six bits that a character of base64 stands for, in either alphabet.
const SEXTET: u8 = 0b0011_1111;
/// In a class: a canary may begin here, or an escape.
const BEGINS: u8 = 0b0100_0000;
/// The class of white space.
const SPACE: u8 = 0b1000_0001;
/// The class of all else that is no base64.
const OTHER: u8 = 0b1000_0000;

fn is_sextet(class: u8) -> bool {
    class & OTHER == 0
}

/// What each byte is.
const CLASS: [u8; 256] = classes();

/// By the first of two characters of base64, a bit for every second one with which they may hold the
/// first letter of a canary, or are its two hexadecimal digits.
const PAIRS: [u64; 64] = pairs();

/// Whether two characters may be the beginning of a canary in base64 or hexadecimal.
fn begins(last: u8, this: u8) -> bool {
    is_sextet(last)
        && is_sextet(this)
        && PAIRS[usize::from(last & SEXTET)] >> (this & SEXTET) & 1 == 1
}

const fn classes() -> [u8; 256] {
    let mut classes = [OTHER; 256];
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut sextet = 0;
    while sextet < 64 {
        classes[alphabet[sextet as usize] as usize] = sextet;
        sextet += 1;
    }
    classes[b'-' as usize] = 62;
    classes[b'_' as usize] = 63;
    let spaces = b" \t\n\r\x0b\x0c";
    let mut space = 0;
    while space < spaces.len() {
        classes[spaces[space] as usize] = SPACE;
        space += 1;
    }
    classes[b's' as usize] |= BEGINS;
    classes[b'S' as usize] |= BEGINS;
    classes[b'%' as usize] |= BEGINS;
    classes[b'\\' as usize] |= BEGINS;
    classes
}

const fn pairs() -> [u64; 64] {
    let classes = classes();
    let mut pairs = [0; 64];
    let mut last: u8 = 0;
    while last < 64 {
        let mut this: u8 = 0;
        while this < 64 {
            let bytes = [
                last << 2 | this >> 4,
                last << 4 | this >> 2,
                last << 6 | this,
            ];
            let mut way = 0;
            while way < 3 {
                if bytes[way] == b's' || bytes[way] == b'S' {
                    pairs[last as usize] |= 1 << this;
                }
                way += 1;
            }
            this += 1;
        }
        last += 1;
    }
    // In hexadecimal: 73 and 53.
    let three = 1 << classes[b'3' as usize];
    pairs[classes[b'7' as usize] as usize] |= three;
    pairs[classes[b'5' as usize] as usize] |= three;
    pairs
}

#[cfg(test)]
mod tests;
