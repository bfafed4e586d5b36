//! The API's description as a page to read and to try it with, from this binary alone.
//!
//! One file, shown under a policy that lets nothing but itself run and nothing but this API be asked:
//! its own script and style are known by their digests.

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

/// What stands between a tag and its end.
fn within(tag: &str) -> &'static str {
    let inner = PAGE
        .split_once(&format!("<{tag}>"))
        .and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    inner.map_or("", |(inner, _)| inner)
}

/// A source of a content security policy: a text is known by its digest.
fn hash(text: &str) -> String {
    let digest = STANDARD.encode(digest(&SHA256, text.as_bytes()));
    format!("'sha256-{digest}'")
}
