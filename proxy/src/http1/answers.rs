//! Parses responses from the bytes of a connection to an upstream.
//!
//! One pass finds the end of a head, rejects ambiguous framing and records the fields' positions.
//! Names, values and body bytes are slices of the read buffer. The parser is pure, and its result
//! does not depend on how the bytes are split.

use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, HeaderMap};
use http::{Method, Response, StatusCode, Version};
use hyper::ext::ReasonPhrase;

use super::body::BodyFraming;
pub use super::body::BodyPart;
use super::casing::CasingCache;
use super::head::{FieldSpan, HeadScan, StatusLine, header_map};
use super::{FramingError, HeadLimits};
use crate::headers::names;

/// The responses on a connection, with one request in flight at a time.
#[derive(Debug)]
pub struct Answers {
    limits: HeadLimits,
    place: AnswerPosition,
    scan: HeadScan<StatusLine>,
    casings: Rc<CasingCache>,
    may_go_on: bool,
}

#[derive(Debug)]
enum AnswerPosition {
    /// No request is in flight.
    Between,
    /// Before the end of a head; whether a body may follow.
    Head {
        bodiless: bool,
    },
    Body(BodyFraming),
    /// In another protocol.
    Switched,
}

/// A complete head.
#[derive(Debug)]
pub enum ParsedHead {
    /// An interim response (1xx except 101): the final one follows.
    Interim(StatusCode),
    /// The final response, or 101.
    Final(Response<()>),
}

impl Answers {
    /// A connection without a request.
    pub fn new(limits: HeadLimits, casings: Rc<CasingCache>) -> Self {
        Self {
            limits,
            place: AnswerPosition::Between,
            scan: HeadScan::new(),
            casings,
            may_go_on: true,
        }
    }

    /// Expects the response to a request with this method.
    pub fn expect(&mut self, method: &Method) {
        self.place = AnswerPosition::Head {
            bodiless: *method == Method::HEAD,
        };
    }

    /// Takes the next head from `buffer`; `None` if it is incomplete.
    pub fn head(&mut self, buffer: &mut BytesMut) -> Result<Option<ParsedHead>, FramingError> {
        let AnswerPosition::Head { bodiless } = self.place else {
            return self.nothing(buffer);
        };
        let Some((length, head)) = self.scan.advance(buffer, self.limits)? else {
            return Ok(None);
        };
        let line = head.opening.ok_or(FramingError::STATUS_LINE)?;
        let section = buffer.split_to(length).freeze();
        let status = StatusCode::from_u16(line.status).map_err(|_| FramingError::STATUS_LINE)?;
        if line.minor == 0 && head.chunked {
            return Err(FramingError::TRANSFER_ENCODING);
        }
        if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Some(ParsedHead::Interim(status)));
        }
        let response = self.response(&section, line, status)?;
        let body = match status {
            StatusCode::SWITCHING_PROTOCOLS => {
                self.place = AnswerPosition::Switched;
                return Ok(Some(ParsedHead::Final(response)));
            }
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED => BodyFraming::Length(0),
            _ if bodiless => BodyFraming::Length(0),
            _ if head.chunked => BodyFraming::chunked(),
            _ => head
                .content_length
                .map_or(BodyFraming::UntilClose, BodyFraming::Length),
        };
        self.may_go_on = !matches!(body, BodyFraming::UntilClose)
            && keeps_alive(response.headers(), response.version());
        self.place = AnswerPosition::Body(body);
        self.end_if_complete();
        Ok(Some(ParsedHead::Final(response)))
    }

    /// Takes the next part after a head from `buffer`; `None` if it is incomplete.
    pub fn body(&mut self, buffer: &mut BytesMut) -> Result<Option<BodyPart>, FramingError> {
        let AnswerPosition::Body(body) = &mut self.place else {
            return Ok(Some(BodyPart::End));
        };
        let part = body.take(buffer, self.limits)?;
        match &part {
            None => {}
            Some(BodyPart::Data(_)) => self.end_if_complete(),
            Some(BodyPart::Trailers(_) | BodyPart::End) => self.place = AnswerPosition::Between,
        }
        Ok(part)
    }

    /// The connection was closed by a FIN. Returns whether the response is complete: nothing is
    /// missing, or its body ends at the close.
    pub fn close(&mut self) -> bool {
        if let AnswerPosition::Body(BodyFraming::UntilClose) = self.place {
            self.place = AnswerPosition::Between;
        }
        matches!(self.place, AnswerPosition::Between)
    }

    /// Whether the response is complete.
    pub fn is_over(&self) -> bool {
        matches!(self.place, AnswerPosition::Between)
    }

    /// Whether the connection is reusable after the latest response (RFC 9112 §9.3).
    pub(crate) fn may_go_on(&self) -> bool {
        self.may_go_on
    }

    /// Remaining bytes of the body, if known.
    pub fn length(&self) -> Option<u64> {
        match self.place {
            AnswerPosition::Between => Some(0),
            AnswerPosition::Body(BodyFraming::Length(left)) => Some(left),
            AnswerPosition::Body(_) | AnswerPosition::Head { .. } | AnswerPosition::Switched => {
                None
            }
        }
    }

    fn nothing(&self, buffer: &BytesMut) -> Result<Option<ParsedHead>, FramingError> {
        match self.place {
            AnswerPosition::Between if !buffer.is_empty() => Err(FramingError::UNSOLICITED),
            _ => Ok(None),
        }
    }

    fn end_if_complete(&mut self) {
        if let AnswerPosition::Body(BodyFraming::Length(0)) = self.place {
            self.place = AnswerPosition::Between;
        }
    }

    fn response(
        &mut self,
        section: &Bytes,
        line: StatusLine,
        status: StatusCode,
    ) -> Result<Response<()>, FramingError> {
        let fields = self.scan.fields();
        let reason = reason(section, fields);
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = match line.minor {
            0 => Version::HTTP_10,
            _ => Version::HTTP_11,
        };
        *response.headers_mut() = header_map(section, fields)?;
        *response.extensions_mut() = self.casings.of(section, fields);
        if status.canonical_reason().map(str::as_bytes) != Some(&reason)
            && let Ok(reason) = ReasonPhrase::try_from(reason)
        {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }
}

/// The text after the status.
fn reason(section: &Bytes, fields: &[FieldSpan]) -> Bytes {
    const BEFORE: usize = "HTTP/1.1 200 ".len();
    let end = fields
        .first()
        .map_or(section.len() - 2, |field| field.start())
        - 2;
    let blank = section.iter().take_while(|b| matches!(b, b'\r' | b'\n'));
    let start = (blank.count() + BEFORE).min(end);
    section.slice(start..end)
}

fn keeps_alive(headers: &HeaderMap, version: Version) -> bool {
    if version == Version::HTTP_10 {
        names(headers, &CONNECTION, "keep-alive")
    } else {
        !names(headers, &CONNECTION, "close")
    }
}

#[cfg(test)]
mod tests;
