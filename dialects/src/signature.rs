//! Detects signed requests, whose bodies cannot be edited without a new signature.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use crate::target::Target;

const CONTENT_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Why the body of a request cannot be edited: it is signed, and the upstream would reject a change. `None`: it can
/// be edited.
///
/// Supports AWS Signature Version 4 (`AWS4-HMAC-SHA256`, `AWS4-ECDSA-P256-SHA256`), in a header or in the query,
/// unless the body is excluded (`UNSIGNED-PAYLOAD`). Responses are never signed, so they can always be edited. A
/// rule that edits requests checks this first, and is bypassed with the returned reason.
pub fn forbids_edits(headers: &HeaderMap, target: Target<'_>) -> Option<&'static str> {
    let says = |name: &HeaderName| headers.get(name).map(http::HeaderValue::as_bytes);
    let in_header = says(&AUTHORIZATION).is_some_and(|value| value.starts_with(b"AWS4-"));
    let in_query = target.parameter("X-Amz-Signature").is_some();
    let without_body = says(&CONTENT_HASH) == Some(b"UNSIGNED-PAYLOAD");
    ((in_header || in_query) && !without_body)
        .then_some("the request is signed (AWS Signature Version 4): changed, it would be refused")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    #[rustfmt::skip]
    fn only_a_signed_body_cannot_be_changed() {
        const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/bedrock/aws4_request, \
                              SignedHeaders=host;x-amz-date, Signature=00";
        for (authorization, content_hash, path, forbidden) in [
            (Some(SIGNED), None, "/model/x/converse", true),
            (Some("AWS4-ECDSA-P256-SHA256 Credential=x"), None, "/", true),
            (Some(SIGNED), Some("UNSIGNED-PAYLOAD"), "/", false),
            (Some(SIGNED), Some("e3b0c442"), "/", true),
            (None, None, "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00", true),
            (Some("Bearer bedrock-api-key"), None, "/model/x/converse", false),
            (None, None, "/", false),
        ] {
            let mut headers = HeaderMap::new();
            let mut insert = |name, value: Option<&'static str>| {
                headers.extend(value.map(|value| (name, HeaderValue::from_static(value))));
            };
            insert(AUTHORIZATION, authorization);
            insert(CONTENT_HASH, content_hash);
            let found = forbids_edits(&headers, Target::new(path));
            assert_eq!(
                found.is_some(),
                forbidden,
                "{authorization:?} {content_hash:?} {path}"
            );
        }
    }
}
