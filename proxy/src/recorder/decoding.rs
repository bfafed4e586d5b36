//! Undoes the content coding of an answer as it passes, within bounds.

use squall_dialects::codec::{Coding, Decoder};

/// Bytes that a coded answer may decode to; the rest is not read.
const DECODED: usize = 16 << 20;

/// Bytes that are decoded at once.
const PIECE: usize = 16 << 10;

/// How an answer's bytes are coded.
pub(crate) struct Decoding(State);

enum State {
    Plain,
    Coded(Box<Coded>),
    /// No more of them can be read.
    Over,
}

struct Coded {
    decoder: Decoder,
    /// Bytes that were decoded so far.
    bytes: usize,
    /// What the decoder writes into, again and again.
    piece: Vec<u8>,
}

impl Decoding {
    /// Of bytes in this coding.
    pub(super) fn of(coding: Option<Coding>) -> Self {
        Self(match coding.map(Decoder::new).transpose() {
            Ok(None) => State::Plain,
            Ok(Some(decoder)) => State::Coded(Box::new(Coded {
                decoder,
                bytes: 0,
                piece: vec![0; PIECE],
            })),
            Err(_) => State::Over,
        })
    }

    /// Whether nothing can be read any more.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.0, State::Over)
    }

    /// Whether there is nothing to undo.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.0, State::Plain)
    }

    /// Feeds `each` what the next bytes decode to.
    ///
    /// What came before the body turned out not to be in its coding was read: the journal says what
    /// can be said, and the agent gets the bytes as they are.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&[u8])) {
        let mut coded = match std::mem::replace(&mut self.0, State::Over) {
            State::Plain => {
                self.0 = State::Plain;
                return each(chunk);
            }
            State::Coded(coded) => coded,
            State::Over => return,
        };
        let mut rest = chunk;
        while coded.bytes < DECODED {
            let Ok(step) = coded.decoder.step(rest, &mut coded.piece) else {
                return;
            };
            if step.is_stuck() {
                self.0 = State::Coded(coded);
                return;
            }
            rest = &rest[step.read..];
            each(&coded.piece[..step.written]);
            coded.bytes += step.written;
        }
    }
}
