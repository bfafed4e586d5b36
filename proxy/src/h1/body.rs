//! Finding the end of a body.

use bytes::{Buf, Bytes, BytesMut};

use super::head::{Field, HeadScan, Trailers, has_control};
use super::{FramingError, Limits};

/// Bytes of chunk extensions in one body; hyper's own bound.
const EXTENSION_BYTES: usize = 16 * 1024;

/// Digits of a chunk size; more cannot be meant, even with leading zeros.
const SIZE_DIGITS: u8 = 16;

/// A body's framing, and how much of it is still to come.
#[derive(Debug)]
pub(super) enum Body {
    /// That many bytes.
    Length(u64),
    /// Chunks, then trailers.
    Chunked(Chunks),
    /// Everything until the connection closes.
    UntilClose,
}

/// What became of some bytes of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advance {
    /// Bytes that may be passed on. The others are the beginning of a trailer section and have to
    /// be shown again with more behind them, or belong to the next message, or are refused.
    pub(super) passed: usize,
    pub(super) then: Result<Then, FramingError>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The body goes on.
    More,
    /// The body is complete.
    End,
}

/// A part of a body, without its framing.
#[derive(Debug)]
pub(super) enum Part {
    Data(Bytes),
    /// A section of trailers, and where its fields are.
    Trailers(Bytes, Vec<Field>),
    /// The body is complete.
    End,
}

impl Body {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunks {
            place: Place::Size { size: 0, digits: 0 },
            extension_bytes: 0,
            trailers: HeadScan::new(),
        })
    }

    pub(super) fn advance(&mut self, bytes: &[u8], limits: Limits) -> Advance {
        match self {
            Self::Length(left) => {
                let passed = usize::try_from(*left).map_or(bytes.len(), |l| l.min(bytes.len()));
                *left -= passed as u64;
                Advance {
                    passed,
                    then: Ok(if *left == 0 { Then::End } else { Then::More }),
                }
            }
            Self::Chunked(chunks) => chunks.advance(bytes, limits),
            Self::UntilClose => Advance {
                passed: bytes.len(),
                then: Ok(Then::More),
            },
        }
    }

    /// Takes the next part out of `buffer`; `None` while bytes of it are missing.
    pub(super) fn take(
        &mut self,
        buffer: &mut BytesMut,
        limits: Limits,
    ) -> Result<Option<Part>, FramingError> {
        match self {
            Self::Length(0) => Ok(Some(Part::End)),
            Self::Length(left) => Ok(data(buffer, left)),
            Self::Chunked(chunks) => chunks.take(buffer, limits),
            Self::UntilClose if buffer.is_empty() => Ok(None),
            Self::UntilClose => Ok(Some(Part::Data(buffer.split().freeze()))),
        }
    }
}

/// As many of the `left` bytes as there are.
fn data(buffer: &mut BytesMut, left: &mut u64) -> Option<Part> {
    let length = usize::try_from(*left).map_or(buffer.len(), |l| l.min(buffer.len()));
    *left -= length as u64;
    (length > 0).then(|| Part::Data(buffer.split_to(length).freeze()))
}

/// How far a chunked body (RFC 9112 §7.1) has come.
#[derive(Debug)]
pub(super) struct Chunks {
    place: Place,
    extension_bytes: usize,
    trailers: HeadScan<Trailers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Size {
        size: u64,
        digits: u8,
    },
    /// White space behind the size, which some servers pad it with.
    Pad {
        size: u64,
    },
    Extension {
        size: u64,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    Trailers,
}

impl Chunks {
    fn advance(&mut self, bytes: &[u8], limits: Limits) -> Advance {
        let mut passed = 0;
        while passed < bytes.len() {
            let rest = &bytes[passed..];
            let step = match self.place {
                Place::Data { left } => {
                    let skipped = usize::try_from(left).map_or(rest.len(), |l| l.min(rest.len()));
                    let left = left - skipped as u64;
                    self.place = if left == 0 {
                        Place::DataCr
                    } else {
                        Place::Data { left }
                    };
                    Ok(skipped)
                }
                Place::Extension { size } => self.extension(size, rest),
                Place::Trailers => match self.trailers.advance(rest, limits) {
                    Ok(Some((length, _))) => {
                        return Advance {
                            passed: passed + length,
                            then: Ok(Then::End),
                        };
                    }
                    Ok(None) => break,
                    Err(error) => Err(error),
                },
                place => next(place, rest[0]).map(|place| {
                    self.place = place;
                    1
                }),
            };
            match step {
                Ok(length) => passed += length,
                Err(error) => {
                    return Advance {
                        passed,
                        then: Err(error),
                    };
                }
            }
        }
        Advance {
            passed,
            then: Ok(Then::More),
        }
    }

    fn take(
        &mut self,
        buffer: &mut BytesMut,
        limits: Limits,
    ) -> Result<Option<Part>, FramingError> {
        let mut passed = 0;
        while let Some(byte) = buffer.get(passed) {
            match self.place {
                Place::Data { .. } | Place::Trailers => break,
                Place::Extension { size } => passed += self.extension(size, &buffer[passed..])?,
                place => {
                    self.place = next(place, *byte)?;
                    passed += 1;
                }
            }
        }
        buffer.advance(passed);
        match &mut self.place {
            Place::Data { left } => {
                let data = data(buffer, left);
                if *left == 0 {
                    self.place = Place::DataCr;
                }
                Ok(data)
            }
            Place::Trailers => self.trailers(buffer, limits),
            _ => Ok(None),
        }
    }

    fn trailers(
        &mut self,
        buffer: &mut BytesMut,
        limits: Limits,
    ) -> Result<Option<Part>, FramingError> {
        let Some((length, _)) = self.trailers.advance(buffer, limits)? else {
            return Ok(None);
        };
        let fields = self.trailers.fields().to_vec();
        let section = buffer.split_to(length).freeze();
        Ok(Some(if fields.is_empty() {
            Part::End
        } else {
            Part::Trailers(section, fields)
        }))
    }

    fn extension(&mut self, size: u64, rest: &[u8]) -> Result<usize, FramingError> {
        let allowed = EXTENSION_BYTES - self.extension_bytes;
        let plain = rest
            .iter()
            .take(allowed)
            .take_while(|b| !has_control(&[**b]))
            .count();
        self.extension_bytes += plain;
        match rest[0] {
            _ if plain > 0 => Ok(plain),
            b'\r' => {
                self.place = Place::SizeLf { size };
                Ok(1)
            }
            b'\n' => Err(FramingError::BareLf),
            _ => Err(FramingError::ChunkExtension),
        }
    }
}

/// Where `byte` leads from a place that is left byte by byte.
fn next(place: Place, byte: u8) -> Result<Place, FramingError> {
    match (place, byte) {
        (Place::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
            if digits == SIZE_DIGITS {
                return Err(FramingError::ChunkSize);
            }
            Ok(Place::Size {
                size: size << 4 | u64::from(hex(byte)),
                digits: digits + 1,
            })
        }
        (Place::Size { digits: 0, .. }, _) => Err(FramingError::ChunkSize),
        (Place::Size { size, .. } | Place::Pad { size }, b' ' | b'\t') => Ok(Place::Pad { size }),
        (Place::Size { size, .. } | Place::Pad { size }, b';') => Ok(Place::Extension { size }),
        (Place::Size { size, .. } | Place::Pad { size }, b'\r') => Ok(Place::SizeLf { size }),
        (Place::Size { .. } | Place::Pad { .. }, b'\n') => Err(FramingError::BareLf),
        (Place::Size { .. } | Place::Pad { .. }, _) => Err(FramingError::ChunkSize),
        (Place::SizeLf { size: 0 }, b'\n') => Ok(Place::Trailers),
        (Place::SizeLf { size }, b'\n') => Ok(Place::Data { left: size }),
        (Place::SizeLf { .. }, _) => Err(FramingError::BareCr),
        (Place::DataCr, b'\r') => Ok(Place::DataLf),
        (Place::DataLf, b'\n') => Ok(Place::Size { size: 0, digits: 0 }),
        (Place::DataCr | Place::DataLf, _) => Err(FramingError::ChunkEnd),
        (Place::Data { .. } | Place::Extension { .. } | Place::Trailers, _) => Ok(place),
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}
