//! Decoders that are fed and drained by hand.

use brotli::enc::StandardAlloc;
use brotli::{BrotliDecompressStream, BrotliResult, BrotliState};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{self as zstd_raw, InBuffer, Operation as _, OutBuffer};

use super::encode::Encoder;
use super::{Coding, NotInCoding};

/// What one step of a decoder did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Bytes of the input that are used up.
    pub read: usize,
    /// Bytes of the output that are filled.
    pub written: usize,
}

impl Progress {
    /// Neither read nor written: the decoder wants more input, or has come to its end.
    pub fn is_stuck(self) -> bool {
        self.read == 0 && self.written == 0
    }
}

/// Decodes one body.
pub struct Decoder {
    coding: Coding,
    state: State,
}

enum State {
    Gzip(Box<Gzip>),
    /// Neither is known before the first two bytes.
    Deflate {
        first: Option<u8>,
    },
    Zlib(Inflate),
    RawDeflate(Inflate),
    Brotli(Box<Brotli>),
    Zstd(Zstd),
}

impl Decoder {
    /// A decoder at the beginning of a body.
    pub fn new(coding: Coding) -> Result<Self, NotInCoding> {
        let state = match coding {
            Coding::Gzip => State::Gzip(Box::default()),
            Coding::Deflate => State::Deflate { first: None },
            Coding::Brotli => State::Brotli(Box::new(Brotli::new())),
            Coding::Zstd => State::Zstd(Zstd::new().ok_or(NotInCoding(coding))?),
        };
        Ok(Self { coding, state })
    }

    /// Decodes as much of `input` as `output` has room for. To be called again until it
    /// [`Progress::is_stuck`]: output may be left when no input is.
    pub fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Progress, NotInCoding> {
        let progress = match &mut self.state {
            State::Gzip(gzip) => gzip.step(input, output),
            State::Deflate { first } => match (*first, input.first()) {
                (_, None) => Some(Progress::default()),
                (None, Some(&byte)) => {
                    *first = Some(byte);
                    Some(Progress {
                        read: 1,
                        written: 0,
                    })
                }
                (Some(first), Some(&second)) => {
                    let zlib = is_zlib(first, second);
                    let mut inflate = Inflate::new(zlib);
                    // One byte is too little to decode to anything.
                    let began = inflate.step(&[first], &mut [0; 8]);
                    let progress = began.and_then(|_| inflate.step(input, output));
                    self.state = if zlib {
                        State::Zlib(inflate)
                    } else {
                        State::RawDeflate(inflate)
                    };
                    progress
                }
            },
            State::Zlib(inflate) | State::RawDeflate(inflate) => inflate.step(input, output),
            State::Brotli(brotli) => brotli.step(input, output),
            State::Zstd(zstd) => zstd.step(input, output),
        };
        progress.ok_or(NotInCoding(self.coding))
    }

    /// Whether a body may end here.
    pub fn is_complete(&self) -> bool {
        match &self.state {
            State::Gzip(gzip) => matches!(gzip.at, GzipAt::Begin { .. }) && gzip.members > 0,
            State::Deflate { .. } => false,
            State::Zlib(inflate) | State::RawDeflate(inflate) => inflate.ended,
            State::Brotli(brotli) => brotli.ended,
            State::Zstd(zstd) => zstd.ended,
        }
    }

    /// An encoder into the same form; to be asked for when some output has come.
    pub fn encoder(&self) -> std::io::Result<Encoder> {
        match &self.state {
            State::RawDeflate(_) => Ok(Encoder::raw_deflate()),
            State::Gzip(_)
            | State::Deflate { .. }
            | State::Zlib(_)
            | State::Brotli(_)
            | State::Zstd(_) => Encoder::new(self.coding),
        }
    }
}

/// Tells zlib from bare deflate by its header's check (RFC 1950 §2.2).
fn is_zlib(first: u8, second: u8) -> bool {
    first & 0x0f == 8 && u16::from_be_bytes([first, second]).is_multiple_of(31)
}

struct Inflate {
    inflate: Decompress,
    ended: bool,
}

impl Inflate {
    fn new(zlib: bool) -> Self {
        Self {
            inflate: Decompress::new(zlib),
            ended: false,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Option<Progress> {
        if self.ended {
            // Whatever follows the end is dropped, as browsers do.
            return Some(Progress {
                read: input.len(),
                written: 0,
            });
        }
        let (read, written) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(input, output, FlushDecompress::None)
            .ok()?;
        self.ended = status == Status::StreamEnd;
        Some(Progress {
            read: usize::try_from(self.inflate.total_in() - read).ok()?,
            written: usize::try_from(self.inflate.total_out() - written).ok()?,
        })
    }
}

/// RFC 1952: members of header, deflate data, checksum and length.
struct Gzip {
    at: GzipAt,
    inflate: Inflate,
    crc: Crc,
    members: u32,
}

enum GzipAt {
    /// In the ten fixed bytes of a member's header.
    Begin {
        header: [u8; 10],
        length: usize,
    },
    /// At the two bytes that say how long the extra field is.
    ExtraLength {
        flags: u8,
        low: Option<u8>,
    },
    /// In the extra field, the name, the comment or the header's checksum.
    Skip {
        flags: u8,
        left: usize,
    },
    SkipString {
        flags: u8,
    },
    /// In the data.
    Data,
    /// In checksum and length.
    Trailer {
        trailer: [u8; 8],
        length: usize,
    },
}

const EXTRA: u8 = 1 << 2;
const NAME: u8 = 1 << 3;
const COMMENT: u8 = 1 << 4;
const HEADER_CHECKSUM: u8 = 1 << 1;

impl Default for Gzip {
    fn default() -> Self {
        Self {
            at: GzipAt::Begin {
                header: [0; 10],
                length: 0,
            },
            inflate: Inflate::new(false),
            crc: Crc::new(),
            members: 0,
        }
    }
}

impl Gzip {
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Option<Progress> {
        if let GzipAt::Data = self.at {
            let progress = self.inflate.step(input, output)?;
            self.crc.update(&output[..progress.written]);
            if self.inflate.ended {
                self.at = GzipAt::Trailer {
                    trailer: [0; 8],
                    length: 0,
                };
            }
            return Some(progress);
        }
        let mut read = 0;
        for &byte in input {
            read += 1;
            self.take(byte)?;
            if let GzipAt::Data = self.at {
                break;
            }
        }
        Some(Progress { read, written: 0 })
    }

    /// Takes one byte outside the data. `None`: it cannot stand there.
    fn take(&mut self, byte: u8) -> Option<()> {
        match &mut self.at {
            GzipAt::Begin { header, length } => {
                header[*length] = byte;
                *length += 1;
                if *length == header.len() {
                    if header[..3] != [0x1f, 0x8b, 8] {
                        return None;
                    }
                    self.at = after_header(header[3]);
                }
            }
            GzipAt::ExtraLength {
                low: low @ None, ..
            } => *low = Some(byte),
            GzipAt::ExtraLength {
                flags,
                low: Some(low),
            } => {
                let left = usize::from(u16::from_le_bytes([*low, byte]));
                self.at = skip(*flags, left);
            }
            GzipAt::Skip { flags, left } => self.at = skip(*flags, *left - 1),
            GzipAt::SkipString { flags } => {
                if byte == 0 {
                    self.at = after_header(*flags);
                }
            }
            GzipAt::Data => {}
            GzipAt::Trailer { trailer, length } => {
                trailer[*length] = byte;
                *length += 1;
                if *length == trailer.len() {
                    let [a, b, c, d, ..] = *trailer;
                    if u32::from_le_bytes([a, b, c, d]) != self.crc.sum() {
                        return None;
                    }
                    *self = Self {
                        members: self.members + 1,
                        ..Self::default()
                    };
                }
            }
        }
        Some(())
    }
}

/// What comes next in a member's header, given the flags that are still to be served.
fn after_header(flags: u8) -> GzipAt {
    if flags & EXTRA != 0 {
        GzipAt::ExtraLength {
            flags: flags & !EXTRA,
            low: None,
        }
    } else if flags & NAME != 0 {
        GzipAt::SkipString {
            flags: flags & !NAME,
        }
    } else if flags & COMMENT != 0 {
        GzipAt::SkipString {
            flags: flags & !COMMENT,
        }
    } else if flags & HEADER_CHECKSUM != 0 {
        skip(flags & !HEADER_CHECKSUM, 2)
    } else {
        GzipAt::Data
    }
}

fn skip(flags: u8, left: usize) -> GzipAt {
    if left == 0 {
        after_header(flags)
    } else {
        GzipAt::Skip { flags, left }
    }
}

struct Brotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    total: usize,
    ended: bool,
}

impl Brotli {
    fn new() -> Self {
        let state = BrotliState::new(
            StandardAlloc::default(),
            StandardAlloc::default(),
            StandardAlloc::default(),
        );
        Self {
            state,
            total: 0,
            ended: false,
        }
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Option<Progress> {
        if self.ended {
            return Some(Progress {
                read: input.len(),
                written: 0,
            });
        }
        let (mut in_left, mut read) = (input.len(), 0);
        let (mut out_left, mut written) = (output.len(), 0);
        let result = BrotliDecompressStream(
            &mut in_left,
            &mut read,
            input,
            &mut out_left,
            &mut written,
            output,
            &mut self.total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => return None,
            BrotliResult::ResultSuccess => self.ended = true,
            BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
        }
        Some(Progress { read, written })
    }
}

struct Zstd {
    decoder: zstd_raw::Decoder<'static>,
    ended: bool,
}

impl Zstd {
    fn new() -> Option<Self> {
        zstd_raw::Decoder::new().ok().map(|decoder| Self {
            decoder,
            ended: false,
        })
    }

    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Option<Progress> {
        if self.ended {
            if input.is_empty() {
                return Some(Progress::default());
            }
            // Frames may follow one another (RFC 8878 §3.1).
            self.decoder.reinit().ok()?;
            self.ended = false;
        }
        let mut from = InBuffer::around(input);
        let mut to = OutBuffer::around(output);
        let wanted = self.decoder.run(&mut from, &mut to).ok()?;
        self.ended = wanted == 0;
        Some(Progress {
            read: from.pos(),
            written: to.pos(),
        })
    }
}
