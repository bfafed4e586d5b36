//! What an exchange is: kind, dialect, tool, and what its body says when that was read.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http::{Method, Request};
use squall_dialects::mcp::{Asked, Head, Id, Output, Sign};
use squall_dialects::model::ModelRequest;
use squall_dialects::{Dialect, Target, endpoint, media_type};
use squall_profiles::facts::{Body, CanonicalUrl, Facts, Kind};
use squall_profiles::faults::model_input::{self, Called, Terms};
use squall_profiles::rule::Rule;
use squall_profiles::ruleset::RuleSet;

use crate::compiled::CompiledConfig;
use crate::faults::declared_length;
use crate::faults::edit::Speaking;
use crate::mcp::McpCall;

/// What is known of an exchange beside its head.
#[derive(Clone)]
pub(crate) struct Classification {
    pub(crate) kind: Kind,
    pub(crate) dialect: Option<&'static dyn Dialect>,
    pub(crate) tools: Vec<String>,
    /// The dialect that the user says the endpoint speaks, where the request may be a model call.
    named: Option<&'static dyn Dialect>,
    /// What the head says of MCP.
    mcp: Head,
    /// What an MCP server is asked, once the body is read.
    asked: Option<Asked>,
    /// What the body asks a model for, once it is read.
    call: Option<ModelRequest>,
    /// The tools whose results a model call brings, once somebody asked.
    results: Option<Vec<String>>,
    body: Option<Bytes>,
}

impl Classification {
    /// What the head tells.
    pub(crate) fn of_head<B>(
        live: &CompiledConfig,
        rules: &RuleSet,
        request: &Request<B>,
        url: &CanonicalUrl,
    ) -> Self {
        let headers = request.headers();
        let target = Target::new(url.path_and_query());
        let named = live.llm_dialect(url);
        let dialect = match named {
            Some(named) => endpoint::at(named, request.method(), target, headers),
            None => squall_dialects::recognise(request.method(), target),
        };
        let mcp = Head::of(request.method(), headers);
        let mut tools = live.tools_at(url, rules);
        let kind = match (dialect, mcp.sign) {
            (Some(_), _) => Kind::Llm,
            (None, Sign::Own) => Kind::Mcp,
            (None, _) if crate::headers::wants_upgrade(headers) => Kind::Other,
            (None, Sign::Open | Sign::Nothing) => Kind::Tool,
        };
        tools.extend(mcp.tool().map(str::to_owned));
        Self {
            kind,
            dialect,
            tools,
            named: named.filter(|_| dialect.is_some()),
            mcp,
            asked: None,
            call: None,
            results: None,
            body: None,
        }
    }

    /// Adds what the whole body tells.
    pub(crate) fn read_body(&mut self, method: &Method, url: &CanonicalUrl, body: Bytes) {
        let target = Target::new(url.path_and_query());
        if self.dialect.is_some() {
            self.dialect = match self.named {
                Some(named) => endpoint::confirm_at(named, method, target, &body),
                None => squall_dialects::confirm(method, target, &body),
            };
            if self.dialect.is_none() {
                self.kind = match self.mcp.sign {
                    Sign::Own => Kind::Mcp,
                    Sign::Open | Sign::Nothing => Kind::Tool,
                };
            }
        }
        match self.dialect {
            Some(dialect) => self.call = squall_dialects::read_request(dialect, target, &body),
            None => self.read_mcp(&body),
        }
        self.body = Some(body);
    }

    /// Bytes of the body, as far as it was read.
    pub(crate) fn body_length(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The body stays unread: what only it could tell is not so.
    pub(crate) fn stays_unread(&mut self) {
        if self.mcp.sign == Sign::Open {
            self.mcp.sign = Sign::Nothing;
        }
    }

    fn read_mcp(&mut self, body: &[u8]) {
        let asked = match self.mcp.sign {
            Sign::Own => Asked::read(body),
            Sign::Open => Asked::read(body).filter(Asked::is_mcp),
            Sign::Nothing => None,
        };
        let Some(asked) = asked else { return };
        self.kind = Kind::Mcp;
        // The body is what the server does; a head that says otherwise is refused by it.
        if let Some(name) = self.mcp.tool() {
            self.tools.retain(|tool| tool != name);
        }
        self.tools
            .extend(asked.tools().into_iter().map(str::to_owned));
        self.asked = Some(asked);
    }

    /// The name that the journal knows the exchange's tool by: that of the one called, else of what
    /// its URL stands for.
    pub(crate) fn tool(&self) -> Option<&str> {
        let called = self
            .asked
            .as_ref()
            .and_then(|asked| asked.tools().first().copied());
        let called = called.or_else(|| self.mcp.tool());
        called.or_else(|| self.tools.first().map(String::as_str))
    }

    /// The dialect that the user says the endpoint speaks, where a model may be called.
    pub(crate) fn named(&self) -> Option<&'static dyn Dialect> {
        self.named
    }

    /// Whether only the body says for sure that a model is called: the user names the endpoint, and
    /// the path says nothing.
    pub(crate) fn may_be_model_call(&self, method: &Method, url: &CanonicalUrl) -> bool {
        self.named.is_some()
            && squall_dialects::recognise(method, Target::new(url.path_and_query())).is_none()
    }

    /// Whether the body is a conversation with a model, though none is asked to answer.
    pub(crate) fn takes_history(&self, method: &Method, url: &CanonicalUrl) -> bool {
        self.kind == Kind::Tool
            && endpoint::takes_history(method, Target::new(url.path_and_query()))
    }

    /// Whether the body may be one by its shape, in a dialect that nobody knows.
    pub(crate) fn may_take_history<B>(&self, request: &Request<B>, url: &CanonicalUrl) -> bool {
        let target = Target::new(url.path_and_query());
        self.kind == Kind::Tool
            && endpoint::may_be_call(request.method(), target, request.headers())
    }

    /// Whether the body may say that the exchange is MCP, or which tool it calls.
    pub(crate) fn may_call_over_mcp(&self) -> bool {
        self.kind == Kind::Mcp || (self.kind == Kind::Tool && self.mcp.sign == Sign::Open)
    }

    /// Adds what the body says of tools that ran inside the agent, with what models have `called`.
    pub(crate) fn read_results(&mut self, called: &Called) {
        if let (Some(dialect), Some(body)) = (self.dialect, &self.body) {
            let terms = Terms {
                dialect,
                called: Some(called),
            };
            self.results = Some(model_input::unseen_tools(terms, body));
        }
    }

    /// The tools whose results a model call brings, once they were read.
    pub(crate) fn results(&self) -> Option<&[String]> {
        self.results.as_deref()
    }

    /// Adds what is known of the results of the tools that are called.
    pub(crate) fn promised(&mut self, output: impl Fn(&str) -> Output) {
        for call in self.asked.iter_mut().flat_map(|asked| &mut asked.calls) {
            if let Some(tool) = call.tool.as_deref() {
                call.output = output(tool);
            }
        }
    }

    /// What an MCP server is asked, once the body is read.
    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.as_ref()
    }

    /// Whether a GET may open a stream of an MCP session: it asks for one by name.
    pub(crate) fn may_listen(&self) -> bool {
        self.dialect.is_none() && self.mcp.accepts.stream
    }

    /// Whether an MCP server is talked to.
    pub(crate) fn is_mcp(&self) -> bool {
        self.kind == Kind::Mcp
    }

    /// What an MCP server is asked, as `rule` sees it; `None` for any other exchange.
    pub(crate) fn mcp_call(&self, rule: Option<&Rule>) -> Option<McpCall<'_>> {
        (self.kind == Kind::Mcp).then(|| {
            let asked = self.asked.as_ref();
            let meant = rule.zip(asked).map(|(rule, asked)| rule.calls_meant(asked));
            McpCall {
                head: &self.mcp,
                asked,
                meant: meant.unwrap_or_default(),
            }
        })
    }

    /// The id of the one call of an MCP request; `None` for a batch, for what waits for no answer,
    /// and for any other exchange.
    pub(crate) fn only_call(&self) -> Option<&Id> {
        let asked = self.asked.as_ref().filter(|asked| !asked.batch)?;
        let mut ids = asked.requests().filter_map(|call| call.id.as_ref());
        ids.next()
    }

    /// The model asked for, once the body is read.
    pub(crate) fn model(&self) -> Option<&str> {
        self.call.as_ref()?.model.as_deref()
    }

    /// The dialect that the answer speaks, and what was asked in it.
    pub(crate) fn speaking<'a>(&'a self, url: &'a CanonicalUrl) -> Option<Speaking<'a>> {
        self.dialect.map(|dialect| Speaking {
            dialect,
            target: Target::new(url.path_and_query()).at(url.host()),
            request: self.call.as_ref(),
            body: self.body.as_deref(),
            credential: None,
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
            mcp_tool_call: self.asks(Head::calls_a_tool, Asked::calls_a_tool),
            mcp_tool_list: self.asks(Head::lists_tools, Asked::lists_tools),
            may_be_mcp: self.kind == Kind::Tool
                && self.mcp.sign == Sign::Open
                && self.body.is_none(),
            method,
            url,
            headers,
            model: self.model(),
            stream: self.call.as_ref().map(|call| call.stream),
            results: self.results.as_deref(),
            body: self.body.as_deref().map(Body::from),
        }
    }

    /// What an MCP exchange asks for, by its body or else by its head.
    fn asks(&self, head: impl Fn(&Head) -> bool, asked: impl Fn(&Asked) -> bool) -> bool {
        let by_body = self.asked.as_ref().map(asked);
        self.kind == Kind::Mcp && by_body.unwrap_or_else(|| head(&self.mcp))
    }
}

/// Whether a request's body may be read before it is forwarded: it is of a known, bearable length,
/// or of a kind that is a document rather than a stream.
pub(crate) fn may_read_ahead(headers: &HeaderMap, limit: u64) -> bool {
    if headers.contains_key(CONTENT_ENCODING) || crate::headers::wants_upgrade(headers) {
        return false;
    }
    if let Some(length) = declared_length(headers) {
        return length <= limit;
    }
    media_type(headers).is_some_and(|kind| {
        matches!(
            &*kind,
            "application/json" | "application/x-www-form-urlencoded"
        ) || (kind.starts_with("application/") && kind.ends_with("+json"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

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
