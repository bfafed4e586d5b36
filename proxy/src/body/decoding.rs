//! Decodes the content coding of a body as it passes, within limits.

use squall_dialects::codec::{Coding, Decoder};

/// Most decoded bytes of a body; the rest is not read.
pub(crate) const DECODED: usize = 16 << 20;

/// The state of decoding.
pub(crate) enum Decoding {
    Plain,
    /// A decoder, and the remaining number of decoded bytes.
    Coded(Box<Decoder>, usize),
    /// No further bytes are decoded.
    Over,
}

impl Decoding {
    /// A decoder for this coding.
    pub(crate) fn of(coding: Option<Coding>) -> Self {
        match coding.map(Decoder::new).transpose() {
            Ok(None) => Self::Plain,
            Ok(Some(decoder)) => Self::Coded(Box::new(decoder), DECODED),
            Err(_) => Self::Over,
        }
    }

    /// Passes the decoded bytes of the next chunk to `each`. If the body turns out not to be in its
    /// coding, bytes are passed as they are from then on.
    pub(crate) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        match self {
            Self::Plain => each(chunk),
            Self::Coded(decoder, left) => match decoder.push(chunk, *left, &mut each) {
                Ok(given) if given < *left => *left -= given,
                Ok(_) => *self = Self::Over,
                Err(_) => {
                    *self = Self::Plain;
                    each(chunk);
                }
            },
            Self::Over => {}
        }
    }
}
