//! Undoes the content coding of an answer as it passes, within bounds.

use squall_dialects::codec::{Coding, Decoder};

/// Bytes that a coded answer may decode to; the rest is not read.
const DECODED: usize = 16 << 20;

/// How an answer's bytes are coded.
pub(crate) enum Decoding {
    Plain,
    /// A decoder, and how many bytes it may still give.
    Coded(Box<Decoder>, usize),
    /// No more of them can be read.
    Over,
}

impl Decoding {
    /// Of bytes in this coding.
    pub(super) fn of(coding: Option<Coding>) -> Self {
        match coding.map(Decoder::new).transpose() {
            Ok(None) => Self::Plain,
            Ok(Some(decoder)) => Self::Coded(Box::new(decoder), DECODED),
            Err(_) => Self::Over,
        }
    }

    /// Feeds `each` what the next bytes decode to.
    ///
    /// What came before the body turned out not to be in its coding was read: the journal says what
    /// can be said, and the agent gets the bytes as they are.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        match self {
            Self::Plain => each(chunk),
            Self::Coded(decoder, left) => match decoder.push(chunk, *left, each) {
                Ok(given) if given < *left => *left -= given,
                Ok(_) | Err(_) => *self = Self::Over,
            },
            Self::Over => {}
        }
    }
}
