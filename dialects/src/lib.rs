//! Converts between providers' wire formats and one neutral view of a model call. No sockets, no clock, no
//! randomness.
//!
//! ```text
//! request body ───┐                              ┌─▶ faults (profiles), written once, on the neutral view
//! answer, JSON ───┼─▶ json::Document ─▶ Dialect ─┤
//! answer, stream ─┘   stream::Splitter           └─▶ Reader: what the journal says about a model call
//! ```
//!
//! A [`Dialect`] locates the neutral parts in a provider's JSON ([`model`]). A fault edits those places in the
//! original bytes ([`json::Edits`]), so that everything else stays unchanged. A new provider is one directory and
//! one line in [`ALL`].

pub mod a2a;
mod answer;
mod answer_reader;
mod anthropic;
mod bedrock;
pub mod codec;
mod dialect;
pub mod endpoint;
mod errors;
mod gemini;
mod gemini_live;
pub mod json;
pub mod mcp;
pub mod model;
mod ollama;
mod openai_chat;
mod openai_realtime;
mod openai_responses;
mod reader;
mod registry;
pub mod signature;
pub mod stream;
mod streamed;
mod tally;
mod target;
pub mod tokens;
mod tool_calls;

pub use answer::{AnswerForm, Event, Part, Transcript, media_type};
pub use answer_reader::AnswerReader;
pub use dialect::{Dialect, Provider, Quirk};
pub use errors::{Credential, ErrorContext, ErrorTerms, WireReply};
pub use reader::Reader;
pub use registry::{
    ALL, by_name, confirm, endpoint_names, of_endpoint, read_request, recognise, user_input,
};
pub use streamed::streamed;
pub use tally::{ModelCall, Tally, Tokens};
pub use target::Target;
pub use tool_calls::CalledTools;
