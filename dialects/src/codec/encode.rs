//! Encoders that can be flushed in the middle of a body.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

use super::Coding;

/// The usual level of servers for dynamic responses.
const BROTLI_QUALITY: u32 = 5;
const BROTLI_WINDOW: u32 = 22;
const BROTLI_BUFFER: usize = 4096;

/// Encodes one body.
pub struct Encoder(EncoderKind);

enum EncoderKind {
    Gzip(GzEncoder<Vec<u8>>),
    Zlib(ZlibEncoder<Vec<u8>>),
    RawDeflate(DeflateEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// An encoder for a new body; `deflate` uses the zlib wrapper.
    pub fn new(coding: Coding) -> io::Result<Self> {
        let out = Vec::new();
        let level = Compression::default();
        Ok(Self(match coding {
            Coding::Gzip => EncoderKind::Gzip(GzEncoder::new(out, level)),
            Coding::Deflate => EncoderKind::Zlib(ZlibEncoder::new(out, level)),
            Coding::Brotli => EncoderKind::Brotli(Box::new(brotli::CompressorWriter::new(
                out,
                BROTLI_BUFFER,
                BROTLI_QUALITY,
                BROTLI_WINDOW,
            ))),
            Coding::Zstd => EncoderKind::Zstd(zstd::stream::write::Encoder::new(
                out,
                zstd::DEFAULT_COMPRESSION_LEVEL,
            )?),
        }))
    }

    /// An encoder for deflate data without a wrapper.
    pub(super) fn raw_deflate() -> Self {
        Self(EncoderKind::RawDeflate(DeflateEncoder::new(
            Vec::new(),
            Compression::default(),
        )))
    }

    /// Encodes `bytes` and flushes, so that the output can be decoded without later data.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let writer = self.writer();
        writer.write_all(bytes)?;
        writer.flush()?;
        Ok(std::mem::take(self.out()))
    }

    /// Ends the body.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            EncoderKind::Gzip(encoder) => encoder.finish(),
            EncoderKind::Zlib(encoder) => encoder.finish(),
            EncoderKind::RawDeflate(encoder) => encoder.finish(),
            EncoderKind::Brotli(encoder) => Ok(encoder.into_inner()),
            EncoderKind::Zstd(encoder) => encoder.finish(),
        }
    }

    /// Encodes a whole body.
    pub fn whole(mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        self.writer().write_all(bytes)?;
        self.finish()
    }

    fn writer(&mut self) -> &mut dyn Write {
        match &mut self.0 {
            EncoderKind::Gzip(encoder) => encoder,
            EncoderKind::Zlib(encoder) => encoder,
            EncoderKind::RawDeflate(encoder) => encoder,
            EncoderKind::Brotli(encoder) => encoder,
            EncoderKind::Zstd(encoder) => encoder,
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match &mut self.0 {
            EncoderKind::Gzip(encoder) => encoder.get_mut(),
            EncoderKind::Zlib(encoder) => encoder.get_mut(),
            EncoderKind::RawDeflate(encoder) => encoder.get_mut(),
            EncoderKind::Brotli(encoder) => encoder.get_mut(),
            EncoderKind::Zstd(encoder) => encoder.get_mut(),
        }
    }
}
