//! Providers' wire formats and one neutral model call, both ways. No sockets, no clock, no dice.
//!
//! ```text
//! request body ─┐                              ┌─▶ faults (profiles), written once, on the neutral view
//! answer, JSON ─┼─▶ json::Document ─▶ Dialect ─┤
//! answer, SSE  ─┘   sse::Splitter   (one file) └─▶ Reader: what the journal says about a model call
//! ```
//!
//! A [`Dialect`] says where in a provider's JSON the neutral things stand ([`model`]); whoever
//! changes an answer changes those places in the bytes as they came ([`json::Edits`]), so that
//! what is not meant stays as it was. A new provider is one file and one line in [`ALL`].

pub mod dialect;
pub mod json;
pub mod model;
mod openai_chat;
pub mod reader;
pub mod sse;
pub mod tokens;

pub use dialect::{AnswerForm, Dialect, ErrorContext, WireReply};
use http::Method;
pub use reader::{ModelCall, Reader};

/// Every dialect, in the order in which [`recognise`] asks them.
pub static ALL: &[&dyn Dialect] = &[&openai_chat::OpenAiChat];

/// The dialect that a request with this method and path speaks, as far as its head can tell.
///
/// `path` is the path of the upstream URL, with or without its query. The host is not asked:
/// gateways and local servers speak other providers' dialects under their own names. A body that
/// is read anyway can be asked with [`Dialect::confirms`].
pub fn recognise(method: &Method, path: &str) -> Option<&'static dyn Dialect> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    ALL.iter()
        .copied()
        .find(|dialect| dialect.recognises(method, path))
}

/// The dialect with this name, as profiles and the config write it (`openai-chat`).
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chat_completion_is_known_by_method_and_end_of_path() {
        for (method, path, expected) in [
            (Method::POST, "/v1/chat/completions", Some("openai-chat")),
            (Method::POST, "/v1/chat/completions/", Some("openai-chat")),
            (
                Method::POST,
                "/gateway/x/chat/completions?api-version=1",
                Some("openai-chat"),
            ),
            (Method::GET, "/v1/chat/completions", None),
            (Method::POST, "/v1/chat/completions/chatcmpl-1", None),
            (Method::POST, "/v1/mychat/completions", None),
            (Method::POST, "/v1/x?next=/chat/completions", None),
            (Method::POST, "", None),
        ] {
            let found = recognise(&method, path).map(Dialect::name);
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn every_dialect_is_found_by_its_own_name() {
        for dialect in ALL {
            assert_eq!(
                by_name(dialect.name()).map(Dialect::name),
                Some(dialect.name())
            );
        }
        assert!(by_name("openai").is_none());
    }
}
