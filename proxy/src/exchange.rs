//! One exchange, from the request's head to the answer's.
//!
//! [`Exchange::script`] is the whole way, one step a line; each step is a function of a module below. Decide
//! first, then act: everything a rule may do stands in the plan before the first byte goes upstream.

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
pub(crate) mod worker;

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use squall_journal::record::Outcome;
use squall_profiles::activation::Snapshot;
use squall_profiles::decide::Decision;
use squall_profiles::family::Family;
use squall_profiles::faults::mcp_answer::Change;
use squall_profiles::plan::{Answer, Shape, Substitute, VerdictIndex};
use squall_profiles::rule::Rule;

use self::calls::TakenOut;
use self::classify::Classification;
use self::connection::Connection;
use self::log::ExchangeLog;
use self::observed::Observed;
use self::reply::{Answering, refuse};
use self::request_body::RequestBody;
use self::route::RequestTarget;
use crate::abort::Abort;
use crate::body::agent::AbortAfterFlush;
use crate::body::{self, AgentBody};
use crate::compiled::CompiledConfig;
use crate::faults::answer::{self, RequestInfo, SyntheticAnswer};
use crate::faults::rewrite::{Rewritable, Rewritten};
use crate::faults::{FaultContext, Ledger, edit, hold, rewrite, shape};
use crate::mcp::McpCall;
use crate::problem::Problem;
use crate::tape::Playing;
use crate::upstream::Received;

/// Names the faults of an answer, if the configuration asks for it; the agent can see it.
const FAULT: HeaderName = HeaderName::from_static("squall-fault");

/// Answers one request of a connection, unless it is a CONNECT.
pub(crate) fn serve(connection: &Rc<Connection>, request: Request<Incoming>) -> Answering {
    match Exchange::open(connection, &request) {
        Ok(exchange) => Box::pin(exchange.run(request)),
        Err(problem) => {
            let refusal = refuse(connection, &problem, request.method(), request.uri());
            Box::pin(ready(Ok(refusal)))
        }
    }
}

/// What an exchange carries along.
struct Exchange {
    connection: Rc<Connection>,
    compiled: Arc<CompiledConfig>,
    target: RequestTarget,
    /// The rules it began with, whatever is put in force meanwhile.
    rules: Snapshot,
    classified: Classification,
    log: Rc<ExchangeLog>,
    /// Of the request: an answer to HEAD has no body, a redirect names the URL as it was written.
    method: Method,
    version: Version,
    /// Kept only when the answer has to be judged too, or mentions what stands there.
    headers: HeaderMap,
    /// What tells the request from others, where a model is told something else of tools' results.
    tells: Option<u64>,
    /// MCP calls that were not sent on.
    taken_out: Option<TakenOut>,
    /// What answers in the upstream's place.
    tape: Option<Arc<Playing>>,
}

/// An exchange that ends before the last step of its script.
enum Shortcut {
    /// The agent gets this answer.
    Answered(Box<Response<Observed>>),
    /// The agent gets none.
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

/// What a step of the script gives, unless the exchange ends with it.
type ScriptStep<T> = Result<T, Shortcut>;

impl Exchange {
    /// Finds out where a request goes and whose chaos it is under.
    fn open(
        connection: &Rc<Connection>,
        request: &Request<Incoming>,
    ) -> Result<Box<Self>, Problem> {
        let started = Instant::now();
        let engine = &connection.worker.engine;
        let compiled = engine.compiled();
        let ingress = &connection.ingress;
        let target = route::target(&compiled, ingress, request)?;
        let scope = route::scope_of(&compiled, ingress, request, &target, engine.chaos.aliases())?;
        let chaos = engine.chaos.scope(scope.as_deref());
        connection.carried.set(&chaos);
        let rules = chaos.activation().snapshot();
        let classified = Classification::of_head(&compiled, rules.rules(), request, &target.url);
        let id = engine.recorder.begin(started);
        let (method, url) = (request.method().clone(), target.url.as_str().to_owned());
        let mut note = chaos.note(id, started, classified.kind, method.clone(), url);
        note.dialect = classified.dialect.map(squall_dialects::Dialect::name);
        note.tool = classified.tool().map(Arc::from);
        note.rules = Arc::downgrade(rules.rules());
        let log = ExchangeLog::open(connection, note, chaos);
        log.leaves(target.url.as_str(), request.headers());
        if classified.takes_history(request.method(), &target.url) {
            log.has_history_for_body();
        } else if classified.may_take_history(request, &target.url) {
            log.has_body_that_tells_by_shape();
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
            tells: None,
            taken_out: None,
            tape: None,
        }))
    }

    /// Takes the exchange to its end, and makes the connection ready to break off where that ends so.
    async fn run(
        mut self: Box<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Observed>, Abort> {
        let ended = if self.log.chaos().is_named() {
            let log = Rc::clone(&self.log);
            // Boxed: most exchanges are in the default scope, where nothing ends.
            Box::pin(log.unless_over(self.go(request))).await
        } else {
            self.go(request).await
        };
        let abort = match ended {
            Ok(answer) => return Ok(answer),
            Err(Shortcut::Answered(answer)) => return Ok(*answer),
            Err(Shortcut::Aborted(abort)) => abort,
        };
        // A rule, or a tape, may have read the body before anything was sent.
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
        if self.is_only_forwarded() {
            return self.pass(request).await;
        }
        // Boxed: most exchanges are only forwarded, and would keep room for what rules do.
        Box::pin(self.script(request)).await
    }

    /// An exchange that no rule and no tape is about.
    async fn pass(&mut self, request: Request<Incoming>) -> ScriptStep<Response<Observed>> {
        let answer = self
            .forward(self.passing(request), &Shape::default())
            .await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            let answer = forward::take_over(&self.connection, answer, &self.log);
            return Ok(self.observed(answer));
        }
        self.log.answer_head(answer.status(), answer.headers());
        Ok(self.observed(self.received(answer)))
    }

    /// The script of every other exchange.
    async fn script(&mut self, request: Request<Incoming>) -> ScriptStep<Response<Observed>> {
        let (mut request, mut decision) = self.decide(request).await?;
        self.wait(&decision.plan.wait_before).await;
        self.answer_instead(&mut request, &mut decision).await?;
        let answer = match self.play_back(&mut request, &decision).await? {
            Some(recorded) => recorded,
            None => self.ask_upstream(request, &mut decision).await?,
        };
        self.judge(answer.status(), &mut decision);
        self.wait(&decision.plan.wait_after).await;
        let answer = self.substitute(answer, &mut decision).await?;
        let answer = self.read_list(answer);
        let answer = self.edit(answer, &decision).await;
        self.hear_out(&answer);
        Ok(self.shape(answer, &decision.plan.shape))
    }

    async fn wait(&self, waits: &[(VerdictIndex, Duration)]) {
        for (verdict, wait) in waits {
            self.log.applied(*verdict);
            hold::hold(*wait, &self.ledger()).await;
        }
    }

    /// Ends the exchange with a synthetic answer, if the plan has one: nothing goes upstream then.
    async fn answer_instead(
        &mut self,
        request: &mut Request<RequestBody>,
        decision: &mut Decision,
    ) -> ScriptStep<()> {
        let Some((verdict, answer)) = decision.plan.instead.take() else {
            return Ok(());
        };
        self.taken_out = self.take_out(verdict, &answer, request, decision);
        if self.taken_out.is_none()
            && let Some(answer) = Box::pin(self.make(&answer, verdict, decision)).await?
        {
            self.log.captured_head(answer.status(), answer.headers());
            return Err(Shortcut::answered(
                self.shaped(answer, &decision.plan.shape),
            ));
        }
        Ok(())
    }

    /// An answer no upstream sent; `None` when it cannot be made here, and the exchange goes on.
    async fn make(
        &self,
        answer: &Answer,
        verdict: VerdictIndex,
        decision: &Decision,
    ) -> Result<Option<Response<AgentBody>>, Abort> {
        let url = self.target.as_written();
        let rule = rule(decision, verdict);
        let mcp = self.classified.mcp_call(rule);
        let of_tools = rule.is_some_and(|rule| rule.family() == Family::Tool);
        if of_tools && mcp.as_ref().is_some_and(McpCall::leaves_others) {
            let why = "the batch holds other calls, whose answers would be lost";
            self.log.bypassed(verdict, why.to_owned());
            return Ok(None);
        }
        let model = self.classified.speaking(&self.target.url);
        let asked = RequestInfo {
            url: &url,
            host: self.target.origin.host(),
            model: model.map(|model| model.asked_by(&self.headers)),
            mcp: mcp.as_ref(),
        };
        match answer::make(answer, verdict, asked, &self.context()).await {
            SyntheticAnswer::Response(answer) => Ok(Some(answer)),
            SyntheticAnswer::Bypassed => Ok(None),
            SyntheticAnswer::Abort(abort) => {
                self.log.end(Outcome::Injected, None);
                Err(abort)
            }
        }
    }

    /// Rewrites the request where a rule says so, sends it upstream and waits for the answer's head.
    async fn ask_upstream(
        &mut self,
        request: Request<RequestBody>,
        decision: &mut Decision,
    ) -> ScriptStep<Response<AgentBody>> {
        let request = self.rewrite(request, decision);
        let answer = self.forward(request, &decision.plan.shape).await?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Box::pin(self.switch(answer, decision)).await;
        }
        Ok(self.received(answer))
    }

    /// Changes what the model is to read where a rule says so, or said so of an earlier turn.
    fn rewrite(
        &mut self,
        mut request: Request<RequestBody>,
        decision: &Decision,
    ) -> Request<RequestBody> {
        let tells_again = self.rules.rules().reads_results() && !self.log.chaos().told().is_empty();
        if decision.plan.request_edits.is_empty() && !tells_again {
            return request;
        }
        let mut body = request.body().whole().cloned();
        let mut full = request.body().full();
        // What takes its place is about as long.
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
            told: self.log.chaos().told(),
            called: self.log.chaos().called(),
        };
        let Rewritten { body, again, tells } =
            rewrite::apply(decision, &mut rewritable, &*self.log);
        self.tells = tells;
        self.log.applied_again(again);
        if let Some(body) = body {
            request.body_mut().replace(lease.hold(body));
        }
        request
    }

    /// Sends the request upstream and waits for the answer's head.
    async fn forward(
        &self,
        request: Request<RequestBody>,
        shape: &Shape,
    ) -> ScriptStep<Response<Received>> {
        let request = request.map(|body| match shape.up {
            None => Box::pin(body),
            Some(_) => shape::upload(shape, Box::pin(body), &self.context()),
        });
        // Boxed: handed down through futures, of which each would keep room for all of it.
        let request = Box::new(request);
        let (connection, log) = (&self.connection, &self.log);
        match forward::forward(connection, &self.target, request, self.version, log).await? {
            Ok(answer) => Ok(answer),
            Err(problem) => Err(self.refused(&problem)),
        }
    }

    /// Passes an upgrade on, unless a rule answers in its place or resets. There is no body that
    /// anything else could be done to.
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
        self.log.bypass_rest("the connection changed its protocol");
        let answer = forward::take_over(&self.connection, answer, &self.log);
        Err(Shortcut::answered(self.observed(answer)))
    }

    /// Rules that depend on the upstream's status, and what its answer arms.
    fn judge(&mut self, status: StatusCode, decision: &mut Decision) {
        self.rules
            .on_response(decision, status.as_u16(), self.log.chaos().elapsed());
        self.log.decided_more(decision);
    }

    /// Throws the upstream's answer away where a rule gives another in its place, and keeps it where
    /// one may give it again.
    async fn substitute(
        &self,
        answer: Response<AgentBody>,
        decision: &mut Decision,
    ) -> ScriptStep<Response<AgentBody>> {
        match decision.plan.afterwards.take() {
            None => Ok(self.remember(answer, decision)),
            Some((verdict, Substitute::Answer(made))) => {
                // The upstream has done what it was asked; what it says of it is dropped.
                if let Some(calls) = self.in_part(verdict, decision)
                    && let Answer::Tool(made) = &made
                {
                    let change = Change::Instead(made.says.clone());
                    return Ok(self.change(change, calls, answer, verdict).await);
                }
                let made = Box::pin(self.make(&made, verdict, decision)).await?;
                Ok(made.unwrap_or(answer))
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

    /// Changes the answer where a rule says so.
    async fn edit(
        &mut self,
        answer: Response<AgentBody>,
        decision: &Decision,
    ) -> Response<AgentBody> {
        let edits = &decision.plan.edits;
        let model = self.classified.speaking(&self.target.url);
        let answer = match self.classified.mcp_call(None) {
            _ if edits.is_empty() => answer,
            Some(_) => Box::pin(self.edit_mcp(answer, decision)).await,
            None => Box::pin(edit::apply(edits, answer, model, &self.context())).await,
        };
        match self.taken_out.take() {
            None => answer,
            Some(out) => self.change(out.says, out.calls, answer, out.verdict).await,
        }
    }

    /// Hands the answer to hyper, shaped where a rule says so. Rules may have changed how it is laid
    /// out: what counts is what the agent gets.
    fn shape(&self, answer: Response<AgentBody>, plan: &Shape) -> Response<Observed> {
        self.log.answer_head(answer.status(), answer.headers());
        self.shaped(answer, plan)
    }

    fn shaped(&self, answer: Response<AgentBody>, plan: &Shape) -> Response<Observed> {
        self.observed(shape::apply(plan, answer, &self.context()))
    }

    /// The upstream's answer, whose break waits until all before it has left.
    fn received(&self, answer: Response<Received>) -> Response<AgentBody> {
        let agent = self.connection.agent().clone();
        answer.map(|body| body::boxed(AbortAfterFlush::new(body, agent)))
    }

    fn observed(&self, mut answer: Response<AgentBody>) -> Response<Observed> {
        self.log.answered(answer.status());
        if self.compiled.config.annotate {
            for mode in self.log.modes_in_work() {
                answer
                    .headers_mut()
                    .append(FAULT, HeaderValue::from_static(mode));
            }
        }
        self.connection.tell_last(&mut answer);
        let (head, body) = answer.into_parts();
        let body = Observed::new(body, &self.connection, Some(Rc::clone(&self.log)));
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

/// The rule that a part of the plan points back to.
fn rule(decision: &Decision, verdict: VerdictIndex) -> Option<&Rule> {
    let verdict = decision.verdicts.get(usize::from(verdict))?;
    Some(&verdict.rule)
}
