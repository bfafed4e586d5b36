//! Connections to the API: their number, their idle timeout, and which one to close for a new one.
//!
//! Clients without a token may open connections and send half of a request head. So a connection without a
//! request in progress is closed after a timeout. When there are too many, the oldest of them is closed at once.
//! Requests that end chaos thus always find a connection.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::Response;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::lock;

/// How long a connection may be open without a request in progress: while its head arrives, between requests, and
/// while the client reads the buffered rest of a response.
const IDLE: Duration = Duration::from_secs(30);

/// All open connections.
pub(super) struct Connections {
    most: usize,
    open: Arc<Mutex<BTreeMap<u64, ApiConnection>>>,
    accepted: u64,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// A connection, for the others.
struct ApiConnection {
    in_progress: watch::Receiver<usize>,
    close: CancellationToken,
}

/// Counts the requests in progress on one connection.
type RequestCount = Arc<watch::Sender<usize>>;

impl Connections {
    /// At most `most` connections. At `shutdown` each finishes its requests.
    pub(super) fn new(most: usize, shutdown: CancellationToken) -> Self {
        Self {
            most,
            open: Arc::default(),
            accepted: 0,
            tasks: TaskTracker::new(),
            shutdown,
        }
    }

    /// Serves a connection; if there are too many, the oldest without a request is closed, else the new one is
    /// dropped.
    pub(super) fn serve(&mut self, stream: TcpStream, peer: SocketAddr, router: Router) {
        if lock(&self.open).len() >= self.most && !self.close_idle() {
            return;
        }
        // Events are small and must not be delayed.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY is not set on a connection of the API");
        }
        self.accepted += 1;
        let number = self.accepted;
        let (progress, in_progress) = watch::channel(0);
        let close = CancellationToken::new();
        let listed = ApiConnection {
            in_progress: in_progress.clone(),
            close: close.clone(),
        };
        lock(&self.open).insert(number, listed);
        let (open, shutdown) = (Arc::clone(&self.open), self.shutdown.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = carry(stream, peer, router, progress, shutdown) => {}
                () = idle(in_progress) => {}
                () = close.cancelled() => {}
            }
            lock(&open).remove(&number);
        });
    }

    /// Closes the oldest connection without a request in progress; returns whether there was one.
    pub(super) fn close_idle(&self) -> bool {
        let mut open = lock(&self.open);
        let mut all = open.iter();
        let idle = all.find(|(_, one)| *one.in_progress.borrow() == 0);
        let Some(number) = idle.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(closed) = open.remove(&number) {
            closed.close.cancel();
        }
        true
    }

    /// Waits until all are closed.
    pub(super) async fn closed(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Serves one connection to its end.
async fn carry(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    progress: watch::Sender<usize>,
    shutdown: CancellationToken,
) {
    let progress = Arc::new(progress);
    let service = service_fn(move |request: Request<Incoming>| {
        let held = InProgress::new(&progress);
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.clone().oneshot(request);
        async move {
            let response: Response = answer.await?;
            // The request is in progress until its response's body is sent.
            let held = response.map(|body| {
                Body::new(body.map_err(move |error| {
                    let _ = &held;
                    error
                }))
            });
            Ok::<_, Infallible>(held)
        }
    });
    let builder = Builder::new(TokioExecutor::new());
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection of the API broke");
    }
}

/// Resolves after the idle timeout, if no request is in progress.
async fn idle(mut in_progress: watch::Receiver<usize>) {
    loop {
        match timeout(IDLE, in_progress.changed()).await {
            Err(_) if *in_progress.borrow() == 0 => return,
            // The connection is over and reports its own end.
            Ok(Err(_)) => std::future::pending().await,
            Ok(Ok(())) | Err(_) => {}
        }
    }
}

/// A request in progress, until dropped.
struct InProgress(RequestCount);

impl InProgress {
    fn new(progress: &RequestCount) -> Self {
        progress.send_modify(|count| *count += 1);
        Self(Arc::clone(progress))
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_a_while_without_a_request() {
        let (progress, in_progress) = watch::channel(0);
        let progress = Arc::new(progress);
        let held = InProgress::new(&progress);
        let mut idle = pin!(idle(in_progress));
        assert!(timeout(IDLE * 10, idle.as_mut()).await.is_err());
        drop(held);
        assert!(timeout(IDLE / 2, idle.as_mut()).await.is_err());
        assert!(timeout(IDLE, idle.as_mut()).await.is_ok());
    }

    #[tokio::test]
    async fn the_oldest_connection_without_a_request_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let mut connections = Connections::new(2, CancellationToken::new());
        let pending = || async { std::future::pending::<()>().await };
        let router = Router::new()
            .route("/pending", axum::routing::get(pending))
            .route("/", axum::routing::get(|| async { "fine" }));
        let mut connect = async |sent: &str| {
            let mut client = TcpStream::connect(address).await.expect("it listens");
            client.write_all(sent.as_bytes()).await.expect("it reads");
            let (stream, peer) = listener.accept().await.expect("a connection");
            connections.serve(stream, peer, router.clone());
            let newest = connections.accepted;
            let in_progress = lock(&connections.open)[&newest].in_progress.clone();
            (client, in_progress)
        };
        let (_busy, mut in_progress) = connect("GET /pending HTTP/1.1\r\nhost: h\r\n\r\n").await;
        in_progress
            .wait_for(|count| *count == 1)
            .await
            .expect("it begins");
        let (mut half, _) = connect("GET / HTTP/1.1\r\nhost:").await;
        let (mut third, _) =
            connect("GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n").await;
        assert_eq!(half.read(&mut [0; 8]).await.unwrap_or(0), 0, "it is closed");
        let mut answer = String::new();
        third.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert_eq!(*in_progress.borrow(), 1, "what was asked first goes on");
    }
}
