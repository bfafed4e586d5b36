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
    /// A malformed message; see the constants.
    #[error("{0}")]
    Malformed(&'static str),
}

impl FramingError {
    /// A request line that is not `METHOD SP TARGET SP HTTP/1.x`.
    pub const REQUEST_LINE: Self = Self::Malformed("the request line is malformed");
    /// A status line that is not `HTTP/1.x SP STATUS`.
    pub const STATUS_LINE: Self = Self::Malformed("the status line is malformed");
    /// A line that ends in LF alone.
    pub const BARE_LF: Self = Self::Malformed("a line ends in LF without CR");
    /// A CR within a line.
    pub const BARE_CR: Self = Self::Malformed("a line holds a CR without LF");
    /// A control character (NUL included) within a line.
    pub const CONTROL_CHARACTER: Self = Self::Malformed("a line holds a control character");
    /// A field continued on a further line.
    pub const FOLDED_FIELD: Self = Self::Malformed("a field is folded over several lines");
    /// White space between a field's name and its colon.
    pub const SPACE_BEFORE_COLON: Self = Self::Malformed("a field name is followed by white space");
    /// A field without a colon, or with a name that is no token.
    pub const FIELD_NAME: Self = Self::Malformed("a field name is malformed");
    /// A `Content-Length` that is no number, or one no body can have.
    pub const CONTENT_LENGTH: Self = Self::Malformed("Content-Length is not a valid length");
    /// Several `Content-Length` fields that differ.
    pub const UNEQUAL_CONTENT_LENGTHS: Self =
        Self::Malformed("Content-Length is given more than once, with different values");
    /// `Content-Length` and `Transfer-Encoding` together.
    pub const LENGTH_AND_ENCODING: Self =
        Self::Malformed("Content-Length and Transfer-Encoding are given together");
    /// A `Transfer-Encoding` other than `chunked`, once, in HTTP/1.1.
    pub const TRANSFER_ENCODING: Self =
        Self::Malformed("Transfer-Encoding is not exactly `chunked`");
    /// An HTTP/1.1 request without `Host`.
    pub const MISSING_HOST: Self = Self::Malformed("Host is missing");
    /// More than one `Host`.
    pub const REPEATED_HOST: Self = Self::Malformed("Host is given more than once");
    /// A chunk size that is no hexadecimal number, or overflows.
    pub const CHUNK_SIZE: Self = Self::Malformed("a chunk size is malformed");
    /// Chunk extensions with forbidden characters, or too many of them.
    pub const CHUNK_EXTENSION: Self = Self::Malformed("a chunk extension is malformed or too long");
    /// A chunk without CR LF after the bytes of its size.
    pub const CHUNK_END: Self = Self::Malformed("a chunk does not end where its size says");
    /// Bytes from an upstream without a request.
    pub const UNSOLICITED: Self = Self::Malformed("the upstream sent bytes that answer no request");

    /// The status for rejecting a request with this error.
    pub fn status(self) -> StatusCode {
        match self {
            Self::HeadTooLarge { .. } | Self::TooManyFields { .. } => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::TargetTooLong { .. } => StatusCode::URI_TOO_LONG,
            Self::HeadTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
        }
    }

    /// This error inside of an I/O error.
    pub(crate) fn into_io(self) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidData, self)
    }
}
