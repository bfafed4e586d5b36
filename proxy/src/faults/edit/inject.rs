//! Injects instructions into tool responses.

use http::{HeaderMap, Response};
use squall_dialects::media_type;
use squall_profiles::changes::Injection;
use squall_profiles::faults::injection::{self, TextForm};

use super::whole;
use crate::body::AgentBody;
use crate::faults::{FaultContext, VerdictReport};

pub(super) async fn apply(
    injection: &Injection,
    response: Response<AgentBody>,
    mut report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    if let Some(why) = unreadable(response.headers()) {
        report.bypassed(why);
        return response;
    }
    let change = |headers: &HeaderMap, plain: &[u8]| {
        let text = std::str::from_utf8(plain)
            .map_err(|error| format!("the answer is no UTF-8 text: {error}"))?;
        let form = form(headers).unwrap_or_else(|| TextForm::of(text));
        injection::in_answer(injection, text, form).map(String::into_bytes)
    };
    whole::apply(response, report, context, change).await
}

/// The format of the response according to its head.
fn form(headers: &HeaderMap) -> Option<TextForm> {
    let media_type = media_type(headers)?;
    match &*media_type {
        "application/json" => Some(TextForm::Json),
        "text/html" | "application/xhtml+xml" => Some(TextForm::Html),
        other if other.ends_with("+json") => Some(TextForm::Json),
        // Some servers send JSON as text.
        _ => None,
    }
}

/// Why the response cannot contain an instruction, according to its head.
fn unreadable(headers: &HeaderMap) -> Option<String> {
    // Without a media type, the body decides.
    let media_type = media_type(headers).filter(|media_type| !media_type.is_empty())?;
    if media_type == "text/event-stream" {
        return Some("the answer is a stream of events, which pass on as they come".to_owned());
    }
    let of_texts = media_type.starts_with("text/") && media_type != "text/xml";
    let readable = of_texts
        || media_type.ends_with("+json")
        || matches!(
            &*media_type,
            "application/json" | "application/markdown" | "application/xhtml+xml"
        );
    (!readable)
        .then(|| format!("the answer is `{media_type}`, which has no place for an instruction"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    #[rustfmt::skip]
    fn what_the_head_tells_of_the_body_decides() {
        let no_place =
            |kind: &str| format!("the answer is `{kind}`, which has no place for an instruction");
        let events = "the answer is a stream of events, which pass on as they come".to_owned();
        for (kind, expected) in [
            (None, Ok(None)),
            (Some(""), Ok(None)),
            (Some("text/plain"), Ok(None)),
            (Some("application/json; charset=utf-8"), Ok(Some(TextForm::Json))),
            (Some("application/problem+json"), Ok(Some(TextForm::Json))),
            (Some("text/xml"), Err(no_place("text/xml"))),
            (Some("application/rss+xml"), Err(no_place("application/rss+xml"))),
            (Some("application/xhtml+xml"), Ok(Some(TextForm::Html))),
            (Some("application/x-ndjson"), Err(no_place("application/x-ndjson"))),
            (Some("text/event-stream"), Err(events)),
            (Some("image/svg+xml"), Err(no_place("image/svg+xml"))),
            (Some("application/pdf"), Err(no_place("application/pdf"))),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(kind) = kind {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            let found = unreadable(&headers).map_or_else(|| Ok(form(&headers)), Err);
            assert_eq!(found, expected, "{kind:?}");
        }
    }
}
