//! Decoders that accept input as it arrives and return output of limited size.

use std::io::{self, BufRead, ErrorKind, Read};

use brotli::Decompressor;
use bytes::{Buf as _, BytesMut};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::read::Decoder as ZstdDecoder;

use super::encode::Encoder;
use super::{Coding, NotInCoding};

/// Input buffer of brotli, in bytes.
const BROTLI_BUFFER: usize = 4096;

/// Longest gzip header, in bytes.
const LONGEST_HEADER: usize = 64 << 10;

/// The progress of one decoding step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Consumed bytes of the input.
    pub read: usize,
    /// Written bytes of the output.
    pub written: usize,
}

impl Progress {
    /// Whether nothing was read or written: the decoder needs more input, or has ended.
    pub fn is_stuck(self) -> bool {
        self.read == 0 && self.written == 0
    }
}

/// Decodes one body.
pub struct Decoder {
    coding: Coding,
    format: Format,
    /// Whether the body may end here.
    ended: bool,
}

enum Format {
    Gzip(Gzip),
    /// Zlib or raw deflate, which the first two bytes decide.
    Deflate(Source),
    Zlib(Inflate),
    RawDeflate(Inflate),
    Brotli(Box<Decompressor<Source>>),
    Zstd(ZstdDecoder<'static, Source>),
}

/// Input that is not decoded yet; more may follow.
#[derive(Default)]
struct Source(BytesMut);

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.0.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(&self.0)
    }

    fn consume(&mut self, length: usize) {
        self.0.advance(length);
    }
}

impl Read for Source {
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(output)?;
        self.consume(length);
        Ok(length)
    }
}

/// Deflate data. The reader of flate2 holds back output until it gets more input.
struct Inflate {
    source: Source,
    state: Decompress,
    ended: bool,
}

impl Inflate {
    fn new(source: Source, zlib: bool) -> Self {
        Self {
            source,
            state: Decompress::new(zlib),
            ended: false,
        }
    }

    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        let (read, written) = (self.state.total_in(), self.state.total_out());
        let flush = FlushDecompress::None;
        let status = self.state.decompress(&self.source.0, output, flush)?;
        let length = |total: u64, before: u64| usize::try_from(total - before).unwrap_or_default();
        self.source.consume(length(self.state.total_in(), read));
        self.ended = status == Status::StreamEnd;
        match length(self.state.total_out(), written) {
            0 if !self.ended => Err(ErrorKind::WouldBlock.into()),
            written => Ok(written),
        }
    }
}

/// A member as of RFC 1952: header, deflate data, checksum and length.
struct Gzip {
    data: Inflate,
    begun: bool,
    crc: Crc,
}

impl Gzip {
    fn new(source: Source) -> Self {
        Self {
            data: Inflate::new(source, false),
            begun: false,
            crc: Crc::new(),
        }
    }

    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            let length = gzip_header(&self.data.source.0)?;
            self.data.source.consume(length);
            self.begun = true;
        }
        let written = self.data.read(output)?;
        self.crc.update(&output[..written]);
        if written == 0 {
            let trailer = &mut self.data.source.0;
            if trailer.len() < 8 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let (crc, _length) = (trailer.get_u32_le(), trailer.get_u32_le());
            if crc != self.crc.sum() {
                return Err(ErrorKind::InvalidData.into());
            }
        }
        Ok(written)
    }
}

/// The length of a member's header; `WouldBlock`: it is incomplete.
fn gzip_header(bytes: &[u8]) -> io::Result<usize> {
    const HEADER_CHECKSUM: u8 = 1 << 1;
    const EXTRA: u8 = 1 << 2;
    const NAME: u8 = 1 << 3;
    const COMMENT: u8 = 1 << 4;
    if !bytes.starts_with(&[0x1f, 0x8b, 8]) && bytes.len() >= 3 || bytes.len() > LONGEST_HEADER {
        return Err(ErrorKind::InvalidData.into());
    }
    let complete = || {
        let flags = *bytes.get(3)?;
        let mut length = 10;
        if flags & EXTRA != 0 {
            let extra = bytes.get(length..length + 2)?;
            length += 2 + usize::from(u16::from_le_bytes([extra[0], extra[1]]));
        }
        for text in [NAME, COMMENT] {
            if flags & text != 0 {
                length += memchr::memchr(0, bytes.get(length..)?)? + 1;
            }
        }
        if flags & HEADER_CHECKSUM != 0 {
            length += 2;
        }
        (length <= bytes.len()).then_some(length)
    };
    complete().ok_or(ErrorKind::WouldBlock.into())
}

impl Format {
    fn new(coding: Coding, source: Source) -> io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(Gzip::new(source)),
            Coding::Deflate => Self::Deflate(source),
            Coding::Brotli => Self::Brotli(Box::new(Decompressor::new(source, BROTLI_BUFFER))),
            Coding::Zstd => Self::Zstd(ZstdDecoder::with_buffer(source)?.single_frame()),
        })
    }

    fn source(&mut self) -> &mut Source {
        match self {
            Self::Gzip(gzip) => &mut gzip.data.source,
            Self::Deflate(source) => source,
            Self::Zlib(inflate) | Self::RawDeflate(inflate) => &mut inflate.source,
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
        }
    }

    /// Decodes into `output`; 0 at the end.
    fn read(&mut self, output: &mut [u8]) -> io::Result<usize> {
        if let Self::Deflate(source) = self {
            let [first, second, ..] = source.0[..] else {
                return Err(ErrorKind::WouldBlock.into());
            };
            // Distinguishes zlib from raw deflate by the header checksum (RFC 1950 §2.2).
            let header = u16::from_be_bytes([first, second]);
            let is_zlib = first & 0x0f == 8 && header.is_multiple_of(31);
            let inflate = Inflate::new(std::mem::take(source), is_zlib);
            *self = if is_zlib {
                Self::Zlib(inflate)
            } else {
                Self::RawDeflate(inflate)
            };
        }
        match self {
            Self::Gzip(gzip) => gzip.read(output),
            Self::Deflate(_) => Ok(0),
            Self::Zlib(inflate) | Self::RawDeflate(inflate) => inflate.read(output),
            Self::Brotli(decoder) => decoder.read(output),
            Self::Zstd(decoder) => decoder.read(output),
        }
    }
}

impl Decoder {
    /// A decoder for a new body.
    pub fn new(coding: Coding) -> Result<Self, NotInCoding> {
        let format = Format::new(coding, Source::default()).map_err(|_| NotInCoding(coding))?;
        Ok(Self {
            coding,
            format,
            ended: false,
        })
    }

    /// Consumes `input` and decodes as much as fits into `output`, which must not be empty. Call it until
    /// [`Progress::is_stuck`]: output may remain after all input is consumed.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, NotInCoding> {
        self.format.source().0.extend_from_slice(input);
        let written = self.decode(output).map_err(|_| NotInCoding(self.coding))?;
        let read = input.len();
        Ok(Progress { read, written })
    }

    fn decode(&mut self, output: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.ended {
                let rest = std::mem::take(self.format.source());
                // Several gzip members or zstd frames may follow each other. Other trailing bytes are dropped, as
                // in browsers.
                if rest.0.is_empty() || !matches!(self.coding, Coding::Gzip | Coding::Zstd) {
                    return Ok(0);
                }
                self.format = Format::new(self.coding, rest)?;
                self.ended = false;
            }
            match self.format.read(output) {
                Ok(0) => self.ended = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                decoded => return decoded,
            }
        }
    }

    /// Decodes `input` and passes the output to `each` in pieces, at most `most` bytes in all. Returns the number
    /// of bytes; if it equals `most`, there may be more.
    pub fn push(
        &mut self,
        mut input: &[u8],
        most: usize,
        mut each: impl FnMut(&[u8]),
    ) -> Result<usize, NotInCoding> {
        let mut piece = [0; 8 << 10];
        let mut given = 0;
        while given < most {
            let room = piece.len().min(most - given);
            let progress = self.step(input, &mut piece[..room])?;
            if progress.is_stuck() {
                break;
            }
            input = &input[progress.read..];
            given += progress.written;
            each(&piece[..progress.written]);
        }
        Ok(given)
    }

    /// Whether a body may end here.
    pub fn is_complete(&self) -> bool {
        self.ended
    }

    /// An encoder for the same form; call it after some output was decoded.
    pub fn encoder(&self) -> io::Result<Encoder> {
        match self.format {
            Format::RawDeflate(_) => Ok(Encoder::raw_deflate()),
            _ => Encoder::new(self.coding),
        }
    }
}
