//! Finds the end of a head or a trailer section, line by line.

use std::ops::Range;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::{FramingError, HeadLimits};

/// The longest request target in `http::Uri`.
const LONGEST_TARGET: usize = u16::MAX as usize - 1;

/// hyper reserves the two largest numbers.
const GREATEST_LENGTH: u64 = u64::MAX - 2;

/// The first line of a section of fields.
pub(super) trait Opening: Sized {
    /// Whether the section has a first line.
    const PRESENT: bool = true;

    /// Parses that line.
    fn parse(line: &[u8]) -> Result<Self, FramingError>;
}

/// The framing information in a request line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestLine {
    pub(super) minor: u8,
    pub(super) connect: bool,
}

/// The framing information in a status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StatusLine {
    pub(super) minor: u8,
    pub(super) status: u16,
}

/// A trailer section: fields only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailers;

impl Opening for RequestLine {
    fn parse(line: &[u8]) -> Result<Self, FramingError> {
        let method = line.iter().position(|b| !is_token(*b)).unwrap_or(0);
        let (Some(b' '), Some(rest)) = (line.get(method), line.get(method + 1..)) else {
            return Err(FramingError::REQUEST_LINE);
        };
        let target = memchr::memchr(b' ', rest).ok_or(FramingError::REQUEST_LINE)?;
        let minor = minor_version(&rest[target + 1..]).ok_or(FramingError::REQUEST_LINE)?;
        if method == 0 || target == 0 {
            return Err(FramingError::REQUEST_LINE);
        }
        if target > LONGEST_TARGET {
            return Err(FramingError::TargetTooLong {
                limit: LONGEST_TARGET,
            });
        }
        // Rejects here what hyper would reject, with our own error.
        if http::Uri::try_from(&rest[..target]).is_err() {
            return Err(FramingError::REQUEST_LINE);
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
            // Servers without a reason may omit the space after the status.
            [version @ .., b' ', a, b, c] if version.len() == 8 => status(version, [*a, *b, *c]),
            _ => match line.split_at_checked(13) {
                Some(([version @ .., b' ', a, b, c, b' '], _)) => status(version, [*a, *b, *c]),
                _ => Err(FramingError::STATUS_LINE),
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
    let minor = minor_version(version).ok_or(FramingError::STATUS_LINE)?;
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return Err(FramingError::STATUS_LINE);
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

/// The framing information in a complete section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SectionHead<S> {
    /// Its first line; `None` for trailers.
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

/// The position of a field, relative to its section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldSpan {
    start: usize,
    colon: usize,
    end: usize,
}

impl FieldSpan {
    /// Start of its line.
    pub(super) fn start(self) -> usize {
        self.start
    }

    /// Its name in the original casing.
    pub(super) fn name(self, section: &[u8]) -> &[u8] {
        &section[self.start..self.colon]
    }

    /// The range of its value without surrounding white space (RFC 9110 §5.5).
    pub(super) fn value(self, section: &[u8]) -> Range<usize> {
        let untrimmed = &section[self.colon + 1..self.end];
        let from = self.end - untrimmed.trim_ascii_start().len();
        from..from + untrimmed.trim_ascii().len()
    }
}

/// The fields of a section as a map.
pub(super) fn header_map(section: &Bytes, fields: &[FieldSpan]) -> Result<HeaderMap, FramingError> {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name(section));
        let value = HeaderValue::from_maybe_shared(section.slice(field.value(section)));
        let name = name.map_err(|_| FramingError::FIELD_NAME)?;
        let value = value.map_err(|_| FramingError::CONTROL_CHARACTER)?;
        let limit = map.len();
        map.try_append(name, value)
            .map_err(|_| FramingError::TooManyFields { limit })?;
    }
    Ok(map)
}

/// An incremental scan of one section.
#[derive(Debug)]
pub(super) struct HeadScan<S> {
    /// Start of the current line, relative to the section.
    line: usize,
    /// Bytes already searched for a line end.
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

    /// The fields of the latest complete section, in order.
    pub(super) fn fields(&self) -> &[FieldSpan] {
        &self.fields
    }

    /// Continues in `section`, which starts at the section's first byte and may extend beyond its
    /// end. Returns the section's length and information once it is complete.
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

    /// Parses one line without its LF, which starts at `start`; true if it ends the section.
    fn line(
        &mut self,
        start: usize,
        line: &[u8],
        limits: HeadLimits,
    ) -> Result<bool, FramingError> {
        let Some((b'\r', line)) = line.split_last() else {
            return Err(FramingError::BARE_LF);
        };
        if has_control(line) {
            let bare_cr = memchr::memchr(b'\r', line).is_some();
            return Err(if bare_cr {
                FramingError::BARE_CR
            } else {
                FramingError::CONTROL_CHARACTER
            });
        }
        if S::PRESENT && self.head.opening.is_none() {
            // RFC 9112 §2.2: blank lines before the first line are ignored.
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
            [b' ' | b'\t', ..] if name == 0 => return Err(FramingError::FOLDED_FIELD),
            [b' ' | b'\t', ..] => return Err(FramingError::SPACE_BEFORE_COLON),
            _ => return Err(FramingError::FIELD_NAME),
        };
        self.fields.push(FieldSpan {
            start,
            colon: start + name,
            end: start + line.len(),
        });
        let name = &line[..name];
        match name.len() {
            // Trailers have no framing information (RFC 9110 §6.5.1).
            _ if !S::PRESENT => {}
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.head.hosts += 1;
                if self.head.hosts > 1 {
                    return Err(FramingError::REPEATED_HOST);
                }
            }
            7 if name.eq_ignore_ascii_case(b"upgrade") => self.head.upgrade = true,
            14 if name.eq_ignore_ascii_case(b"content-length") => self.content_length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.encoding(value)?,
            _ => {}
        }
        if self.head.chunked && self.head.content_length.is_some() {
            return Err(FramingError::LENGTH_AND_ENCODING);
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), FramingError> {
        let digits = value.trim_ascii();
        let length = std::str::from_utf8(digits)
            .ok()
            .filter(|_| digits.iter().all(u8::is_ascii_digit))
            .and_then(|digits| digits.parse().ok())
            .filter(|length| *length <= GREATEST_LENGTH)
            .ok_or(FramingError::CONTENT_LENGTH)?;
        match self.head.content_length.replace(length) {
            Some(before) if before != length => Err(FramingError::UNEQUAL_CONTENT_LENGTHS),
            _ => Ok(()),
        }
    }

    fn encoding(&mut self, value: &[u8]) -> Result<(), FramingError> {
        // Other codings could not be passed on, because the next hop has its own framing.
        if self.head.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(FramingError::TRANSFER_ENCODING);
        }
        self.head.chunked = true;
        Ok(())
    }
}

/// Whether a line has forbidden characters: control characters other than HTAB, and DEL.
///
/// It has no early exit, so that the compiler can check many bytes at a time.
pub(super) fn has_control(line: &[u8]) -> bool {
    let is_control = |b: u8| u8::from(b < 0x20 && b != b'\t') | u8::from(b == 0x7f);
    line.iter().fold(0, |found, b| found | is_control(*b)) != 0
}

/// Whether `byte` may stand in a token (RFC 9110 §5.6.2).
pub(super) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
