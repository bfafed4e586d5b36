//! Copies bytes both ways between an agent and an upstream, for tunnels and upgrades.
//!
//! Each direction ends separately, so one side may finish while it still receives. An abort of one
//! side aborts the other the same way: FIN as FIN, RST as RST.

use std::cell::Cell;
use std::io;

use bytes::{Bytes, BytesMut};
use squall_journal::record::Outcome;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};

use super::log::ExchangeLog;
use crate::http1::Control;

/// Read buffer size, bytes.
const PIECE: usize = 16 << 10;

/// The side that broke a splice.
enum SpliceError {
    Agent(io::Error),
    Upstream(io::Error),
}

/// Copies bytes both ways until both sides have ended or one fails.
pub(crate) async fn both_ways<A, U>(mut agent: A, upstream: U, control: &Control, log: &ExchangeLog)
where
    A: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    // Dropped last, so that it can still be reset.
    let (from_agent, to_agent) = tokio::io::split(&mut agent);
    let (from_upstream, to_upstream) = tokio::io::split(upstream);
    // Until the agent has ended or the upstream has sent something.
    let is_awaited = Cell::new(true);
    let up = async {
        let passed = |bytes: &Bytes| log.sent_upstream(bytes);
        one_way(
            from_agent,
            to_upstream,
            SpliceError::Agent,
            SpliceError::Upstream,
            passed,
        )
        .await?;
        is_awaited.set(false);
        Ok(())
    };
    let down = async {
        let passed = |bytes: &Bytes| {
            is_awaited.set(false);
            log.sent_to_agent(bytes);
        };
        one_way(
            from_upstream,
            to_agent,
            SpliceError::Upstream,
            SpliceError::Agent,
            passed,
        )
        .await?;
        Ok(is_awaited.get())
    };
    let both = async { tokio::try_join!(up, down) };
    let ended = match log.chaos().over() {
        None => both.await,
        Some(over) => tokio::select! {
            biased;
            ended = both => ended,
            () = over => {
                log.is_over();
                return;
            }
        },
    };
    match ended {
        Ok(((), true)) => log.end(
            Outcome::UpstreamError,
            Some("the upstream closed the connection before it said anything".to_owned()),
        ),
        Ok(((), false)) => log.complete(),
        Err(SpliceError::Agent(error)) => {
            log.end(
                Outcome::ClientGone,
                Some(format!("the agent's side broke off: {error}")),
            );
        }
        Err(SpliceError::Upstream(error)) => {
            if error.kind() == io::ErrorKind::ConnectionReset {
                control.reset_on_close();
            }
            log.end(
                Outcome::UpstreamError,
                Some(format!("the upstream broke off: {error}")),
            );
        }
    }
}

/// Reads the next bytes; 0 at the end. TLS without a `close_notify` ends too: protocols after an upgrade have an
/// end of their own.
pub(super) async fn read<R: AsyncRead>(
    from: &mut ReadHalf<R>,
    into: &mut BytesMut,
) -> io::Result<usize> {
    match from.read_buf(into).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

async fn one_way<R, W>(
    mut from: ReadHalf<R>,
    mut to: WriteHalf<W>,
    reading: fn(io::Error) -> SpliceError,
    writing: fn(io::Error) -> SpliceError,
    passed: impl Fn(&Bytes),
) -> Result<(), SpliceError>
where
    R: AsyncRead,
    W: AsyncWrite,
{
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        if read(&mut from, &mut buffer).await.map_err(reading)? == 0 {
            return to.shutdown().await.map_err(writing);
        }
        let piece = buffer.split().freeze();
        to.write_all(&piece).await.map_err(writing)?;
        to.flush().await.map_err(writing)?;
        passed(&piece);
    }
}
