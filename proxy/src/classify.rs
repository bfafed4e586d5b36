//! What an exchange is: kind, dialect, tool, and what its body says when that was read.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName};
use http::{Method, Request};
use squall_dialects::model::ModelRequest;
use squall_dialects::{Dialect, Target};
use squall_profiles::facts::{CanonicalUrl, Facts, Kind};

use crate::carry_out::edit::Speaking;
use crate::live::Live;

const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const MCP_SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const MCP_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

/// What is known of an exchange beside its head.
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) dialect: Option<&'static dyn Dialect>,
    pub(crate) tools: Vec<String>,
    /// The dialect was named by the user, so the body need not look like it.
    named: bool,
    mcp_tool_call: bool,
    /// What the body asks a model for, once it is read.
    call: Option<ModelRequest>,
    body: Option<Bytes>,
}

impl Seen {
    /// What the head tells.
    pub(crate) fn of_head<B>(live: &Live, request: &Request<B>, url: &CanonicalUrl) -> Self {
        let headers = request.headers();
        let named = live.llm_dialect(url);
        let dialect = named.or_else(|| {
            squall_dialects::recognise(request.method(), Target::new(url.path_and_query()))
        });
        let mcp = [&MCP_METHOD, &MCP_SESSION, &MCP_VERSION]
            .into_iter()
            .any(|name| headers.contains_key(name));
        let mut tools: Vec<String> = live
            .tools
            .names(url)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mcp_tool_call = headers
            .get(MCP_METHOD)
            .is_some_and(|method| method.as_bytes() == b"tools/call");
        if mcp_tool_call && let Some(name) = headers.get(MCP_NAME).and_then(|n| n.to_str().ok()) {
            tools.push(name.to_owned());
        }
        let kind = match dialect {
            Some(_) => Kind::Llm,
            None if mcp => Kind::Mcp,
            None if crate::headers::wants_upgrade(headers) => Kind::Other,
            None => Kind::Tool,
        };
        Self {
            kind,
            dialect,
            tools,
            named: named.is_some(),
            mcp_tool_call,
            call: None,
            body: None,
        }
    }

    /// Adds what the whole body tells.
    pub(crate) fn read_body(&mut self, method: &Method, url: &CanonicalUrl, body: Bytes) {
        let target = Target::new(url.path_and_query());
        if self.dialect.is_some() && !self.named {
            self.dialect = squall_dialects::confirm(method, target, &body);
            if self.dialect.is_none() {
                self.kind = Kind::Tool;
            }
        }
        if let Some(dialect) = self.dialect {
            self.call = squall_dialects::read_request(dialect, target, &body);
        }
        self.body = Some(body);
    }

    /// The model asked for, once the body is read.
    pub(crate) fn model(&self) -> Option<&str> {
        self.call.as_ref()?.model.as_deref()
    }

    /// The dialect that the answer speaks, and what was asked in it.
    pub(crate) fn speaking<'a>(&'a self, url: &'a CanonicalUrl) -> Option<Speaking<'a>> {
        self.dialect.map(|dialect| Speaking {
            dialect,
            target: Target::new(url.path_and_query()),
            request: self.call.as_ref(),
            body: self.body.as_deref(),
        })
    }

    /// The exchange as rules see it.
    pub(crate) fn facts<'a>(
        &'a self,
        method: &'a Method,
        url: &'a CanonicalUrl,
        headers: &'a HeaderMap,
    ) -> Facts<'a> {
        Facts {
            kind: self.kind,
            dialect: self.dialect.map(Dialect::name),
            tools: &self.tools,
            mcp_tool_call: self.mcp_tool_call,
            method,
            url,
            headers,
            model: self.model(),
            stream: self.call.as_ref().map(|call| call.stream),
            body: self.body.as_deref(),
        }
    }
}

/// Whether a request's body may be read before it is forwarded: it is of a known, bearable length,
/// or of a kind that is a document rather than a stream.
pub(crate) fn may_read_ahead(headers: &HeaderMap, limit: u64) -> bool {
    if headers.contains_key(CONTENT_ENCODING) || crate::headers::wants_upgrade(headers) {
        return false;
    }
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok());
    if let Some(length) = declared.and_then(|length| length.trim().parse::<u64>().ok()) {
        return length <= limit;
    }
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    kind == "application/json"
        || kind == "application/x-www-form-urlencoded"
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_documents_and_declared_lengths_are_read_ahead() {
        for (fields, expected) in [
            (&[("content-length", "10")][..], true),
            (&[("content-length", "11")], false),
            (&[("content-type", "application/json; charset=utf-8")], true),
            (&[("content-type", "application/vnd.api+json")], true),
            (&[("content-type", "application/grpc")], false),
            (&[], false),
            (
                &[("content-length", "3"), ("content-encoding", "gzip")],
                false,
            ),
        ] {
            let headers = fields
                .iter()
                .map(|(name, value)| {
                    (
                        HeaderName::from_static(name),
                        HeaderValue::from_static(value),
                    )
                })
                .collect();
            assert_eq!(may_read_ahead(&headers, 10), expected, "{fields:?}");
        }
    }
}
