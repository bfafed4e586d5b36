//! Sends the request upstream and passes the response's head back.

use std::rc::Rc;
use std::time::Instant;

use http::header::HOST;
use http::{HeaderValue, Request, Response, StatusCode, Uri, Version};
use squall_journal::record::Outcome;

use super::connection::{Connection, ConnectionStage, Ingress, Io};
use super::log::ExchangeLog;
use super::route::RequestTarget;
use super::splice;
use super::websocket::{self, ModelSocket, SocketFaults};
use crate::abort::Abort;
use crate::body::{self, AgentBody};
use crate::headers::{self, Passage};
use crate::http1::FramingError;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::recorder::SocketTap;
use crate::tls::Alpn;
use crate::upstream::{FailureCause, Outgoing, Received, ToAgent, UpstreamError, UpstreamOrigin};

/// Sends `request` to its target as an HTTP intermediary, without additions. Returns the upstream's
/// response, ready to pass on, or a problem for the agent. A 101 accepts an upgrade that the agent
/// requested.
pub(crate) fn forward<'a>(
    connection: &'a Rc<Connection>,
    target: &'a RequestTarget,
    mut request: Box<Request<Outgoing>>,
    agent: Version,
    log: &'a Rc<ExchangeLog>,
) -> impl Future<Output = Result<Result<Response<Received>, Problem>, Abort>> + 'a {
    let upgrade = agent <= Version::HTTP_11 && headers::wants_upgrade(request.headers());
    let passage = Passage {
        from: agent,
        to: agent,
        upgrade,
    };
    headers::clean_request(request.headers_mut(), passage);
    // In its place, if the agent sent one (RFC 9112 §3.2.2). HTTP/2 has none, but the next hop's form
    // may need one.
    request.headers_mut().insert(HOST, target.host.clone());
    *request.uri_mut() = Uri::from(target.path.clone());
    let upstreams = &connection.worker.upstreams;
    let origin = upstreams.origin_for(target.origin.clone(), log.chaos().is_unapproved());
    let carrier = connection.ingress.carrier().map(Rc::clone);
    async move {
        let begun = Instant::now();
        if let Some(carrier) = carrier {
            let answer = carrier.send(*request).await?.map(Received::carried);
            log.waited(begun.elapsed());
            return Ok(Ok(answered(answer, agent, upgrade, log)));
        }
        if let Err(error) = prepare(connection, &origin, &target.host).await {
            log.waited(begun.elapsed());
            return problem(&error, connection, log).map(Err);
        }
        let sent = upstreams
            .send(&origin, *request, &connection.take_original_names())
            .await;
        log.waited(begun.elapsed());
        match sent {
            Ok(answer) => Ok(Ok(answered(answer, agent, upgrade, log))),
            Err(error) => problem(&error, connection, log).map(Err),
        }
    }
}

/// Checks the host requested at `origin`, and prepares the connection of a CONNECT for its first
/// exchange.
async fn prepare(
    connection: &Connection,
    origin: &UpstreamOrigin,
    host: &HeaderValue,
) -> Result<(), UpstreamError> {
    let upstreams = &connection.worker.upstreams;
    upstreams.check_host(origin, host)?;
    let Ingress::Tunnel(tunnel) = &connection.ingress else {
        return Ok(());
    };
    let Some(dialled) = tunnel.dialled.take() else {
        return Ok(());
    };
    Box::pin(upstreams.learn_alpn(origin, Some(dialled), Alpn::Http1)).await?;
    Ok(())
}

/// The upstream's response as it is passed on.
fn answered(
    mut answer: Response<Received>,
    agent: Version,
    upgrade: bool,
    log: &Rc<ExchangeLog>,
) -> Response<Received> {
    log.note(|note| note.upstream_status = Some(answer.status()));
    let granted = upgrade && answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    let passage = Passage {
        from: answer.version(),
        to: agent,
        upgrade: granted,
    };
    headers::clean_response(answer.headers_mut(), passage);
    *answer.version_mut() = agent;
    answer
}

/// Connects both sides of an upgrade once hyper has passed the 101 on.
pub(crate) fn take_over(
    connection: &Connection,
    answer: Response<Received>,
    log: &Rc<ExchangeLog>,
    socket: Option<Box<ModelSocket>>,
    faults: Option<SocketFaults>,
) -> Response<AgentBody> {
    let (head, upstream) = answer.into_parts();
    log.captured_head(head.status, &head.headers);
    // A tunnel waits for both sides, so the idle timeout applies. A fault may hold it longer.
    log.waits_for_agent(faults.is_none());
    if headers::wants_websocket(&head.headers) {
        log.taps().socket = Some(Box::new(SocketTap::new()));
    }
    let socket =
        socket.and_then(|socket| websocket::Upgraded::new(*socket, &head.headers, connection, log));
    let (log, control) = (Rc::clone(log), connection.end());
    *connection.takeover.borrow_mut() = Some(Box::new(move |io| {
        ConnectionStage::last(async move {
            let upstream = upstream.into_switched().map(|upstream| -> Io {
                match faults {
                    None => Box::new(upstream),
                    Some(faults) => faults.act_on(Box::new(upstream)),
                }
            });
            match (upstream, socket) {
                (Some(upstream), Some(socket)) => websocket::serve(io, upstream, socket).await,
                (Some(upstream), None) => splice::both_ways(io, upstream, &control, &log).await,
                (None, _) => log.end(
                    Outcome::UpstreamError,
                    Some("the upstream broke off right after granting the upgrade".into()),
                ),
            }
        })
    }));
    Response::from_parts(head, body::empty())
}

/// The response for an upstream that failed: a problem, or the same abort.
pub(crate) fn problem(
    error: &UpstreamError,
    connection: &Connection,
    log: &ExchangeLog,
) -> Result<Problem, Abort> {
    if error.is_agents()
        && let Some(why) = connection.framing_broke()
    {
        return Ok(bad_framing(why, log));
    }
    note(error, &connection.worker.engine.metrics, log);
    match error.to_agent() {
        ToAgent::Problem(status) => Ok(Problem::new(
            status,
            error.slug(),
            error.title(),
            error.to_string(),
        )),
        ToAgent::Break(broken) => Err(broken),
    }
}

/// Logs why an upstream failed, and which side caused it.
pub(crate) fn note(error: &UpstreamError, metrics: &Metrics, log: &ExchangeLog) {
    let outcome = match error.cause() {
        _ if error.is_agents() => Outcome::ClientGone,
        FailureCause::Denied(_) | FailureCause::Loop(_) => Outcome::Denied,
        _ => {
            metrics.upstream_error(error.reason());
            Outcome::UpstreamError
        }
    };
    log.end(outcome, Some(error.to_string()));
}

/// Rejects a request with ambiguous body framing.
pub(crate) fn bad_framing(why: FramingError, log: &ExchangeLog) -> Problem {
    let why = why.to_string();
    log.end(Outcome::Denied, Some(why.clone()));
    Problem::new(
        StatusCode::BAD_REQUEST,
        "bad-framing",
        "Bad request framing",
        why,
    )
}
