//! Who may ask.
//!
//! Without tokens everybody who reaches the API may do everything, so it listens on loopback only,
//! and no web page may reach it through a browser: a `Host` that is not this machine (a rebound DNS
//! name) and a foreign `Origin` are refused. With tokens every route asks for one, but for those
//! that tell nothing and change nothing.

use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::{HeaderMap, Method, Uri};
use ring::digest::{SHA256, digest};

use crate::problem::Problem;

/// Paths that need no token.
const OPEN: &[&str] = &[
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/docs",
    "/ca.pem",
    "/proxy.pac",
];

/// What a token allows; each role may do what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Read.
    Viewer,
    /// Switch chaos, edit profiles.
    Operator,
    /// Everything.
    Admin,
}

impl Role {
    /// `viewer`, `operator` or `admin`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// What a request of this method takes.
    fn for_method(method: &Method) -> Self {
        if method.is_safe() {
            Self::Viewer
        } else {
            Self::Operator
        }
    }
}

/// A bearer token; the secret itself is not kept.
#[derive(Debug, Clone)]
pub struct Token {
    name: String,
    role: Role,
    digest: [u8; 32],
}

impl Token {
    /// A token named `name` that allows what `role` does to whoever knows `secret`.
    pub fn new(name: impl Into<String>, role: Role, secret: &str) -> Self {
        Self {
            name: name.into(),
            role,
            digest: hash(secret),
        }
    }

    /// Its name, for the log.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Who may ask.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: Vec<Token>,
}

impl Access {
    /// Those who know one of these; nobody else, unless there are none at all.
    pub fn new(tokens: Vec<Token>) -> Self {
        Self { tokens }
    }

    /// Whether everybody who reaches the API may do everything.
    pub fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    fn check(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let host = host(uri, headers)?;
        refuse_foreign_origin(host, headers)?;
        if self.is_open() {
            return refuse_foreign_host(host);
        }
        if OPEN.contains(&uri.path()) && method.is_safe() {
            return Ok(());
        }
        let role = self.role(headers)?;
        let needed = Role::for_method(method);
        if role < needed {
            return Err(Problem::forbidden(format!(
                "a {} token may only read; this needs the role {}",
                role.as_str(),
                needed.as_str()
            )));
        }
        Ok(())
    }

    fn role(&self, headers: &HeaderMap) -> Result<Role, Problem> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return Err(Problem::unauthenticated(
                "send a token: `Authorization: Bearer …`; they are in the config's `api.tokens`",
            ));
        };
        let secret = given.to_str().ok().and_then(|value| value.split_once(' '));
        let Some((_, secret)) = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Problem::unauthenticated("write `Authorization: Bearer …`"));
        };
        let given = hash(secret.trim());
        // Digests of what was given tell nothing by the time their comparison takes, and every
        // token is compared whichever fits.
        let mut found = None;
        for token in &self.tokens {
            if token.digest == given {
                found = Some(token.role);
            }
        }
        found.ok_or_else(|| Problem::unauthenticated("nobody has this token"))
    }
}

fn hash(secret: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    bytes
}

/// The middleware in front of every route.
pub(crate) async fn guard(
    State(access): State<Arc<ArcSwap<Access>>>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    access
        .load()
        .check(request.method(), request.uri(), request.headers())?;
    Ok(next.run(request).await)
}

/// The host and port the request is for: `:authority` on HTTP/2, `Host` before.
fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, Problem> {
    let named = headers.get(HOST).and_then(|value| value.to_str().ok());
    uri.authority()
        .map(http::uri::Authority::as_str)
        .or(named)
        .ok_or_else(|| Problem::malformed("the Host header is missing"))
}

fn refuse_foreign_host(host: &str) -> Result<(), Problem> {
    if is_this_machine(without_port(host)) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "without `api.tokens` the API is only for this machine: ask for 127.0.0.1 or localhost, \
         not `{}`",
        shortened(host)
    )))
}

/// A page may ask the host it came from.
fn refuse_foreign_origin(host: &str, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or("\u{fffd}");
    let authority = origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority);
    if authority.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    Err(Problem::forbidden(format!(
        "a page from `{}` may not use this API",
        shortened(origin)
    )))
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};

    use super::*;

    fn status(access: &Access, method: &Method, path: &str, headers: &[(&str, &str)]) -> u16 {
        use axum::response::IntoResponse;
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: http::HeaderName = name.parse().expect("a name");
            map.insert(name, HeaderValue::from_str(value).expect("a value"));
        }
        let uri: Uri = path.parse().expect("a path");
        match access.check(method, &uri, &map) {
            Ok(()) => StatusCode::OK.as_u16(),
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn without_tokens_only_this_machine_is_served() {
        let open = Access::default();
        for (host, expected) in [
            ("127.0.0.1:7071", 200),
            ("127.9.9.9", 200),
            ("localhost:7071", 200),
            ("LOCALHOST", 200),
            ("[::1]:7071", 200),
            ("rebound.example:7071", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("192.168.1.4:7071", 403),
            ("0.0.0.0:7071", 403),
            ("", 403),
        ] {
            assert_eq!(
                status(&open, &Method::GET, "/healthz", &[("host", host)]),
                expected,
                "{host}"
            );
        }
        assert_eq!(status(&open, &Method::GET, "/healthz", &[]), 400);
        assert_eq!(
            status(
                &open,
                &Method::GET,
                "http://evil.example/healthz",
                &[("host", "localhost")]
            ),
            403
        );
    }

    #[test]
    fn no_foreign_page_is_served_with_or_without_a_token() {
        let tokens = Access::new(vec![Token::new("t", Role::Admin, "secret")]);
        for access in [Access::default(), tokens] {
            for (origin, expected) in [
                ("http://127.0.0.1:7071", 200),
                ("https://127.0.0.1:7071", 200),
                ("http://127.0.0.1:3000", 403),
                ("http://localhost:7071", 403),
                ("https://evil.example", 403),
                ("null", 403),
            ] {
                let headers = [
                    ("host", "127.0.0.1:7071"),
                    ("origin", origin),
                    ("authorization", "Bearer secret"),
                ];
                let got = status(&access, &Method::GET, "/v1/chaos", &headers);
                assert_eq!(got, expected, "{origin}");
            }
        }
    }

    #[test]
    fn a_token_allows_what_its_role_does() {
        let access = Access::new(vec![
            Token::new("v", Role::Viewer, "see"),
            Token::new("o", Role::Operator, "do"),
        ]);
        for (method, path, authorization, expected) in [
            (Method::GET, "/v1/chaos", Some("Bearer see"), 200),
            (Method::GET, "/v1/chaos", Some("bearer do"), 200),
            (Method::PUT, "/v1/chaos", Some("Bearer do"), 200),
            (Method::PUT, "/v1/chaos", Some("Bearer see"), 403),
            (Method::DELETE, "/v1/chaos", Some("Bearer see"), 403),
            (Method::GET, "/v1/chaos", Some("Bearer no"), 401),
            (Method::GET, "/v1/chaos", Some("Basic see"), 401),
            (Method::GET, "/v1/chaos", Some("Bearer"), 401),
            (Method::GET, "/v1/chaos", None, 401),
            (Method::GET, "/nowhere", None, 401),
            (Method::GET, "/healthz", None, 200),
            (Method::GET, "/ca.pem", None, 200),
            (Method::POST, "/healthz", None, 401),
        ] {
            let mut headers = vec![("host", "squall.example")];
            headers.extend(authorization.map(|value| ("authorization", value)));
            let got = status(&access, &method, path, &headers);
            assert_eq!(got, expected, "{method} {path} {authorization:?}");
        }
    }
}
