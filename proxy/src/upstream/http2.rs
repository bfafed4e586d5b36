//! One HTTP/2 connection to an upstream, shared by exchanges, driven by local tasks.

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

/// What an upstream may send on one stream before the agent has read any of it, bytes. An agent
/// that reads slowly costs no more memory than this.
const STREAM_WINDOW: u32 = 1 << 20;

/// The same for a whole connection: room for so many stalled streams that none of them can hold
/// up its siblings.
const CONNECTION_WINDOW: u32 = 128 << 20;

/// Streams on one connection before its SETTINGS have come (hyper's own assumption).
const STREAMS_AT_FIRST: usize = 100;

/// The client's end of a connection.
pub(super) struct Http2 {
    pub(super) sender: SendRequest<SentBody>,
    /// The upstream's limit of streams, kept up to date while the connection lives.
    pub(super) limit: Rc<Cell<usize>>,
}

impl Http2 {
    /// Takes over a stream on which nothing has been said yet.
    pub(super) async fn open<T>(io: T, settings: &Settings) -> Result<Self, FailureCause>
    where
        T: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let (sender, mut connection) = Builder::new(Local)
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
                // Every stream on it is told by hyper; an idle connection's end is no news.
                tracing::trace!(error = &error as &dyn Error, "an upstream connection ended");
            }
        });
        Ok(Self { sender, limit })
    }
}

/// Spawns hyper's tasks on the worker's own `LocalSet`.
#[derive(Debug, Clone, Copy)]
struct Local;

impl<F: Future<Output = ()> + 'static> Executor<F> for Local {
    fn execute(&self, task: F) {
        spawn_local(task);
    }
}
