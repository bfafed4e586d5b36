//! One exchange, from the request's head to the response's head.
//!
//! [`Exchange::script`] lists all steps, one per line; each is a function of a module below. Rules
//! are decided before the first byte goes upstream.

mod calls;
pub(crate) mod carried;
mod classify;
pub(crate) mod connection;
pub(crate) mod forward;
mod listed;
pub(crate) mod log;
pub(crate) mod observed;
mod played;
mod reading;
mod recalled;
pub(crate) mod reply;
mod request_body;
pub(crate) mod route;
pub(crate) mod scope;
pub(crate) mod splice;
mod websocket;
pub(crate) mod worker;

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::SEC_WEBSOCKET_EXTENSIONS;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use squall_journal::record::Outcome;
use squall_profiles::activation::Snapshot;
use squall_profiles::decide::Decision;
use squall_profiles::family::Family;
use squall_profiles::plan::{PlannedAnswer, Shape, Substitute, VerdictIndex};
use squall_profiles::rule::Rule;

use self::classify::Classification;
use self::connection::Connection;
use self::log::ExchangeLog;
use self::observed::Observed;
use self::reply::{Answering, refuse};
use self::request_body::RequestBody;
use self::route::RequestTarget;
use self::websocket::{ModelSocket, SocketFaults};
use crate::abort::Abort;
use crate::body::agent::AbortAfterFlush;
use crate::body::{self, AgentBody};
use crate::compiled::CompiledConfig;
use crate::faults::answer::{self, RequestInfo, SyntheticAnswer};
use crate::faults::rewrite::{Rewritable, Rewritten};
use crate::faults::{FaultContext, Ledger, edit, hold, rewrite, shape};
use crate::headers;
use crate::mcp::RpcCall;
use crate::problem::Problem;
use crate::tape::Playing;
use crate::upstream::Received;

/// Lists the faults of a response, if the configuration enables it. The agent can see it.
const FAULT: HeaderName = HeaderName::from_static("squall-fault");

/// Handles one request of a connection, except a CONNECT.
pub(crate) fn serve(connection: &Rc<Connection>, request: Request<Incoming>) -> Answering {
    match Exchange::open(connection, &request) {
        Ok(exchange) => Box::pin(exchange.run(request)),
        Err(problem) => {
            let refusal = refuse(connection, &problem, request.method(), request.uri());
            Box::pin(ready(Ok(refusal)))
        }
    }
}

/// State of an exchange.
struct Exchange {
    connection: Rc<Connection>,
    compiled: Arc<CompiledConfig>,
    target: RequestTarget,
    /// The rules at the start of the exchange; later activations do not change them.
    rules: Snapshot,
    classified: Classification,
    log: Rc<ExchangeLog>,
    /// The request's method: a response to HEAD has no body.
    method: Method,
    version: Version,
    /// Copied only if rules depend on the response or the synthetic response repeats header values.
    headers: HeaderMap,
    /// Identifies the request, if tool results in the model's input are changed.
    changed_request: Option<u64>,
    /// The tape that replaces the upstream.
    tape: Option<Arc<Playing>>,
    /// The request opens a WebSocket of model calls.
    socket: Option<Box<ModelSocket>>,
}

/// An exchange that ends before the last step of its script.
enum Shortcut {
    /// The agent gets this response.
    Answered(Box<Response<Observed>>),
    /// The agent gets no response.
    Aborted(Abort),
}

impl Shortcut {
    fn answered(answer: Response<Observed>) -> Self {
        Self::Answered(Box::new(answer))
    }
}

impl From<Abort> for Shortcut {
    fn from(abort: Abort) -> Self {
        Self::Aborted(abort)
    }
}

/// The result of a script step, or the end of the exchange.
type ScriptStep<T> = Result<T, Shortcut>;

impl Exchange {
    /// Finds the destination of a request and its scope.
    fn open(
        connection: &Rc<Connection>,
        request: &Request<Incoming>,
    ) -> Result<Box<Self>, Problem> {
        let started = Instant::now();
        connection.control.peer().read(request.headers());
        let engine = &connection.worker.engine;
        let compiled = engine.compiled();
        let ingress = &connection.ingress;
        let target = route::target(&compiled, ingress, request)?;
        let scope = route::scope_of(&compiled, ingress, request, &target, engine.chaos.aliases())?;
        let chaos = engine.chaos.scope(scope.as_deref());
        connection.carried.set(&chaos);
        let rules = chaos.activation().snapshot();
        let mut classified =
            Classification::of_head(&compiled, rules.rules(), request, &target.url);
        let named = || route::agents_of(ingress, request.headers());
        classified.comes_from(compiled.agent_named(rules.rules(), named));
        let socket = ModelSocket::of(&compiled, &target.url, request.uri(), request.headers())?;
        if let Some(socket) = &socket {
            classified.opens_socket(socket.dialect);
        }
        let id = engine.recorder.begin(started);
        let (method, url) = (request.method().clone(), target.url.as_str().to_owned());
        let mut note = chaos.note(id, started, classified.kind, method.clone(), url);
        note.dialect = classified.dialect.map(squall_dialects::Dialect::name);
        note.tool = classified.tool().map(Arc::from);
        note.comes_from(classified.from());
        note.websocket = ingress.carrier().map(|carrier| *carrier.exchange());
        note.rules = Arc::downgrade(rules.rules());
        let log = ExchangeLog::open(connection, note, chaos);
        log.leaves(target.url.as_str(), request.headers());
        if classified.takes_history(request.method(), &target.url) {
            log.has_history_for_body();
        }
        Ok(Box::new(Self {
            connection: Rc::clone(connection),
            compiled,
            target,
            rules,
            classified,
            log,
            method,
            version: request.version(),
            headers: HeaderMap::new(),
            changed_request: None,
            tape: None,
            socket,
        }))
    }

    /// Runs the exchange, and prepares the connection for an abort if the exchange ends with one.
    async fn run(
        mut self: Box<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Observed>, Abort> {
        let ended = if self.log.chaos().is_named() {
            let log = Rc::clone(&self.log);
            // Boxed: most exchanges are in the default scope, where no activation ends them.
            Box::pin(log.unless_over(self.go(request))).await
        } else {
            self.go(request).await
        };
        let abort = match ended {
            Ok(answer) => return Ok(answer),
            Err(Shortcut::Answered(answer)) => return Ok(*answer),
            Err(Shortcut::Aborted(abort)) => abort,
        };
        // A rule or a tape may have read the body before anything was sent.
        if !abort.is_by_rule()
            && let Some(why) = self.connection.framing_broke()
        {
            let problem = forward::bad_framing(why, &self.log);
            return Ok(reply::problem(&self.connection, &problem, &self.log));
        }
        self.connection.break_off(&abort);
        Err(abort)
    }

    async fn go(&mut self, request: Request<Incoming>) -> ScriptStep<Response<Observed>> {
        self.observe(&request);
        if self.takes_no_rules(&request) || self.is_only_forwarded() {
            return self.pass(request).await;
        }
        // Boxed: most exchanges are only forwarded and do not need the script's state.
        Box::pin(self.script(request)).await
    }

    /// An exchange without rules and without a tape.
    async fn pass(&mut self, request: Request<Incoming>) -> ScriptStep<Response<Observed>> {
        let answer = self
            .forward(self.passing(request), &Shape::default())
            .await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let socket = self.socket.take();
            let answer = forward::take_over(&self.connection, answer, &self.log, socket, None);
            return Ok(self.observed(answer));
        }
        self.log.answer_head(answer.status(), answer.headers());
        Ok(self.observed(self.received(answer)))
    }

    /// The script of all other exchanges.
    async fn script(&mut self, request: Request<Incoming>) -> ScriptStep<Response<Observed>> {
        let (mut request, mut decision) = self.decide(request).await?;
        self.wait(&decision.plan.wait_before).await;
        self.answer_instead(&mut decision).await?;
        let answer = match self.play_back(&mut request, &decision).await? {
            Some(recorded) => recorded,
            None => self.ask_upstream(request, &mut decision).await?,
        };
        for (verdict, _) in std::mem::take(&mut decision.plan.websocket) {
            self.log
                .bypassed(verdict, "no WebSocket was opened".to_owned());
        }
        self.judge(answer.status(), &mut decision);
        self.wait(&decision.plan.wait_after).await;
        let answer = self.substitute(answer, &mut decision).await?;
        let answer = self.read_list(answer);
        let answer = self.edit(answer, &decision).await;
        self.tap_answer(&answer);
        Ok(self.shape(answer, &decision.plan.shape))
    }

    async fn wait(&self, waits: &[(VerdictIndex, Duration)]) {
        for (verdict, wait) in waits {
            self.log.applied(*verdict);
            hold::hold(*wait, &self.ledger()).await;
        }
    }

    /// Ends the exchange with the plan's synthetic response, if any; nothing goes upstream then.
    async fn answer_instead(&self, decision: &mut Decision) -> ScriptStep<()> {
        let Some((verdict, answer)) = decision.plan.instead.take() else {
            return Ok(());
        };
        if let Some(answer) = Box::pin(self.make(&answer, verdict, decision)).await? {
            self.log.captured_head(answer.status(), answer.headers());
            return Err(Shortcut::answered(
                self.shaped(answer, &decision.plan.shape),
            ));
        }
        Ok(())
    }

    /// Bypasses a rule for tools if the replies to a batch's other calls would be lost.
    fn loses_replies(&self, verdict: VerdictIndex, decision: &Decision) -> bool {
        let rule = rule(decision, verdict);
        let mcp = self.classified.rpc_call(rule);
        let loses = rule.is_some_and(|rule| rule.family() == Family::Tool)
            && mcp.as_ref().is_some_and(RpcCall::leaves_others);
        if loses {
            let why =
                "the batch holds calls that the rule does not match, whose answers would be lost";
            self.log.bypassed(verdict, why.to_owned());
        }
        loses
    }

    /// A synthetic response; `None` if it cannot be made here and the exchange continues.
    async fn make(
        &self,
        answer: &PlannedAnswer,
        verdict: VerdictIndex,
        decision: &Decision,
    ) -> Result<Option<Response<AgentBody>>, Abort> {
        let url = self.target.as_written();
        let rule = rule(decision, verdict);
        let mcp = self.classified.rpc_call(rule);
        if self.loses_replies(verdict, decision) {
            return Ok(None);
        }
        let model = self.classified.speaking(&self.target.url);
        let request = RequestInfo {
            url: &url,
            host: self.target.origin.host(),
            model: model.map(|model| model.with_credential(&self.headers)),
            mcp: mcp.as_ref(),
        };
        match answer::make(answer, verdict, request, &self.context()).await {
            SyntheticAnswer::Response(answer) => Ok(Some(answer)),
            SyntheticAnswer::Bypassed => Ok(None),
            SyntheticAnswer::Abort(abort) => {
                self.log.end(Outcome::Injected, None);
                Err(abort)
            }
        }
    }

    /// Applies request edits, sends the request upstream and waits for the response's head.
    async fn ask_upstream(
        &mut self,
        mut request: Request<RequestBody>,
        decision: &mut Decision,
    ) -> ScriptStep<Response<AgentBody>> {
        if self.socket.as_ref().is_some_and(|socket| !socket.passes) {
            // Rules change texts, and a compressed text depends on all before it.
            request.headers_mut().remove(SEC_WEBSOCKET_EXTENSIONS);
        }
        let request = self.rewrite(request, decision);
        let answer = if self.tape_serves_socket() {
            websocket::accept(request.headers())
        } else {
            self.forward(request, &decision.plan.shape).await?
        };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Box::pin(self.switch(answer, decision)).await;
        }
        Ok(self.received(answer))
    }

    /// Applies request edits of this turn, and repeats those of earlier turns.
    fn rewrite(
        &mut self,
        mut request: Request<RequestBody>,
        decision: &Decision,
    ) -> Request<RequestBody> {
        let repeats_changes =
            self.rules.rules().reads_results() && !self.log.chaos().changed_results().is_empty();
        if decision.plan.request_edits.is_empty() && !repeats_changes {
            return request;
        }
        let mut body = request.body().whole().cloned();
        let mut full = request.body().full();
        // The new body is about as long.
        let mut lease = self.connection.worker.engine.inspect.lease();
        if let Some(sent) = &body
            && let Err(too_much) = lease.grow(sent.len() as u64)
        {
            (body, full) = (None, Some(too_much));
        }
        let mut rewritable = Rewritable {
            headers: request.headers_mut(),
            body,
            full,
            model: self.classified.speaking(&self.target.url),
            limit: self.compiled.config.inspect_limit,
            told_before: self.log.chaos().changed_results(),
            called: self.log.chaos().called(),
        };
        let Rewritten {
            body,
            again,
            changed_request,
        } = rewrite::apply(decision, &mut rewritable, &*self.log);
        self.changed_request = changed_request;
        self.log.applied_again(again);
        if let Some(body) = body {
            request.body_mut().replace(lease.hold(body));
        }
        request
    }

    /// Sends the request upstream and waits for the response's head.
    async fn forward(
        &self,
        request: Request<RequestBody>,
        shape: &Shape,
    ) -> ScriptStep<Response<Received>> {
        let request = request.map(|body| match shape.up {
            None => Box::pin(body),
            Some(_) => shape::upload(shape, Box::pin(body), &self.context()),
        });
        // Boxed: otherwise each of several nested futures would hold a copy.
        let request = Box::new(request);
        let (connection, log) = (&self.connection, &self.log);
        match forward::forward(connection, &self.target, request, self.version, log).await? {
            Ok(answer) => Ok(answer),
            Err(problem) => Err(self.refused(&problem)),
        }
    }

    /// Forwards an upgrade, unless a rule replaces the response or resets. Of other faults, those on
    /// the bytes of a WebSocket apply.
    async fn switch(
        &mut self,
        answer: Response<Received>,
        decision: &mut Decision,
    ) -> ScriptStep<Response<AgentBody>> {
        self.judge(answer.status(), decision);
        self.wait(&decision.plan.wait_after).await;
        match decision.plan.afterwards.take() {
            Some((verdict, Substitute::Answer(made))) => {
                if let Some(made) = self.make(&made, verdict, decision).await? {
                    self.log.captured_head(made.status(), made.headers());
                    return Err(Shortcut::answered(self.shaped(made, &decision.plan.shape)));
                }
            }
            Some((verdict, Substitute::Reset)) => {
                self.log.end(Outcome::Injected, None);
                return Err(answer::reset(verdict, &self.context()).into());
            }
            Some(_) | None => {}
        }
        let faults = if headers::wants_websocket(answer.headers()) {
            // Each model call on it is shaped as an exchange of its own.
            let shapes = self.socket.as_ref().is_none_or(|socket| socket.passes);
            SocketFaults::of(&mut decision.plan, shapes, self.context())
        } else {
            None
        };
        let still_may = faults.as_ref().map(SocketFaults::verdicts);
        self.log.verdicts().bypass_rest(
            &still_may.unwrap_or_default(),
            "the connection changed its protocol",
        );
        self.bypass_calls_that_pass(answer.headers());
        let socket = self.socket.take();
        let answer = forward::take_over(&self.connection, answer, &self.log, socket, faults);
        Err(Shortcut::answered(self.observed(answer)))
    }

    /// Decides rules that depend on the upstream's status, and arms triggers.
    fn judge(&mut self, status: StatusCode, decision: &mut Decision) {
        self.rules
            .on_response(decision, status.as_u16(), self.log.chaos().elapsed());
        self.log.verdicts().update(decision);
    }

    /// Replaces the upstream's response where a rule does, and stores it for rules that may replay
    /// it.
    async fn substitute(
        &self,
        answer: Response<AgentBody>,
        decision: &mut Decision,
    ) -> ScriptStep<Response<AgentBody>> {
        match decision.plan.afterwards.take() {
            None => Ok(self.remember(answer, decision)),
            Some((verdict, Substitute::Answer(made))) => {
                let made = Box::pin(self.make(&made, verdict, decision)).await?;
                Ok(made.unwrap_or(answer))
            }
            Some((verdict, Substitute::Reset)) if self.loses_replies(verdict, decision) => {
                Ok(answer)
            }
            Some((verdict, Substitute::Reset)) => {
                self.log.end(Outcome::Injected, None);
                Err(answer::reset(verdict, &self.context()).into())
            }
            Some((verdict, recalled)) => {
                Ok(Box::pin(self.recall(verdict, &recalled, answer, decision)).await)
            }
        }
    }

    /// Applies response edits.
    async fn edit(&self, answer: Response<AgentBody>, decision: &Decision) -> Response<AgentBody> {
        let edits = &decision.plan.edits;
        let model = self.classified.speaking(&self.target.url);
        match self.classified.rpc_call(None) {
            _ if edits.is_empty() => answer,
            Some(_) => Box::pin(self.edit_rpc(answer, decision)).await,
            None => Box::pin(edit::apply(edits, answer, model, &self.context())).await,
        }
    }

    /// Hands the response to hyper with the plan's shape. It logs the head after all edits, as the
    /// agent gets it.
    fn shape(&self, answer: Response<AgentBody>, plan: &Shape) -> Response<Observed> {
        self.log.answer_head(answer.status(), answer.headers());
        self.shaped(answer, plan)
    }

    fn shaped(&self, answer: Response<AgentBody>, plan: &Shape) -> Response<Observed> {
        self.observed(shape::apply(plan, answer, &self.context()))
    }

    /// The upstream's response. Its abort waits until all bytes before it are sent.
    fn received(&self, answer: Response<Received>) -> Response<AgentBody> {
        let agent = self.connection.agent().clone();
        answer.map(|body| body::boxed(AbortAfterFlush::new(body, agent)))
    }

    fn observed(&self, mut answer: Response<AgentBody>) -> Response<Observed> {
        self.log.answered(answer.status());
        if self.compiled.config.annotate {
            for mode in self.log.verdicts().modes_in_work() {
                answer
                    .headers_mut()
                    .append(FAULT, HeaderValue::from_static(mode));
            }
        }
        self.connection.announce_close(&mut answer);
        let (head, body) = answer.into_parts();
        // After an upgrade, the exchange ends with what follows the head.
        let is_taken_over = self.connection.takeover.borrow().is_some();
        if is_taken_over {
            self.log.head_passes();
        }
        let log = (!is_taken_over).then(|| Rc::clone(&self.log));
        let body = Observed::new(body, &self.connection, log);
        let body = body.announced_by(&head.headers);
        Response::from_parts(head, body)
    }

    fn refused(&self, problem: &Problem) -> Shortcut {
        Shortcut::answered(reply::problem(&self.connection, problem, &self.log))
    }

    fn agent_gone(&self, error: &hyper::Error) -> Abort {
        if self.connection.framing_broke().is_none() {
            let why = format!("the request's body broke off: {error}");
            self.log.end(Outcome::ClientGone, Some(why));
        }
        Abort::close("the request's body broke off")
    }

    fn ledger(&self) -> Rc<dyn Ledger> {
        Rc::clone(&self.log) as Rc<dyn Ledger>
    }

    fn context(&self) -> FaultContext {
        self.log.context(&self.connection, &self.method)
    }
}

/// The rule of a part of the plan.
fn rule(decision: &Decision, verdict: VerdictIndex) -> Option<&Rule> {
    let verdict = decision.verdicts.get(usize::from(verdict))?;
    Some(&verdict.rule)
}
