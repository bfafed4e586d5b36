//! Azure OpenAI: errors of the gateway before the models.

use std::time::Duration;

use super::{Told, retry_after};
use crate::dialect::ErrorContext;
use crate::figures::{irregular, uuid};
use crate::json::quote;
use crate::model::{LimitFigures, LimitScope, ModelError};
use crate::openai_chat::{self, Endpoint};
use crate::waits::{whole_millis, whole_seconds};

/// Azure's own errors come from the gateway, whose codes are statuses in quotes.
pub(super) fn told(error: &ModelError, context: &ErrorContext<'_>) -> Told {
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
        ModelError::ContentFilter => (400, FILTERED.to_owned()),
        ModelError::QuotaExhausted => {
            let error = ModelError::RateLimit {
                scope: LimitScope::Tokens,
                retry_after: Some(QUOTA),
                figures: None,
            };
            return told(&error, context);
        }
        ModelError::ServerError { status } => (*status, failure(context)),
        ModelError::Overloaded => gateway(
            503,
            "InternalServerError",
            "The service is temporarily unable to process your request. Please try again later.",
        ),
        ModelError::ContextLength | ModelError::Timeout => {
            let openais = openai_chat::error::reply(error, context, Endpoint::Chat);
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
        let [requests, tokens] = left(*scope, *figures, context.draw);
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
const QUOTA: Duration = Duration::from_hours(24);

/// What a usual deployment may be asked for in a minute, in requests and in tokens.
const LIMITS: [u64; 2] = [60, 10_000];

/// What is left of Azure's limits, in requests and in tokens.
fn left(scope: LimitScope, figures: Option<LimitFigures>, draw: u64) -> [u64; 2] {
    let over = figures.map_or(0, LimitFigures::remaining);
    let usual = |most: u64| most - 1 - irregular(draw, 7) % (most / 2);
    match scope {
        LimitScope::Requests => [over, usual(LIMITS[1])],
        LimitScope::Tokens => [usual(LIMITS[0]), over],
    }
}

/// The body with which a model that Azure runs reports that it failed.
fn failure(context: &ErrorContext<'_>) -> String {
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

const FILTERED: &str = concat!(
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
