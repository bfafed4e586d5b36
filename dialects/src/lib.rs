//! Providers' wire formats and one neutral model call, both ways. No sockets, no clock, no dice.
//!
//! ```text
//! request body ───┐                              ┌─▶ faults (profiles), written once, on the neutral view
//! answer, JSON ───┼─▶ json::Document ─▶ Dialect ─┤
//! answer, stream ─┘   stream::Splitter           └─▶ Reader: what the journal says about a model call
//! ```
//!
//! A [`Dialect`] says where in a provider's JSON the neutral parts are ([`model`]); a fault changes
//! those places in the bytes as they came ([`json::Edits`]), so that everything else stays as it
//! was. A new provider is one directory and one line in [`ALL`].

mod answer;
mod answer_reader;
mod anthropic;
mod bedrock;
pub mod codec;
mod dialect;
pub mod endpoint;
mod errors;
mod gemini;
pub mod json;
pub mod mcp;
pub mod model;
mod ollama;
mod openai_chat;
mod openai_responses;
mod reader;
mod registry;
pub mod signature;
pub mod stream;
mod tally;
mod target;
pub mod tokens;
mod tool_calls;

pub use answer::{AnswerForm, EndOfChoice, Event, Part, Transcript, media_type};
pub use answer_reader::AnswerReader;
pub use dialect::{Dialect, Provider, Quirk};
pub use errors::{Credential, ErrorContext, ErrorTerms, WireReply};
pub use reader::Reader;
pub use registry::{ALL, by_name, confirm, endpoint_names, of_endpoint, read_request, recognise};
pub use tally::{ModelCall, Tally, Tokens};
pub use target::Target;
pub use tool_calls::CalledTools;
