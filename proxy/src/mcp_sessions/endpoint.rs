//! How a stream of 2024-11-05 begins: with the URL that the agent is to send its messages to.

use http::Uri;
use squall_dialects::stream::{FrameKind, Framing, Splitter};

use super::{Key, Name, Party};
use crate::upstream::Origin;

/// Bytes of a stream's beginning that are kept to be read.
pub(super) const BEGINNING: usize = 4096;

/// The event that names the endpoint.
const ENDPOINT: &str = "endpoint";

/// How a stream begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Begins {
    /// Its first event has not come yet.
    NotYet,
    /// With the endpoint, as it is written there.
    Endpoint(String),
    /// With something else: it is no session of 2024-11-05.
    Otherwise,
}

impl Begins {
    /// Reads a beginning.
    pub(super) fn of(beginning: &[u8]) -> Self {
        let frames = Splitter::new(Framing::Sse, BEGINNING).push(beginning);
        let events = frames.iter().filter(|it| it.kind() == FrameKind::Event);
        let mut told = events.filter_map(|event| Some((event.name(), event.data()?)));
        match told.next() {
            Some((Some(ENDPOINT), data)) => match std::str::from_utf8(&data) {
                Ok(reference) => Self::Endpoint(reference.trim().to_owned()),
                Err(_) => Self::Otherwise,
            },
            Some(_) => Self::Otherwise,
            None if beginning.len() >= BEGINNING => Self::Otherwise,
            None => Self::NotYet,
        }
    }
}

/// Where a stream was asked for: what a relative endpoint is relative to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Base {
    /// Path and query as the agent wrote them.
    pub(crate) path: String,
    /// The agent knows the upstream by this proxy's address, so it is no other upstream whatever
    /// authority is named.
    pub(crate) is_reverse: bool,
}

/// Under what the agent's messages to an endpoint come here. `None`: it is no URL.
pub(super) fn resolve(party: &Party, base: &Base, reference: &str) -> Option<Key> {
    let mut party = party.clone();
    let absolute = match reference.strip_prefix("//") {
        Some(_) => Some(format!("{}:{reference}", party.origin.scheme().as_str())),
        None => reference.contains("://").then(|| reference.to_owned()),
    };
    let path = match absolute {
        None => joined(&base.path, reference),
        Some(absolute) => {
            let uri: Uri = absolute.parse().ok()?;
            let origin = Origin::of_uri(&uri)?;
            // The name in the handshake is the agent's choice, and not written in a URL.
            let same = origin.scheme() == party.origin.scheme()
                && origin.host_and_port() == party.origin.host_and_port();
            if !base.is_reverse && !same {
                party.origin = origin;
            }
            crate::headers::path_and_query(&uri).to_owned()
        }
    };
    Some((party, Name::Endpoint(path)))
}

/// A reference without an authority (RFC 3986 §5.2).
fn joined(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or_default();
    let base = base.split('?').next().unwrap_or_default();
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (reference, String::new()),
    };
    let path = match path {
        "" => return format!("{base}{query}"),
        rooted if rooted.starts_with('/') => rooted.to_owned(),
        relative => {
            let directory = base.rfind('/').map_or("/", |slash| &base[..=slash]);
            format!("{directory}{relative}")
        }
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    segments.pop();
                }
                if is_last {
                    segments.push("");
                }
            }
            part => segments.push(part),
        }
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::upstream::Scheme;

    fn party() -> Party {
        Party {
            origin: Origin::new(Scheme::Http, "server", 8080),
            scope: Arc::from("default"),
            credentials: 0,
        }
    }

    #[test]
    fn an_endpoint_is_found_where_the_agent_calls_it() {
        for (base, is_reverse, reference, host, path) in [
            (
                "/sse",
                false,
                "/messages?s=1",
                "server:8080",
                "/messages?s=1",
            ),
            (
                "/a/sse?x=y",
                false,
                "messages/?s=1",
                "server:8080",
                "/a/messages/?s=1",
            ),
            ("/a/b/sse", false, "../m?s=1", "server:8080", "/a/m?s=1"),
            ("/a/b/", false, "./m", "server:8080", "/a/b/m"),
            ("/a/sse", false, "?s=1", "server:8080", "/a/sse?s=1"),
            ("/sse", false, "/m?s=1#top", "server:8080", "/m?s=1"),
            (
                "/sse",
                false,
                "http://server:8080/m?s=1",
                "server:8080",
                "/m?s=1",
            ),
            ("/sse", false, "http://other/m?s=1", "other:80", "/m?s=1"),
            ("/sse", false, "//other/m", "other:80", "/m"),
            // The agent knows the server by this proxy's own address.
            (
                "/p/sse",
                true,
                "http://localhost:7070/p/m",
                "server:8080",
                "/p/m",
            ),
            (
                "/_scope/a/p/sse",
                true,
                "m?s=1",
                "server:8080",
                "/_scope/a/p/m?s=1",
            ),
        ] {
            let base = Base {
                path: base.to_owned(),
                is_reverse,
            };
            let (found, name) = resolve(&party(), &base, reference).unwrap();
            assert_eq!(found.origin.host_and_port(), host, "{reference}");
            assert_eq!(name, Name::Endpoint(path.to_owned()), "{reference}");
        }
        let base = Base {
            path: "/sse".to_owned(),
            is_reverse: false,
        };
        assert_eq!(resolve(&party(), &base, "ftp://server/m"), None);
    }

    #[test]
    fn a_stream_begins_with_its_endpoint_or_is_something_else() {
        let endpoint = || Begins::Endpoint("/m?s=1".to_owned());
        for (beginning, expected) in [
            ("event: endpoint\r\ndata: /m?s=1\r\n\r\n", endpoint()),
            (
                ": hello\n\nevent: endpoint\ndata: /m?s=1\n\nmore",
                endpoint(),
            ),
            ("event: endpoint\ndata: /m?s=1\n", Begins::NotYet),
            ("", Begins::NotYet),
            ("data: /m?s=1\n\n", Begins::Otherwise),
            (
                "event: tick\ndata: 1\n\nevent: endpoint\ndata: /m\n\n",
                Begins::Otherwise,
            ),
        ] {
            assert_eq!(Begins::of(beginning.as_bytes()), expected, "{beginning}");
        }
        assert_eq!(Begins::of(&[b'x'; BEGINNING]), Begins::Otherwise);
    }
}
