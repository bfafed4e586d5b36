//! Full load: as many requests, or as many fresh connections, as the machine will take.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};

use crate::process::Process;
use crate::route::{Route, exchange};

/// Threads of the load generator.
const THREADS: usize = 2;

/// How long the load runs before it counts.
const WARM_UP: Duration = Duration::from_millis(400);

/// What is done over and over.
#[derive(Debug, Clone)]
pub enum Work {
    /// The same request again on a kept-alive connection.
    Request(Vec<u8>),
    /// A fresh connection (CONNECT and handshake included), one request, and away.
    Fresh(Vec<u8>),
    /// A fresh connection up to the end of its handshake, each for a name never used before.
    HandshakeNew,
    /// The same for a few names over and over.
    HandshakeCached,
}

/// What came of a stretch of full load.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Requests (or handshakes) per second.
    pub rate: f64,
    /// Body bytes per second.
    pub bytes_rate: f64,
    /// On-CPU microseconds of the watched process per request.
    pub cpu: f64,
}

#[derive(Default)]
struct Tally {
    stop: AtomicBool,
    count: AtomicU64,
    bytes: AtomicU64,
}

impl Tally {
    /// Requests and bytes so far.
    fn read(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.count), read(&self.bytes))
    }
}

/// Keeps `connections` busy with `work` for `stretch` and watches `process` until it has nothing left
/// to do: what it puts off is paid for by those who caused it.
pub fn full(
    route: &Route,
    work: &Work,
    connections: usize,
    stretch: Duration,
    process: Option<&Process>,
) -> Result<Outcome> {
    let tally = Arc::new(Tally::default());
    let threads: Vec<_> = (0..THREADS)
        .map(|index| {
            let share = connections / THREADS + usize::from(index < connections % THREADS);
            let (route, work, tally) = (route.clone(), work.clone(), tally.clone());
            std::thread::spawn(move || drive(&route, &work, share, &tally))
        })
        .collect();
    std::thread::sleep(WARM_UP);
    let begun = Instant::now();
    let cpu_before = process.map_or(Ok(Duration::ZERO), Process::on_cpu)?;
    let (count_before, bytes_before) = tally.read();
    std::thread::sleep(stretch);
    let (count, bytes) = tally.read();
    let took = begun.elapsed().as_secs_f64();
    tally.stop.store(true, Ordering::Relaxed);
    for thread in threads {
        thread
            .join()
            .map_err(|_| anyhow!("a load thread panicked"))??;
    }
    let cpu = process.map_or(Ok(Duration::ZERO), Process::settled)?;
    let cpu = cpu.saturating_sub(cpu_before);
    let (in_all, _) = tally.read();
    Ok(Outcome {
        rate: (count - count_before) as f64 / took,
        bytes_rate: (bytes - bytes_before) as f64 / took,
        cpu: cpu.as_secs_f64() * 1e6 / (in_all - count_before).max(1) as f64,
    })
}

fn drive(route: &Route, work: &Work, connections: usize, tally: &Arc<Tally>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let tasks: Vec<_> = (0..connections)
            .map(|_| {
                let (route, work, tally) = (route.clone(), work.clone(), tally.clone());
                tokio::task::spawn_local(async move { repeat(route, work, &tally).await })
            })
            .collect();
        for task in tasks {
            task.await.context("a connection's task panicked")??;
        }
        Ok(())
    })
}

async fn repeat(route: Route, work: Work, tally: &Tally) -> Result<()> {
    let mut scratch = vec![0; 64 * 1024];
    let mut kept = match &work {
        Work::Request(_) => Some(route.open().await?),
        _ => None,
    };
    while !tally.stop.load(Ordering::Relaxed) {
        let bytes = match (&work, &mut kept) {
            (Work::Request(request), Some(stream)) => {
                exchange(stream.as_mut(), request, &mut scratch).await?
            }
            (Work::Request(request) | Work::Fresh(request), _) => {
                exchange(route.open().await?.as_mut(), request, &mut scratch).await?
            }
            (Work::HandshakeNew, _) => {
                route
                    .renamed(&format!("new{}.bench.test", next_name()))?
                    .open()
                    .await?;
                0
            }
            (Work::HandshakeCached, _) => {
                route
                    .renamed(&format!("cached{}.bench.test", next_name() % 8))?
                    .open()
                    .await?;
                0
            }
        };
        tally.count.fetch_add(1, Ordering::Relaxed);
        tally.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// A number not used before in this run.
fn next_name() -> u64 {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    NAMES.fetch_add(1, Ordering::Relaxed)
}
