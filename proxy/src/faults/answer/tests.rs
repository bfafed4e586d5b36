//! Synthetic answers, in memory and on the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use squall_dialects::WireReply;
use squall_dialects::model::{LimitScope, ModelError};
use squall_profiles::changes::TlsFailure;
use squall_profiles::plan::{Ending, PlannedAnswer};
use tokio::io::AsyncWriteExt as _;

use super::{RequestInfo, SyntheticAnswer, make, reset};
use crate::faults::testing::{
    context, drain, http1, on_the_wire, paused, read_to_end, speaking, split,
};

fn asked() -> RequestInfo<'static> {
    RequestInfo {
        url: "http://api.example/v1/chat/completions?x=1",
        host: "api.example",
        model: None,
        mcp: None,
    }
}

/// Status, headers and body of an answer made up in memory.
fn made(
    answer: &PlannedAnswer,
    asked: RequestInfo<'_>,
    method: Method,
) -> (StatusCode, HeaderMap, Vec<u8>) {
    paused(async {
        let (mut context, ledger) = context();
        context.method = method;
        let SyntheticAnswer::Response(response) = make(answer, 9, asked, &context).await else {
            panic!("no response");
        };
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
        PlannedAnswer::Reply(WireReply {
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
        let (got, headers, body) = made(&reply(status, body), asked(), method);
        assert_eq!((got, &body[..]), (status, sent));
        assert_eq!(headers["x-own"], "1");
        assert!(!headers.contains_key(header::TRANSFER_ENCODING));
        let announced = headers.get(header::CONTENT_LENGTH);
        assert_eq!(announced.map(|value| value.to_str().unwrap()), length);
    }
}

#[test]
fn a_redirect_leads_to_the_url_as_the_agent_wrote_it() {
    let answer = PlannedAnswer::RedirectToSelf(StatusCode::FOUND);
    let (status, headers, body) = made(&answer, asked(), Method::GET);
    assert_eq!((status, &body[..]), (StatusCode::FOUND, &b""[..]));
    assert_eq!(headers[header::LOCATION], asked().url);
}

#[test]
fn a_dns_failure_says_so() {
    let (status, headers, body) = made(&PlannedAnswer::DnsFailure, asked(), Method::GET);
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
    let answer = PlannedAnswer::ModelError(ModelError::RateLimit {
        scope: LimitScope::Requests,
        retry_after: Some(Duration::from_millis(1500)),
        figures: None,
    });
    let model = squall_dialects::by_name("openai-chat").map(speaking);
    let (status, headers, body) = made(&answer, RequestInfo { model, ..asked() }, Method::POST);
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(headers.contains_key(header::RETRY_AFTER));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert!(body["error"]["message"].is_string(), "{body}");
    assert!(body["error"].get("code").is_some(), "{body}");
}

#[test]
fn a_hold_lasts_and_then_closes_without_an_answer() {
    paused(async {
        let (context, ledger) = context();
        let began = tokio::time::Instant::now();
        let held = PlannedAnswer::Hold(Duration::from_secs(30));
        let SyntheticAnswer::Abort(broken) = make(&held, 9, asked(), &context).await else {
            panic!("an answer");
        };
        assert_eq!(began.elapsed(), Duration::from_secs(30));
        assert_eq!(
            (broken.ending(), broken.reason()),
            (Ending::Close, h2::Reason::CANCEL)
        );
        assert_eq!(ledger.waited(), Duration::from_secs(30));
        ledger.only_applied(9);
    });
}

#[test]
fn a_hold_counts_at_once_and_for_as_long_as_the_agent_stayed() {
    paused(async {
        let (context, ledger) = context();
        let held = PlannedAnswer::Hold(Duration::from_secs(30));
        let patience = Duration::from_secs(2);
        let gone = tokio::time::timeout(patience, make(&held, 9, asked(), &context)).await;
        assert!(gone.is_err());
        assert_eq!(ledger.waited(), patience);
        ledger.only_applied(9);
    });
}

#[test]
fn what_needs_a_handshake_or_a_location_is_bypassed() {
    paused(async {
        let redirect = PlannedAnswer::RedirectToSelf(StatusCode::FOUND);
        for (answer, url, why) in [
            (
                PlannedAnswer::Tls(TlsFailure::Expired),
                "/",
                "there is no TLS handshake to fail",
            ),
            (
                redirect,
                "/\n",
                "the request's URL cannot stand in a Location header",
            ),
        ] {
            let (context, ledger) = context();
            let asked = RequestInfo { url, ..asked() };
            assert!(matches!(
                make(&answer, 9, asked, &context).await,
                SyntheticAnswer::Bypassed
            ));
            ledger.only_bypassed(9, why);
        }
    });
}

/// What an agent on HTTP/1.1 sees of an answer.
fn seen(answer: Option<PlannedAnswer>) -> (Vec<u8>, std::io::Result<()>) {
    on_the_wire(async move {
        let mut agent = http1(move |_, side| {
            let (mut context, _) = context();
            context.agent = side;
            let answer = answer.clone();
            async move {
                let Some(answer) = answer else {
                    return Err(reset(9, &context));
                };
                match make(&answer, 9, asked(), &context).await {
                    SyntheticAnswer::Response(response) => Ok(response),
                    SyntheticAnswer::Abort(broken) => Err(broken),
                    SyntheticAnswer::Bypassed => panic!("bypassed"),
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
    let (bytes, end) = seen(Some(PlannedAnswer::Refuse));
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    let (bytes, end) = seen(Some(PlannedAnswer::Hold(Duration::from_millis(1))));
    assert_eq!(bytes, b"");
    end.expect("a FIN");

    let (bytes, end) = seen(None);
    assert_eq!(bytes, b"");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);

    let (bytes, end) = seen(Some(PlannedAnswer::DnsFailure));
    let (head, body) = split(&bytes);
    assert!(head.starts_with("http/1.1 502 "), "{head}");
    assert!(!body.is_empty());
    end.expect("a FIN");
}
