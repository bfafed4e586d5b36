//! Edits of whole bodies: collect within limits, decode, change, encode.

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response};
use squall_dialects::codec::{Coding, Decoder, Encoder};

use super::fits;
use crate::body::AgentBody;
use crate::body::buffer::TooMuch;
use crate::body::whole::Whole;
use crate::faults::{FaultContext, VerdictReport};

/// Changes a decoded body by `change`, which returns an error if it cannot.
pub(super) async fn apply(
    response: Response<AgentBody>,
    mut report: VerdictReport,
    context: &FaultContext,
    change: impl FnOnce(&HeaderMap, &[u8]) -> Result<Vec<u8>, String>,
) -> Response<AgentBody> {
    let plain = match Plain::of(response, &mut report, context).await {
        Ok(plain) => plain,
        Err(response) => return response,
    };
    let edited = change(&plain.head.headers, &plain.bytes).and_then(|edited| plain.encoded(edited));
    match edited {
        Ok(edited) => {
            report.applied();
            let mut head = plain.head;
            fits(&mut head.headers, edited.len() as u64);
            Response::from_parts(head, plain.whole.replaced_by(edited))
        }
        Err(why) => {
            report.bypassed(why);
            plain.unchanged()
        }
    }
}

/// A whole response, decoded.
pub(super) struct Plain {
    pub(super) head: Parts,
    pub(super) bytes: Bytes,
    pub(super) whole: Whole,
    /// `None`: the body has no coding.
    coding: Option<Decoder>,
}

impl Plain {
    /// Collects and decodes a body. If the body cannot be edited, the response passes unchanged and
    /// the rule is bypassed.
    pub(super) async fn of(
        response: Response<AgentBody>,
        report: &mut VerdictReport,
        context: &FaultContext,
    ) -> Result<Self, Response<AgentBody>> {
        let (head, body) = response.into_parts();
        let coding = match Coding::of(&head.headers) {
            Ok(coding) => coding,
            Err(why) => {
                report.bypassed(why.to_string());
                return Err(Response::from_parts(head, body));
            }
        };
        let mut whole = match context.collect(body).await {
            Ok(whole) => whole,
            Err((body, why)) => {
                report.bypassed(why.to_string());
                return Err(Response::from_parts(head, body));
            }
        };
        match decoded(&mut whole, coding, context.inspect.limit()) {
            Ok((bytes, coding)) => Ok(Self {
                head,
                bytes,
                whole,
                coding,
            }),
            Err(why) => {
                report.bypassed(why);
                Err(Response::from_parts(head, whole.unchanged()))
            }
        }
    }

    /// Encodes other bytes in the body's coding.
    fn encoded(&self, bytes: Vec<u8>) -> Result<Bytes, String> {
        match self.encoder()? {
            None => Ok(bytes.into()),
            Some(encoder) => encoder.whole(&bytes).map(Bytes::from).map_err(not_encoded),
        }
    }

    /// The encoder for the body's coding; `None` without a coding.
    pub(super) fn encoder(&self) -> Result<Option<Encoder>, String> {
        let encoder = self.coding.as_ref().map(Decoder::encoder).transpose();
        encoder.map_err(not_encoded)
    }

    /// The unchanged response.
    pub(super) fn unchanged(self) -> Response<AgentBody> {
        Response::from_parts(self.head, self.whole.unchanged())
    }
}

/// The error for a body that cannot be encoded again.
#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(super) fn not_encoded(error: std::io::Error) -> String {
    format!("the body cannot be compressed again: {error}")
}

/// The decoded bytes of a body, or why it cannot be edited.
fn decoded(
    whole: &mut Whole,
    coding: Option<Coding>,
    limit: u64,
) -> Result<(Bytes, Option<Decoder>), String> {
    let body = whole.bytes();
    let Some(coding) = coding else {
        return Ok((body, None));
    };
    let mut decoder = Decoder::new(coding).map_err(|why| why.to_string())?;
    let mut plain = Vec::new();
    let most = usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    decoder
        .push(&body, most, |piece| plain.extend_from_slice(piece))
        .map_err(|why| why.to_string())?;
    if plain.len() == most {
        return Err(format!("decoded, {}", TooMuch::Body(limit)));
    }
    let grown = whole.lease.grow(plain.len() as u64);
    grown.map_err(|why| why.to_string())?;
    if !decoder.is_complete() {
        return Err("the compressed body is incomplete".into());
    }
    Ok((plain.into(), Some(decoder)))
}
