//! What is read of a request before it is known what becomes of it.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;
use squall_profiles::activation::Decision;
use squall_profiles::facts::{Facts, Kind, Stage};

use super::Exchange;
use crate::broken::Broken;
use crate::carry_out::body::AgentBody;
use crate::classify::may_read_ahead;
use crate::connection::Entry;
use crate::recorder::Answering;
use crate::request_body::RequestBody;
use crate::vocabularies;

impl Exchange {
    /// Whether nothing is in force, and nothing is looked for that depends on what the exchange is.
    pub(super) fn is_under_no_rule(&self) -> bool {
        self.rules.is_empty() && !(self.body_says_what_it_is() && self.log.looks_for_canaries())
    }

    /// Whether only the body says what is asked: the user names the endpoint.
    pub(super) fn body_says_what_it_is(&self) -> bool {
        self.seen.may_be_model_call(&self.method, &self.target.url)
    }

    /// The request with a body that goes by as it comes.
    pub(super) fn passing(&self, request: Request<Incoming>) -> Request<RequestBody> {
        request.map(|body| RequestBody::passing(body, Rc::clone(&self.log)))
    }

    /// Asks the activation which rules fire; reads the body first if one of them depends on it.
    /// `None`: no rule is about this exchange.
    pub(super) async fn decide(
        &mut self,
        request: Request<Incoming>,
    ) -> Result<(Request<RequestBody>, Option<Box<Decision>>), Broken> {
        let stage = Stage::Request {
            behind_connect: match &self.connection.entry {
                Entry::Tunnel(tunnel) => tunnel.was_decided_by(self.rules.rules()),
                Entry::Door(_) => false,
            },
        };
        let facts = self
            .seen
            .facts(&self.method, &self.target.url, request.headers());
        let shortlist = self.rules.shortlist(&facts, stage);
        let may_hit_a_tool = self.may_hit_a_tool(&facts, stage);
        let tells_history = self.body_says_what_it_is() && self.log.looks_for_canaries();
        if shortlist.is_empty() && !may_hit_a_tool && !tells_history {
            return Ok((self.passing(request), None));
        }
        // A model call is read for what it asks too where a rule answers in kind.
        // So is what an MCP server is asked.
        let in_kind = shortlist.depends_on_the_call || self.rules.rules().reads_results();
        let wanted = shortlist.needs_body
            || may_hit_a_tool
            || tells_history
            || self.seen.kind == Kind::Mcp
            || (self.seen.dialect.is_some() && in_kind);
        let limit = self.live.config.inspect_limit;
        let is_empty = request.body().is_end_stream();
        let request = if wanted && (is_empty || may_read_ahead(request.headers(), limit)) {
            self.read_ahead(request).await?
        } else {
            self.seen.stays_unread();
            self.passing(request)
        };
        self.hear_calls();
        self.get_ready_to_count().await;
        let facts = self
            .seen
            .facts(&self.method, &self.target.url, request.headers());
        let mut decision = self
            .rules
            .decide(&shortlist, &facts, stage, self.log.chaos().elapsed());
        if decision.awaits_response() || decision.plan.mentions_headers() {
            self.headers = request.headers().clone();
        }
        self.log.decided(&mut decision);
        Ok((request, Some(Box::new(decision))))
    }

    /// Whether a rule may be about what looks like a model call, if its body says that it is none.
    fn may_hit_a_tool(&self, facts: &Facts<'_>, stage: Stage) -> bool {
        if self.seen.dialect.is_none() {
            return false;
        }
        let as_a_tool = Facts {
            kind: Kind::Tool,
            dialect: None,
            ..facts.clone()
        };
        // What asks for no kind is on the list already.
        let shortlist = self.rules.shortlist(&as_a_tool, stage);
        shortlist.depends_on_the_call
    }

    /// Reads the calls in the answer where a rule may want to know later which tools they were of, and
    /// the provider may keep them from the request that brings their results.
    fn hear_calls(&self) {
        let dialect = self.seen.dialect.filter(|dialect| {
            dialect
                .provider()
                .has(squall_dialects::Quirk::KeepsConversations)
        });
        if let Some(dialect) = dialect.filter(|_| self.rules.rules().reads_results()) {
            self.log
                .hear_calls(dialect, self.target.url.path_and_query());
        }
    }

    /// Hears whether a model answers that is told something else of tools' results.
    pub(super) fn hear_out(&self, answer: &Response<AgentBody>) {
        let request = self.tells.filter(|_| answer.status().is_success());
        if let (Some(request), Some(dialect)) = (request, self.seen.dialect) {
            let target = self.target.url.path_and_query();
            let answering = Answering::new(request, dialect, target, answer.headers());
            self.log.tells(answering);
        }
    }

    /// Waits for the vocabulary of the call's model where a rule may count by it: this thread serves
    /// others meanwhile.
    pub(super) async fn get_ready_to_count(&self) {
        if self.seen.dialect.is_some() && self.rules.rules().counts_tokens() {
            let unread = vocabularies::of_model(self.seen.model());
            if !unread.is_empty() {
                Box::pin(vocabularies::read(unread)).await;
            }
        }
    }

    /// Reads the body, and what it tells of the exchange.
    pub(super) async fn read_ahead(
        &mut self,
        request: Request<Incoming>,
    ) -> Result<Request<RequestBody>, Broken> {
        let mut request = self.passing(request);
        let limit = usize::try_from(self.live.config.inspect_limit).unwrap_or(usize::MAX);
        let read = self.read_body(&mut request, limit).await?;
        match request.body().read_whole() {
            Some(body) => self.learn(body),
            None => self.seen.stays_unread(),
        }
        // Now that it is known what the exchange is.
        self.log.sent_upstream(&read);
        Ok(request)
    }

    /// Reads at most so much of the body, or a little more; gives what is to be logged.
    pub(super) async fn read_body(
        &self,
        request: &mut Request<RequestBody>,
        most: usize,
    ) -> Result<Bytes, Broken> {
        let inspect = &self.connection.worker.engine.inspect;
        let begun = Instant::now();
        self.log.waits_for_agent(true);
        let read = request.body_mut().read_ahead(most, inspect).await;
        let read = read.map_err(|error| self.agent_gone(&error))?;
        self.log.waits_for_agent(false);
        self.log.waited(begun.elapsed());
        Ok(read)
    }

    /// Learns what the whole body tells.
    pub(super) fn learn(&mut self, body: Bytes) {
        self.seen.read_body(&self.method, &self.target.url, body);
        self.log
            .turned_out(self.seen.kind, self.seen.dialect, self.seen.tool());
        if let Some(asked) = self.seen.asked() {
            self.log.calls_tools(asked);
            let (tools, server) = self.mcp_tools();
            self.seen.promised(|tool| tools.output(&server, tool));
        }
        if let Some(model) = self.seen.model() {
            self.log.asked(model);
        }
        if self.rules.rules().reads_results() {
            self.seen.read_results(self.log.chaos().called());
            if let Some(results) = self.seen.results() {
                self.log.note(|note| note.brings(results));
            }
        }
    }

    /// Lets the journal read a model call, or what an MCP server is asked.
    pub(super) fn observe(&self) {
        if let Some(dialect) = self.seen.dialect {
            let target = self.target.url.path_and_query();
            let named = self.seen.named();
            self.log.read_model(dialect, named, target, self.version);
        } else if self.seen.may_call_over_mcp() {
            self.log.read_mcp(self.seen.kind);
        } else if self.seen.may_listen() {
            self.log.may_begin_session();
        }
    }
}
