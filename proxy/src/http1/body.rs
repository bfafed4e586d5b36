//! Finds the end of a body.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;

use super::head::{HeadScan, Trailers, has_control, header_map};
use super::{FramingError, HeadLimits};

/// Most bytes of chunk extensions in one body; same as hyper's limit.
const EXTENSION_BYTES: usize = 16 * 1024;

/// Most digits of a chunk size, including leading zeros.
const SIZE_DIGITS: u8 = 16;

/// A body's framing, and what remains of it.
#[derive(Debug)]
pub(super) enum BodyFraming {
    /// This many bytes.
    Length(u64),
    /// Chunks, then trailers.
    Chunked(Chunks),
    /// Everything until the connection closes.
    UntilClose,
}

/// The result of processing body bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Advance {
    /// Bytes that may be passed on. The others are the start of a trailer section (to pass again
    /// with more bytes), part of the next message, or rejected.
    pub(super) passed: usize,
    /// Whether the body is complete.
    pub(super) is_end: Result<bool, FramingError>,
}

/// A part of a body, without its framing.
#[derive(Debug)]
pub enum BodyPart {
    /// Bytes of the body.
    Data(Bytes),
    /// The trailers; the body ends with them.
    Trailers(HeaderMap),
    /// The end of the body.
    End,
}

impl BodyFraming {
    pub(super) fn chunked() -> Self {
        Self::Chunked(Chunks {
            place: ChunkPosition::Size { size: 0, digits: 0 },
            extension_bytes: 0,
            trailers: HeadScan::new(),
        })
    }

    pub(super) fn advance(&mut self, bytes: &[u8], limits: HeadLimits) -> Advance {
        match self {
            Self::Length(left) => {
                let passed = usize::try_from(*left).map_or(bytes.len(), |l| l.min(bytes.len()));
                *left -= passed as u64;
                Advance {
                    passed,
                    is_end: Ok(*left == 0),
                }
            }
            Self::Chunked(chunks) => chunks.advance(bytes, limits),
            Self::UntilClose => Advance {
                passed: bytes.len(),
                is_end: Ok(false),
            },
        }
    }

    /// Takes the next part from `buffer`; `None` if it is incomplete.
    pub(super) fn take(
        &mut self,
        buffer: &mut BytesMut,
        limits: HeadLimits,
    ) -> Result<Option<BodyPart>, FramingError> {
        match self {
            Self::Length(0) => Ok(Some(BodyPart::End)),
            Self::Length(left) => Ok(data(buffer, left)),
            Self::Chunked(chunks) => chunks.take(buffer, limits),
            Self::UntilClose if buffer.is_empty() => Ok(None),
            Self::UntilClose => Ok(Some(BodyPart::Data(buffer.split().freeze()))),
        }
    }
}

/// The available bytes, at most `left`.
fn data(buffer: &mut BytesMut, left: &mut u64) -> Option<BodyPart> {
    let length = usize::try_from(*left).map_or(buffer.len(), |l| l.min(buffer.len()));
    *left -= length as u64;
    (length > 0).then(|| BodyPart::Data(buffer.split_to(length).freeze()))
}

/// The position in a chunked body (RFC 9112 §7.1).
#[derive(Debug)]
pub(super) struct Chunks {
    place: ChunkPosition,
    extension_bytes: usize,
    trailers: HeadScan<Trailers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    Size {
        size: u64,
        digits: u8,
    },
    /// White space after the size, which some servers add.
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
    fn advance(&mut self, bytes: &[u8], limits: HeadLimits) -> Advance {
        let mut passed = 0;
        while passed < bytes.len() {
            let rest = &bytes[passed..];
            let step = match self.place {
                ChunkPosition::Data { left } => {
                    let skipped = usize::try_from(left).map_or(rest.len(), |l| l.min(rest.len()));
                    let left = left - skipped as u64;
                    self.place = if left == 0 {
                        ChunkPosition::DataCr
                    } else {
                        ChunkPosition::Data { left }
                    };
                    Ok(skipped)
                }
                ChunkPosition::Extension { size } => self.extension(size, rest),
                ChunkPosition::Trailers => match self.trailers.advance(rest, limits) {
                    Ok(Some((length, _))) => {
                        return Advance {
                            passed: passed + length,
                            is_end: Ok(true),
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
                        is_end: Err(error),
                    };
                }
            }
        }
        Advance {
            passed,
            is_end: Ok(false),
        }
    }

    fn take(
        &mut self,
        buffer: &mut BytesMut,
        limits: HeadLimits,
    ) -> Result<Option<BodyPart>, FramingError> {
        let mut passed = 0;
        while let Some(byte) = buffer.get(passed) {
            match self.place {
                ChunkPosition::Data { .. } | ChunkPosition::Trailers => break,
                ChunkPosition::Extension { size } => {
                    passed += self.extension(size, &buffer[passed..])?;
                }
                place => {
                    self.place = next(place, *byte)?;
                    passed += 1;
                }
            }
        }
        buffer.advance(passed);
        match &mut self.place {
            ChunkPosition::Data { left } => {
                let data = data(buffer, left);
                if *left == 0 {
                    self.place = ChunkPosition::DataCr;
                }
                Ok(data)
            }
            ChunkPosition::Trailers => self.trailers(buffer, limits),
            _ => Ok(None),
        }
    }

    fn trailers(
        &mut self,
        buffer: &mut BytesMut,
        limits: HeadLimits,
    ) -> Result<Option<BodyPart>, FramingError> {
        let Some((length, _)) = self.trailers.advance(buffer, limits)? else {
            return Ok(None);
        };
        let section = buffer.split_to(length).freeze();
        let fields = header_map(&section, self.trailers.fields())?;
        Ok(Some(if fields.is_empty() {
            BodyPart::End
        } else {
            BodyPart::Trailers(fields)
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
                self.place = ChunkPosition::SizeLf { size };
                Ok(1)
            }
            b'\n' => Err(FramingError::BARE_LF),
            _ => Err(FramingError::CHUNK_EXTENSION),
        }
    }
}

/// The next position after `byte`.
fn next(place: ChunkPosition, byte: u8) -> Result<ChunkPosition, FramingError> {
    match (place, byte) {
        (ChunkPosition::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
            let digit = char::from(byte)
                .to_digit(16)
                .filter(|_| digits < SIZE_DIGITS);
            let digit = digit.ok_or(FramingError::CHUNK_SIZE)?;
            Ok(ChunkPosition::Size {
                size: size << 4 | u64::from(digit),
                digits: digits + 1,
            })
        }
        (ChunkPosition::Size { digits: 0, .. }, _) => Err(FramingError::CHUNK_SIZE),
        (ChunkPosition::Size { size, .. } | ChunkPosition::Pad { size }, b' ' | b'\t') => {
            Ok(ChunkPosition::Pad { size })
        }
        (ChunkPosition::Size { size, .. } | ChunkPosition::Pad { size }, b';') => {
            Ok(ChunkPosition::Extension { size })
        }
        (ChunkPosition::Size { size, .. } | ChunkPosition::Pad { size }, b'\r') => {
            Ok(ChunkPosition::SizeLf { size })
        }
        (ChunkPosition::Size { .. } | ChunkPosition::Pad { .. }, b'\n') => {
            Err(FramingError::BARE_LF)
        }
        (ChunkPosition::Size { .. } | ChunkPosition::Pad { .. }, _) => {
            Err(FramingError::CHUNK_SIZE)
        }
        (ChunkPosition::SizeLf { size: 0 }, b'\n') => Ok(ChunkPosition::Trailers),
        (ChunkPosition::SizeLf { size }, b'\n') => Ok(ChunkPosition::Data { left: size }),
        (ChunkPosition::SizeLf { .. }, _) => Err(FramingError::BARE_CR),
        (ChunkPosition::DataCr, b'\r') => Ok(ChunkPosition::DataLf),
        (ChunkPosition::DataLf, b'\n') => Ok(ChunkPosition::Size { size: 0, digits: 0 }),
        (ChunkPosition::DataCr | ChunkPosition::DataLf, _) => Err(FramingError::CHUNK_END),
        (
            ChunkPosition::Data { .. } | ChunkPosition::Extension { .. } | ChunkPosition::Trailers,
            _,
        ) => Ok(place),
    }
}
