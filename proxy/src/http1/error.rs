//! Framing errors of messages.

use http::StatusCode;

/// Why a message was rejected. The text is used in the problem body.
///
/// Sources: RFC 9112 §2.2, §3, §5, §6, §7.1, §11; RFC 9110 §5.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// The head is longer than allowed.
    #[error("the head is longer than {limit} bytes")]
    HeadTooLarge {
        /// Bytes allowed.
        limit: usize,
    },
    /// The head has more fields than allowed.
    #[error("the head has more than {limit} fields")]
    TooManyFields {
        /// Fields allowed.
        limit: usize,
    },
    /// The request target is longer than the parser supports.
    #[error("the request target is longer than {limit} bytes")]
    TargetTooLong {
        /// Bytes allowed.
        limit: usize,
    },
    /// A head was not complete in time.
    #[error("the head did not arrive in time")]
    HeadTimeout,
    /// A request line that is not `METHOD SP TARGET SP HTTP/1.x`.
    #[error("the request line is malformed")]
    RequestLine,
    /// A status line that is not `HTTP/1.x SP STATUS`.
    #[error("the status line is malformed")]
    StatusLine,
    /// A line that ends in LF alone.
    #[error("a line ends in LF without CR")]
    BareLf,
    /// A CR within a line.
    #[error("a line holds a CR without LF")]
    BareCr,
    /// A control character (NUL included) within a line.
    #[error("a line holds a control character")]
    ControlCharacter,
    /// A field continued on a further line.
    #[error("a field is folded over several lines")]
    FoldedField,
    /// White space between a field's name and its colon.
    #[error("a field name is followed by white space")]
    SpaceBeforeColon,
    /// A field without a colon, or with a name that is no token.
    #[error("a field name is malformed")]
    FieldName,
    /// A `Content-Length` that is no number, or one no body can have.
    #[error("Content-Length is not a valid length")]
    ContentLength,
    /// Several `Content-Length` fields that differ.
    #[error("Content-Length is given more than once, with different values")]
    UnequalContentLengths,
    /// `Content-Length` and `Transfer-Encoding` together.
    #[error("Content-Length and Transfer-Encoding are given together")]
    LengthAndEncoding,
    /// A `Transfer-Encoding` other than `chunked`, once, in HTTP/1.1.
    #[error("Transfer-Encoding is not exactly `chunked`")]
    TransferEncoding,
    /// An HTTP/1.1 request without `Host`.
    #[error("Host is missing")]
    MissingHost,
    /// More than one `Host`.
    #[error("Host is given more than once")]
    RepeatedHost,
    /// A chunk size that is no hexadecimal number, or overflows.
    #[error("a chunk size is malformed")]
    ChunkSize,
    /// Chunk extensions with forbidden characters, or too many of them.
    #[error("a chunk extension is malformed or too long")]
    ChunkExtension,
    /// A chunk without CR LF after the bytes of its size.
    #[error("a chunk does not end where its size says")]
    ChunkEnd,
    /// Bytes from an upstream without a request.
    #[error("the upstream sent bytes that answer no request")]
    Unsolicited,
}

impl FramingError {
    /// The status for rejecting a request with this error.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyFields { .. } => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::TargetTooLong { .. } => StatusCode::URI_TOO_LONG,
            Self::HeadTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::RequestLine
            | Self::StatusLine
            | Self::BareLf
            | Self::BareCr
            | Self::ControlCharacter
            | Self::FoldedField
            | Self::SpaceBeforeColon
            | Self::FieldName
            | Self::ContentLength
            | Self::UnequalContentLengths
            | Self::LengthAndEncoding
            | Self::TransferEncoding
            | Self::MissingHost
            | Self::RepeatedHost
            | Self::ChunkSize
            | Self::ChunkExtension
            | Self::ChunkEnd
            | Self::Unsolicited => StatusCode::BAD_REQUEST,
        }
    }

    /// This error inside of an I/O error.
    pub(crate) fn into_io(self) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, self)
    }

    /// The framing error in `error` or anywhere in its chain of sources, if there is one.
    pub fn find<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            // An `io::Error` shows what is inside it as its source only from one level deeper.
            if let Some(inside) = error
                .downcast_ref::<std::io::Error>()
                .and_then(|e| e.get_ref())
            {
                next = Some(inside);
            } else {
                next = error.source();
            }
        }
        None
    }
}
