//! The list of dialects, and the recognition of a request's dialect.

use http::Method;

use crate::anthropic::Anthropic;
use crate::bedrock::Bedrock;
use crate::dialect::Dialect;
use crate::gemini::Gemini;
use crate::gemini_live::GeminiLive;
use crate::json::{Document, JsonKind};
use crate::model::{ModelRequest, Role};
use crate::ollama::Ollama;
use crate::openai_chat;
use crate::openai_realtime::OpenAiRealtime;
use crate::openai_responses::OpenAiResponses;
use crate::target::Target;

/// Every dialect, in the order in which [`recognise`] tries them.
pub static ALL: &[&dyn Dialect] = &[
    &openai_chat::PLAIN,
    &OpenAiResponses,
    &OpenAiRealtime,
    &Anthropic,
    &Bedrock,
    &Gemini,
    &GeminiLive,
    &Ollama,
];

/// The dialect of a request with this method and target, judging by its head only.
///
/// The host is ignored, because gateways and local servers support other providers' dialects under their own names.
/// If several dialects share a path, this returns the first one; [`confirm`] checks the body.
pub fn recognise(method: &Method, target: Target<'_>) -> Option<&'static dyn Dialect> {
    let mut all = ALL.iter().copied().filter(|_| method == Method::POST);
    all.find(|dialect| dialect.recognises(target))
}

/// The dialect of a request, judging by its body or the start of it.
pub fn confirm(method: &Method, target: Target<'_>, body: &[u8]) -> Option<&'static dyn Dialect> {
    let document = Document::parse_prefix(body)?;
    let mut all = ALL.iter().copied().filter(|_| method == Method::POST);
    all.find(|dialect| dialect.recognises(target) && dialect.confirms(document.root()))
}

/// Parses a request in `dialect`. `None`: its body is not a JSON object.
///
/// The body may be truncated: missing parts count as absent.
pub fn read_request(
    dialect: &dyn Dialect,
    target: Target<'_>,
    body: &[u8],
) -> Option<ModelRequest> {
    let document = Document::parse_prefix(body)?;
    let root = document.root();
    (root.kind() == JsonKind::Object).then(|| dialect.request(target, root))
}

/// The last text of the user in a request's conversation.
pub fn user_input(dialect: &dyn Dialect, body: &[u8]) -> Option<String> {
    let document = Document::parse(body).ok()?;
    let messages = dialect.conversation(&document).messages;
    let mut of_user = messages.iter().rev().filter(|it| it.role == Role::User);
    let said = of_user.find_map(|message| message.texts.last())?;
    let text = said.text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The dialect with this name in profiles and the config (`openai-chat`).
pub fn by_name(name: &str) -> Option<&'static dyn Dialect> {
    ALL.iter().copied().find(|dialect| dialect.name() == name)
}

/// The dialects of endpoints in the config: [`ALL`], and providers' variations (`openai-chat/groq`).
fn endpoints() -> impl Iterator<Item = &'static dyn Dialect> {
    ALL.iter().chain(&openai_chat::VARIATIONS).copied()
}

/// The dialect of an endpoint in the config.
pub fn of_endpoint(name: &str) -> Option<&'static dyn Dialect> {
    endpoints().find(|dialect| dialect.provider().endpoint == name)
}

/// Every name that [`of_endpoint`] accepts.
pub fn endpoint_names() -> Vec<&'static str> {
    endpoints()
        .map(|dialect| dialect.provider().endpoint)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn a_call_is_recognised_by_its_path() {
        for (path, expected) in [
            ("/v1/chat/completions", "openai-chat"),
            ("/v1/chat/completions/", "openai-chat"),
            ("/gateway/x/chat/completions?api-version=1", "openai-chat"),
            ("/v1/chat/completions/chatcmpl-1", ""),
            ("/v1/mychat/completions", ""),
            ("/v1/x?next=/chat/completions", ""),
            ("/v1/responses", "openai-responses"),
            ("/openai/v1/responses?api-version=preview", "openai-responses"),
            ("/v1/realtime?model=gpt-realtime", "openai-realtime"),
            ("/openai/realtime?deployment=d", "openai-realtime"),
            ("/v1/realtime/client_secrets", ""),
            ("/v1/responses/resp_1/cancel", ""),
            ("/v1/myresponses", ""),
            ("/v1/messages?beta=true", "anthropic"),
            ("/anthropic/v1/messages/", "anthropic"),
            ("/v1/messages/count_tokens", ""),
            ("/v1/threads/thread_1/messages", ""),
            ("/messages", ""),
            ("/gateway/aws/model/x/converse-stream", "bedrock"),
            ("/model/x%3A0/invoke", "bedrock"),
            ("/model/x/invoke-with-response-stream?a=b", "bedrock"),
            ("/model/arn:aws:bedrock:eu-west-1:1:inference-profile/x/converse", "bedrock"),
            ("/model//converse", ""),
            ("/model/converse", ""),
            ("/models/x/invoke", ""),
            ("/model/x/count-tokens", ""),
            ("/v1/projects/p/locations/l/publishers/google/models/m:generateContent", "gemini"),
            ("/gateway/v1/models/m:streamGenerateContent?key=1", "gemini"),
            ("/v1beta/tunedModels/mine:generateContent", "gemini"),
            ("/v1beta/models/m:countTokens", ""),
            ("/v1beta/models/:generateContent", ""),
            ("/v1internal:generateContent", ""),
            ("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?key=1", "gemini-live"),
            ("/ws/google.ai.generativelanguage.v1alpha.GenerativeService.BidiGenerateContentConstrained", "gemini-live"),
            ("/ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent", "gemini-live"),
            ("/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateMusic", ""),
            ("/v1/chat?to=/models/m:generateContent", ""),
            ("/ollama/api/chat/", "ollama"),
            ("/api/generate", "ollama"),
            ("/api/embed", ""),
            ("/myapi/chat", ""),
            ("", ""),
        ] {
            let found = recognise(&Method::POST, Target::new(path)).map(Dialect::name);
            assert_eq!(found.unwrap_or_default(), expected, "{path}");
            assert!(recognise(&Method::GET, Target::new(path)).is_none());
        }
    }

    #[test]
    fn a_call_is_confirmed_by_its_body() {
        for (path, body, expected) in [
            ("/chat/completions", r#"{"messages":[]}"#, true),
            ("/chat/completions", r#"{"messages":{}}"#, false),
            ("/chat/completions", "<html>", false),
            ("/responses", r#"{"prompt":{"id":"pmpt_1"}}"#, true),
            ("/responses", r#"{"previous_response_id":"resp_1"}"#, true),
            ("/responses", r#"{"model":"m"}"#, false),
            ("/responses", r#"{"input":"x","messages":[]}"#, false),
            ("/v1/realtime", r#"{"type":"response.create"}"#, true),
            ("/v1/realtime", r#"{"input":"x"}"#, false),
            ("/v1/messages", r#"{"max_tokens":1,"messages":[]}"#, true),
            // A chat completion.
            ("/v1/messages", r#"{"model":"m","messages":[]}"#, false),
            ("/v1/messages", r#"{"max_tokens":"1","messages":[]}"#, false),
            ("/model/m/invoke", r#"{"inputText":"hi"}"#, true),
            ("/model/m/invoke", "[]", false),
            ("/models/m:generateContent", r#"{"contents":{}}"#, true),
            ("/models/m:generateContent", r#"{"contents":"hi"}"#, false),
            ("/ws/x/BidiGenerateContent", r#"{"toolResponse":{}}"#, true),
            ("/ws/x/BidiGenerateContent", r#"{"setup":{}}"#, false),
            ("/api/chat", r#"{"model":"m","messages":[]}"#, true),
            ("/api/generate", r#"{"model":"m","prompt":"hi"}"#, true),
            // Other APIs have a `/api/chat`, too.
            ("/api/chat", r#"{"messages":[{"role":"user"}]}"#, false),
            (
                "/api/chat",
                r#"{"model":"m","messages":[{"role":"user","parts":[]}]}"#,
                false,
            ),
            // This request only loads a model.
            ("/api/generate", r#"{"model":"m"}"#, false),
        ] {
            let found = confirm(&Method::POST, Target::new(path), body.as_bytes());
            assert_eq!(found.is_some(), expected, "{path} {body}");
        }
    }

    #[test]
    #[rustfmt::skip]
    fn a_request_that_says_little_has_the_defaults_of_the_api() {
        let bedrock = "/model/a.b-v1%3A0/converse";
        for (dialect, path, body, model, stream) in [
            ("openai-chat", "", r#"{"model":3,"stream":"yes","n":0}"#, None, false),
            ("ollama", "", r#"{"stream":null}"#, None, true),
            ("ollama", "", r#"{"stream":false}"#, None, false),
            ("bedrock", bedrock, "{}", Some("a.b-v1:0"), false),
            ("bedrock", "/model/100%/converse-stream", "{}", Some("100%"), true),
            ("bedrock", "/model/%FF/converse", "{}", Some("%FF"), false),
            ("gemini", "/models/m:generateContent", "{}", Some("m"), false),
            ("gemini-live", "", "{}", None, true),
            ("gemini-live", "", r#"{"setup":{"model":"models/m"}}"#, Some("m"), true),
            ("openai-realtime", "/v1/realtime?model=m", "{}", Some("m"), true),
            ("openai-realtime", "/openai/realtime?deployment=d", "{}", Some("d"), true),
        ] {
            let dialect = by_name(dialect).expect("a dialect");
            let request = read_request(dialect, Target::new(path), body.as_bytes());
            let request = request.expect("an object");
            let found = (request.model.as_deref(), request.stream, request.choices);
            assert_eq!(found, (model, stream, 1), "{path} {body}");
            assert_eq!(read_request(dialect, Target::new(path), b"[]"), None);
        }
    }

    #[test]
    fn an_endpoint_may_be_a_variation_which_is_no_dialect_of_its_own() {
        for name in endpoint_names() {
            let dialect = of_endpoint(name).map(Dialect::name);
            assert_eq!(dialect, name.split('/').next());
            let dialect = by_name(name).map(Dialect::name);
            assert_eq!(dialect, Some(name).filter(|name| !name.contains('/')));
        }
        assert!(of_endpoint("groq").is_none());
        assert!(by_name("openai").is_none());
    }
}
