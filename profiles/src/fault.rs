//! One way to fail, with its parameters. One family, one file below this one.

use std::time::Duration;

/// How fast bytes may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttle {
    /// Bytes per second, at least 1 (`rate_kbps` × 125 in files).
    pub bytes_per_second: u64,
}

/// Bodies delivered in small pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slices {
    /// Mean size of a piece in bytes, at least 1.
    pub average_size: u64,
    /// Each piece differs from the mean by at most this many bytes; below `average_size`.
    pub size_variation: u64,
    /// Pause between pieces.
    pub delay: Duration,
}

/// How an intercepted handshake fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsFailure {
    /// The leaf's validity ended yesterday.
    Expired,
    /// The leaf is for another host.
    WrongHost,
    /// The leaf is signed by a CA nobody knows.
    Untrusted,
    /// The handshake is answered with a fatal alert.
    Handshake,
}

/// One field of a JSON answer changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaDrift {
    /// What happens to the field.
    pub kind: DriftKind,
    /// The field's name; absent: chosen by the draw among all fields.
    pub field: Option<String>,
    /// What the choice of a field hangs on when none is named: this exchange's draw.
    pub choice: u64,
}

/// What happens to a drifting field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DriftKind {
    /// Its key changes.
    Rename,
    /// It is gone.
    Drop,
    /// Its value becomes null.
    Null,
    /// Its value changes type: numbers become strings, everything else likewise.
    Retype,
}

/// A change to a model's answer as it streams.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamFault {
    /// The answer ends after that many tokens, with the provider's length reason.
    Truncate {
        /// Tokens kept, at least 0.
        max_tokens: u64,
    },
    /// The connection breaks after that many tokens.
    Cut {
        /// Tokens that still arrive.
        after_tokens: u64,
    },
    /// Tokens come slowly.
    Slow {
        /// Wait before the first token.
        time_to_first_token: Duration,
        /// Pace after it; `None`: as the upstream sends.
        tokens_per_second: Option<f64>,
    },
}
