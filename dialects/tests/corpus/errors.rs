//! Providers' errors: one snapshot for each endpoint that the configuration may name.

use std::fmt::Write as _;
use std::time::Duration;

use http::HeaderMap;
use squall_dialects::json::Document;
use squall_dialects::model::{Finish, LimitFigures, LimitScope, ModelError};
use squall_dialects::stream::Framing;
use squall_dialects::{
    AnswerForm, Credential, Dialect, ErrorContext, Event, Reader, Target, WireReply,
    endpoint_names, of_endpoint,
};

fn dialect(endpoint: &str) -> &'static dyn Dialect {
    of_endpoint(endpoint).expect("an endpoint")
}

fn rate_limit(scope: LimitScope, wait: Option<Duration>) -> ModelError {
    ModelError::RateLimit {
        scope,
        retry_after: wait,
        figures: None,
    }
}

/// A limit that a rule keeps.
fn kept(scope: LimitScope, wait: Option<Duration>, requested: u64) -> ModelError {
    ModelError::RateLimit {
        scope,
        retry_after: wait,
        figures: Some(LimitFigures {
            per_minute: 600,
            used: 350,
            requested,
        }),
    }
}

fn context() -> ErrorContext<'static> {
    ErrorContext {
        draw: 42,
        account: 43,
        model: Some("vendor/model"),
        previous_response: Some("resp_1"),
        on_websocket: true,
        // 2026-11-22T04:00:00Z.
        now: Some(Duration::from_hours(498_700)),
        ..ErrorContext::default()
    }
}

fn body(reply: &WireReply) -> String {
    String::from_utf8_lossy(&reply.body).into_owned()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get(name)
        .map(|value| value.to_str().expect("ASCII"))
}

#[test]
fn errors_read_like_the_providers() {
    let wait = Some(Duration::from_millis(1500));
    let server_error = |status| ModelError::ServerError { status };
    let errors = [
        rate_limit(LimitScope::Requests, wait),
        rate_limit(LimitScope::Tokens, None),
        kept(LimitScope::Tokens, Some(Duration::from_secs(5)), 300),
        kept(LimitScope::Requests, None, 601),
        ModelError::QuotaExhausted,
        ModelError::ContextLength,
        ModelError::ContentFilter,
        ModelError::Auth,
        ModelError::ModelNotFound,
        ModelError::PreviousResponse,
        ModelError::ConnectionLimit,
        ModelError::Timeout,
        ModelError::Overloaded,
        server_error(500),
        server_error(502),
        server_error(503),
        server_error(504),
        server_error(529),
    ];
    let last = br#"{"id":"gen-1","provider":"Nebius","model":"meta/llama","object":"chat.completion.chunk","created":7,"sequence_number":4,"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#;
    let last = Document::parse(last).expect("JSON");
    for endpoint in endpoint_names() {
        let dialect = dialect(endpoint);
        let mut told = String::new();
        let has = |error: &&ModelError| context().rules_out(error, dialect).is_none();
        for error in errors.iter().filter(has) {
            let reply = dialect.error(error, &context());
            writeln!(told, "{error:?}\n{}", reply.status).expect("text");
            for (name, value) in &reply.headers {
                let value = value.to_str().expect("ASCII");
                writeln!(told, "{name}: {value}").expect("text");
            }
            writeln!(told, "\n{}", body(&reply)).expect("text");
            let after = Event::unnamed(&last);
            if let Some(made) = dialect.error_event(error, &context(), Some(after)) {
                let data = String::from_utf8_lossy(&made.data);
                let name = made.name.as_deref();
                writeln!(told, "in a stream: {name:?} {data}").expect("text");
                let document = Document::parse(&made.data).expect("JSON");
                let document = &document;
                let reading = dialect.read(Event { name, document });
                assert!(reading.error.is_some(), "{endpoint}: {data}");
            }
            told.push('\n');
        }
        insta::assert_snapshot!(endpoint.replace('/', "_"), told);
    }
}

#[test]
#[rustfmt::skip]
fn a_wait_is_announced_in_every_form_or_in_none() {
    for (wait, seconds, millis, go) in [
        (Some(Duration::ZERO), Some("0"), Some("0"), "0s"),
        (Some(Duration::from_millis(12)), Some("1"), Some("12"), "12ms"),
        (Some(Duration::from_secs(1)), Some("1"), Some("1000"), "1s"),
        (Some(Duration::from_micros(1_499_500)), Some("2"), Some("1500"), "1.5s"),
        (Some(Duration::from_mins(6)), Some("360"), Some("360000"), "6m0s"),
        (Some(Duration::from_millis(86_400_020)), Some("86401"), Some("86400020"), "24h0m0.02s"),
        (None, None, None, "1s"),
    ] {
        let reply =
            dialect("openai-chat").error(&rate_limit(LimitScope::Requests, wait), &context());
        assert_eq!(header(&reply.headers, "retry-after"), seconds);
        assert_eq!(header(&reply.headers, "retry-after-ms"), millis);
        let reset = header(&reply.headers, "x-ratelimit-reset-requests");
        assert_eq!(reset, Some(go));
        assert!(body(&reply).contains(&format!("in {go}.")));
    }
    // Gemini announces it in the body alone.
    for (wait, message, delay) in [
        (Some(Duration::ZERO), Some("in 0s."), Some("\"0s\"")),
        (Some(Duration::from_micros(12_500)), Some("in 12.5ms."), Some("\"0.012500s\"")),
        (Some(Duration::from_millis(1500)), Some("in 1.5s."), Some("\"1.500s\"")),
        (
            Some(Duration::new(68_685, 166_477_036)),
            Some("in 19h4m45.166477036s."),
            Some("\"68685.166477036s\""),
        ),
        (None, None, None),
    ] {
        let reply = dialect("gemini").error(&rate_limit(LimitScope::Requests, wait), &context());
        let body = body(&reply);
        assert_eq!(body.contains("Please retry in"), message.is_some());
        assert_eq!(body.contains("RetryInfo"), delay.is_some());
        for words in [message, delay].into_iter().flatten() {
            assert!(body.contains(words), "{words}: {body}");
        }
    }
    // Anthropic dates its end, if the time is known.
    let reset = "anthropic-ratelimit-requests-reset";
    for (wait, date) in [
        (Some(Duration::from_millis(12)), "2026-11-22T04:00:00Z"),
        (Some(Duration::from_hours(40 * 24)), "2027-01-01T04:00:00Z"),
        (None, "2026-11-22T04:00:01Z"),
    ] {
        let limit = rate_limit(LimitScope::Requests, wait);
        let reply = dialect("anthropic").error(&limit, &context());
        assert_eq!(header(&reply.headers, reset), Some(date));
        let undated = dialect("anthropic").error(&limit, &ErrorContext::default());
        assert_eq!(header(&undated.headers, reset), None);
    }
}

#[test]
#[rustfmt::skip]
fn an_error_depends_on_where_the_request_goes() {
    for (endpoint, path, host, model, error, words) in [
        ("openai-chat", "/v1/chat/completions", "", "gpt-5", ModelError::Auth, "platform.openai.com"),
        (
            "openai-chat",
            "/openai/deployments/x/chat/completions?api-version=2024-10-21",
            "",
            "x",
            ModelError::Overloaded,
            "temporarily unable",
        ),
        ("openai-chat", "/v1/chat/completions?api-version=1", "", "x", ModelError::Auth, "Access denied"),
        // Azure's newer path is Groq's: the model tells.
        ("openai-chat", "/openai/v1/chat/completions", "", "gpt-5-mini", ModelError::Auth, "Access denied"),
        (
            "openai-chat",
            "/openai/v1/chat/completions",
            "",
            "openai/gpt-oss-20b",
            ModelError::Auth,
            "Invalid API Key",
        ),
        (
            "openai-chat",
            "/api/v1/chat/completions",
            "",
            "openai/gpt-5-mini",
            ModelError::QuotaExhausted,
            "Insufficient credits",
        ),
        ("openai-chat", "/api/v1/chat/completions", "", "local", ModelError::Auth, "platform.openai.com"),
        (
            "openai-chat",
            "/v1/chat/completions",
            "api.mistral.ai",
            "m",
            ModelError::Overloaded,
            "service_tier_capacity_exceeded",
        ),
        (
            "openai-chat",
            "/v1/chat/completions",
            "notmistral.ai",
            "m",
            ModelError::Auth,
            "platform.openai.com",
        ),
        (
            "openai-chat",
            "/gateway/v1/chat/completions",
            "api.mistral.ai",
            "m",
            ModelError::Auth,
            "platform.openai.com",
        ),
        // The configuration counts more than the path.
        ("openai-chat/azure", "/v1/chat/completions", "", "m", ModelError::Auth, "Access denied"),
        (
            "gemini",
            "/gateway/v1/models/nope:streamGenerateContent",
            "",
            "nope",
            ModelError::ModelNotFound,
            "models/nope is not found for API version v1, or is not supported for streamGenerateContent.",
        ),
    ] {
        let context = ErrorContext {
            target: Target::new(path).at(host),
            model: Some(model),
            ..ErrorContext::default()
        };
        let body = body(&dialect(endpoint).error(&error, &context));
        assert!(body.contains(words), "{path} {model}: {body}");
    }
}

#[test]
fn geminis_error_is_laid_out_as_the_answer_would_have_been() {
    let at = |path, error: &ModelError| {
        let target = Target::new(path);
        dialect("gemini").error(
            error,
            &ErrorContext {
                target,
                ..context()
            },
        )
    };
    let (sse, list) = (
        "/models/m:streamGenerateContent?alt=sse",
        "/models/m:streamGenerateContent",
    );
    let plain = body(&at("/models/m:generateContent", &ModelError::Overloaded));
    assert_eq!(body(&at(sse, &ModelError::Overloaded)), plain);
    let listed = body(&at(list, &ModelError::Overloaded));
    assert_eq!(listed, format!("[{}\n]", plain.trim_end()));
    // A blocked prompt is an answer.
    for (path, framing) in [(sse, Framing::Sse), (list, Framing::Array)] {
        let reply = at(path, &ModelError::ContentFilter);
        let form = dialect("gemini").form(Target::new(path), &reply.headers);
        assert_eq!(form, Some(AnswerForm::Stream(framing)));
        let mut reader = Reader::new(dialect("gemini"), Target::default(), None);
        reader.head(form);
        reader.push(&reply.body);
        assert_eq!(reader.finish().finish, Some(Finish::Refused), "{path}");
    }
}

#[test]
fn bedrocks_error_in_a_stream_depends_on_the_operation() {
    for (operation, name) in [
        ("converse-stream", "modelStreamErrorException"),
        ("invoke-with-response-stream", "modelTimeoutException"),
    ] {
        let path = format!("/model/m/{operation}");
        let target = Target::new(&path);
        let context = ErrorContext {
            target,
            ..context()
        };
        let made = dialect("bedrock").error_event(&ModelError::Timeout, &context, None);
        let made = made.expect("an event");
        assert_eq!((made.name.as_deref(), made.exception), (Some(name), true));
    }
}

#[test]
#[rustfmt::skip]
fn a_credential_is_shown_masked_and_by_its_sort() {
    for (endpoint, credential, words) in [
        (
            "openai-chat",
            Some(Credential::Bearer("sk-proj-0123456789abcdef")),
            "provided: sk-proj-************cdef. You can",
        ),
        ("openai-chat", Some(Credential::Bearer("sk-12345")), "provided: ********. You can"),
        ("anthropic", Some(Credential::Bearer("sk-ant-oat01-x")), "Invalid bearer token"),
        ("anthropic", Some(Credential::Key("sk-ant-api03-x")), "invalid x-api-key"),
        ("anthropic", None, "invalid x-api-key"),
    ] {
        let context = ErrorContext {
            credential,
            ..ErrorContext::default()
        };
        let body = body(&dialect(endpoint).error(&ModelError::Auth, &context));
        assert!(body.contains(words), "{body}");
    }
}

#[test]
fn ids_differ_from_draw_to_draw_and_an_account_keeps_its_names() {
    let limit = rate_limit(LimitScope::Requests, None);
    let [one, again, other] = [1, 1, 2].map(|draw| {
        let context = ErrorContext { draw, ..context() };
        dialect("openai-chat").error(&limit, &context).headers
    });
    assert_eq!(one, again);
    assert_ne!(one["x-request-id"], other["x-request-id"]);
    assert_eq!(one["openai-organization"], other["openai-organization"]);
}
