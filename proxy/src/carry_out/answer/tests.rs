//! Made-up answers, in memory and on the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use squall_dialects::Dialect;
use squall_dialects::model::ModelError;
use squall_profiles::fault::TlsFailure;
use squall_profiles::plan::{Answer, Ending, Reply};
use tokio::io::AsyncWriteExt as _;

use super::{AnswerContext, make, reset};
use crate::carry_out::Context;
use crate::carry_out::testing::{context, drain, http1, on_the_wire, paused, read_to_end, split};

const URL: &str = "http://api.example/v1/chat/completions?x=1";

fn answering<'a>(context: &Context, as_written: &'a Uri) -> AnswerContext<'a> {
    AnswerContext {
        context: context.clone(),
        verdict: 9,
        dialect: None,
        model: None,
        as_written,
        host: "api.example",
    }
}

/// Status, headers and body of an answer made up in memory.
fn made(
    answer: &Answer,
    dialect: Option<&'static dyn Dialect>,
    method: Method,
) -> (StatusCode, HeaderMap, Vec<u8>) {
    paused(async {
        let (mut context, ledger) = context();
        context.method = method;
        let url = Uri::from_static(URL);
        let answering = AnswerContext {
            dialect,
            ..answering(&context, &url)
        };
        let response = make(answer, &answering).await.expect("a response");
        ledger.only_applied(9);
        let (head, body) = response.into_parts();
        (head.status, head.headers, drain(body).await.bytes)
    })
}

#[test]
fn a_reply_is_sent_with_its_length_and_no_framing_of_its_own() {
    let mut headers = HeaderMap::new();
    headers.insert("x-own", HeaderValue::from_static("1"));
    headers.insert(
        header::TRANSFER_ENCODING,
        HeaderValue::from_static("chunked"),
    );
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("99"));
    let reply = |status, body| {
        let headers = headers.clone();
        Answer::Reply(Reply {
            status,
            headers,
            body: Bytes::from_static(body),
        })
    };
    for (method, status, body, length, sent) in [
        (
            Method::GET,
            StatusCode::OK,
            &b"hello"[..],
            Some("5"),
            &b"hello"[..],
        ),
        (Method::POST, StatusCode::BAD_GATEWAY, b"", Some("0"), b""),
        (Method::HEAD, StatusCode::OK, b"hello", Some("5"), b""),
        (Method::GET, StatusCode::NO_CONTENT, b"hello", None, b""),
    ] {
        let (got, headers, body) = made(&reply(status, body), None, method);
        assert_eq!((got, &body[..]), (status, sent));
        assert_eq!(headers["x-own"], "1");
        assert!(!headers.contains_key(header::TRANSFER_ENCODING));
        let announced = headers.get(header::CONTENT_LENGTH);
        assert_eq!(announced.map(|value| value.to_str().unwrap()), length);
    }
}

#[test]
fn a_redirect_leads_to_the_url_as_the_agent_wrote_it() {
    let answer = Answer::RedirectToSelf(StatusCode::FOUND);
    let (status, headers, body) = made(&answer, None, Method::GET);
    assert_eq!((status, &body[..]), (StatusCode::FOUND, &b""[..]));
    assert_eq!(headers[header::LOCATION], URL);
}

#[test]
fn a_dns_failure_says_so() {
    let (status, headers, body) = made(&Answer::DnsFailure, None, Method::GET);
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json");
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let detail = body["detail"].as_str().unwrap();
    assert!(
        detail.contains("DNS") && detail.contains("api.example"),
        "{detail}"
    );
}

#[test]
fn a_models_error_is_in_the_words_of_its_dialect() {
    let answer = Answer::ModelError(ModelError::RateLimit {
        retry_after: Some(Duration::from_millis(1500)),
    });
    let dialect = squall_dialects::by_name("openai-chat");
    let (status, headers, body) = made(&answer, dialect, Method::POST);
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(headers.contains_key(header::RETRY_AFTER));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(body["error"]["message"].is_string(), "{body}");
    assert!(body["error"].get("code").is_some(), "{body}");
}

#[test]
fn a_models_error_outside_any_dialect_is_plain_json() {
    let wait = Some(Duration::from_millis(1500));
    for (error, status, retry_after) in [
        (ModelError::RateLimit { retry_after: wait }, 429, Some("2")),
        (ModelError::RateLimit { retry_after: None }, 429, None),
        (ModelError::ServerError { status: 502 }, 502, None),
        (ModelError::Overloaded, 503, None),
    ] {
        let (got, headers, body) = made(&Answer::ModelError(error), None, Method::POST);
        assert_eq!(got.as_u16(), status);
        let announced = headers.get(header::RETRY_AFTER);
        assert_eq!(announced.map(|value| value.to_str().unwrap()), retry_after);
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert!(body["error"]["message"].is_string());
    }
}

#[test]
fn a_hold_lasts_and_then_closes_without_an_answer() {
    paused(async {
        let (context, ledger) = context();
        let began = tokio::time::Instant::now();
        let held = Answer::Hold(Duration::from_secs(30));
        let url = Uri::from_static(URL);
        let broken = make(&held, &answering(&context, &url)).await.unwrap_err();
        assert_eq!(began.elapsed(), Duration::from_secs(30));
        assert_eq!(broken.ending(), Ending::Close);
        assert_eq!(broken.reason(), h2::Reason::CANCEL);
        assert_eq!(ledger.waited(), Duration::from_secs(30));
        ledger.only_applied(9);
    });
}

#[test]
fn a_hold_counts_at_once_and_for_as_long_as_the_agent_stayed() {
    paused(async {
        let (context, ledger) = context();
        let held = Answer::Hold(Duration::from_secs(30));
        let patience = Duration::from_secs(2);
        let url = Uri::from_static(URL);
        let answering = answering(&context, &url);
        let gone = tokio::time::timeout(patience, make(&held, &answering)).await;
        assert!(gone.is_err());
        assert_eq!(ledger.waited(), patience);
        ledger.only_applied(9);
    });
}

#[test]
fn a_tls_failure_that_is_planned_for_a_request_is_bypassed() {
    paused(async {
        let (context, ledger) = context();
        let url = Uri::from_static(URL);
        let failure = Answer::Tls(TlsFailure::Expired);
        let response = make(&failure, &answering(&context, &url)).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
        ledger.only_bypassed(9, "there is no TLS handshake to fail");
    });
}

/// What an agent on HTTP/1.1 sees of an answer.
fn seen(answer: Option<Answer>) -> (Vec<u8>, std::io::Result<()>) {
    on_the_wire(async move {
        let mut agent = http1(move |_, side| {
            let (mut context, _) = context();
            context.agent = side;
            let answer = answer.clone();
            async move {
                let url = Uri::from_static(URL);
                match answer {
                    Some(answer) => make(&answer, &answering(&context, &url)).await,
                    None => Err(reset(9, &context)),
                }
            }
        })
        .await;
        let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        agent.write_all(request).await.unwrap();
        read_to_end(&mut agent).await
    })
}

#[test]
fn on_the_wire_a_refusal_is_an_rst_and_a_hold_ends_in_a_fin() {
    let (bytes, end) = seen(Some(Answer::Refuse));
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    let (bytes, end) = seen(Some(Answer::Hold(Duration::from_millis(1))));
    assert_eq!(bytes, b"");
    end.expect("a FIN");

    let (bytes, end) = seen(None);
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    let (bytes, end) = seen(Some(Answer::DnsFailure));
    let (head, body) = split(&bytes);
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert!(!body.is_empty());
    end.expect("a FIN");
}
