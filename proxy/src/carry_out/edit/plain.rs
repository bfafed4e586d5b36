//! Whole bodies without their coding, within bounds.

use std::borrow::Cow;

use squall_dialects::codec::{Coding, Decoder, Encoder};

use crate::carry_out::whole::{Lease, TooMuch};

/// A whole body as text that can be edited, and the way back.
pub(super) struct Plain<'a> {
    pub(super) bytes: Cow<'a, [u8]>,
    /// `None`: the body has no coding.
    pub(super) encoder: Option<Encoder>,
}

const PIECE: usize = 16 << 10;

impl<'a> Plain<'a> {
    /// Decodes `body`, whatever it would decode to; or says why it cannot be edited.
    pub(super) fn of(
        body: &'a [u8],
        coding: Option<Coding>,
        lease: &mut Lease,
        limit: u64,
    ) -> Result<Self, String> {
        let Some(coding) = coding else {
            return Ok(Self {
                bytes: Cow::Borrowed(body),
                encoder: None,
            });
        };
        let mut decoder = Decoder::new(coding).map_err(|why| why.to_string())?;
        let mut plain = Vec::new();
        let mut piece = vec![0; PIECE];
        let mut input = body;
        loop {
            let progress = decoder
                .step(input, &mut piece)
                .map_err(|why| why.to_string())?;
            if progress.is_stuck() {
                break;
            }
            input = &input[progress.read..];
            plain.extend_from_slice(&piece[..progress.written]);
            if plain.len() as u64 > limit {
                return Err(format!("decoded, {}", TooMuch::Body(limit)));
            }
            lease
                .grow(progress.written as u64)
                .map_err(|why| why.to_string())?;
        }
        if !decoder.is_complete() {
            return Err("the compressed body is incomplete".into());
        }
        let encoder = decoder
            .encoder()
            .map_err(|error| format!("the body cannot be compressed again: {error}"))?;
        Ok(Self {
            bytes: Cow::Owned(plain),
            encoder: Some(encoder),
        })
    }
}
