//! CONNECT: connection faults, then the dial, then the 200, then the tunnel.
//!
//! The upstream is dialled before the 200. So a refused connection fails the CONNECT instead of a
//! tunnel after it. An upstream that another intercepted CONNECT dialled less than a second ago is
//! dialled by the first request instead. A CONNECT becomes an exchange of kind `other` only if it fails or is tunnelled.
//! Otherwise only the intercepted exchanges are recorded.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::uri::Authority;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use squall_journal::record::Outcome;
use squall_profiles::activation::Snapshot;
use squall_profiles::changes::TlsFailure;
use squall_profiles::decide::Decision;
use squall_profiles::facts::{CanonicalUrl, Kind, Stage};
use squall_profiles::plan::{PlannedAnswer, VerdictIndex};

use super::tunnel::{Opening, facts};
use crate::abort::Abort;
use crate::body::{self, AgentBody};
use crate::compiled::{CompiledConfig, ListenerRole};
use crate::exchange::connection::{self, Connection, Ingress, Takeover, Tunnel};
use crate::exchange::forward;
use crate::exchange::log::ExchangeLog;
use crate::exchange::observed::Observed;
use crate::exchange::reply::{problem, refuse};
use crate::exchange::route::{self, connect_scope};
use crate::exchange::scope::agents_of;
use crate::faults::answer::{self, RequestInfo, SyntheticAnswer};
use crate::faults::{Ledger, hold};
use crate::problem::Problem;
use crate::tape::Playing;
use crate::upstream::{Dialled, Scheme, UpstreamError, UpstreamOrigin};

/// The response to a CONNECT; after a 200 also the next stage of the connection.
type ConnectAnswer = (Response<Observed>, Option<Takeover>);

/// Handles a CONNECT.
pub(super) async fn serve(
    connection: &Rc<Connection>,
    request: &Request<Incoming>,
) -> Result<ConnectAnswer, Abort> {
    let compiled = connection.worker.engine.compiled();
    let opened = match own_routes(connection, &compiled, request) {
        Ok(Some(role)) => {
            let ingress = Ingress::Listener(role);
            let takeover: Takeover = Box::new(|io| connection::ConnectionStage::Http1(io, ingress));
            return Ok((accepted(connection), Some(takeover)));
        }
        Ok(None) => Connect::open(connection, &compiled, request),
        Err(problem) => Err(problem),
    };
    let connect = match opened {
        Ok(connect) => connect,
        Err(problem) => {
            let refusal = refuse(connection, &problem, request.method(), request.uri());
            return Ok((refusal, None));
        }
    };
    let log = Rc::clone(&connect.log);
    let answer = log.unless_over(connect.run(request.headers())).await;
    if let Err(abort) = &answer {
        connection.break_off(abort);
    }
    answer
}

/// The proxy's own listener that a CONNECT names; its routes are served in the tunnel.
fn own_routes(
    connection: &Connection,
    config: &CompiledConfig,
    request: &Request<Incoming>,
) -> Result<Option<ListenerRole>, Problem> {
    let is_main = matches!(connection.ingress, Ingress::Listener(ListenerRole::Main));
    let authority = route::connect_authority(request.uri()).ok();
    let role = authority
        .filter(|_| is_main)
        .and_then(|authority| route::own_listener(config, &authority))
        .filter(|role| *role != ListenerRole::Main || config.has_prefixes());
    if role.is_some() {
        // Required credentials also apply here.
        connect_scope(config, request.headers())?;
    }
    Ok(role)
}

/// The 200 response.
fn accepted(connection: &Rc<Connection>) -> Response<Observed> {
    Response::new(Observed::new(body::empty(), connection, None))
}

struct Connect {
    connection: Rc<Connection>,
    compiled: Arc<CompiledConfig>,
    authority: Authority,
    /// With scheme `https`, the usual content of a CONNECT; its first bytes decide.
    origin: UpstreamOrigin,
    url: CanonicalUrl,
    scope: Option<Arc<str>>,
    /// The name that it gives the calling agent.
    agent: Option<String>,
    /// In force when the CONNECT arrived; later rules do not apply to it.
    rules: Snapshot,
    /// Tool names that match by authority alone.
    tools: Vec<String>,
    log: Rc<ExchangeLog>,
    /// The tape of the scope, if any.
    tape: Option<Arc<Playing>>,
}

impl Connect {
    fn open(
        connection: &Rc<Connection>,
        compiled: &Arc<CompiledConfig>,
        request: &Request<Incoming>,
    ) -> Result<Self, Problem> {
        let started = Instant::now();
        connection.control.peer().read(request.headers());
        match connection.ingress {
            Ingress::Listener(ListenerRole::Main) => {}
            Ingress::Listener(ListenerRole::Route(_)) => return Err(not_a_forward_proxy()),
            Ingress::Tunnel(_) | Ingress::Carried(_) => return Err(nested()),
        }
        let authority = route::connect_authority(request.uri())?;
        let scope = connect_scope(compiled, request.headers())?;
        let origin = UpstreamOrigin::of_authority(Scheme::Https, &authority);
        let url = CanonicalUrl::new("https", &origin.authority(), "/");
        let engine = &connection.worker.engine;
        let chaos = engine.chaos.scope_or_slot(scope.as_deref());
        let upstreams = &connection.worker.upstreams;
        let origin = upstreams.origin_for(origin, chaos.is_unapproved());
        let id = engine.recorder.begin(started);
        let target = origin.host_and_port();
        let mut note = chaos.note(id, started, Kind::Other, Method::CONNECT, target);
        let rules = chaos.activation().snapshot();
        // Only names that match by authority, because the path is unknown if the CONNECT fails.
        let tools = compiled.tools_at(&url, rules.rules());
        let named: Vec<_> = tools.iter().map(String::as_str).collect();
        note.calls(named.first().copied(), &named);
        note.rules = Arc::downgrade(rules.rules());
        let tape = engine.chaos.tape_of(&chaos);
        let log = ExchangeLog::open(connection, note, chaos);
        log.leaves(authority.as_str(), request.headers());
        Ok(Self {
            connection: Rc::clone(connection),
            compiled: Arc::clone(compiled),
            authority,
            origin,
            url,
            scope,
            agent: agents_of(request.headers()).next(),
            rules,
            tools,
            log,
            tape,
        })
    }

    async fn run(self, headers: &HeaderMap) -> Result<ConnectAnswer, Abort> {
        let mut decision = self.decide(headers);
        for (verdict, wait) in &decision.plan.wait_before {
            self.log.applied(*verdict);
            hold::hold(*wait, &self.ledger()).await;
        }
        let mut tls_failure = None;
        match decision.plan.instead.take() {
            Some((verdict, PlannedAnswer::Tls(failure))) => tls_failure = Some((verdict, failure)),
            Some((verdict, answer)) => {
                if let Some(answer) = self.make(&answer, verdict).await? {
                    return Ok((answer, None));
                }
            }
            None => {}
        }
        if let Some(refused) = self.refused_by_tape() {
            self.log.end(Outcome::Denied, Some(refused.detail.clone()));
            return Ok((problem(&self.connection, &refused, &self.log), None));
        }
        match self.dial(tls_failure.is_some()).await {
            Ok(dialled) => Ok(self.accept(dialled, tls_failure)),
            Err(error) => {
                let shown = forward::problem(&error, &self.connection, &self.log)?;
                Ok((problem(&self.connection, &shown, &self.log), None))
            }
        }
    }

    fn decide(&self, headers: &HeaderMap) -> Decision {
        let rules = &self.rules;
        if rules.is_empty() {
            return Decision::default();
        }
        let facts = facts(&self.tools, &self.url, headers);
        let shortlist = rules.shortlist(&facts, Stage::Connect);
        if shortlist.is_empty() {
            return Decision::default();
        }
        let mut decision = rules.decide(
            &shortlist,
            &facts,
            Stage::Connect,
            self.log.chaos().elapsed(),
        );
        self.log.decided(&mut decision);
        decision
    }

    /// A synthetic response; `None` if it cannot be sent for a CONNECT.
    async fn make(
        &self,
        answer: &PlannedAnswer,
        verdict: VerdictIndex,
    ) -> Result<Option<Response<Observed>>, Abort> {
        let request = RequestInfo {
            url: self.authority.as_str(),
            host: self.origin.host(),
            model: None,
            mcp: None,
        };
        let context = self.log.context(&self.connection, &Method::CONNECT);
        match answer::make(answer, verdict, request, &context).await {
            SyntheticAnswer::Response(answer) => {
                self.log.answered(answer.status());
                Ok(Some(self.observed(answer)))
            }
            SyntheticAnswer::Bypassed => Ok(None),
            SyntheticAnswer::Abort(abort) => {
                self.log.end(Outcome::Injected, None);
                Err(abort)
            }
        }
    }

    /// Rejects a tunnel if the tape does not permit dialling.
    fn refused_by_tape(&self) -> Option<Problem> {
        let tape = self.tape.as_ref().filter(|tape| tape.never_dials())?;
        if self.compiled.intercepts(self.origin.host()) {
            return None;
        }
        tape.refuses();
        Some(Problem::new(
            StatusCode::NOT_FOUND,
            "tape-miss",
            "Not on the tape",
            format!(
                "scope `{}` is answered from a tape, and connections to {} are not intercepted: \
                 nothing on a tape could answer in them; take the host out of \
                 `proxy.intercept.exclude`, or put the tape with `on_miss: passthrough`",
                self.log.chaos().scope(),
                self.origin.host_and_port()
            ),
        ))
    }

    /// Dials, unless this is already done or unnecessary.
    async fn dial(&self, doomed: bool) -> Result<Option<Dialled>, UpstreamError> {
        let upstreams = &self.connection.worker.upstreams;
        upstreams.check(&self.origin)?;
        if doomed {
            return Ok(None);
        }
        if let Some(tape) = &self.tape {
            if self.compiled.intercepts(self.origin.host()) {
                // The tape responds to the requests in the tunnel; misses that it lets pass are
                // dialled later.
                return Ok(None);
            }
            tape.dials();
        }
        if self.compiled.intercepts(self.origin.host()) && upstreams.is_reachable(&self.origin) {
            return Ok(None);
        }
        let begun = Instant::now();
        let dialled = upstreams.connect_tcp(&self.origin).await;
        self.log.waited(begun.elapsed());
        dialled.map(Some)
    }

    /// The 200, and the next stage of the connection.
    fn accept(
        self,
        dialled: Option<Dialled>,
        tls_failure: Option<(VerdictIndex, TlsFailure)>,
    ) -> ConnectAnswer {
        let intercepted = self.compiled.intercepts(self.origin.host());
        let connection = self.connection;
        let opening = Box::new(Opening {
            tunnel: Tunnel {
                authority: self.origin.authority(),
                origin: self.origin,
                scope: self.scope,
                agent: self.agent,
                decided_by: Arc::downgrade(self.rules.rules()),
                dialled: Cell::new(dialled),
            },
            tls_failure,
            intercepted,
            tape: self.tape,
            rules: self.rules,
            log: self.log,
        });
        let (worker, control) = (
            Rc::clone(&connection.worker),
            Rc::clone(&connection.control),
        );
        let takeover: Takeover = Box::new(|io| opening.stage(worker, io, control));
        (accepted(&connection), Some(takeover))
    }

    fn observed(&self, answer: Response<AgentBody>) -> Response<Observed> {
        answer.map(|body| Observed::new(body, &self.connection, Some(Rc::clone(&self.log))))
    }

    fn ledger(&self) -> Rc<dyn Ledger> {
        Rc::clone(&self.log) as Rc<dyn Ledger>
    }
}

fn not_a_forward_proxy() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "not-a-forward-proxy",
        "Not a forward proxy",
        "this listener serves one route and opens no tunnels; send the CONNECT to the address of \
         `proxy.listen`",
    )
}

fn nested() -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "nested-connect",
        "CONNECT inside a tunnel",
        "a CONNECT came through a tunnel that this proxy intercepts; open a connection of its own \
         for it, or exclude the host from `proxy.intercept`",
    )
}
