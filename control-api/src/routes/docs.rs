//! The API's documentation as a page with a client to try it, contained in this binary.
//!
//! One file, with a policy that allows its own script and style only, by digest, and requests to this API only.

use std::sync::LazyLock;

use axum::response::{Html, IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::header::CONTENT_SECURITY_POLICY;
use ring::digest::{SHA256, digest};

const PAGE: &str = include_str!("docs.html");

/// The page.
pub(super) async fn show() -> Response {
    static POLICY: LazyLock<HeaderValue> = LazyLock::new(policy);
    ([(CONTENT_SECURITY_POLICY, POLICY.clone())], Html(PAGE)).into_response()
}

fn policy() -> HeaderValue {
    let (script, style) = (hash(within("script")), hash(within("style")));
    let policy = format!(
        "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    HeaderValue::from_str(&policy).expect("ASCII")
}

/// The text between a tag and its end.
fn within(tag: &str) -> &'static str {
    let inner = PAGE
        .split_once(&format!("<{tag}>"))
        .and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    inner.map_or("", |(inner, _)| inner)
}

/// A source in a content security policy: the digest of a text.
fn hash(text: &str) -> String {
    let digest = STANDARD.encode(digest(&SHA256, text.as_bytes()));
    format!("'sha256-{digest}'")
}
