//! CONNECT: faults of the connection first, then the dial, then the 200, then what comes through.
//!
//! The upstream is dialled before the 200, so that one that refuses is a refused CONNECT and not a
//! tunnel that dies. A CONNECT becomes an exchange of its own, of kind `other`, only when it fails
//! or is tunnelled; what is intercepted shows up as the exchanges inside it.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::uri::Authority;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use squall_journal::record::Outcome;
use squall_profiles::activation::{Decision, Snapshot};
use squall_profiles::facts::{CanonicalUrl, Facts, Kind, Stage};
use squall_profiles::fault::TlsFailure;
use squall_profiles::plan::{Answer, VerdictIndex};

use crate::broken::{Broken, Ledger};
use crate::carry_out::answer::{self, Asked, Made};
use crate::carry_out::body::{self, AgentBody};
use crate::carry_out::hold;
use crate::connection::{Answering, Connection, Entry, connect_scope};
use crate::exchange::played::tape_of;
use crate::exchange_log::ExchangeLog;
use crate::listener::Door;
use crate::live::Live;
use crate::observed::Observed;
use crate::problem::Problem;
use crate::recorder::ExchangeNote;
use crate::route;
use crate::tape::Playing;
use crate::tunnel::{Opening, Takeover, Tunnel};
use crate::upstream::{Origin, Scheme};

/// Answers a CONNECT; after a 200 the connection is taken over by [`crate::tunnel`].
pub(crate) fn serve(connection: &Rc<Connection>, request: Request<Incoming>) -> Answering {
    let connection = Rc::clone(connection);
    let live = connection.worker.engine.live();
    match asks_for_own_routes(&connection, &live, &request) {
        Ok(None) => {}
        Ok(Some(door)) => {
            let answer = take_over(&connection, request, Takeover::Own(door));
            return Box::pin(ready(Ok(answer)));
        }
        Err(problem) => {
            let refusal = connection.refuse(&problem, request.method(), request.uri());
            return Box::pin(ready(Ok(refusal)));
        }
    }
    let connect = match Connect::open(&connection, &live, &request) {
        Ok(connect) => connect,
        Err(problem) => {
            let refusal = connection.refuse(&problem, request.method(), request.uri());
            return Box::pin(ready(Ok(refusal)));
        }
    };
    Box::pin(async move {
        let log = Rc::clone(&connect.log);
        let answer = log.unless_over(connect.run(request)).await;
        if let Err(broken) = &answer {
            connection.break_off(broken);
        }
        answer
    })
}

/// The listener of the proxy that a CONNECT is for, which serves its routes in the tunnel.
fn asks_for_own_routes(
    connection: &Connection,
    live: &Live,
    request: &Request<Incoming>,
) -> Result<Option<Door>, Problem> {
    let authority = route::connect_authority(request.uri()).ok();
    let door = authority
        .filter(|_| matches!(connection.entry, Entry::Door(Door::Main)))
        .and_then(|authority| route::own_door(live, &authority))
        .filter(|door| *door != Door::Main || live.has_prefixes());
    if door.is_some() {
        // Credentials that are required are required here too.
        connect_scope(live, request)?;
    }
    Ok(door)
}

/// The 200, after which `takeover` has the connection.
fn take_over(
    connection: &Rc<Connection>,
    request: Request<Incoming>,
    takeover: Takeover,
) -> Response<Observed> {
    if connection.is_h2() {
        let upgrade = hyper::upgrade::on(request);
        let (worker, control) = (
            Rc::clone(&connection.worker),
            Rc::clone(&connection.control),
        );
        tokio::task::spawn_local(async move {
            match upgrade.await {
                Ok(io) => {
                    let io = hyper_util::rt::TokioIo::new(io);
                    takeover.stage(worker, Box::new(io), control).run().await;
                }
                Err(error) => tracing::debug!(%error, "a CONNECT stream ended early"),
            }
        });
    } else {
        *connection.takeover.borrow_mut() = Some(takeover);
    }
    let mut answer = Response::new(body::empty());
    *answer.status_mut() = StatusCode::OK;
    answer.map(|body| Observed::new(body, connection, None))
}

struct Connect {
    connection: Rc<Connection>,
    live: Arc<Live>,
    authority: Authority,
    /// As if for TLS, which is what a CONNECT nearly always carries; its first bytes will tell.
    origin: Origin,
    url: CanonicalUrl,
    scope: Option<Arc<str>>,
    /// In force when it came; a rule that comes while it waits or dials is none of its own.
    rules: Snapshot,
    /// What goes by the whole authority.
    tools: Vec<String>,
    log: Rc<ExchangeLog>,
    /// What answers in the scope.
    tape: Option<Arc<Playing>>,
}

impl Connect {
    fn open(
        connection: &Rc<Connection>,
        live: &Arc<Live>,
        request: &Request<Incoming>,
    ) -> Result<Self, Problem> {
        let started = Instant::now();
        match connection.entry {
            Entry::Door(Door::Main) => {}
            Entry::Door(Door::Route(_)) => return Err(not_a_forward_proxy()),
            Entry::Tunnel(_) => return Err(nested()),
        }
        let authority = route::connect_authority(request.uri())?;
        let scope = connect_scope(live, request)?;
        let origin = Origin::of_authority(Scheme::Https, &authority);
        let url = CanonicalUrl::new("https", &origin.authority(), "/");
        let engine = &connection.worker.engine;
        let chaos = engine.chaos.scope_or_slot(scope.as_deref());
        let upstreams = &connection.worker.upstreams;
        let origin = upstreams.origin_for(origin, chaos.is_unapproved());
        let mut note = ExchangeNote::new(
            engine.recorder.begin(started),
            started,
            &chaos,
            Kind::Other,
            Method::CONNECT,
            origin.host_and_port(),
        );
        let rules = chaos.activation().snapshot();
        // Where nothing but the authority is asked for: of what fails here no path is ever seen.
        let tools = live.tools_at(&url, rules.rules());
        let named: Vec<_> = tools.iter().map(String::as_str).collect();
        note.calls(named.first().copied(), &named);
        note.rules = Arc::downgrade(rules.rules());
        let tape = tape_of(&engine.chaos, &chaos);
        let log = ExchangeLog::open(connection, note, chaos);
        log.leaves(authority.as_str(), request.headers());
        Ok(Self {
            connection: Rc::clone(connection),
            live: Arc::clone(live),
            authority,
            origin,
            url,
            scope,
            rules,
            tools,
            log,
            tape,
        })
    }

    async fn run(self, request: Request<Incoming>) -> Result<Response<Observed>, Broken> {
        let mut decision = self.decide(request.headers());
        for (verdict, wait) in &decision.plan.wait_before {
            self.log.applied(*verdict);
            hold::hold(*wait, &self.ledger()).await;
        }
        let mut tls_failure = None;
        match decision.plan.instead.take() {
            Some((verdict, Answer::Tls(failure))) => tls_failure = Some((verdict, failure)),
            Some((verdict, answer)) => {
                if let Some(answer) = self.make(&answer, verdict).await? {
                    return Ok(answer);
                }
            }
            None => {}
        }
        if let Some(problem) = self.refused_by_tape() {
            self.log.end(Outcome::Denied, Some(problem.detail.clone()));
            return Ok(self.connection.problem(&problem, Some(&self.log)));
        }
        let dialled = match self.dial(tls_failure.is_some()).await {
            Ok(dialled) => dialled,
            Err(error) => {
                let problem = crate::forward::problem(&error, &self.connection, &self.log);
                return problem.map(|problem| self.connection.problem(&problem, Some(&self.log)));
            }
        };
        Ok(self.accept(request, dialled, tls_failure))
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

    /// An answer no upstream sent; `None` when it cannot be made at a CONNECT.
    async fn make(
        &self,
        answer: &Answer,
        verdict: VerdictIndex,
    ) -> Result<Option<Response<Observed>>, Broken> {
        let asked = Asked {
            url: self.authority.as_str(),
            host: self.origin.host(),
            model: None,
            mcp: None,
        };
        let context = self.connection.context(&self.log, &Method::CONNECT);
        match answer::make(answer, verdict, asked, &context).await {
            Made::Response(answer) => {
                self.log.answered(answer.status());
                Ok(Some(self.observed(answer)))
            }
            Made::Bypassed => Ok(None),
            Made::Broken(broken) => {
                self.log.end(Outcome::Injected, None);
                Err(broken)
            }
        }
    }

    /// A tunnel to where nothing may be dialled.
    fn refused_by_tape(&self) -> Option<Problem> {
        let tape = self.tape.as_ref().filter(|tape| tape.never_dials())?;
        if self.live.intercepts(self.origin.host()) {
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

    /// Dials, unless that is already done or will not be needed.
    async fn dial(
        &self,
        doomed: bool,
    ) -> Result<Option<crate::upstream::Dialled>, crate::upstream::UpstreamError> {
        let upstreams = &self.connection.worker.upstreams;
        upstreams.check(&self.origin)?;
        if doomed {
            return Ok(None);
        }
        if let Some(tape) = &self.tape {
            if self.live.intercepts(self.origin.host()) {
                // The tape answers what comes through; what it lets pass is dialled then.
                return Ok(None);
            }
            tape.dials();
        }
        if self.live.intercepts(self.origin.host()) && upstreams.has_live(&self.origin) {
            return Ok(None);
        }
        let begun = Instant::now();
        let dialled = upstreams.connect_tcp(&self.origin).await;
        self.log.waited(begun.elapsed());
        dialled.map(Some)
    }

    /// The 200, and who takes the connection over after it.
    fn accept(
        self,
        request: Request<Incoming>,
        dialled: Option<crate::upstream::Dialled>,
        tls_failure: Option<(VerdictIndex, TlsFailure)>,
    ) -> Response<Observed> {
        let intercepted = self.live.intercepts(self.origin.host());
        let opening = Opening {
            tunnel: Rc::new(Tunnel {
                authority: self.origin.authority(),
                origin: self.origin,
                scope: self.scope,
                decided_by: Arc::downgrade(self.rules.rules()),
                dialled: Cell::default(),
            }),
            dialled,
            tls_failure,
            intercepted,
            tape: self.tape,
            rules: self.rules,
            log: self.log,
        };
        // Of a tunnel both sides are to be heard of.
        opening.log.waits_for_agent(true);
        let takeover = Takeover::Connect(Box::new(opening));
        take_over(&self.connection, request, takeover)
    }

    fn observed(&self, answer: Response<AgentBody>) -> Response<Observed> {
        answer.map(|body| Observed::new(body, &self.connection, Some(Rc::clone(&self.log))))
    }

    fn ledger(&self) -> Rc<dyn Ledger> {
        Rc::clone(&self.log) as Rc<dyn Ledger>
    }
}

/// A CONNECT, or what passes through it unread, as rules see it.
pub(crate) fn facts<'a>(
    tools: &'a [String],
    url: &'a CanonicalUrl,
    headers: &'a HeaderMap,
) -> Facts<'a> {
    Facts {
        kind: Kind::Other,
        dialect: None,
        tools,
        mcp_tool_call: false,
        mcp_tool_list: false,
        may_be_mcp: false,
        method: &Method::CONNECT,
        url,
        headers,
        model: None,
        stream: None,
        results: None,
        body: None,
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
