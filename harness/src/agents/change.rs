//! Changes to the request to an HTTP agent, made after the template is filled: wire-level mutations.

mod framed;

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use futures_util::stream;
use hyper::body::Bytes;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Body, Client, Method, Request, Response, Url};
use serde::{Deserialize, Serialize};
use squall_dialects::codec::{Coding, Encoder};

use crate::dial::Dialler;

/// Most bytes that a change adds to a body.
const MOST_ADDED: usize = 4 << 20;

/// Most copies that are sent at the same time.
const MOST_COPIES: u64 = 100;

/// Pieces in which a body is sent slowly.
const PIECES: usize = 16;

/// A change to the request to an HTTP agent. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestChange {
    /// Headers that are replaced; without a value, removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Option<String>>,
    /// The method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Text that is appended to the URL's query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// What is added to the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<AddedContent>,
    /// Whether the body is sent with the content coding gzip.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gzip: bool,
    /// Replaces the first occurrence of a text, in any case, in the bytes of the request's head. Only for `http://` agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<(String, String)>,
    /// Duration in which the body is sent; at most half of the agent's time-out.
    #[serde(skip_serializing_if = "is_zero")]
    pub slow_ms: u64,
    /// Identical requests that are sent at the same time.
    #[serde(skip_serializing_if = "is_zero")]
    pub duplicates: u64,
    /// Delay after which an identical request is aborted, before the request is sent.
    #[serde(skip_serializing_if = "is_zero")]
    pub aborted_after_ms: u64,
}

/// Content that is added to a body: a new member of a JSON object, a new item of a JSON list, or the end of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddedContent {
    /// A text of this length.
    Padding(usize),
    /// Nested lists of this depth.
    Nesting(usize),
    /// An object with this number of members.
    Members(usize),
    /// A number with this many digits.
    Digits(usize),
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AddedContent {
    /// As JSON, at most [`MOST_ADDED`] bytes.
    fn json(&self) -> String {
        match *self {
            Self::Padding(length) => format!("\"{}\"", "A".repeat(length.min(MOST_ADDED))),
            Self::Nesting(depth) => {
                let depth = depth.min(MOST_ADDED / 2);
                format!("{}{}", "[".repeat(depth), "]".repeat(depth))
            }
            Self::Members(many) => {
                let members = (0..many.min(MOST_ADDED / 16)).map(|n| format!("\"m{n}\":{n}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Self::Digits(many) => "9".repeat(many.clamp(1, MOST_ADDED)),
        }
    }

    /// A JSON document stays one.
    fn added_to(&self, body: &str, is_json: bool) -> String {
        let added = self.json();
        let body = body.trim_end();
        let ends = [('{', '}', "\"extra\":"), ('[', ']', "")];
        let end = ends.iter().find(|(first, last, _)| {
            is_json && body.starts_with(*first) && body.ends_with(*last) && body.len() > 1
        });
        match end {
            Some((first, last, name)) => {
                let before = &body[..body.len() - 1];
                let comma = if before.trim_end().ends_with(*first) {
                    ""
                } else {
                    ","
                };
                format!("{before}{comma}{name}{added}{last}")
            }
            None if body.is_empty() => added,
            None => format!("{body}\n{added}"),
        }
    }
}

/// Why a changed request has no response.
pub(super) enum UnsentChange {
    /// The client's error.
    Client(reqwest::Error),
    /// The agent cannot be connected to.
    Unreachable(String),
    /// The connection was closed before the response, or the response is invalid.
    Broken(String),
    /// The change does not give a request that can be sent.
    Request(String),
}

impl RequestChange {
    /// Whether every part of the change is in a request of this method to this URL.
    pub fn applies(&self, method: &Method, url: &str) -> bool {
        let has_body = ![Method::GET, Method::DELETE].contains(method);
        let is_plain = url.starts_with("http://");
        (has_body || self.slow_ms == 0 && !self.gzip)
            && (is_plain || self.head.is_none())
            && self.method.as_deref() != Some(method.as_str())
    }

    /// Why no request can be sent with this change.
    pub(crate) fn check(&self) -> Result<(), String> {
        if *self == Self::default() {
            return Err("it changes nothing".to_owned());
        }
        if self.duplicates > MOST_COPIES {
            return Err(format!("`duplicates` is at most {MOST_COPIES}"));
        }
        let url = Url::parse("http://agent.invalid/").map_err(|error| error.to_string())?;
        let without_body = Self {
            body: None,
            ..self.clone()
        };
        without_body.apply(&mut Request::new(Method::POST, url))
    }

    fn apply(&self, request: &mut Request) -> Result<(), String> {
        if self.head.as_ref().is_some_and(|(from, _)| from.is_empty()) {
            return Err("`head` replaces an empty text; write a part of the head".to_owned());
        }
        if let Some(method) = &self.method {
            let valid = Method::from_bytes(method.as_bytes());
            *request.method_mut() = valid.map_err(|_| format!("`{method}` is no method"))?;
        }
        if let Some(query) = &self.query {
            let query = match request.url().query() {
                Some(own) if !own.is_empty() => format!("{own}&{query}"),
                Some(_) | None => query.clone(),
            };
            request.url_mut().set_query(Some(&query));
        }
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
        let mut body = body.to_vec();
        if let Some(added) = &self.body {
            let media_type = request.headers().get(CONTENT_TYPE);
            let media_type = media_type.and_then(|value| value.to_str().ok());
            let is_json = media_type.is_some_and(|media_type| media_type.contains("json"));
            body = added
                .added_to(&String::from_utf8_lossy(&body), is_json)
                .into_bytes();
        }
        if self.gzip {
            let mut encoder = Encoder::new(Coding::Gzip).map_err(|error| error.to_string())?;
            let coded = encoder.push(&body).and_then(|mut coded| {
                coded.extend(encoder.finish()?);
                Ok(coded)
            });
            body = coded.map_err(|error| error.to_string())?;
            let headers = request.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if self.body.is_some() || self.gzip {
            *request.body_mut() = Some(body.into());
        }
        for (name, value) in &self.headers {
            let known: HeaderName = name.parse().map_err(|_| format!("`{name}` is no header"))?;
            match value {
                None => drop(request.headers_mut().remove(known)),
                Some(value) => {
                    let value = HeaderValue::from_bytes(value.as_bytes());
                    let value = value.map_err(|_| format!("`{name}` cannot have its value"))?;
                    request.headers_mut().insert(known, value);
                }
            }
        }
        Ok(())
    }

    /// The changed request and its copies, which are sent at the same time.
    pub(super) fn requests(&self, mut request: Request) -> Result<Vec<Request>, String> {
        self.apply(&mut request)?;
        let copies = (0..self.duplicates.min(MOST_COPIES)).filter_map(|_| request.try_clone());
        let mut requests: Vec<_> = copies.collect();
        requests.push(request);
        Ok(requests)
    }

    fn slow_down(&self, request: &mut Request) {
        let body = request.body().and_then(Body::as_bytes).unwrap_or_default();
        if self.slow_ms == 0 || body.is_empty() {
            return;
        }
        let most = request.timeout().map_or(Duration::MAX, |all| *all / 2);
        let all = Duration::from_millis(self.slow_ms).min(most);
        let bytes = Bytes::copy_from_slice(body);
        let pieces = bytes.len().div_ceil(PIECES);
        let pause = all / u32::try_from(bytes.len().div_ceil(pieces)).unwrap_or(1);
        let length = HeaderValue::from(bytes.len());
        request.headers_mut().insert(CONTENT_LENGTH, length);
        let pieces = stream::unfold(bytes, move |mut rest| async move {
            if rest.is_empty() {
                return None;
            }
            tokio::time::sleep(pause).await;
            let piece = rest.split_to(pieces.min(rest.len()));
            Some((Ok::<_, io::Error>(piece), rest))
        });
        *request.body_mut() = Some(Body::wrap_stream(pieces));
    }
}

/// Sends a changed request.
pub(super) async fn send(
    change: &RequestChange,
    mut request: Request,
    client: &Client,
    dialler: &Dialler,
) -> Result<Response, UnsentChange> {
    if let Some((from, to)) = &change.head {
        return framed::send(request, from, to, dialler).await;
    }
    if change.aborted_after_ms > 0
        && let Some(copy) = request.try_clone()
    {
        let after = Duration::from_millis(change.aborted_after_ms);
        // Its end is of no interest: it is aborted by intent.
        let _ = tokio::time::timeout(after, client.execute(copy)).await;
    }
    change.slow_down(&mut request);
    let response = client.execute(request).await;
    response.map_err(UnsentChange::Client)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{Reply, Server, driver_of, json as answers};
    use super::super::{Invocation, InvocationPlace};
    use super::*;
    use crate::answer::AgentAnswer;
    use crate::prompt::Prompt;

    async fn invoked(server: &Server, change: Value) -> AgentAnswer {
        let change = serde_json::from_value(change).expect("a change");
        let template = r#"{"m": "{prompt}"}"#;
        let fields = format!(
            "endpoint: '{}/a?b=c', request_template: '{template}', timeout: 20000",
            server.url
        );
        let invocation = Invocation {
            change: Some(change),
            ..Invocation::new(
                "run",
                &Prompt::single("hi"),
                InvocationPlace::shared("s"),
                1,
            )
        };
        let answer = driver_of(&fields).ask(&invocation).await;
        answer.expect("an answer")
    }

    #[tokio::test]
    async fn a_change_is_in_the_request_that_arrives() {
        for (change, line, header, body) in [
            (
                json!({ "headers": { "Content-Type": "text/x" } }),
                "POST /a?b=c",
                ("content-type", Some("text/x")),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "headers": { "Content-Type": null } }),
                "POST /a?b=c",
                ("content-type", None),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "method": "PROPFIND" }),
                "PROPFIND /a?b=c",
                ("host", None),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "query": "x=%00&x=" }),
                "POST /a?b=c&x=%00&x=",
                ("x", None),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "body": { "padding": 3 } }),
                "POST /a?b=c",
                ("x", None),
                r#"{"m":"hi","extra":"AAA"}"#,
            ),
            (
                json!({ "body": { "nesting": 2 } }),
                "POST /a?b=c",
                ("x", None),
                r#"{"m":"hi","extra":[[]]}"#,
            ),
            (
                json!({ "body": { "members": 2 } }),
                "POST /a?b=c",
                ("x", None),
                r#"{"m":"hi","extra":{"m0":0,"m1":1}}"#,
            ),
            (
                json!({ "slow_ms": 5 }),
                "POST /a?b=c",
                ("content-length", Some("10")),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "aborted_after_ms": 1 }),
                "POST /a?b=c",
                ("x", None),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "gzip": true }),
                "POST /a?b=c",
                ("content-encoding", Some("gzip")),
                "",
            ),
            (
                json!({ "head": ["\r\n\r\n", "\r\nx-folded: 1\r\n\r\n"] }),
                "POST /a?b=c",
                ("x-folded", Some("1")),
                r#"{"m":"hi"}"#,
            ),
            (
                json!({ "head": ["\r\nHost: ", "\r\nx-host: x\r\nhost: "] }),
                "POST /a?b=c",
                ("x-host", Some("x")),
                r#"{"m":"hi"}"#,
            ),
        ] {
            let server = Server::start(vec![answers("\"ok\"")]).await;
            let answer = invoked(&server, change.clone()).await;
            assert_eq!(
                (answer.text.as_str(), answer.error),
                ("ok", None),
                "{change}"
            );
            let requests = server.requests();
            let request = requests.last().expect("a request");
            assert_eq!(request.line, format!("{line} HTTP/1.1"), "{change}");
            if header.0 != "host" {
                assert_eq!(request.header(header.0), header.1, "{change}");
            }
            assert!(
                body.is_empty() || request.body == body,
                "{change}: {}",
                request.body
            );
            assert_eq!(
                request.header("baggage"),
                Some("squall.scope=s"),
                "{change}"
            );
        }
    }

    #[tokio::test]
    async fn a_text_that_is_no_part_of_a_head_is_an_error() {
        for (from, expected) in [
            ("", "`head` replaces an empty text"),
            ("x-none: ", "the head of the request has no \"x-none: \""),
        ] {
            let server = Server::start(vec![answers("\"ok\"")]).await;
            let driver = driver_of(&format!("endpoint: '{}'", server.url));
            let invocation = Invocation {
                change: serde_json::from_value(json!({ "head": [from, "x"] })).ok(),
                ..Invocation::new(
                    "run",
                    &Prompt::single("hi"),
                    InvocationPlace::shared("s"),
                    1,
                )
            };
            let error = driver.ask(&invocation).await.expect_err("no request");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[tokio::test]
    async fn duplicates_arrive_beside_the_request() {
        let server = Server::start(vec![answers("\"ok\"")]).await;
        let answer = invoked(&server, json!({ "duplicates": 4 })).await;
        assert_eq!(answer.text, "ok");
        let requests = server.requests();
        assert_eq!(requests.len(), 5);
        assert!(requests.iter().all(|one| one.body == requests[0].body));
    }

    #[tokio::test]
    async fn a_rejection_by_the_agent_is_marked() {
        for (status, rejected) in [
            (405, true),
            (501, true),
            (505, true),
            (500, false),
            (503, false),
        ] {
            let reply = Reply::With(status, "text/plain", "no".into());
            let server = Server::start(vec![reply]).await;
            let answer = invoked(&server, json!({ "method": "PUT" })).await;
            assert_eq!(
                (answer.rejected, answer.error.is_some()),
                (rejected, true),
                "{status}"
            );
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_status_line_is_a_rejection() {
        for reply in ["<p>Error code: 505", "HTTP/5.3 505 No\r\n\r\n"] {
            let server = Server::start(vec![Reply::Text(reply)]).await;
            let answer = invoked(
                &server,
                json!({ "head": [" HTTP/1.1\r\n", " HTTP/5.3\r\n"] }),
            )
            .await;
            assert!(answer.rejected && answer.text == reply, "{answer:?}");
        }
    }

    #[tokio::test]
    async fn one_failed_copy_is_the_answer_that_is_judged() {
        let failed = Reply::With(500, "text/plain", "database is locked".into());
        let rejected = Reply::With(429, "text/plain", "slow down".into());
        for (replies, expected) in [
            (
                vec![answers("\"ok\""), rejected.clone(), failed],
                "database is locked",
            ),
            (
                vec![rejected.clone(), rejected.clone(), answers("\"ok\"")],
                "ok",
            ),
            (vec![rejected], "slow down"),
        ] {
            let server = Server::start(replies).await;
            let answer = invoked(&server, json!({ "duplicates": 4 })).await;
            assert_eq!(answer.text, expected);
        }
    }

    #[test]
    fn a_json_body_stays_json_and_a_text_a_text() {
        for (body, is_json, expected) in [
            ("{}", true, r#"{"extra":9}"#),
            ("[1]", true, "[1,9]"),
            ("[ ]", true, "[ 9]"),
            ("a=b", false, "a=b\n9"),
            ("{ hi }", false, "{ hi }\n9"),
            ("", false, "9"),
        ] {
            assert_eq!(AddedContent::Digits(1).added_to(body, is_json), expected);
        }
    }
}
