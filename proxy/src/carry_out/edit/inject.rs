//! Instructions put into tools' answers.

use http::{HeaderMap, Response};
use squall_dialects::media_type;
use squall_profiles::fault::Injection;
use squall_profiles::faults::injection::{self, Form};

use super::whole;
use crate::carry_out::body::AgentBody;
use crate::carry_out::{Context, Report};

pub(super) async fn apply(
    injection: &Injection,
    response: Response<AgentBody>,
    mut report: Report,
    context: &Context,
) -> Response<AgentBody> {
    if let Some(why) = unreadable(response.headers()) {
        report.bypassed(why);
        return response;
    }
    let change = |headers: &HeaderMap, plain: &[u8]| {
        let text = std::str::from_utf8(plain)
            .map_err(|error| format!("the answer is no UTF-8 text: {error}"))?;
        let form = form(headers).unwrap_or_else(|| Form::of(text));
        injection::in_answer(injection, text, form).map(String::into_bytes)
    };
    whole::apply(response, report, context, change).await
}

/// What the head says that the answer is written in.
fn form(headers: &HeaderMap) -> Option<Form> {
    let media_type = media_type(headers)?;
    match &*media_type {
        "application/json" => Some(Form::Json),
        "text/html" | "application/xhtml+xml" => Some(Form::Html),
        other if other.ends_with("+json") => Some(Form::Json),
        // Servers call JSON by the name of text, too.
        _ => None,
    }
}

/// Why there is nothing to put words into, as far as the head tells.
fn unreadable(headers: &HeaderMap) -> Option<String> {
    let media_type = media_type(headers)?;
    let readable = media_type.starts_with("text/")
        || matches!(
            &*media_type,
            "application/json" | "application/xhtml+xml" | "application/markdown"
        )
        || media_type.ends_with("+json");
    (!readable || media_type == "text/event-stream")
        .then(|| format!("the answer is `{media_type}`, which has no place for an instruction"))
}
