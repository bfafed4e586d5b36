//! One exchange, from the request's head to the answer's.
//!
//! [`Exchange::run`] is the whole way, one step a line; each step is a module. Decide first, then
//! act: everything a rule may do stands in the plan before the first byte goes upstream.

mod calls;
mod listed;
pub(crate) mod played;
mod reading;
mod recalled;

use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use squall_journal::record::Outcome;
use squall_profiles::activation::{Decision, Snapshot};
use squall_profiles::faults::mcp_answer::Change;
use squall_profiles::plan::{Answer, Shape, Substitute, VerdictIndex};
use squall_profiles::rule::{Family, Rule};

use self::played::FromTape;
use crate::broken::{Broken, Ledger};
use crate::carry_out::answer::{self, Asked, Made};
use crate::carry_out::body::{self, AgentBody};
use crate::carry_out::flush::Breaking;
use crate::carry_out::mcp::McpCall;
use crate::carry_out::rewrite::{Ahead, Rewritten};
use crate::carry_out::{Context, edit, hold, rewrite, shape};
use crate::chaos::Reads;
use crate::classify::Seen;
use crate::connection::{Answering, Connection};
use crate::exchange_log::ExchangeLog;
use crate::forward::{self, Forwarded};
use crate::live::Live;
use crate::observed::Observed;
use crate::problem::Problem;
use crate::recorder::ExchangeNote;
use crate::request_body::RequestBody;
use crate::route::{self, Target};
use crate::tape::Playing;
use crate::upstream::Received;

/// Names the faults of an answer, if the configuration asks for it; the agent can see it.
const FAULT: HeaderName = HeaderName::from_static("squall-fault");

/// Answers one request of a connection, unless it is a CONNECT.
pub(crate) fn serve(connection: &Rc<Connection>, request: Request<Incoming>) -> Answering {
    match Exchange::open(connection, &request) {
        Ok(exchange) => Box::pin(exchange.run(request)),
        Err(problem) => {
            let refusal = connection.refuse(&problem, request.method(), request.uri());
            Box::pin(ready(Ok(refusal)))
        }
    }
}

/// What an exchange carries along.
struct Exchange {
    connection: Rc<Connection>,
    live: Arc<Live>,
    target: Target,
    /// The rules it began with, whatever is put in force meanwhile.
    rules: Snapshot,
    seen: Seen,
    log: Rc<ExchangeLog>,
    /// Of the request: an answer to HEAD has no body, a redirect names the URL as it was written.
    method: Method,
    version: Version,
    /// Kept only when the answer has to be judged too, or mentions what stands there.
    headers: HeaderMap,
    /// What tells the request from others, where a model is told something else of tools' results.
    tells: Option<u64>,
    /// What answers in the upstream's place.
    tape: Option<Arc<Playing>>,
}

impl Exchange {
    /// Finds out where a request goes and whose chaos it is under.
    fn open(
        connection: &Rc<Connection>,
        request: &Request<Incoming>,
    ) -> Result<Box<Self>, Problem> {
        let started = Instant::now();
        let engine = &connection.worker.engine;
        let live = engine.live();
        let target = route::target(&live, &connection.entry, request)?;
        let scope = connection.scope_of(&live, request, &target)?;
        let chaos = engine.chaos.scope(scope.as_deref());
        connection.carried.set(&chaos);
        let rules = chaos.activation().snapshot();
        let seen = Seen::of_head(&live, rules.rules(), request, &target.url);
        let mut note = ExchangeNote::new(
            engine.recorder.begin(started),
            started,
            &chaos,
            seen.kind,
            request.method().clone(),
            target.url.as_str().to_owned(),
        );
        note.dialect = seen.dialect.map(squall_dialects::Dialect::name);
        note.tool = seen.tool().map(Arc::from);
        note.rules = Arc::downgrade(rules.rules());
        let log = ExchangeLog::open(connection, note, chaos);
        log.leaves(target.url.as_str(), request.headers());
        if seen.takes_history(request.method(), &target.url) {
            log.has_history_for_body();
        } else if seen.may_take_history(request, &target.url) {
            log.has_body_that_tells_by_shape();
        }
        Ok(Box::new(Self {
            connection: Rc::clone(connection),
            live,
            target,
            rules,
            seen,
            log,
            method: request.method().clone(),
            version: request.version(),
            headers: HeaderMap::new(),
            tells: None,
            tape: None,
        }))
    }

    /// Goes the way of the exchange, and makes the connection ready to break off where that ends so.
    async fn run(
        mut self: Box<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Observed>, Broken> {
        let answer = if self.log.chaos().is_named() {
            let log = Rc::clone(&self.log);
            // Boxed: most exchanges are in the default scope, where nothing ends.
            Box::pin(log.unless_over(self.go(request))).await
        } else {
            self.go(request).await
        };
        let Err(broken) = answer else { return answer };
        // A rule, or a tape, may have read the body before anything was sent.
        if !broken.is_by_rule()
            && let Some(why) = self.connection.framing_broke()
        {
            let problem = forward::bad_framing(why, &self.log);
            return Ok(self.connection.problem(&problem, Some(&self.log)));
        }
        self.connection.break_off(&broken);
        Err(broken)
    }

    /// The way of an exchange.
    async fn go(&mut self, request: Request<Incoming>) -> Result<Response<Observed>, Broken> {
        match self.log.chaos().reads() {
            Reads::Model => self.observe(),
            Reads::Headers => {}
            Reads::More => {
                if self.look_closer(&request) {
                    return Box::pin(self.go_by_tape(request)).await;
                }
            }
        }
        if self.is_under_no_rule() {
            return self.pass(self.passing(request)).await;
        }
        match self.decide(request).await? {
            (request, None) => self.pass(request).await,
            // Boxed: most exchanges are under no rule, and would keep room for what rules do.
            (request, Some(decision)) => Box::pin(self.under_rules(request, *decision)).await,
        }
    }

    /// The way of an exchange that no rule is about: forward.
    async fn pass(&self, request: Request<RequestBody>) -> Result<Response<Observed>, Broken> {
        let answer = match self.forward(request, &Shape::default()).await? {
            Forwarded::Answer(answer) => answer,
            Forwarded::Problem(problem) => {
                return Ok(self.connection.problem(&problem, Some(&self.log)));
            }
        };
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(self.observed(forward::take_over(&self.connection, answer, &self.log)));
        }
        self.log.answer_head(answer.status(), answer.headers());
        let agent = self.context().agent;
        let answer = answer.map(|body| body::boxed(Breaking::new(body, agent)));
        Ok(self.observed(answer))
    }

    /// The way of an exchange that rules are about: answer in the upstream's place or forward,
    /// rewrite, shape.
    async fn under_rules(
        &mut self,
        mut request: Request<RequestBody>,
        mut decision: Decision,
    ) -> Result<Response<Observed>, Broken> {
        self.wait(&decision.plan.wait_before).await;
        let mut taken_out = None;
        if let Some((verdict, answer)) = decision.plan.instead.take() {
            taken_out = self.take_out(verdict, &answer, &mut request, &decision);
            if taken_out.is_none()
                && let Some(answer) = Box::pin(self.make(&answer, verdict, &decision)).await?
            {
                self.log.captured_head(answer.status(), answer.headers());
                return Ok(self.shaped(answer, &decision.plan.shape));
            }
        }
        let from_tape = match self.tape {
            None => None,
            Some(_) => Box::pin(self.play(&mut request)).await?,
        };
        let answer = match from_tape {
            Some(FromTape::Refused(problem)) => {
                return Ok(self.connection.problem(&problem, Some(&self.log)));
            }
            Some(FromTape::Answer(answer)) => {
                for (verdict, _) in &decision.plan.request_edits {
                    let why = "the answer comes from a tape: no upstream reads the request";
                    self.log.bypassed(*verdict, why.to_owned());
                }
                self.judge(answer.status(), &mut decision);
                self.wait(&decision.plan.wait_after).await;
                answer
            }
            None => {
                let request = self.rewrite(request, &decision);
                let answer = match self.forward(request, &decision.plan.shape).await? {
                    Forwarded::Answer(answer) => answer,
                    Forwarded::Problem(problem) => {
                        return Ok(self.connection.problem(&problem, Some(&self.log)));
                    }
                };
                self.judge(answer.status(), &mut decision);
                self.wait(&decision.plan.wait_after).await;
                if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                    return Box::pin(self.switch(answer, decision)).await;
                }
                let agent = self.context().agent;
                answer.map(|body| body::boxed(Breaking::new(body, agent)))
            }
        };
        let answer = self.substitute(answer, &mut decision).await?;
        let answer = self.read_list(answer);
        let answer = self.edit(answer, &decision).await;
        let answer = match taken_out {
            None => answer,
            Some(out) => self.change(out.says, out.calls, answer, out.verdict).await,
        };
        self.hear_out(&answer);
        // Rules may have changed how it is laid out: what counts is what the agent gets.
        self.log.answer_head(answer.status(), answer.headers());
        Ok(self.shaped(answer, &decision.plan.shape))
    }

    async fn wait(&self, waits: &[(VerdictIndex, Duration)]) {
        for (verdict, wait) in waits {
            self.log.applied(*verdict);
            hold::hold(*wait, &self.ledger()).await;
        }
    }

    /// An answer no upstream sent; `None` when it cannot be made here, and the exchange goes on.
    async fn make(
        &self,
        answer: &Answer,
        verdict: VerdictIndex,
        decision: &Decision,
    ) -> Result<Option<Response<AgentBody>>, Broken> {
        let url = self.target.as_written();
        let rule = rule(decision, verdict);
        let mcp = self.seen.mcp_call(rule);
        let of_tools = rule.is_some_and(|rule| rule.family == Family::Tool);
        if of_tools && mcp.as_ref().is_some_and(McpCall::leaves_others) {
            let why = "the batch holds other calls, whose answers would be lost";
            self.log.bypassed(verdict, why.to_owned());
            return Ok(None);
        }
        let model = self.seen.speaking(&self.target.url);
        let asked = Asked {
            url: &url,
            host: self.target.origin.host(),
            model: model.map(|model| model.asked_by(&self.headers)),
            mcp: mcp.as_ref(),
        };
        match answer::make(answer, verdict, asked, &self.context()).await {
            Made::Response(answer) => Ok(Some(answer)),
            Made::Bypassed => Ok(None),
            Made::Broken(broken) => {
                self.log.end(Outcome::Injected, None);
                Err(broken)
            }
        }
    }

    /// Changes what the model is to read where a rule says so, or said so of an earlier turn.
    fn rewrite(
        &mut self,
        mut request: Request<RequestBody>,
        decision: &Decision,
    ) -> Request<RequestBody> {
        let plan = &decision.plan;
        let tells_again = self.rules.rules().reads_results() && !self.log.chaos().told().is_empty();
        if plan.request_edits.is_empty() && !tells_again {
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
        let mut ahead = Ahead {
            headers: request.headers_mut(),
            body,
            full,
            model: self.seen.speaking(&self.target.url),
            limit: self.live.config.inspect_limit,
            told: self.log.chaos().told(),
            called: self.log.chaos().called(),
        };
        let Rewritten { body, again, tells } = rewrite::apply(plan, &mut ahead, &*self.log);
        self.tells = tells;
        self.log.applied_again(again);
        if let Some(body) = body {
            request.body_mut().replace(lease.hold(body));
        }
        request
    }

    /// Sends the request upstream and waits for the answer's head.
    fn forward(
        &self,
        request: Request<RequestBody>,
        shape: &Shape,
    ) -> impl Future<Output = Result<Forwarded, Broken>> {
        let request = request.map(|body| match shape.up {
            None => Box::pin(body),
            Some(_) => shape::upload(shape, Box::pin(body), &self.context()),
        });
        // Boxed: handed down through futures, of which each would keep room for all of it.
        let request = Box::new(request);
        forward::forward(
            &self.connection,
            &self.target,
            request,
            self.version,
            &self.log,
        )
    }

    /// Rules that depend on the upstream's status, and what its answer arms.
    fn judge(&mut self, status: StatusCode, decision: &mut Decision) {
        self.rules
            .on_response(decision, status.as_u16(), self.log.chaos().elapsed());
        self.log.decided_more(&decision.plan);
    }

    /// Throws the upstream's answer away where a rule gives another in its place, and keeps it where
    /// one may give it again.
    async fn substitute(
        &self,
        answer: Response<AgentBody>,
        decision: &mut Decision,
    ) -> Result<Response<AgentBody>, Broken> {
        let context = self.context();
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
                Err(answer::reset(verdict, &context))
            }
            Some((verdict, recalled)) => {
                Ok(Box::pin(self.recall(verdict, &recalled, answer, decision)).await)
            }
        }
    }

    /// Passes an upgrade on, unless a rule answers in its place or resets. There is no body that
    /// anything else could be done to.
    async fn switch(
        &self,
        answer: Response<Received>,
        mut decision: Decision,
    ) -> Result<Response<Observed>, Broken> {
        match decision.plan.afterwards.take() {
            Some((verdict, Substitute::Answer(made))) => {
                if let Some(made) = self.make(&made, verdict, &decision).await? {
                    self.log.captured_head(made.status(), made.headers());
                    return Ok(self.shaped(made, &decision.plan.shape));
                }
            }
            Some((verdict, Substitute::Reset)) => {
                self.log.end(Outcome::Injected, None);
                return Err(answer::reset(verdict, &self.context()));
            }
            Some(_) | None => {}
        }
        self.log.bypass_rest("the connection changed its protocol");
        Ok(self.observed(forward::take_over(&self.connection, answer, &self.log)))
    }

    /// Changes the answer where a rule says so.
    async fn edit(&self, answer: Response<AgentBody>, decision: &Decision) -> Response<AgentBody> {
        let edits = &decision.plan.edits;
        if edits.is_empty() {
            return answer;
        }
        if self.seen.mcp_call(None).is_some() {
            return Box::pin(self.edit_mcp(answer, decision)).await;
        }
        Box::pin(edit::apply(
            edits,
            answer,
            self.seen.speaking(&self.target.url),
            &self.context(),
        ))
        .await
    }

    /// Hands the answer to hyper, shaped where a rule says so.
    fn shaped(&self, answer: Response<AgentBody>, plan: &Shape) -> Response<Observed> {
        let answer = shape::apply(plan, answer, &self.context());
        self.observed(answer)
    }

    fn observed(&self, mut answer: Response<AgentBody>) -> Response<Observed> {
        self.log.answered(answer.status());
        if self.live.config.annotate {
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

    fn agent_gone(&self, error: &hyper::Error) -> Broken {
        if self.connection.framing_broke().is_none() {
            let why = format!("the request's body broke off: {error}");
            self.log.end(Outcome::ClientGone, Some(why));
        }
        Broken::close("the request's body broke off")
    }

    fn ledger(&self) -> Rc<dyn Ledger> {
        Rc::clone(&self.log) as Rc<dyn Ledger>
    }

    fn context(&self) -> Context {
        self.connection.context(&self.log, &self.method)
    }
}

/// The rule that a part of the plan points back to.
fn rule(decision: &Decision, verdict: VerdictIndex) -> Option<&Rule> {
    let verdict = decision.plan.verdicts.get(usize::from(verdict))?;
    Some(&verdict.rule)
}
