//! Providers that speak this dialect with errors of their own.
//!
//! | variation | told by | error's body |
//! |---|---|---|
//! | Azure OpenAI | `…/openai/deployments/…`, or an `api-version` | `{"error": {"code": "429", "message"}}` |
//! | Groq | `…/openai/v1/chat/completions` | OpenAI's, without `param` |
//! | Mistral | `/v1/chat/completions` at a host of Mistral's: the path alone is OpenAI's | `{"object": "error", "message", "type", "code"}` |
//! | `OpenRouter` | `…/api/v1/chat/completions`, models with a `/` | `{"error": {"code": 429, "message", "metadata"}}` |
//!
//! Where a provider hands on the model's own error, it is OpenAI's. Answers need no variation: what
//! the providers add is read from all of them. Sources: the providers' error pages, their official
//! clients, and errors that users report.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::error::go_duration;
use crate::dialect::{BadCall, ErrorContext, Event, Target, WireReply};
use crate::figures::{irregular, uuid};
use crate::json::{Value, quote};
use crate::model::{LimitFigures, LimitScope, ModelError, OtherLimit};
use crate::stream::Made;
use crate::waits::{whole_millis, whole_seconds};

/// The domain whose hosts serve Mistral's API.
const MISTRAL: &str = "mistral.ai";

/// A provider that speaks this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variation {
    /// Azure OpenAI.
    Azure,
    /// Groq.
    Groq,
    /// Mistral.
    Mistral,
    /// `OpenRouter`.
    OpenRouter,
}

/// An error as one provider tells it.
struct Told {
    status: u16,
    body: String,
    headers: Vec<(&'static str, String)>,
}

impl Variation {
    /// The provider whose endpoint this is, as far as the path tells; `None` is OpenAI, or whoever
    /// does exactly as it does.
    pub(super) fn of(target: Target<'_>, model: Option<&str>) -> Option<Self> {
        let path = target.path();
        let is_mistrals = |host: &str| host == MISTRAL || host.ends_with(&format!(".{MISTRAL}"));
        if path == "/v1/chat/completions" && is_mistrals(target.host()) {
            return Some(Self::Mistral);
        }
        let deployed = path.contains("/openai/deployments/");
        if deployed || target.parameter("api-version").is_some() {
            return Some(Self::Azure);
        }
        if path.ends_with("/openai/v1/chat/completions") {
            // Azure's newer path is Groq's. Groq's models are named after whoever made them.
            let is_openais = model.is_some_and(|model| model.starts_with("gpt-"));
            return Some(if is_openais { Self::Azure } else { Self::Groq });
        }
        let routed = model.is_none_or(|model| model.contains('/'));
        (routed && path.ends_with("/api/v1/chat/completions")).then_some(Self::OpenRouter)
    }

    /// Whether messages have a `refusal` beside their `content`: Groq's and Mistral's have none, and
    /// their clients show none.
    pub(super) fn has_refusals(self) -> bool {
        match self {
            Self::Azure | Self::OpenRouter => true,
            Self::Groq | Self::Mistral => false,
        }
    }

    /// How this provider tells that a model called `tool` with `arguments` that are no JSON: Groq looks at
    /// them, the others give them as they are.
    pub(super) fn bad_call(self, tool: &str, arguments: &str, stream: bool) -> BadCall {
        match self {
            Self::Groq => BadCall::Fails {
                status: StatusCode::BAD_REQUEST,
                error: groq_bad_call(tool, arguments, stream),
                event: Some("error"),
            },
            Self::Azure | Self::Mistral | Self::OpenRouter => BadCall::Untold,
        }
    }

    /// The reply with which this provider reports `error`.
    pub(super) fn error(self, error: &ModelError, context: &ErrorContext<'_>) -> WireReply {
        let told = match self {
            Self::Azure => azure(error, context),
            Self::Groq => groq(error, context),
            Self::Mistral => mistral(error, context),
            Self::OpenRouter => openrouter(error, context),
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in told.headers {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        WireReply {
            status: StatusCode::from_u16(told.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            headers,
            body: Bytes::from(told.body),
        }
    }

    /// The event with which this provider reports `error` in a stream; `None`: as OpenAI does.
    pub(super) fn error_event(
        self,
        error: &ModelError,
        context: &ErrorContext<'_>,
        after: Option<Event<'_>>,
    ) -> Option<Made> {
        match self {
            Self::Azure => match error {
                // The model's own errors are OpenAI's.
                ModelError::ContextLength | ModelError::Timeout => None,
                ModelError::RateLimit { .. }
                | ModelError::QuotaExhausted
                | ModelError::ContentFilter
                | ModelError::Auth
                | ModelError::ModelNotFound
                | ModelError::ServerError { .. }
                | ModelError::Overloaded => Some(Made::data(azure(error, context).body)),
            },
            Self::Groq => Some(Made::event("error", groq(error, context).body.trim_end())),
            Self::Mistral => Some(Made::data(mistral(error, context).body)),
            Self::OpenRouter => Some(Made::data(openrouter_chunk(error, after))),
        }
    }
}

/// The wait of a rate limit, as a header of whole seconds.
fn retry_after(error: &ModelError) -> Option<(&'static str, String)> {
    match error {
        ModelError::RateLimit {
            retry_after: Some(wait),
            ..
        } => Some(("retry-after", whole_seconds(*wait).to_string())),
        _ => None,
    }
}

/// Azure's own errors come from the gateway, whose codes are statuses in quotes.
fn azure(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    let gateway = |status: u16, code: &str, message: &str| {
        let (code, message) = (quote(code), quote(message));
        (
            status,
            format!("{{\"error\":{{\"code\":{code},\"message\":{message}}}}}"),
        )
    };
    let (status, body) = match error {
        ModelError::RateLimit {
            scope, retry_after, ..
        } => {
            let counted = match scope {
                LimitScope::Requests => "call",
                LimitScope::Tokens => "token",
            };
            let version = context.target.parameter("api-version");
            let message = format!(
                "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version \
                 {} have exceeded {counted} rate limit of your current OpenAI S0 pricing tier. \
                 Please retry after {} seconds. Please go here: https://aka.ms/oai/quotaincrease \
                 if you would like to further increase the default rate limit.",
                version.unwrap_or("2024-10-21"),
                whole_seconds(retry_after.unwrap_or(Duration::from_secs(1))),
            );
            gateway(429, "429", &message)
        }
        ModelError::Auth => gateway(
            401,
            "401",
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to \
             provide a valid key for an active subscription and use a correct regional API \
             endpoint for your resource.",
        ),
        ModelError::ModelNotFound => gateway(
            404,
            "DeploymentNotFound",
            "The API deployment for this resource does not exist. If you created the deployment \
             within the last 5 minutes, please wait a moment and try again.",
        ),
        ModelError::ContentFilter => (400, AZURE_FILTERED.to_owned()),
        ModelError::QuotaExhausted => {
            let error = ModelError::RateLimit {
                scope: LimitScope::Tokens,
                retry_after: Some(AZURE_QUOTA),
                figures: None,
            };
            return azure(&error, context);
        }
        ModelError::ServerError { status } => (*status, azure_failure(context)),
        ModelError::Overloaded => gateway(
            503,
            "InternalServerError",
            "The service is temporarily unable to process your request. Please try again later.",
        ),
        ModelError::ContextLength | ModelError::Timeout => {
            let openais = super::error::reply(error, context, super::Endpoint::Chat);
            let body = String::from_utf8_lossy(&openais.body).into_owned();
            (openais.status.as_u16(), body)
        }
    };
    let mut headers = vec![
        ("apim-request-id", uuid(context.draw, 0)),
        ("x-ms-region", "East US".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
    ];
    headers.extend(retry_after(error));
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    {
        let [requests, tokens] = azure_left(*scope, *figures, context.draw);
        headers.push(("x-ratelimit-remaining-requests", requests.to_string()));
        headers.push(("x-ratelimit-remaining-tokens", tokens.to_string()));
        let millis = retry_after.map(|wait| whole_millis(wait).to_string());
        headers.extend(millis.map(|millis| ("retry-after-ms", millis)));
    }
    Told {
        status,
        body,
        headers,
    }
}

/// Azure has no error of its own for a quota that is used up: it asks to come back a day later.
const AZURE_QUOTA: Duration = Duration::from_hours(24);

/// What a usual deployment may be asked for in a minute, in requests and in tokens.
const AZURE_LIMITS: [u64; 2] = [60, 10_000];

/// What is left of Azure's limits, in requests and in tokens.
fn azure_left(scope: LimitScope, figures: Option<LimitFigures>, draw: u64) -> [u64; 2] {
    let over = figures.map_or(0, LimitFigures::remaining);
    let beside = figures.and_then(|figures| figures.beside);
    let usual = |most: u64| most - 1 - irregular(draw, 7) % (most / 2);
    let beside = |most| beside.map_or_else(|| usual(most), OtherLimit::remaining);
    match scope {
        LimitScope::Requests => [over, beside(AZURE_LIMITS[1])],
        LimitScope::Tokens => [beside(AZURE_LIMITS[0]), over],
    }
}

/// The body with which a model that Azure runs reports that it failed.
fn azure_failure(context: &ErrorContext<'_>) -> String {
    let message = format!(
        "The server had an error while processing your request. Sorry about that! You can retry \
         your request, or contact us through an Azure support request at: \
         https://go.microsoft.com/fwlink/?linkid=2213926 if the error persists. (Please include \
         the request ID {} in your message.)",
        uuid(context.draw, 2),
    );
    format!(
        "{{\"error\":{{\"message\":{},\"type\":\"server_error\",\"param\":null,\"code\":null}}}}",
        quote(&message)
    )
}

const AZURE_FILTERED: &str = concat!(
    r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's "#,
    r#"content management policy. Please modify your prompt and retry. To learn more about our "#,
    r#"content filtering policies please read our documentation: "#,
    r#"https://go.microsoft.com/fwlink/?linkid=2198766","type":null,"param":"prompt","#,
    r#""code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","#,
    r#""content_filter_result":{"hate":{"filtered":false,"severity":"safe"},"#,
    r#""jailbreak":{"filtered":false,"detected":false},"#,
    r#""self_harm":{"filtered":false,"severity":"safe"},"#,
    r#""sexual":{"filtered":false,"severity":"safe"},"#,
    r#""violence":{"filtered":true,"severity":"medium"}}}}}"#
);

/// Groq counts requests by the day …
const GROQ_REQUESTS: u64 = 14_400;
/// … and tokens by the minute.
const GROQ_TOKENS: u64 = 6_000;
/// When some of a day's tokens are free again, as it says once they are used up.
const GROQ_QUOTA: Duration = Duration::from_mins(10);

fn groq(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    let (status, message, kind, code) = groq_words(error, context);
    let (message, kind) = (quote(&message), quote(kind));
    let code = code.map_or_else(String::new, |code| format!(",\"code\":{}", quote(code)));
    let mut headers = vec![("x-request-id", ulid("req_", context.draw, 0))];
    headers.extend(groq_limit_headers(error));
    headers.extend(retry_after(error));
    if *error == ModelError::QuotaExhausted {
        headers.push(("retry-after", whole_seconds(GROQ_QUOTA).to_string()));
    }
    Told {
        status,
        body: format!("{{\"error\":{{\"message\":{message},\"type\":{kind}{code}}}}}\n"),
        headers,
    }
}

/// What Groq says of a call that is none: a stream says the status, too.
fn groq_bad_call(tool: &str, arguments: &str, stream: bool) -> String {
    let generation = quote(&format!("<function={tool}>{arguments}</function>"));
    let status = if stream { ",\"status_code\":400" } else { "" };
    format!(
        "{{\"error\":{{\"message\":\"Failed to call a function. Please adjust your prompt. See \
         'failed_generation' for more details.\",\"type\":\"invalid_request_error\",\
         \"code\":\"tool_use_failed\",\"failed_generation\":{generation}{status}}}}}"
    )
}

fn groq_model<'a>(context: &ErrorContext<'a>) -> &'a str {
    context.model.unwrap_or("llama-3.3-70b-versatile")
}

/// Status, message, type and code.
fn groq_words(
    error: &ModelError,
    context: &ErrorContext<'_>,
) -> (u16, String, &'static str, Option<&'static str>) {
    let model = groq_model(context);
    match error {
        ModelError::RateLimit {
            scope,
            retry_after,
            figures,
        } => {
            let wait = retry_after.unwrap_or(Duration::from_secs(1));
            let (kind, counted, most) = match (scope, figures) {
                (LimitScope::Requests, None) => {
                    ("requests", "requests per day (RPD)", GROQ_REQUESTS)
                }
                (LimitScope::Requests, Some(_)) => {
                    ("requests", "requests per minute (RPM)", GROQ_REQUESTS)
                }
                (LimitScope::Tokens, _) => ("tokens", "tokens per minute (TPM)", GROQ_TOKENS),
            };
            let figures = figures.unwrap_or(used_up(most));
            let message = groq_limit(counted, figures, wait, context);
            (429, message, kind, Some("rate_limit_exceeded"))
        }
        ModelError::QuotaExhausted => (
            429,
            groq_limit(
                "tokens per day (TPD)",
                used_up(100_000),
                GROQ_QUOTA,
                context,
            ),
            "tokens",
            Some("rate_limit_exceeded"),
        ),
        ModelError::ContextLength => (
            400,
            "Please reduce the length of the messages or completion.".to_owned(),
            "invalid_request_error",
            Some("context_length_exceeded"),
        ),
        ModelError::Auth => (
            401,
            "Invalid API Key".to_owned(),
            "invalid_request_error",
            Some("invalid_api_key"),
        ),
        ModelError::ModelNotFound => (
            404,
            format!("The model `{model}` does not exist or you do not have access to it."),
            "invalid_request_error",
            Some("model_not_found"),
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            format!(
                "{model} is currently over capacity. Please try again and back off exponentially. \
                 Visit https://groqstatus.com to see if there is an active incident."
            ),
            "internal_server_error",
            None,
        ),
        ModelError::ServerError { status } => (
            *status,
            "Internal Server Error".to_owned(),
            "internal_server_error",
            None,
        ),
        // Groq names no filter and no time-out: what comes closest.
        ModelError::ContentFilter => (
            400,
            "Failed to validate the request.".to_owned(),
            "invalid_request_error",
            None,
        ),
        ModelError::Timeout => (
            504,
            "Gateway Timeout".to_owned(),
            "internal_server_error",
            None,
        ),
    }
}

/// The limit of a usual account, just used up.
fn used_up(per_minute: u64) -> LimitFigures {
    LimitFigures {
        per_minute,
        used: per_minute,
        requested: 1,
        beside: None,
    }
}

fn groq_limit(
    counted: &str,
    figures: LimitFigures,
    wait: Duration,
    context: &ErrorContext<'_>,
) -> String {
    let LimitFigures {
        per_minute,
        used,
        requested,
        ..
    } = figures;
    let (what, figures) = if figures.is_too_large() {
        let advice = "please reduce your message size and try again";
        (
            "Request too large",
            format!("Limit {per_minute}, Requested {requested}, {advice}."),
        )
    } else {
        let again = go_duration(wait);
        (
            "Rate limit reached",
            format!(
                "Limit {per_minute}, Used {used}, Requested {requested}. Please try again in {again}."
            ),
        )
    };
    format!(
        "{what} for model `{}` in organization `{}` service tier `on_demand` on {counted}: \
         {figures} Need more tokens? Upgrade to Dev Tier today at \
         https://console.groq.com/settings/billing",
        groq_model(context),
        ulid("org_", context.account, 4),
    )
}

fn groq_limit_headers(error: &ModelError) -> Vec<(&'static str, String)> {
    if let ModelError::RateLimit {
        scope,
        retry_after,
        figures,
    } = error
    {
        let reset = go_duration(retry_after.unwrap_or(Duration::from_secs(1)));
        let left = figures.map_or(0, LimitFigures::remaining);
        let most = |usual| figures.map_or(usual, |figures| figures.per_minute);
        let beside = figures.and_then(|figures| figures.beside);
        let (limits, [requests, tokens], [requests_reset, tokens_reset]) = match (scope, beside) {
            (LimitScope::Requests, Some(tokens)) => (
                [most(GROQ_REQUESTS), tokens.per_minute],
                [left, tokens.remaining()],
                [reset, go_duration(tokens.full_in())],
            ),
            (LimitScope::Tokens, Some(requests)) => (
                [requests.per_minute, most(GROQ_TOKENS)],
                [requests.remaining(), left],
                [go_duration(requests.full_in()), reset],
            ),
            (LimitScope::Requests, None) => (
                [most(GROQ_REQUESTS), GROQ_TOKENS],
                [left, GROQ_TOKENS - 120],
                [reset, "1.2s".to_owned()],
            ),
            (LimitScope::Tokens, None) => (
                [GROQ_REQUESTS, most(GROQ_TOKENS)],
                [GROQ_REQUESTS - 30, left],
                ["3m0s".to_owned(), reset],
            ),
        };
        return vec![
            ("x-ratelimit-limit-requests", limits[0].to_string()),
            ("x-ratelimit-limit-tokens", limits[1].to_string()),
            ("x-ratelimit-remaining-requests", requests.to_string()),
            ("x-ratelimit-remaining-tokens", tokens.to_string()),
            ("x-ratelimit-reset-requests", requests_reset),
            ("x-ratelimit-reset-tokens", tokens_reset),
        ];
    }
    Vec::new()
}

/// A sortable id: `01` and 24 digits of Crockford's base 32, in lower case.
fn ulid(prefix: &str, draw: u64, place: u64) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut id = format!("{prefix}01");
    id.extend((0..24).map(|digit| {
        let word = irregular(draw, place + digit / 12);
        let at = (word >> (5 * (digit % 12))) & 31;
        char::from(DIGITS[usize::try_from(at).unwrap_or_default()])
    }));
    id
}

/// Mistral's errors have no envelope.
fn mistral(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    const REFUSED: &str = "invalid_request_error";
    let (status, message, kind, param, code) = match error {
        ModelError::RateLimit { .. } => (
            429,
            "Rate limit exceeded",
            "rate_limited",
            None,
            Some("1300"),
        ),
        ModelError::Overloaded | ModelError::ServerError { status: 503 } => (
            503,
            "Service tier capacity exceeded for this model.",
            "service_tier_capacity_exceeded",
            None,
            None,
        ),
        ModelError::ServerError { status } => {
            (*status, "Internal server error", "server_error", None, None)
        }
        ModelError::Timeout => (504, "Gateway timeout", "server_error", None, None),
        ModelError::Auth => (401, "Unauthorized", "authentication_error", None, None),
        ModelError::QuotaExhausted => (402, "Payment required", REFUSED, None, None),
        ModelError::ContextLength => (
            400,
            "The prompt is too large for the model's maximum context length",
            REFUSED,
            Some("messages"),
            None,
        ),
        ModelError::ContentFilter => (403, "The prompt was moderated", REFUSED, None, None),
        ModelError::ModelNotFound => (
            404,
            "Unknown model",
            REFUSED,
            Some("model"),
            Some("unknown_model"),
        ),
    };
    let or_null = |value: Option<&str>| value.map_or_else(|| "null".to_owned(), quote);
    let body = format!(
        "{{\"object\":\"error\",\"message\":{},\"type\":{},\"param\":{},\"code\":{},\
         \"raw_status_code\":{status}}}",
        quote(message),
        quote(kind),
        or_null(param),
        or_null(code),
    );
    let mut headers = vec![("mistral-correlation-id", uuid(context.draw, 0))];
    if let ModelError::RateLimit { scope, figures, .. } = error {
        let requests = match scope {
            LimitScope::Requests => figures.map(|over| (over.per_minute, over.remaining())),
            LimitScope::Tokens => figures
                .and_then(|over| over.beside)
                .map(|requests| (requests.per_minute, requests.remaining())),
        };
        let (most, left) = requests.unwrap_or((60, 0));
        headers.extend([
            ("x-ratelimit-limit-req-minute", most.to_string()),
            ("x-ratelimit-remaining-req-minute", left.to_string()),
        ]);
    }
    headers.extend(retry_after(error));
    Told {
        status,
        body,
        headers,
    }
}

/// `OpenRouter`'s code is the status, and what the provider behind it said is in the metadata.
fn openrouter(error: &ModelError, context: &ErrorContext<'_>) -> Told {
    let model = context.model.unwrap_or("openai/gpt-5-mini");
    let (status, message) = openrouter_words(error, model);
    let metadata = match error {
        ModelError::RateLimit { .. } => Some(format!(
            "\"raw\":{}",
            quote(&format!(
                "{model} is temporarily rate-limited upstream. Please retry shortly."
            ))
        )),
        ModelError::ServerError { status } => Some(format!(
            "\"raw\":{}",
            quote(&format!("error code: {status}"))
        )),
        ModelError::ContentFilter => {
            Some("\"reasons\":[\"violence\"],\"flagged_input\":\"\"".to_owned())
        }
        ModelError::QuotaExhausted
        | ModelError::ContextLength
        | ModelError::Auth
        | ModelError::ModelNotFound
        | ModelError::Timeout
        | ModelError::Overloaded => None,
    };
    let metadata = metadata.map_or_else(String::new, |metadata| {
        let provider = quote(provider(model));
        format!(",\"metadata\":{{{metadata},\"provider_name\":{provider}}}")
    });
    Told {
        status,
        body: format!(
            "{{\"error\":{{\"message\":{},\"code\":{status}{metadata}}}}}",
            quote(&message)
        ),
        headers: Vec::from_iter(retry_after(error)),
    }
}

fn openrouter_words(error: &ModelError, model: &str) -> (u16, String) {
    let returned = "Provider returned error";
    let (status, message) = match error {
        ModelError::RateLimit { .. } => (429, returned),
        ModelError::QuotaExhausted => (
            402,
            "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
        ),
        ModelError::ContextLength => (
            400,
            "This endpoint's maximum context length is exceeded. Please reduce the length of the \
             messages, or use the \"middle-out\" transform to compress your prompt automatically.",
        ),
        ModelError::ContentFilter => (
            403,
            "Your chosen model requires moderation and your input was flagged",
        ),
        ModelError::Auth => (401, "Invalid credentials"),
        ModelError::ModelNotFound => return (404, format!("No endpoints found for {model}.")),
        ModelError::Timeout => (408, "Your request timed out"),
        ModelError::ServerError { status } => (*status, returned),
        ModelError::Overloaded => (
            503,
            "There is no available model provider that meets your routing requirements",
        ),
    };
    (status, message.to_owned())
}

/// Who serves a model, by its name: `openai/gpt-5-mini`.
fn provider(model: &str) -> &str {
    model
        .split_once('/')
        .map_or("OpenAI", |(provider, _)| provider)
}

/// In a stream `OpenRouter` ends the choice with `error`, in a chunk like any other.
fn openrouter_chunk(error: &ModelError, after: Option<Event<'_>>) -> String {
    let of_last = |key| {
        let value = after.and_then(|event| event.root().get(key));
        value.map(|value: Value<'_>| format!("\"{key}\":{},", value.raw()))
    };
    let model = after.and_then(|event| event.root().get("model")?.as_str());
    let (code, message) = openrouter_words(error, model.as_deref().unwrap_or_default());
    let carried: String = ["id", "provider", "model", "object", "created"]
        .into_iter()
        .filter_map(of_last)
        .collect();
    format!(
        "{{{carried}\"error\":{{\"code\":{code},\"message\":{}}},\"choices\":[{{\"index\":0,\
         \"delta\":{{\"content\":\"\"}},\"finish_reason\":\"error\"}}]}}",
        quote(&message)
    )
}
