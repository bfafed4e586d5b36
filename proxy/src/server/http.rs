//! HTTP on a connection from an agent: detects the version, then serves exchanges.

use std::future::{poll_fn, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::connect;
use super::listener::Accepted;
use crate::abort::Abort;
use crate::body::agent::AgentSide;
use crate::exchange;
use crate::exchange::connection::{Connection, ConnectionStage, Ingress, Io, Takeover};
use crate::exchange::observed::Observed;
use crate::exchange::reply::{Answering, refuse};
use crate::exchange::worker::ExchangeWorker;
use crate::http1::guard::RequestGuard;
use crate::http1::sniff::{Sniff, sniff};
use crate::http1::{Control, FramingError, HeadLimits, Rewind, Socket};
use crate::problem::Problem;
use crate::upstream::LocalExecutor;

/// How long a closing connection is read, so that a reset does not drop the last response (RFC 9112
/// §9.6).
const LINGER: Duration = Duration::from_secs(2);

/// Serves an accepted connection.
pub(super) async fn serve(worker: Rc<ExchangeWorker>, accepted: Accepted) {
    let Accepted {
        stream,
        role,
        permit,
    } = accepted;
    let stream = match TcpStream::from_std(stream) {
        Ok(stream) => stream,
        Err(error) => return tracing::warn!(%error, "cannot serve a connection"),
    };
    // An error means that the peer closed after the accept.
    let Ok(socket) = Socket::new(stream) else {
        return;
    };
    let control = socket.control();
    let _slot = worker.slot(&control, permit);
    let sniffed = sniffed(Rc::clone(&worker), socket, Ingress::Listener(role));
    run(ConnectionStage::work(sniffed), worker, control).await;
}

/// Detects HTTP/1 or HTTP/2 from the first bytes.
async fn sniffed(
    worker: Rc<ExchangeWorker>,
    socket: Socket,
    ingress: Ingress,
) -> Option<ConnectionStage> {
    let patience = worker.engine.compiled().config.limits.idle_timeout;
    let sniffed = tokio::select! {
        sniffed = sniff(socket, patience) => sniffed,
        () = worker.draining.cancelled() => return None,
    };
    match sniffed {
        Ok(Some((Sniff::H2Preface, io))) => Some(ConnectionStage::Http2(Box::new(io), ingress)),
        // The guard rejects bytes that are not HTTP with an HTTP response.
        Ok(Some((_, io))) => Some(ConnectionStage::Http1(Box::new(io), ingress)),
        Ok(None) | Err(_) => None,
    }
}

/// Runs this stage of a connection and all that follow.
async fn run(stage: ConnectionStage, worker: Rc<ExchangeWorker>, control: Rc<Control>) {
    let mut next = Some(stage);
    while let Some(stage) = next {
        let (worker, control) = (Rc::clone(&worker), Rc::clone(&control));
        let work: Pin<Box<dyn Future<Output = Option<ConnectionStage>>>> = match stage {
            ConnectionStage::Http1(io, ingress) => Box::pin(serve_h1(worker, io, control, ingress)),
            ConnectionStage::Http2(io, ingress) => Box::pin(serve_h2(worker, io, control, ingress)),
            ConnectionStage::Work(work) => work,
        };
        next = work.await;
    }
}

fn run_boxed(
    stage: ConnectionStage,
    worker: Rc<ExchangeWorker>,
    control: Rc<Control>,
) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(run(stage, worker, control))
}

/// Serves HTTP/1 on `io` until it ends or another stage takes over.
async fn serve_h1(
    worker: Rc<ExchangeWorker>,
    io: Io,
    control: Rc<Control>,
    ingress: Ingress,
) -> Option<ConnectionStage> {
    let compiled = worker.engine.compiled();
    let limits = &compiled.config.limits;
    let heads = HeadLimits {
        header_bytes: limits.header_bytes,
        header_count: limits.header_count,
    };
    let io = RequestGuard::new(io, heads, limits.header_timeout);
    let guard = io.state();
    let (agent, io) = AgentSide::http1(Rc::clone(&control), TokioIo::new(io));
    let connection = Connection::new(&worker, &control, ingress, Some(guard), agent, run_boxed);
    let mut served = hyper::server::conn::http1::Builder::new()
        .auto_date_header(false)
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        // The guard checks every head before hyper does. hyper's limits are wider, so that the
        // agent never gets hyper's own error.
        .max_headers(limits.header_count + 8)
        .max_buf_size((limits.header_bytes + 4096).max(512 << 10))
        .serve_connection(io, AgentService(Rc::clone(&connection)));
    let serving = poll_fn(|cx| served.poll_without_shutdown(cx));
    let result = tokio::select! {
        biased;
        result = serving => result,
        () = is_to_close(&connection) => {
            Pin::new(&mut served).graceful_shutdown();
            poll_fn(|cx| served.poll_without_shutdown(cx)).await
        }
    };
    let takeover = connection.takeover.borrow_mut().take();
    let parts = served.into_parts();
    let io = parts.io.into_inner().into_inner().into_rewind();
    match (result, takeover) {
        (Ok(()), Some(takeover)) => {
            let io = Rewind::new(io, parts.read_buf);
            Some(takeover(Box::new(io)))
        }
        _ => Some(ConnectionStage::last(close(
            io,
            control,
            worker.draining.clone(),
        ))),
    }
}

/// Serves HTTP/2 on `io` until it ends.
async fn serve_h2(
    worker: Rc<ExchangeWorker>,
    io: Io,
    control: Rc<Control>,
    ingress: Ingress,
) -> Option<ConnectionStage> {
    let compiled = worker.engine.compiled();
    let connection = Connection::new(
        &worker,
        &control,
        ingress,
        None,
        AgentSide::Http2,
        run_boxed,
    );
    // h2 rejects heads beyond this limit with a bare 431. Smaller ones get a problem body.
    let header_bytes = compiled.config.limits.header_bytes.saturating_mul(4);
    let header_bytes = u32::try_from(header_bytes).unwrap_or(u32::MAX);
    let mut served = pin!(
        hyper::server::conn::http2::Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .auto_date_header(false)
            .enable_connect_protocol()
            .max_header_list_size(header_bytes)
            .max_concurrent_streams(1024)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20)
            .serve_connection(TokioIo::new(io), AgentService(Rc::clone(&connection)))
    );
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        () = is_to_close(&connection) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP/2 connection ended");
    }
    None
}

/// Resolves when a connection must serve no further exchange. Poll it after the connection, which
/// may have just read another request.
async fn is_to_close(connection: &Connection) {
    tokio::select! {
        () = connection.worker.draining.cancelled() => {}
        () = poll_fn(|cx| connection.carried.poll_over(cx)) => {}
    }
}

/// Closes a connection so that written bytes arrive even if the agent has sent unread ones. Closing
/// with unread bytes would reset the connection and drop the response.
async fn close<I>(mut io: I, control: Rc<Control>, draining: CancellationToken)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    if control.is_resetting() {
        return;
    }
    if io.shutdown().await.is_err() {
        return;
    }
    // On the heap: otherwise it would enlarge every connection's future.
    let mut scratch = vec![0; 4096];
    let drain = async { while io.read(&mut scratch).await.is_ok_and(|read| read > 0) {} };
    tokio::select! {
        () = drain => {}
        // After the limit the connection is dropped.
        () = tokio::time::sleep(LINGER) => {}
        () = draining.cancelled() => {}
    }
}

/// The hyper service of a connection.
struct AgentService(Rc<Connection>);

impl hyper::service::Service<Request<Incoming>> for AgentService {
    type Response = Response<Observed>;
    type Error = Abort;
    type Future = Answering;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let connection = &self.0;
        connection.begins();
        if let Some((problem, method, uri)) = rejected(connection, &request) {
            let refusal = refuse(connection, &problem, &method, &uri);
            return Box::pin(ready(Ok(refusal)));
        }
        if request.extensions().get::<Protocol>().is_some() {
            return Box::pin(upgraded_stream(Rc::clone(connection), request));
        }
        if request.method() == Method::CONNECT {
            return Box::pin(tunnelled(Rc::clone(connection), request));
        }
        // The bytes after such a request may not be HTTP, so the guard stops parsing.
        let upgrades = request.version() == Version::HTTP_11
            && request.headers().contains_key(http::header::UPGRADE);
        let served = exchange::serve(connection, request);
        if !upgrades {
            return served;
        }
        let connection = Rc::clone(connection);
        Box::pin(async move {
            let answer = served.await?;
            protocol_changed(&connection, answer.status());
            Ok(answer)
        })
    }
}

/// Runs the next stage of an HTTP/2 stream, once its response is sent.
fn continue_in(takeover: Takeover, upgrade: OnUpgrade, connection: &Connection) {
    let (worker, control) = (
        Rc::clone(&connection.worker),
        Rc::clone(&connection.control),
    );
    tokio::task::spawn_local(async move {
        match upgrade.await {
            Ok(io) => run(takeover(Box::new(TokioIo::new(io))), worker, control).await,
            Err(error) => tracing::debug!(%error, "a CONNECT stream ended early"),
        }
    });
}

/// Handles a CONNECT. After a 200 its content is the next stage of the connection, or of one stream
/// on HTTP/2.
async fn tunnelled(
    connection: Rc<Connection>,
    mut request: Request<Incoming>,
) -> Result<Response<Observed>, Abort> {
    let upgrade = connection.is_h2().then(|| hyper::upgrade::on(&mut request));
    let (answer, takeover) = connect::serve(&connection, &request).await?;
    match (takeover, upgrade) {
        (Some(takeover), Some(upgrade)) => {
            continue_in(takeover, upgrade, &connection);
        }
        (takeover, _) => *connection.takeover.borrow_mut() = takeover,
    }
    protocol_changed(&connection, answer.status());
    Ok(answer)
}

/// Handles an extended CONNECT (RFC 8441) as the upgrade of HTTP/1.1 that it stands for. After the
/// upstream's 101, the stream is in the new protocol.
async fn upgraded_stream(
    connection: Rc<Connection>,
    mut request: Request<Incoming>,
) -> Result<Response<Observed>, Abort> {
    let upgrade = hyper::upgrade::on(&mut request);
    as_upgrade(&mut request);
    let mut answer = exchange::serve(&connection, request).await?;
    let takeover = connection.takeover.borrow_mut().take();
    if takeover.is_none() && answer.status().is_success() {
        // On an extended CONNECT, it would mean that the upgrade was accepted.
        *answer.status_mut() = StatusCode::BAD_GATEWAY;
    }
    if let Some(takeover) = takeover {
        continue_in(takeover, upgrade, &connection);
        *answer.status_mut() = StatusCode::OK;
        *answer.version_mut() = Version::HTTP_2;
        for name in [
            header::CONNECTION,
            header::UPGRADE,
            header::SEC_WEBSOCKET_ACCEPT,
        ] {
            answer.headers_mut().remove(name);
        }
    }
    Ok(answer)
}

/// Rewrites an extended CONNECT as a GET with `Upgrade`.
fn as_upgrade(request: &mut Request<Incoming>) {
    let protocol = request.extensions_mut().remove::<Protocol>();
    let protocol = protocol.and_then(|protocol| HeaderValue::from_str(protocol.as_str()).ok());
    *request.method_mut() = Method::GET;
    *request.version_mut() = Version::HTTP_11;
    let key = BASE64_STANDARD.encode(rand::random::<[u8; 16]>());
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    if let Some(protocol) = protocol {
        headers.insert(header::UPGRADE, protocol);
    }
    if let Ok(key) = HeaderValue::from_str(&key) {
        headers.insert(header::SEC_WEBSOCKET_KEY, key);
    }
}

fn protocol_changed(connection: &Connection, status: StatusCode) {
    let Some(guard) = &connection.guard else {
        return;
    };
    if status == StatusCode::SWITCHING_PROTOCOLS || connection.takeover.borrow().is_some() {
        guard.upgrade_granted();
    } else {
        guard.upgrade_refused();
    }
}

/// The `type` and `title` of the problem for a head beyond the limits.
const HEAD_TOO_LARGE: (&str, &str) = ("head-too-large", "Request head too large");

/// The response to the substitute request for a rejected head.
fn rejected(
    connection: &Connection,
    request: &Request<Incoming>,
) -> Option<(Problem, Method, Uri)> {
    let Some(guard) = &connection.guard else {
        let problem = head_too_large(connection, request)?;
        return Some((problem, request.method().clone(), request.uri().clone()));
    };
    let rejection = guard.take_rejection(request.uri().path())?;
    let (method, uri) = rejection.request.unwrap_or_default();
    let (slug, title) = match rejection.status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => HEAD_TOO_LARGE,
        StatusCode::REQUEST_TIMEOUT => ("head-timeout", "Request head too slow"),
        _ => ("bad-framing", "Bad request framing"),
    };
    let problem = Problem::new(rejection.status, slug, title, rejection.reason.to_string());
    Some((problem, method, uri))
}

/// The problem for an HTTP/2 head beyond the limits; the guard only reads HTTP/1.
fn head_too_large(connection: &Connection, request: &Request<Incoming>) -> Option<Problem> {
    let limits = &connection.worker.engine.compiled().config.limits;
    let (count, bytes) = (limits.header_count, limits.header_bytes);
    let reason = if request.headers().len() > count {
        FramingError::TooManyFields { limit: count }
    } else if header_list_size(request) > bytes {
        FramingError::HeadTooLarge { limit: bytes }
    } else {
        return None;
    };
    let (slug, title) = HEAD_TOO_LARGE;
    let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Some(Problem::new(status, slug, title, reason.to_string()))
}

/// The size of a head in HTTP/2: names, values and 32 bytes per field (RFC 9113 §6.5.2).
fn header_list_size(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + 32);
    let target = request
        .uri()
        .path_and_query()
        .map_or(0, |path| path.as_str().len());
    fields.sum::<usize>() + target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_answer_survives_unread_bytes() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let mut socket = Socket::new(server).unwrap();
        let serving = async {
            socket.write_all(b"refused").await.unwrap();
            let control = socket.control();
            close(socket, control, CancellationToken::new()).await;
        };
        let asking = async move {
            // More than the kernel's buffers take, so that it is still writing when it is refused.
            client.write_all(&vec![b'x'; 32 << 20]).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer, "refused");
        };
        tokio::join!(serving, asking);
    }
}
