//! Classification of an exchange: kind, dialect, tool, and what its body contains once read.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap};
use http::{Method, Request};
use squall_dialects::mcp::{Head, Id, Output, RpcRequest, Sign};
use squall_dialects::model::ModelRequest;
use squall_dialects::{Dialect, Target, a2a, endpoint, media_type};
use squall_profiles::facts::{Body, CanonicalUrl, Facts, Kind};
use squall_profiles::faults::model_input::{self, Called, Terms};
use squall_profiles::rule::Rule;
use squall_profiles::ruleset::RuleSet;

use crate::compiled::CompiledConfig;
use crate::faults::edit::Speaking;
use crate::headers::declared_length;
use crate::mcp::RpcCall;

/// The classification of an exchange.
#[derive(Clone)]
pub(crate) struct Classification {
    pub(crate) kind: Kind,
    pub(crate) dialect: Option<&'static dyn Dialect>,
    pub(crate) tools: Vec<String>,
    /// The dialect that the configuration gives the endpoint, if the request may be a model call.
    named: Option<&'static dyn Dialect>,
    /// The dialect of the calls on the WebSocket that the request opens.
    opens: Option<&'static dyn Dialect>,
    /// What the head shows about MCP.
    mcp: Head,
    /// The request of MCP or A2A, once the body is read.
    rpc_request: Option<RpcRequest>,
    /// The model request, once the body is read.
    call: Option<ModelRequest>,
    /// The tools whose results a model call contains, once they were read.
    results: Option<Vec<String>>,
    body: Option<Bytes>,
    /// Name of the calling agent, if it is known.
    from: Option<Arc<str>>,
}

impl Classification {
    /// Classifies by the head.
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
        let is_agent = mcp.sign == Sign::Agent
            || a2a::reads_card(request.method(), target.path())
            || live.is_agent(url, rules);
        let kind = match (dialect, mcp.sign) {
            (Some(_), _) => Kind::Llm,
            (None, Sign::Own) => Kind::Mcp,
            (None, _) if crate::headers::wants_upgrade(headers) => Kind::Other,
            (None, _) if is_agent => Kind::Agent,
            (None, Sign::Agent | Sign::Open | Sign::Nothing) => Kind::Tool,
        };
        tools.extend(mcp.tool().map(str::to_owned));
        Self {
            kind,
            dialect,
            tools,
            named: named.filter(|_| dialect.is_some()),
            opens: None,
            mcp,
            rpc_request: None,
            call: None,
            results: None,
            body: None,
            from: None,
        }
    }

    /// The request comes from this agent.
    pub(crate) fn comes_from(&mut self, agent: Option<Arc<str>>) {
        self.from = agent;
    }

    /// Name of the calling agent, if it is known.
    pub(crate) fn from(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// The request opens a WebSocket whose calls are in this dialect.
    pub(crate) fn opens_socket(&mut self, dialect: &'static dyn Dialect) {
        self.opens = Some(dialect);
    }

    /// Adds what the whole body shows.
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
                    Sign::Agent => Kind::Agent,
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

    /// Number of body bytes read.
    pub(crate) fn body_length(&self) -> usize {
        self.body.as_ref().map_or(0, Bytes::len)
    }

    /// The body stays unread: properties that only it could show are false.
    pub(crate) fn stays_unread(&mut self) {
        if self.mcp.sign == Sign::Open {
            self.mcp.sign = Sign::Nothing;
        }
    }

    fn read_mcp(&mut self, body: &[u8]) {
        let asked = match self.mcp.sign {
            Sign::Own | Sign::Agent => RpcRequest::read(body),
            Sign::Open => RpcRequest::read(body).filter(|it| it.is_mcp() || it.is_a2a()),
            Sign::Nothing => None,
        };
        let Some(asked) = asked else {
            // Another binding of A2A, which is plain HTTP.
            if self.mcp.sign == Sign::Agent {
                self.mcp.sign = Sign::Nothing;
            }
            return;
        };
        self.kind = match self.mcp.sign {
            Sign::Agent => Kind::Agent,
            Sign::Open if asked.is_a2a() => Kind::Agent,
            Sign::Own | Sign::Open | Sign::Nothing => Kind::Mcp,
        };
        // The server acts on the body, and rejects a head that contradicts it.
        if let Some(name) = self.mcp.tool() {
            self.tools.retain(|tool| tool != name);
        }
        self.tools
            .extend(asked.tools().into_iter().map(str::to_owned));
        self.rpc_request = Some(asked);
    }

    /// The tool's name in the journal: the called tool, or else the name of the URL.
    pub(crate) fn tool(&self) -> Option<&str> {
        let called = self
            .rpc_request
            .as_ref()
            .and_then(|asked| asked.tools().first().copied());
        let called = called.or_else(|| self.mcp.tool());
        called.or_else(|| self.tools.first().map(String::as_str))
    }

    /// The dialect that the configuration gives the endpoint, where a model may be called.
    pub(crate) fn named(&self) -> Option<&'static dyn Dialect> {
        self.named
    }

    /// Whether only the body shows if a model is called: the endpoint is configured, and its path
    /// is not recognised.
    pub(crate) fn may_be_model_call(&self, method: &Method, url: &CanonicalUrl) -> bool {
        self.named.is_some()
            && squall_dialects::recognise(method, Target::new(url.path_and_query())).is_none()
    }

    /// Whether the body is a model conversation, although no model is called.
    pub(crate) fn takes_history(&self, method: &Method, url: &CanonicalUrl) -> bool {
        self.kind == Kind::Tool
            && endpoint::takes_history(method, Target::new(url.path_and_query()))
    }

    /// Whether the body may show that the exchange is MCP or A2A, or which tool it calls.
    pub(crate) fn may_call_over_rpc(&self) -> bool {
        let is_open = matches!(self.mcp.sign, Sign::Agent | Sign::Open);
        self.kind == Kind::Mcp || (matches!(self.kind, Kind::Tool | Kind::Agent) && is_open)
    }

    /// Adds the tool results in the body, for tools that run inside the agent. `called` holds the
    /// calls that models made.
    pub(crate) fn read_results(&mut self, called: &Called) {
        if let (Some(dialect), Some(body)) = (self.dialect, &self.body) {
            let terms = Terms {
                dialect,
                called: Some(called),
            };
            self.results = Some(model_input::unseen_tools(terms, body));
        }
    }

    /// The tools whose results a model call contains, once they were read.
    pub(crate) fn results(&self) -> Option<&[String]> {
        self.results.as_deref()
    }

    /// Adds the known output schemas of the called tools.
    pub(crate) fn promised(&mut self, output: impl Fn(&str) -> Output) {
        for call in self
            .rpc_request
            .iter_mut()
            .flat_map(|asked| &mut asked.calls)
        {
            if let Some(tool) = call.tool.as_deref() {
                call.output = output(tool);
            }
        }
    }

    /// The request of MCP or A2A, once the body is read.
    pub(crate) fn rpc_request(&self) -> Option<&RpcRequest> {
        self.rpc_request.as_ref()
    }

    /// Whether a GET may open a stream of an MCP session: its `Accept` lists the type.
    pub(crate) fn may_listen(&self) -> bool {
        self.dialect.is_none() && self.mcp.accepts.stream
    }

    /// Whether this is an exchange of MCP or A2A.
    pub(crate) fn is_rpc(&self) -> bool {
        let is_a2a = self.mcp.sign == Sign::Agent || self.rpc_request.is_some();
        self.kind == Kind::Mcp || (self.kind == Kind::Agent && is_a2a)
    }

    /// The request of MCP or A2A, as `rule` sees it; `None` for any other exchange.
    pub(crate) fn rpc_call(&self, rule: Option<&Rule>) -> Option<RpcCall<'_>> {
        self.is_rpc().then(|| {
            let request = self.rpc_request.as_ref();
            let meant = rule
                .zip(request)
                .map(|(rule, request)| rule.calls_meant(request));
            RpcCall {
                head: &self.mcp,
                request,
                meant: meant.unwrap_or_default(),
            }
        })
    }

    /// The id of the only call of a request of MCP or A2A; `None` for a batch, for a notification, and for
    /// any other exchange.
    pub(crate) fn only_call(&self) -> Option<&Id> {
        let asked = self.rpc_request.as_ref().filter(|asked| !asked.batch)?;
        let mut ids = asked.requests().filter_map(|call| call.id.as_ref());
        ids.next()
    }

    /// The requested model, once the body is read.
    pub(crate) fn model(&self) -> Option<&str> {
        self.call.as_ref()?.model.as_deref()
    }

    /// Whether a stream of a model's answer is requested.
    pub(crate) fn streams(&self) -> bool {
        self.call.as_ref().is_some_and(|call| call.stream)
    }

    /// The dialect of the response, and the request in it.
    pub(crate) fn speaking<'a>(&'a self, url: &'a CanonicalUrl) -> Option<Speaking<'a>> {
        self.dialect.or(self.opens).map(|dialect| Speaking {
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
            dialect: self.dialect.or(self.opens).map(Dialect::name),
            tools: &self.tools,
            rpc_tool_call: self.sends_message(method, url)
                || self.asks(Head::calls_a_tool, RpcRequest::calls_a_tool),
            mcp_tool_list: self.asks(Head::lists_tools, RpcRequest::lists_tools),
            may_be_rpc: self.kind != Kind::Mcp && self.may_call_over_rpc() && self.body.is_none(),
            from: self.from(),
            method,
            url,
            headers,
            model: self.model(),
            stream: self.call.as_ref().map(|call| call.stream),
            results: self.results.as_deref(),
            body: self.body.as_deref().map(Body::from),
        }
    }

    /// Whether an agent that does not use A2A gets more than a request for its card.
    fn sends_message(&self, method: &Method, url: &CanonicalUrl) -> bool {
        let path = Target::new(url.path_and_query()).path();
        self.kind == Kind::Agent && !self.is_rpc() && !a2a::reads_card(method, path)
    }

    /// A property of the request of MCP or A2A, by its body or else by its head.
    fn asks(&self, head: impl Fn(&Head) -> bool, asked: impl Fn(&RpcRequest) -> bool) -> bool {
        let by_body = self.rpc_request.as_ref().map(asked);
        matches!(self.kind, Kind::Mcp | Kind::Agent) && by_body.unwrap_or_else(|| head(&self.mcp))
    }
}

/// Whether a request's body may be read before it is forwarded: its length is known and within the
/// limit, or its type is a document rather than a stream.
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
