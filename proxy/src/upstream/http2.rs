//! One HTTP/2 connection to an upstream, shared by exchanges and driven by local tasks.

use std::cell::Cell;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

use super::error::{FailureCause, cause_of};
use super::sent::SentBody;
use super::settings::Settings;

/// Flow-control window of one stream, bytes. It bounds the memory for an agent that reads slowly.
const STREAM_WINDOW: u32 = 1 << 20;

/// Flow-control window of a connection, bytes: large enough that stalled streams do not block
/// others.
const CONNECTION_WINDOW: u32 = 128 << 20;

/// Stream limit before the connection's SETTINGS arrive (hyper's default).
const STREAMS_AT_FIRST: usize = 100;

/// The client side of a connection.
pub(super) struct Http2 {
    pub(super) sender: SendRequest<SentBody>,
    /// The upstream's stream limit, updated while the connection is open.
    pub(super) limit: Rc<Cell<usize>>,
}

impl Http2 {
    /// Uses a stream on which nothing was sent yet.
    pub(super) async fn open<T>(io: T, settings: &Settings) -> Result<Self, FailureCause>
    where
        T: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (sender, mut connection) = Builder::new(LocalExecutor)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .initial_max_send_streams(STREAMS_AT_FIRST)
            .max_header_list_size(settings.header_bytes)
            .handshake::<TokioIo<T>, SentBody>(TokioIo::new(io))
            .await
            .map_err(|error| cause_of(&error))?;
        let limit = Rc::new(Cell::new(STREAMS_AT_FIRST));
        let told = limit.clone();
        spawn_local(async move {
            let ended = poll_fn(|cx| match Pin::new(&mut connection).poll(cx) {
                Poll::Pending => {
                    told.set(connection.current_max_send_streams());
                    Poll::Pending
                }
                ended @ Poll::Ready(_) => ended,
            });
            if let Err(error) = ended.await {
                // hyper reports the error to every stream; the end of an idle connection is normal.
                tracing::trace!(error = &error as &dyn Error, "an upstream connection ended");
            }
        });
        Ok(Self { sender, limit })
    }
}

/// Spawns hyper's tasks on the worker's `LocalSet`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalExecutor;

impl<F: Future + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, task: F) {
        spawn_local(async move {
            task.await;
        });
    }
}
