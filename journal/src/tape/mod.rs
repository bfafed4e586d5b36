//! Tapes: exchanges that were recorded and can be played back instead of calling upstreams.
//!
//! ```text
//! exchange ─▶ Recorded ─▶ redact ─┬─▶ har::document        for other tools
//!                                 └─▶ Session ─▶ Session::to_yaml ─▶ a file ─┐
//!                                        └──────────────▶ Tape ◀─────────────┘
//!                                                          │ ask
//! request ─▶ Question ─────────────────────────────────────┘─▶ Found
//! ```
//!
//! A [`Session`] is the file format: a production incident with its recorded responses. A [`Tape`] is a session
//! prepared for playback. Neither opens a socket or reads a clock; the caller computes fingerprints.

pub mod content;
pub mod exposed;
pub mod given;
pub mod har;
pub mod play;
pub mod recorded;
pub mod redact;
pub mod session;
mod yaml;

pub use self::content::{Content, Data, Piece};
pub use self::given::Given;
pub use self::play::{Tape, TapeQuestion, TapeResult};
pub use self::recorded::{Detected, Exposed, Recorded};
pub use self::session::{
    Answer, Matching, ModelSource, Otherwise, RecordedExchange, Session, ToolResponse,
};
