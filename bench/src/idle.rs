//! What idle connections cost in memory.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::process::Process;
use crate::route::{Route, exchange};

/// Connections opened at a time.
const AT_ONCE: usize = 32;

/// Time for the process to let go of what it needed to set connections up.
const SETTLE: Duration = Duration::from_millis(500);

/// What a connection carries before it is idle.
#[derive(Debug, Clone, Copy)]
pub enum Opening {
    /// One request.
    Request,
    /// The upgrade to a WebSocket of model calls.
    WebSocket,
}

/// Opens `connections` that stay open; kilobytes of the process's
/// resident memory for each, and its resident memory in bytes at the end.
pub fn per_connection(
    route: &Route,
    connections: usize,
    process: &Process,
    opening: Opening,
) -> Result<(f64, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        // What the first connections bring with them belongs to the process, not to a connection.
        let _first = open(route, AT_ONCE, opening).await?;
        tokio::time::sleep(SETTLE).await;
        let before = process.resident()?;
        let mut held = Vec::with_capacity(connections);
        while held.len() < connections {
            held.extend(open(route, AT_ONCE.min(connections - held.len()), opening).await?);
        }
        tokio::time::sleep(SETTLE).await;
        let after = process.resident()?;
        Ok((
            after.saturating_sub(before) as f64 / 1024.0 / connections as f64,
            after,
        ))
    })
}

async fn open(
    route: &Route,
    count: usize,
    first: Opening,
) -> Result<Vec<Box<dyn crate::route::Duplex>>> {
    let opening: Vec<_> = (0..count)
        .map(|_| {
            let route = route.clone();
            tokio::task::spawn_local(async move {
                let mut stream = route.open().await?;
                match first {
                    Opening::Request => {
                        exchange(stream.as_mut(), &route.get("/"), &mut [0; 4096]).await?;
                    }
                    Opening::WebSocket => {
                        stream.write_all(&route.upgrade()).await?;
                        let mut head = Vec::with_capacity(256);
                        while !head.ends_with(b"\r\n\r\n") {
                            ensure!(stream.read_buf(&mut head).await? > 0, "no 101");
                        }
                    }
                }
                anyhow::Ok(stream)
            })
        })
        .collect();
    let mut opened = Vec::with_capacity(count);
    for task in opening {
        opened.push(task.await.context("an idle connection's task panicked")??);
    }
    Ok(opened)
}
