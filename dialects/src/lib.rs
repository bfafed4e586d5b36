//! Providers' wire formats and one neutral model call, both ways. No sockets, no clock, no dice.
//!
//! ```text
//! request body ───┐                              ┌─▶ faults (profiles), written once, on the neutral view
//! answer, JSON ───┼─▶ json::Document ─▶ Dialect ─┤
//! answer, stream ─┘   stream::Splitter (one file) └─▶ Reader: what the journal says about a model call
//! ```
//!
//! A [`Dialect`] says where in a provider's JSON the neutral things stand ([`model`]); whoever
//! changes an answer changes those places in the bytes as they came ([`json::Edits`]), so that
//! what is not meant stays as it was. A new provider is one file and one line in [`ALL`].

mod answered;
mod anthropic;
mod bedrock;
mod called;
pub mod codec;
pub mod dialect;
mod documents;
pub mod endpoint;
mod errors;
mod figures;
mod gemini;
pub mod json;
pub mod mcp;
pub mod model;
mod ollama;
mod openai_chat;
mod openai_responses;
pub mod reader;
pub mod signature;
pub mod stream;
pub mod tally;
pub mod tokens;
mod waits;

pub use answered::Answered;
pub use called::CalledTools;
pub use dialect::{
    AnswerForm, Credential, Dialect, EndOfChoice, ErrorContext, Event, Part, Target, Transcript,
    WireReply, media_type,
};
use http::Method;
use json::{Document, Kind};
use model::ModelRequest;
pub use reader::{ModelCall, Reader, Tokens};
pub use tally::Tally;

/// Every dialect, in the order in which [`recognise`] asks them.
pub static ALL: &[&dyn Dialect] = &[
    &openai_chat::PLAIN,
    &openai_responses::OpenAiResponses,
    &anthropic::Anthropic,
    &bedrock::Bedrock,
    &gemini::Gemini,
    &ollama::Ollama,
];

/// The dialect that a request with this method and target speaks, as far as its head can tell.
///
/// The host is not asked: gateways and local servers speak other providers' dialects under their
/// own names. Where several dialects share a path it is the first; [`confirm`] asks the body.
pub fn recognise(method: &Method, target: Target<'_>) -> Option<&'static dyn Dialect> {
    let mut all = ALL.iter().copied();
    all.find(|dialect| dialect.recognises(method, target))
}

/// The dialect that a request speaks whose body, or the beginning of it, was read.
pub fn confirm(method: &Method, target: Target<'_>, body: &[u8]) -> Option<&'static dyn Dialect> {
    let document = Document::parse_prefix(body)?;
    let mut all = ALL.iter().copied();
    all.find(|dialect| dialect.recognises(method, target) && dialect.confirms(document.root()))
}

/// What a request asks for in `dialect`. `None`: its body is no JSON object.
///
/// The body may be a prefix of the real one: what was cut off counts as absent.
pub fn read_request(
    dialect: &dyn Dialect,
    target: Target<'_>,
    body: &[u8],
) -> Option<ModelRequest> {
    let document = Document::parse_prefix(body)?;
    let root = document.root();
    (root.kind() == Kind::Object).then(|| dialect.request(target, root))
}

/// The dialect with this name, as profiles and the config write it (`openai-chat`).
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}

/// The dialect of an endpoint that the config names: one of [`ALL`], or a provider's variation of
/// one (`openai-chat/groq`), which no request tells for sure.
pub fn of_endpoint(name: &str) -> Option<&'static dyn Dialect> {
    let mut variations = openai_chat::VARIATIONS.iter();
    let variation = variations.find(|(of, _)| *of == name);
    by_name(name).or_else(|| variation.map(|(_, dialect)| *dialect))
}

/// Every name that [`of_endpoint`] knows.
pub fn endpoint_names() -> Vec<&'static str> {
    let names = ALL.iter().map(|dialect| dialect.name());
    let variations = openai_chat::VARIATIONS.iter().map(|(name, _)| *name);
    names.chain(variations).collect()
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
            let found = recognise(&method, Target::new(path)).map(Dialect::name);
            assert_eq!(found, expected, "{method} {path}");
        }
    }

    #[test]
    fn an_endpoint_may_be_a_variation_which_is_no_dialect_of_its_own() {
        for name in endpoint_names() {
            let dialect = of_endpoint(name).map(Dialect::name);
            assert_eq!(dialect, name.split('/').next());
            assert_eq!(by_name(name).is_none(), name.contains('/'), "{name}");
        }
        assert!(of_endpoint("groq").is_none());
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
