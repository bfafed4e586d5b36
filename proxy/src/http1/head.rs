//! Finding the end of a head, or of a trailer section, one line at a time.

use std::ops::Range;

use super::{FramingError, HeadLimits};

/// The longest request target that `http::Uri` takes.
const LONGEST_TARGET: usize = u16::MAX as usize - 1;

/// hyper keeps the two greatest numbers for itself.
const GREATEST_LENGTH: u64 = u64::MAX - 2;

/// What opens a section of fields.
pub(super) trait Opening: Sized {
    /// Whether the section has an opening line at all.
    const PRESENT: bool = true;

    /// Reads that line.
    fn parse(line: &[u8]) -> Result<Self, FramingError>;
}

/// What a request line says about framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestLine {
    pub(super) minor: u8,
    pub(super) connect: bool,
}

/// What a status line says about framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StatusLine {
    pub(super) minor: u8,
    pub(super) status: u16,
}

/// A trailer section: fields alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailers;

impl Opening for RequestLine {
    fn parse(line: &[u8]) -> Result<Self, FramingError> {
        let method = line.iter().position(|b| !is_token(*b)).unwrap_or(0);
        let (Some(b' '), Some(rest)) = (line.get(method), line.get(method + 1..)) else {
            return Err(FramingError::RequestLine);
        };
        let target = memchr::memchr(b' ', rest).ok_or(FramingError::RequestLine)?;
        let minor = minor_version(&rest[target + 1..]).ok_or(FramingError::RequestLine)?;
        if method == 0 || target == 0 {
            return Err(FramingError::RequestLine);
        }
        if target > LONGEST_TARGET {
            return Err(FramingError::TargetTooLong {
                limit: LONGEST_TARGET,
            });
        }
        // What hyper would refuse is refused here, in our words.
        if http::Uri::try_from(&rest[..target]).is_err() {
            return Err(FramingError::RequestLine);
        }
        Ok(Self {
            minor,
            connect: &line[..method] == b"CONNECT",
        })
    }
}

impl Opening for StatusLine {
    fn parse(line: &[u8]) -> Result<Self, FramingError> {
        match line {
            // The space after the status is missing where servers send no reason.
            [version @ .., b' ', a, b, c] if version.len() == 8 => status(version, [*a, *b, *c]),
            _ => match line.split_at_checked(13) {
                Some(([version @ .., b' ', a, b, c, b' '], _)) => status(version, [*a, *b, *c]),
                _ => Err(FramingError::StatusLine),
            },
        }
    }
}

impl Opening for Trailers {
    const PRESENT: bool = false;

    fn parse(_line: &[u8]) -> Result<Self, FramingError> {
        Ok(Self)
    }
}

fn status(version: &[u8], digits: [u8; 3]) -> Result<StatusLine, FramingError> {
    let minor = minor_version(version).ok_or(FramingError::StatusLine)?;
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return Err(FramingError::StatusLine);
    }
    let status = digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    Ok(StatusLine { minor, status })
}

fn minor_version(version: &[u8]) -> Option<u8> {
    match version {
        b"HTTP/1.1" => Some(1),
        b"HTTP/1.0" => Some(0),
        _ => None,
    }
}

/// What a complete section says about the framing of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionHead<S> {
    /// Its opening line; absent for trailers only.
    pub(super) opening: Option<S>,
    pub(super) content_length: Option<u64>,
    pub(super) chunked: bool,
    pub(super) hosts: usize,
    pub(super) upgrade: bool,
}

impl<S> SectionHead<S> {
    fn new() -> Self {
        Self {
            opening: None,
            content_length: None,
            chunked: false,
            hosts: 0,
            upgrade: false,
        }
    }
}

/// Where a field stands, from its section's first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldSpan {
    start: usize,
    colon: usize,
    end: usize,
}

impl FieldSpan {
    /// Where its line begins.
    pub(super) fn start(self) -> usize {
        self.start
    }

    /// Its name, as it is spelt.
    pub(super) fn name(self, section: &[u8]) -> &[u8] {
        &section[self.start..self.colon]
    }

    /// Where its value is, white space around it excluded (RFC 9110 §5.5).
    pub(super) fn value(self, section: &[u8]) -> Range<usize> {
        let untrimmed = &section[self.colon + 1..self.end];
        let from = self.end - trim_start(untrimmed).len();
        from..from + trim(&section[from..self.end]).len()
    }
}

/// A scan through one section that goes on where it stopped when more bytes come.
#[derive(Debug)]
pub(super) struct HeadScan<S> {
    /// Where the line being read begins, from the section's first byte.
    line: usize,
    /// How far a line end has been looked for.
    searched: usize,
    fields: Vec<FieldSpan>,
    head: SectionHead<S>,
}

impl<S: Opening> HeadScan<S> {
    pub(super) fn new() -> Self {
        Self {
            line: 0,
            searched: 0,
            fields: Vec::new(),
            head: SectionHead::new(),
        }
    }

    /// The fields of the section that was completed last, in the order they came in.
    pub(super) fn fields(&self) -> &[FieldSpan] {
        &self.fields
    }

    /// Reads on in `section`, which holds every byte since the section began (and maybe more than
    /// the section). Gives the section's length and what it says once it is complete.
    pub(super) fn advance(
        &mut self,
        section: &[u8],
        limits: HeadLimits,
    ) -> Result<Option<(usize, SectionHead<S>)>, FramingError> {
        if self.searched == 0 {
            self.fields.clear();
        }
        while let Some(found) = memchr::memchr(b'\n', &section[self.searched..]) {
            let next = self.searched + found + 1;
            if next > limits.header_bytes {
                return Err(FramingError::HeadTooLarge {
                    limit: limits.header_bytes,
                });
            }
            let start = self.line;
            (self.line, self.searched) = (next, next);
            if self.line(start, &section[start..next - 1], limits)? {
                (self.line, self.searched) = (0, 0);
                return Ok(Some((
                    next,
                    std::mem::replace(&mut self.head, SectionHead::new()),
                )));
            }
        }
        self.searched = section.len();
        if section.len() > limits.header_bytes {
            return Err(FramingError::HeadTooLarge {
                limit: limits.header_bytes,
            });
        }
        Ok(None)
    }

    /// Reads one line, which begins at `start` and is given without its LF; true when it ends the
    /// section.
    fn line(
        &mut self,
        start: usize,
        line: &[u8],
        limits: HeadLimits,
    ) -> Result<bool, FramingError> {
        let Some((b'\r', line)) = line.split_last() else {
            return Err(FramingError::BareLf);
        };
        if has_control(line) {
            let bare_cr = memchr::memchr(b'\r', line).is_some();
            return Err(if bare_cr {
                FramingError::BareCr
            } else {
                FramingError::ControlCharacter
            });
        }
        if S::PRESENT && self.head.opening.is_none() {
            // RFC 9112 §2.2: blank lines before the opening line are to be ignored.
            if !line.is_empty() {
                self.head.opening = Some(S::parse(line)?);
            }
            return Ok(false);
        }
        if line.is_empty() {
            return Ok(true);
        }
        if self.fields.len() >= limits.header_count {
            return Err(FramingError::TooManyFields {
                limit: limits.header_count,
            });
        }
        self.field(start, line)?;
        Ok(false)
    }

    fn field(&mut self, start: usize, line: &[u8]) -> Result<(), FramingError> {
        let name = line
            .iter()
            .position(|b| !is_token(*b))
            .unwrap_or(line.len());
        let value = match &line[name..] {
            [b':', value @ ..] if name > 0 => value,
            [b' ' | b'\t', ..] if name == 0 => return Err(FramingError::FoldedField),
            [b' ' | b'\t', ..] => return Err(FramingError::SpaceBeforeColon),
            _ => return Err(FramingError::FieldName),
        };
        self.fields.push(FieldSpan {
            start,
            colon: start + name,
            end: start + line.len(),
        });
        let name = &line[..name];
        match name.len() {
            // A trailer says nothing about framing (RFC 9110 §6.5.1).
            _ if !S::PRESENT => {}
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.head.hosts += 1;
                if self.head.hosts > 1 {
                    return Err(FramingError::RepeatedHost);
                }
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.head.upgrade = true,
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoding(value)?,
            _ => {}
        }
        if self.head.chunked && self.head.content_length.is_some() {
            return Err(FramingError::LengthAndEncoding);
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), FramingError> {
        let digits = trim(value);
        let mut length = (!digits.is_empty()).then_some(0u64);
        for digit in digits {
            length = length
                .filter(|_| digit.is_ascii_digit())
                .and_then(|length| length.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
        }
        let length = length
            .filter(|l| *l <= GREATEST_LENGTH)
            .ok_or(FramingError::ContentLength)?;
        match self.head.content_length.replace(length) {
            Some(before) if before != length => Err(FramingError::UnequalContentLengths),
            _ => Ok(()),
        }
    }

    fn encoding(&mut self, value: &[u8]) -> Result<(), FramingError> {
        // Another coding could not be passed on: the next hop's framing is its own.
        if self.head.chunked || !trim(value).eq_ignore_ascii_case(b"chunked") {
            return Err(FramingError::TransferEncoding);
        }
        self.head.chunked = true;
        Ok(())
    }
}

/// Without the optional white space of RFC 9110 §5.6.3.
fn trim(value: &[u8]) -> &[u8] {
    let mut value = trim_start(value);
    while let [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

fn trim_start(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] = value {
        value = rest;
    }
    value
}

/// Whether a line holds what no line may: control characters other than HTAB, and DEL.
///
/// Without an early exit, so that the compiler looks at many bytes at a time.
pub(super) fn has_control(line: &[u8]) -> bool {
    let is_control = |b: u8| u8::from(b < 0x20 && b != b'\t') | u8::from(b == 0x7f);
    line.iter().fold(0, |found, b| found | is_control(*b)) != 0
}

/// Whether `byte` may stand in a token (RFC 9110 §5.6.2).
fn is_token(byte: u8) -> bool {
    TOKEN[usize::from(byte)]
}

static TOKEN: [bool; 256] = alphanumeric_and(b"!#$%&'*+-.^_`|~");

const fn alphanumeric_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}
