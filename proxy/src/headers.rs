//! Header changes that HTTP requires of an intermediary, and no others (RFC 9110 §7.6).
//!
//! Connection fields are removed; all other fields keep their order, case and duplicates. `Via` and
//! `Forwarded` are not added, in deviation from §7.6.3: the agent must not be able to distinguish
//! an injected fault from a real one.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{Uri, Version};

/// The header that names a scope; never forwarded.
pub(crate) const SCOPE: HeaderName = HeaderName::from_static("x-squall-scope");
/// Names the calling agent; not forwarded.
pub(crate) const AGENT: HeaderName = HeaderName::from_static("x-squall-agent");
const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// How a message's framing and upgrade fields are forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// HTTP version of the incoming connection.
    pub(crate) from: Version,
    /// HTTP version of the outgoing connection.
    pub(crate) to: Version,
    /// The message requests or accepts an upgrade that is passed on.
    pub(crate) upgrade: bool,
}

impl Passage {
    fn both_h1(self) -> bool {
        self.from <= Version::HTTP_11 && self.to <= Version::HTTP_11
    }
}

/// Removes the fields of the agent's connection from a request.
pub(crate) fn clean_request(headers: &mut HeaderMap, passage: Passage) {
    let trailers = names(headers, &TE, "trailers");
    clean(headers, passage, |name| {
        *name == PROXY_AUTHORIZATION
            || *name == SCOPE
            || *name == AGENT
            || *name == HTTP2_SETTINGS
            || (*name == TE && !trailers)
    });
    if trailers {
        // Replaces the existing value in place.
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if passage.to <= Version::HTTP_11 && !passage.upgrade {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
    }
}

/// Removes the fields of the upstream's connection from a response.
pub(crate) fn clean_response(headers: &mut HeaderMap, passage: Passage) {
    clean(headers, passage, |_| false);
}

/// Removes fields that are invalid as trailers: framing, routing and connection fields (RFC 9110
/// §6.5.1).
pub(crate) fn clean_trailers(trailers: &mut HeaderMap) {
    let passage = Passage {
        from: Version::HTTP_2,
        to: Version::HTTP_2,
        upgrade: false,
    };
    clean(trailers, passage, |name| {
        [CONTENT_LENGTH, HOST, TE, TRAILER].contains(name)
    });
}

/// The members of a list field, across all of its lines, in order.
pub(crate) fn members<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    let values = headers.get_all(name).into_iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .filter_map(|member| std::str::from_utf8(member.trim_ascii()).ok())
}

/// Whether a list field contains `option`.
pub(crate) fn names(headers: &HeaderMap, name: &HeaderName, option: &str) -> bool {
    headers.contains_key(name)
        && members(headers, name).any(|member| member.eq_ignore_ascii_case(option))
}

/// Removes connection fields, those that `Connection` lists, and those that `also` selects.
///
/// Most messages have none, and stay unchanged. Otherwise the map is rebuilt, because
/// [`HeaderMap::remove`] moves the last field into the gap and changes the order.
fn clean(headers: &mut HeaderMap, passage: Passage, also: impl Fn(&HeaderName) -> bool) {
    let named = if headers.contains_key(CONNECTION) {
        connection_options(headers)
    } else {
        Vec::new()
    };
    let drops = |name: &HeaderName| {
        if *name == TRANSFER_ENCODING {
            return !passage.both_h1();
        }
        if passage.upgrade && (*name == UPGRADE || *name == CONNECTION) {
            return false;
        }
        *name == CONNECTION
            || *name == KEEP_ALIVE
            || *name == PROXY_CONNECTION
            || *name == UPGRADE
            || also(name)
            || named
                .iter()
                .any(|option| option.eq_ignore_ascii_case(name.as_str()))
    };
    if !headers.keys().any(&drops) {
        return;
    }
    let mut kept = HeaderMap::with_capacity(headers.len());
    let mut current: Option<HeaderName> = None;
    for (name, value) in std::mem::take(headers) {
        if let Some(name) = name {
            current = (!drops(&name)).then_some(name);
        }
        if let Some(name) = &current {
            kept.append(name.clone(), value);
        }
    }
    *headers = kept;
}

/// The field names that `Connection` lists, except framing and identity fields. A request that
/// lists `Host` or `Content-Length` there may be an attack.
fn connection_options(headers: &HeaderMap) -> Vec<String> {
    let stays = |option: &str| {
        [HOST, CONTENT_LENGTH, TRANSFER_ENCODING]
            .iter()
            .any(|name| option.eq_ignore_ascii_case(name.as_str()))
    };
    members(headers, &CONNECTION)
        .filter(|option| !option.is_empty() && !stays(option))
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Whether the request has a valid upgrade.
pub(crate) fn wants_upgrade(headers: &HeaderMap) -> bool {
    headers.contains_key(UPGRADE)
        && names(headers, &CONNECTION, "upgrade")
        // An h2c upgrade applies to one hop and is never passed on (RFC 9113 §3.1 removed it).
        && !headers.contains_key(HTTP2_SETTINGS)
}

/// Whether the request has a valid upgrade to a WebSocket (RFC 6455 §4.1).
pub(crate) fn wants_websocket(headers: &HeaderMap) -> bool {
    wants_upgrade(headers) && names(headers, &UPGRADE, "websocket")
}

/// The body length that the head declares.
pub(crate) fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers
        .get(CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .trim()
        .parse()
        .ok()
}

/// Path and query of a URI, `/` if it has none.
pub(crate) fn path_and_query(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |path| {
        if path.as_str().is_empty() {
            "/"
        } else {
            path.as_str()
        }
    })
}

/// Path and query for a request line. A URI like `http://host?q` has no path, so `/` is added (RFC
/// 9112 §3.2.1).
pub(crate) fn origin_form(uri: &Uri) -> PathAndQuery {
    let path = match uri.path_and_query() {
        Some(path) if path.as_str().starts_with('?') => format!("/{}", path.as_str()).parse().ok(),
        Some(path) if !path.as_str().is_empty() => Some(path.clone()),
        _ => None,
    };
    path.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_begins_with_a_slash() {
        for (uri, line) in [
            ("http://host/a?b", "/a?b"),
            ("http://host?q=1", "/?q=1"),
            ("http://host", "/"),
            ("/a", "/a"),
        ] {
            let uri: Uri = uri.parse().unwrap();
            assert_eq!(origin_form(&uri).as_str(), line, "{uri}");
        }
    }

    #[test]
    fn framing_and_routing_do_not_come_behind_a_body() {
        let mut trailers = HeaderMap::new();
        for name in [
            "grpc-status",
            "content-length",
            "transfer-encoding",
            "host",
            "connection",
            "digest",
            "trailer",
        ] {
            trailers.append(name, HeaderValue::from_static("7"));
        }
        clean_trailers(&mut trailers);
        let left: Vec<_> = trailers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["grpc-status", "digest"]);
    }

    const H1: Passage = Passage {
        from: Version::HTTP_11,
        to: Version::HTTP_11,
        upgrade: false,
    };

    fn map(fields: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        headers
    }

    fn list(headers: &HeaderMap) -> Vec<(&str, &str)> {
        headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect()
    }

    #[test]
    #[rustfmt::skip]
    fn connection_fields_go_and_the_rest_keeps_its_order() {
        for (sent, passage, expected) in [
            (
                &[
                    ("host", "h"),
                    ("connection", "keep-alive, X-Hop"),
                    ("a", "1"),
                    ("x-hop", "2"),
                    ("b", "3"),
                    ("a", "4"),
                ][..],
                H1,
                &[("host", "h"), ("a", "1"), ("a", "4"), ("b", "3")][..],
            ),
            (
                &[
                    ("proxy-authorization", "Basic x"),
                    ("x-squall-scope", "s"),
                    ("keep-alive", "5"),
                    ("z", "1"),
                ],
                H1,
                &[("z", "1")],
            ),
            (
                &[("transfer-encoding", "chunked"), ("a", "1")],
                H1,
                &[("transfer-encoding", "chunked"), ("a", "1")],
            ),
            (
                &[("transfer-encoding", "chunked"), ("a", "1")],
                Passage {
                    to: Version::HTTP_2,
                    ..H1
                },
                &[("a", "1")],
            ),
            (
                &[
                    ("connection", "Upgrade"),
                    ("upgrade", "websocket"),
                    ("a", "1"),
                ],
                Passage {
                    upgrade: true,
                    ..H1
                },
                &[
                    ("connection", "Upgrade"),
                    ("upgrade", "websocket"),
                    ("a", "1"),
                ],
            ),
            (&[("te", "trailers"), ("a", "1")], H1, &[("te", "trailers"), ("a", "1"), ("connection", "te")]),
            (
                &[("te", "gzip, trailers"), ("a", "1"), ("te", "deflate")],
                Passage {
                    from: Version::HTTP_2,
                    to: Version::HTTP_2,
                    upgrade: false,
                },
                &[("te", "trailers"), ("a", "1")],
            ),
            (&[("connection", "host"), ("host", "h")], H1, &[("host", "h")]),
        ] {
            let mut headers = map(sent);
            clean_request(&mut headers, passage);
            assert_eq!(list(&headers), expected, "{sent:?}");
        }
    }

    #[test]
    fn an_upgrade_needs_both_fields_and_is_not_h2c() {
        for (sent, expected) in [
            (
                &[
                    ("connection", "keep-alive, Upgrade"),
                    ("upgrade", "websocket"),
                ][..],
                true,
            ),
            (&[("upgrade", "websocket")], false),
            (
                &[
                    ("connection", "upgrade, http2-settings"),
                    ("upgrade", "h2c"),
                    ("http2-settings", "x"),
                ],
                false,
            ),
        ] {
            assert_eq!(wants_upgrade(&map(sent)), expected, "{sent:?}");
        }
    }
}
