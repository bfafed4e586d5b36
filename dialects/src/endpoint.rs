//! Recognises requests to an endpoint beside path-based recognition: the dialect of a configured endpoint, and
//! the paths that take a conversation.

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method};

use crate::answer::media_type;
use crate::dialect::Dialect;
use crate::json::{Document, JsonKind};
use crate::registry::{confirm, recognise};
use crate::target::Target;

/// Last path segments of operations that are not model calls in any dialect.
const OPERATIONS: &[&str] = &[
    "batches",
    "compact",
    "containers",
    "conversations",
    "count-tokens",
    "count_tokens",
    "detokenize",
    "embed",
    "embeddings",
    "files",
    "input_tokens",
    "jobs",
    "models",
    "moderations",
    "rerank",
    "tokenize",
    "uploads",
    "vector_stores",
];

/// Collections that are not model calls, whatever follows them in the path.
const COLLECTIONS: &[&str] = &[
    "audio",
    "batches",
    "containers",
    "files",
    "fine_tuning",
    "images",
    "uploads",
    "vector_stores",
    "videos",
];

/// Methods of Google's APIs, written after a colon, that are not model calls.
const METHODS: &[&str] = &[
    "asyncBatchEmbedContent",
    "batchEmbedContents",
    "batchGenerateContent",
    "computeTokens",
    "countTokens",
    "embedContent",
    "predict",
    "predictLongRunning",
];

/// Ends of paths that accept a conversation but do not answer it. They count, compress or queue it, or continue it
/// in an unsupported form.
const HISTORY: &[&str] = &[
    "/messages/count_tokens",
    "/messages/batches",
    "/responses/input_tokens",
    "/responses/compact",
    "/count-tokens",
    "/count-tokens:rawPredict",
    "/completions",
    "/v1/chat",
    "/v2/chat",
    ":countTokens",
    ":batchGenerateContent",
    ":asyncBatchGenerateContent",
];

/// Paths of conversations that a provider stores: requests add messages to them. `*` is a segment, or the start of
/// one.
const KEPT: &[&str] = &[
    "/v1/conversations",
    "/v1/conversations/*",
    "/v1/conversations/*/items",
    "/v1/conversations/*/restart",
    "/v1/threads",
    "/v1/threads/runs",
    "/v1/threads/*/messages",
    "/v1/threads/*/runs",
    "/v1/threads/*/runs/*/submit_tool_outputs",
    "/openai/threads",
    "/openai/threads/runs",
    "/openai/threads/*/messages",
    "/openai/threads/*/runs",
    "/openai/threads/*/runs/*/submit_tool_outputs",
    "/v1beta/interactions",
    // Other providers' models at Google, in their own formats.
    "/publishers/*/models/*:rawPredict",
    "/publishers/*/models/*:streamRawPredict",
];

/// The dialect of a request to an endpoint that the user configured as `named`, as far as its head shows. `None`:
/// it is not a model call.
///
/// A path that only one other dialect uses selects that dialect, because a gateway may support several. Requests
/// that list, store, embed or count are not calls, and neither are requests without a body or with a form.
pub fn at(
    named: &'static dyn Dialect,
    method: &Method,
    target: Target<'_>,
    headers: &HeaderMap,
) -> Option<&'static dyn Dialect> {
    match recognise(method, target) {
        Some(other) if is_sure(other) && other.name() != named.name() => Some(other),
        Some(_) => Some(named),
        None => may_be_call(method, target, headers).then_some(named),
    }
}

/// The dialect of a request to such an endpoint, after its body was read and [`at`] returned one.
pub fn confirm_at(
    named: &'static dyn Dialect,
    method: &Method,
    target: Target<'_>,
    body: &[u8],
) -> Option<&'static dyn Dialect> {
    let other = confirm(method, target, body).filter(|other| is_sure(*other));
    if let Some(other) = other.filter(|other| other.name() != named.name()) {
        return Some(other);
    }
    let document = Document::parse_prefix(body)?;
    let root = document.root();
    // The body may lack what distinguishes its dialect from others, because the user has configured the dialect.
    let says = |key, kind| root.get(key).is_some_and(|value| value.kind() == kind);
    let talks = says("messages", JsonKind::Array) || says("prompt", JsonKind::String);
    (talks || named.confirms(root)).then_some(named)
}

/// Whether a request's body is a conversation with a model, although it is not a call in any dialect. Such a body
/// repeats outputs of tools.
pub fn takes_history(method: &Method, target: Target<'_>) -> bool {
    let path = target.path();
    let is_kept = || KEPT.iter().any(|end| ends_like(path, end));
    method == Method::POST && (HISTORY.iter().any(|end| path.ends_with(end)) || is_kept())
}

/// Whether the last segments of a path match this pattern.
fn ends_like(path: &str, end: &str) -> bool {
    let mut pieces = path.rsplit('/');
    let mut wanted = end.trim_start_matches('/').rsplit('/');
    wanted.all(|wanted| {
        let piece = pieces.next().unwrap_or_default();
        match wanted.strip_prefix('*') {
            Some(rest) => piece.len() > rest.len() && piece.ends_with(rest),
            None => piece == wanted,
        }
    })
}

/// Whether a dialect's paths are unique. Ollama's are too generic.
fn is_sure(dialect: &dyn Dialect) -> bool {
    dialect.name() != "ollama"
}

/// Whether a request may be a model call, judging by its head. False for requests that list, store, embed or count,
/// and for requests without a body or with a form.
fn may_be_call(method: &Method, target: Target<'_>, headers: &HeaderMap) -> bool {
    let nothing_in_it = headers
        .get(CONTENT_LENGTH)
        .is_some_and(|length| length == "0");
    let is_form = media_type(headers).is_some_and(|kind| kind.starts_with("multipart/"));
    let mut pieces = target.path().rsplit('/');
    let last = pieces.next().unwrap_or_default();
    let of_google = last
        .rsplit_once(':')
        .is_some_and(|(_, called)| METHODS.contains(&called));
    method == Method::POST
        && !nothing_in_it
        && !is_form
        && !of_google
        && !OPERATIONS.contains(&last)
        && !pieces.any(|piece| COLLECTIONS.contains(&piece))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    fn named(name: &str) -> &'static dyn Dialect {
        crate::registry::of_endpoint(name).expect("a dialect")
    }

    fn json() -> HeaderMap {
        HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
    }

    #[test]
    fn a_named_endpoint_speaks_its_dialect_where_a_request_may_be_a_call() {
        let chat = named("openai-chat/mistral");
        for (method, path, expected) in [
            ("POST", "/custom/chat", Some("openai-chat")),
            ("POST", "/custom", Some("openai-chat")),
            ("POST", "/custom/agents", Some("openai-chat")),
            (
                "POST",
                "/custom/v1/chat/completions?x=1",
                Some("openai-chat"),
            ),
            ("POST", "/custom/models/llama/run", Some("openai-chat")),
            ("POST", "/custom/api/chat", Some("openai-chat")),
            ("POST", "/custom/v1/messages", Some("anthropic")),
            ("POST", "/custom/v1/responses", Some("openai-responses")),
            ("POST", "/v1beta/models/g:generateContent", Some("gemini")),
            ("POST", "/model/m/converse", Some("bedrock")),
            ("GET", "/custom/v1/chat/completions", None),
            ("GET", "/custom/v1/models", None),
            ("POST", "/custom/v1/models", None),
            ("POST", "/custom/v1/files", None),
            ("DELETE", "/custom/v1/files/f1", None),
            ("POST", "/custom/v1/uploads/u1/complete", None),
            ("POST", "/custom/v1/embeddings", None),
            ("POST", "/custom/v1/images/generations", None),
            ("POST", "/custom/v1/messages/count_tokens", None),
            ("POST", "/custom/v1beta/models/g:embedContent", None),
        ] {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let found = at(chat, &method, Target::new(path), &json());
            assert_eq!(found.map(Dialect::name), expected, "{method} {path}");
        }
    }

    #[test]
    fn what_has_no_body_or_is_a_form_is_no_call() {
        let chat = named("openai-chat");
        let target = Target::new("/custom/chat");
        for (field, value, expected) in [
            (CONTENT_LENGTH, "0", false),
            (CONTENT_LENGTH, "7", true),
            (CONTENT_TYPE, "multipart/form-data; boundary=x", false),
            (CONTENT_TYPE, "application/json", true),
        ] {
            let headers = HeaderMap::from_iter([(field, HeaderValue::from_static(value))]);
            let found = at(chat, &Method::POST, target, &headers);
            assert_eq!(found.is_some(), expected, "{value}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn the_body_tells_what_a_named_endpoint_is_asked() {
        for (name, path, body, expected) in [
            ("openai-chat", "/custom", r#"{"messages":[]}"#, Some("openai-chat")),
            ("anthropic", "/custom", r#"{"messages":[]}"#, Some("anthropic")),
            ("openai-chat", "/custom", r#"{"prompt":"Hi"}"#, Some("openai-chat")),
            ("openai-responses", "/custom", r#"{"input":"Hi"}"#, Some("openai-responses")),
            ("openai-chat", "/custom/v1/messages", r#"{"messages":[],"max_tokens":1}"#, Some("anthropic")),
            // The path belongs to another dialect, the body does not.
            ("openai-chat", "/custom/v1/messages", r#"{"messages":[]}"#, Some("openai-chat")),
            ("openai-chat", "/api/chat", r#"{"model":"m","messages":[]}"#, Some("openai-chat")),
            ("openai-chat", "/custom/agents", r#"{"name":"a","instructions":"Be kind."}"#, None),
            ("openai-chat", "/custom", "no JSON", None),
        ] {
            let found = confirm_at(
                named(name),
                &Method::POST,
                Target::new(path),
                body.as_bytes(),
            );
            assert_eq!(found.map(Dialect::name), expected, "{name} {path} {body}");
        }
    }

    #[test]
    fn conversations_are_sent_to_counters_and_queues_too() {
        for (path, expected) in [
            ("/v1/messages/count_tokens?beta=true", true),
            ("/v1/messages/batches", true),
            ("/v1/responses/input_tokens", true),
            ("/v1/responses/compact/", true),
            ("/v1beta/models/g:countTokens", true),
            ("/v1beta/models/g:batchGenerateContent", true),
            ("/model/m/count-tokens", true),
            ("/v1/completions", true),
            ("/v1/chat", true),
            ("/v2/chat", true),
            ("/v1/conversations", true),
            ("/v1/conversations/c1/items", true),
            ("/v1/threads/t1/runs/r1/submit_tool_outputs", true),
            ("/openai/threads/t1/messages?api-version=1", true),
            ("/v1beta/interactions", true),
            (
                "/v1/projects/p/locations/l/publishers/anthropic/models/m:rawPredict",
                true,
            ),
            ("/conversations", false),
            ("/v1/conversations/c1/reply", false),
            ("/v1/threads//messages", false),
            ("/v1/projects/p/locations/l/endpoints/7:rawPredict", false),
            ("/v1/messages/batches/b1/cancel", false),
            ("/v1/files", false),
            ("/v1/embeddings", false),
            ("/v1beta/models/g:embedContent", false),
            ("/count_tokens", false),
        ] {
            let found = takes_history(&Method::POST, Target::new(path));
            assert_eq!(found, expected, "{path}");
        }
        let target = Target::new("/v1/messages/batches");
        assert!(!takes_history(&Method::GET, target));
    }
}
