//! Reads of a request before its rules are decided.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use squall_profiles::activation::Observe;
use squall_profiles::decide::Decision;
use squall_profiles::facts::{Facts, Kind, Stage};

use super::classify::may_read_ahead;
use super::connection::{CarriedRules, Ingress};
use super::log::MODEL_BYTES;
use super::request_body::RequestBody;
use super::{Exchange, ScriptStep};
use crate::abort::Abort;
use crate::body::AgentBody;
use crate::recorder::{Answering, CallTap, Capture, ModelTraffic, RpcTraffic, Traffic};
use crate::vocabularies;

/// Longest body whose rules are decided on the worker's thread, bytes.
const AT_ONCE: usize = 256 << 10;

impl Exchange {
    /// Sets up the observers for the journal, and finds the scope's tape.
    pub(super) fn observe(&mut self, request: &Request<Incoming>) {
        let observe = self.log.chaos().observe();
        if observe != Observe::Headers {
            self.read_for_journal();
        }
        if !self.log.chaos().captures() {
            return;
        }
        let tapes = self.connection.worker.engine.chaos.tapes();
        let recordings = tapes.recordings(self.log.chaos().scope());
        let observed = observe == Observe::Bodies;
        if observed || !recordings.is_empty() {
            let head = (
                request.method(),
                self.target.url.as_str(),
                request.version(),
                request.headers(),
            );
            let capture = Capture::new(recordings, observed, tapes.room(), head);
            let mut readers = self.log.taps();
            readers.copies = self.version == Version::HTTP_2;
            readers.traffic.get_or_insert_default().capture = Some(Box::new(capture));
        }
        self.tape = tapes.playing(self.log.chaos().scope());
    }

    /// Whether the exchange is only forwarded: no rules, no tape, and no canary search that depends
    /// on the body.
    pub(super) fn is_only_forwarded(&self) -> bool {
        let looks = self.body_says_what_it_is() && self.log.looks_for_canaries();
        self.rules.is_empty() && self.tape.is_none() && !looks
    }

    /// Whether rules do not apply to a carried exchange; those that match are bypassed.
    pub(super) fn takes_no_rules(&self, request: &Request<Incoming>) -> bool {
        let Some(carrier) = self.connection.ingress.carrier() else {
            return false;
        };
        match carrier.rules() {
            CarriedRules::InForce => return false,
            CarriedRules::Bypassed(why) if !self.rules.is_empty() => {
                let (method, url) = (&self.method, &self.target.url);
                let facts = self.classified.facts(method, url, request.headers());
                let bypassed = self.rules.bypass(&facts, why);
                self.log.verdicts().all.extend(bypassed);
            }
            CarriedRules::Bypassed(_) | CarriedRules::None => {}
        }
        true
    }

    /// Bypasses rules for the model calls of a WebSocket that passes unread after this response.
    pub(super) fn bypass_calls_that_pass(&self, answer: &HeaderMap) {
        if let Some(socket) = &self.socket
            && let Some(why) = socket.unread(answer)
        {
            let bypassed = socket.bypassed(&self.rules, &why);
            self.log.verdicts().all.extend(bypassed);
        }
    }

    /// Whether only the body shows if a model is called: the endpoint is configured by the user.
    pub(super) fn body_says_what_it_is(&self) -> bool {
        self.classified
            .may_be_model_call(&self.method, &self.target.url)
    }

    /// The request with a body that is forwarded as it arrives.
    pub(super) fn passing(&self, request: Request<Incoming>) -> Request<RequestBody> {
        request.map(|body| RequestBody::passing(body, Rc::clone(&self.log)))
    }

    /// Decides which rules fire; reads the body first if one of them depends on it.
    pub(super) async fn decide(
        &mut self,
        request: Request<Incoming>,
    ) -> ScriptStep<(Request<RequestBody>, Decision)> {
        let stage = Stage::Request {
            behind_connect: match &self.connection.ingress {
                Ingress::Tunnel(tunnel) => tunnel.was_decided_by(self.rules.rules()),
                Ingress::Listener(_) | Ingress::Carried(_) => false,
            },
        };
        let facts = self
            .classified
            .facts(&self.method, &self.target.url, request.headers());
        let shortlist = self.rules.shortlist(&facts, stage);
        let may_hit_a_tool = self.may_hit_a_tool(&facts, stage);
        let looks_for_canaries = self.body_says_what_it_is() && self.log.looks_for_canaries();
        if shortlist.is_empty() && !may_hit_a_tool && !looks_for_canaries {
            return Ok((self.passing(request), Decision::default()));
        }
        // Some faults depend on the model call or the MCP request in the body.
        let in_kind = shortlist.depends_on_the_call || self.rules.rules().reads_results();
        let is_needed = shortlist.needs_body
            || may_hit_a_tool
            || looks_for_canaries
            || matches!(self.classified.kind, Kind::Mcp | Kind::Agent)
            || (self.classified.dialect.is_some() && in_kind);
        let limit = self.compiled.config.inspect_limit;
        let is_empty = request.body().is_end_stream();
        let request = if is_needed && (is_empty || may_read_ahead(request.headers(), limit)) {
            self.read_ahead(request).await?
        } else {
            self.classified.stays_unread();
            self.passing(request)
        };
        self.tap_calls();
        self.get_ready_to_count().await;
        let elapsed = self.log.chaos().elapsed();
        let is_long = shortlist.needs_body && self.classified.body_length() > AT_ONCE;
        let mut decision = if is_long {
            // Expressions over a long body are slow, so they do not block the worker's thread.
            let (rules, classified) = (self.rules.clone(), self.classified.clone());
            let (method, url) = (self.method.clone(), self.target.url.clone());
            let headers = request.headers().clone();
            let deciding = tokio::task::spawn_blocking(move || {
                let facts = classified.facts(&method, &url, &headers);
                rules.decide(&shortlist, &facts, stage, elapsed)
            });
            let decided = deciding.await;
            decided.map_err(|error| Abort::close(format!("rules were not decided: {error}")))?
        } else {
            let (method, url) = (&self.method, &self.target.url);
            let facts = self.classified.facts(method, url, request.headers());
            self.rules.decide(&shortlist, &facts, stage, elapsed)
        };
        if decision.awaits_response() || decision.plan.mentions_headers() {
            self.headers = request.headers().clone();
        }
        self.log.decided(&mut decision);
        Ok((request, decision))
    }

    /// Whether a rule may match an apparent model call, if its body shows that it is none.
    fn may_hit_a_tool(&self, facts: &Facts<'_>, stage: Stage) -> bool {
        if self.classified.dialect.is_none() {
            return false;
        }
        let as_a_tool = Facts {
            kind: Kind::Tool,
            dialect: None,
            ..facts.clone()
        };
        // Rules without a kind are on the list already.
        let shortlist = self.rules.shortlist(&as_a_tool, stage);
        shortlist.depends_on_the_call
    }

    /// Reads the calls in the response, if a rule may later need their tools. The request with the
    /// results may not name them, because the provider stores them.
    fn tap_calls(&self) {
        let dialect = self.classified.dialect.filter(|dialect| {
            dialect
                .provider()
                .has(squall_dialects::Quirk::KeepsConversations)
        });
        if let Some(dialect) = dialect.filter(|_| self.rules.rules().reads_results()) {
            let called = CallTap::new(dialect, self.target.url.path_and_query());
            self.log.taps().called = Some(Box::new(called));
        }
    }

    /// Records whether the model answers a request whose tool results were changed.
    pub(super) fn tap_answer(&self, answer: &Response<AgentBody>) {
        let request = self
            .changed_request
            .filter(|_| answer.status().is_success());
        if let (Some(request), Some(dialect)) = (request, self.classified.dialect) {
            let target = self.target.url.path_and_query();
            let answering = Answering::new(request, dialect, target, answer.headers());
            self.log.taps().answering = Some(Box::new(answering));
        }
    }

    /// Loads the vocabulary of the call's model if a rule may count tokens with it. It does not
    /// block the worker's thread.
    pub(super) async fn get_ready_to_count(&self) {
        if self.classified.dialect.is_some() && self.rules.rules().counts_tokens() {
            Box::pin(vocabularies::load(self.classified.model())).await;
        }
    }

    /// Reads the body, and classifies the exchange by it.
    pub(super) async fn read_ahead(
        &mut self,
        request: Request<Incoming>,
    ) -> Result<Request<RequestBody>, Abort> {
        let mut request = self.passing(request);
        let limit = usize::try_from(self.compiled.config.inspect_limit).unwrap_or(usize::MAX);
        let read = self.read_body(&mut request, limit).await?;
        match request.body().read_whole() {
            Some(body) => self.learn(body),
            None => self.classified.stays_unread(),
        }
        // Logged here because the exchange is classified now.
        self.log.sent_upstream(&read);
        Ok(request)
    }

    /// Reads up to `most` bytes of the body, or slightly more; returns the bytes to log.
    pub(super) async fn read_body(
        &self,
        request: &mut Request<RequestBody>,
        most: usize,
    ) -> Result<Bytes, Abort> {
        let inspect = &self.connection.worker.engine.inspect;
        let begun = Instant::now();
        self.log.waits_for_agent(true);
        let read = request.body_mut().read_ahead(most, inspect).await;
        let read = read.map_err(|error| self.agent_gone(&error))?;
        self.log.waits_for_agent(false);
        self.log.waited(begun.elapsed());
        Ok(read)
    }

    /// Classifies the exchange by the whole body.
    pub(super) fn learn(&mut self, body: Bytes) {
        self.classified
            .read_body(&self.method, &self.target.url, body);
        self.log.turned_out(
            self.classified.kind,
            self.classified.dialect,
            self.classified.tool(),
        );
        if let Some(request) = self.classified.rpc_request() {
            self.log.note(|note| note.calls_agent(request.method()));
            // A rule may match only one of several calls.
            if request.tools().len() > 1 {
                self.log.taps().calls = Some(Box::new(request.clone()));
            }
            let (tools, server) = self.mcp_tools();
            self.classified.promised(|tool| tools.output(&server, tool));
        }
        if let (Some(name), Some(model)) = (self.classified.model(), self.log.taps().model()) {
            model.request_named(name);
        }
        if self.rules.rules().reads_results() {
            self.classified.read_results(self.log.chaos().called());
            if let Some(results) = self.classified.results() {
                self.log.note(|note| note.brings(results));
            }
        }
    }

    /// Captures a model call or an MCP request for the journal.
    fn read_for_journal(&self) {
        let mut taps = self.log.taps();
        let mut traffic = Traffic::default();
        if let Some(dialect) = self.classified.dialect {
            let (target, named) = (self.target.url.path_and_query(), self.classified.named());
            taps.copies = self.version == Version::HTTP_2;
            traffic.model = Some(ModelTraffic::new(dialect, named, target, MODEL_BYTES));
        } else if self.classified.may_call_over_rpc() {
            traffic.mcp = Some(RpcTraffic::new(self.classified.kind, MODEL_BYTES));
        } else {
            // The start of the response shows whether it is an MCP session's event stream.
            taps.may_begin_session = self.classified.may_listen();
            return;
        }
        taps.traffic = Some(Box::new(traffic));
    }
}
