//! Converts a request for its next hop: origin-form with `Host` on HTTP/1.1 (RFC 9112 §3.2), scheme
//! and authority without `Host` on HTTP/2 (RFC 9113 §8.3.1).
//!
//! The caller removes fields that belong to one connection.

use http::header::{CONNECTION, COOKIE, HOST, PROXY_AUTHORIZATION, TE};
use http::uri::{Authority, Scheme as UriScheme};
use http::{HeaderValue, Request, Uri, Version};

use super::chain::UpstreamProxy;
use super::origin::{Scheme, UpstreamOrigin};
use crate::headers;

/// Converts `request` for an HTTP/1.1 upstream.
pub(super) fn for_http1<B>(request: &mut Request<B>, origin: &UpstreamOrigin) {
    if !request.headers().contains_key(HOST) {
        let host = host_field(request.uri(), origin);
        request.headers_mut().insert(HOST, host);
    }
    if request.version() == Version::HTTP_2 {
        join_cookies(request);
        name_te(request);
    }
    if request.uri().authority().is_some() {
        let path = headers::origin_form(request.uri());
        *request.uri_mut() = Uri::from(path);
    }
    *request.version_mut() = Version::HTTP_11;
}

/// Converts a plain HTTP `request` for another proxy: absolute-form, with its credentials.
pub(super) fn for_proxy<B>(
    request: &mut Request<B>,
    origin: &UpstreamOrigin,
    proxy: &UpstreamProxy,
) {
    for_http1(request, origin);
    absolute(request, origin, authority_of(origin));
    if let Some(authorization) = proxy.authorization() {
        request
            .headers_mut()
            .insert(PROXY_AUTHORIZATION, authorization.clone());
    }
}

/// Converts `request` for an HTTP/2 upstream.
pub(super) fn for_http2<B>(request: &mut Request<B>, origin: &UpstreamOrigin) {
    let written = request.headers_mut().remove(HOST);
    let authority = written
        .and_then(|host| Authority::try_from(host.as_bytes()).ok())
        .or_else(|| request.uri().authority().cloned())
        .or_else(|| authority_of(origin));
    absolute(request, origin, authority);
    *request.version_mut() = Version::HTTP_2;
}

fn absolute<B>(request: &mut Request<B>, origin: &UpstreamOrigin, authority: Option<Authority>) {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(match origin.scheme() {
        Scheme::Http => UriScheme::HTTP,
        Scheme::Https => UriScheme::HTTPS,
    });
    parts.authority = authority;
    parts.path_and_query = Some(headers::origin_form(request.uri()));
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

fn authority_of(origin: &UpstreamOrigin) -> Option<Authority> {
    origin.authority().parse().ok()
}

/// The `Host` as the agent would write it: its own authority, or else the origin's.
fn host_field(uri: &Uri, origin: &UpstreamOrigin) -> HeaderValue {
    let written = uri.authority().and_then(|authority| {
        let host = authority
            .as_str()
            .rsplit_once('@')
            .map_or(authority.as_str(), |(_, host)| host);
        HeaderValue::from_str(host).ok()
    });
    written
        .or_else(|| HeaderValue::from_str(&origin.authority()).ok())
        .unwrap_or_else(|| HeaderValue::from_static(""))
}

/// HTTP/2 may split cookies into several fields, HTTP/1.1 may not (RFC 9113 §8.2.3).
fn join_cookies<B>(request: &mut Request<B>) {
    let crumbs: Vec<&[u8]> = request
        .headers()
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if crumbs.len() < 2 {
        return;
    }
    if let Ok(whole) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        request.headers_mut().insert(COOKIE, whole);
    }
}

/// `TE` applies to one connection: on HTTP/1.1 `Connection` lists it, and HTTP/2 has no such field
/// (RFC 9110 §10.1.4, RFC 9113 §8.2.2).
fn name_te<B>(request: &mut Request<B>) {
    if request.headers().contains_key(TE) {
        let option = HeaderValue::from_static("te");
        request.headers_mut().insert(CONNECTION, option);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, version: Version, fields: &[(&str, &str)]) -> Request<()> {
        let mut builder = Request::builder().uri(uri).version(version);
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        builder.body(()).unwrap()
    }

    #[test]
    fn an_http2_request_becomes_an_http1_one() {
        let origin = UpstreamOrigin::new(Scheme::Https, "up.example", 443);
        let fields = [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")];
        let mut request = request("https://Asked.example/p?q", Version::HTTP_2, &fields);
        for_http1(&mut request, &origin);
        assert_eq!(request.uri(), "/p?q");
        assert_eq!(request.version(), Version::HTTP_11);
        assert_eq!(request.headers()[HOST], "Asked.example");
        assert_eq!(request.headers()[COOKIE], "a=1; b=2");
        assert!(!request.headers().contains_key(CONNECTION));
    }

    #[test]
    fn an_http2_request_that_takes_trailers_says_so_of_its_http1_connection() {
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 8080);
        for (version, option) in [(Version::HTTP_2, Some("te")), (Version::HTTP_11, None)] {
            // On HTTP/1.1 the caller does this, because it knows whether there is an upgrade.
            let mut request = request("http://up.example:8080/p", version, &[("te", "trailers")]);
            for_http1(&mut request, &origin);
            let connection = request.headers().get(CONNECTION);
            assert_eq!(
                connection.map(HeaderValue::as_bytes),
                option.map(str::as_bytes)
            );
            assert_eq!(request.headers()[TE], "trailers");
        }
    }

    #[test]
    fn an_http1_request_keeps_its_host_and_its_target() {
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 8080);
        for (uri, target) in [
            ("/p?q", "/p?q"),
            ("*", "*"),
            ("http://up.example:8080/p", "/p"),
            ("http://up.example:8080", "/"),
        ] {
            let mut request = request(uri, Version::HTTP_11, &[("host", "kept:1")]);
            for_http1(&mut request, &origin);
            assert_eq!(request.uri(), target);
            assert_eq!(request.headers()[HOST], "kept:1");
        }
    }

    #[test]
    fn an_http2_upstream_gets_the_host_as_authority() {
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 8080);
        for (uri, fields, whole) in [
            ("/p", &[("host", "asked:1")][..], "http://asked:1/p"),
            ("http://other/p", &[], "http://other/p"),
            ("/p", &[], "http://up.example:8080/p"),
        ] {
            let mut request = request(uri, Version::HTTP_2, fields);
            for_http2(&mut request, &origin);
            assert_eq!(request.uri(), whole);
            assert!(!request.headers().contains_key(HOST));
        }
    }

    #[test]
    fn another_proxy_gets_the_absolute_form_and_its_credentials() {
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 80);
        let proxy = UpstreamProxy::parse("http://u:p@proxy:3128").unwrap();
        let mut request = request("/p", Version::HTTP_11, &[("host", "up.example")]);
        for_proxy(&mut request, &origin, &proxy);
        assert_eq!(request.uri(), "http://up.example/p");
        assert!(request.headers().contains_key(PROXY_AUTHORIZATION));
    }
}
