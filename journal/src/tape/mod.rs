//! Tapes: exchanges that were recorded and can be played back instead of calling upstreams.
//!
//! ```text
//! exchange ─▶ Recorded ─▶ redact ─┬─▶ har::document        for other tools
//!                                 └─▶ Session ─▶ Session::to_yaml ─▶ whoever reads ─┐
//!                                        └──────────────────▶ Tape ◀────────────────┘
//!                                                              │ ask
//! request ─▶ Question ─────────────────────────────────────────┘─▶ Found
//! ```
//!
//! A [`Session`] is what people read and write: a production incident, the answers recorded with it
//! among others. A [`Tape`] is a session made ready to be asked. Neither opens a socket or reads a
//! clock; who asks says what the request's fingerprint is.

pub mod content;
pub mod exposed;
pub mod given;
pub mod har;
mod leaves;
pub mod play;
pub mod recorded;
pub mod redact;
pub mod session;
mod yaml;

pub use self::content::{Content, Data, Piece};
pub use self::given::Given;
pub use self::play::{Found, Question, Tape};
pub use self::recorded::Recorded;
pub use self::session::{Answer, Exchange, Matching, Otherwise, Session, ToolResponse};
