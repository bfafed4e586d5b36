//! The worker threads.
//!
//! There is one single-threaded runtime per core, each with its own upstream connections. One
//! thread serves an exchange from its first to its last byte, without locks or wake-ups across
//! cores.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http;
use super::listener::{Accepted, BoundListener};
use crate::engine::ProxyEngine;
use crate::exchange::worker::{ExchangeWorker, ROUND};

/// A job for a worker.
enum WorkerJob {
    Serve(Accepted),
    Listen(BoundListener),
}

/// Handles of all workers.
pub(crate) struct WorkerThreads {
    jobs: Vec<mpsc::UnboundedSender<WorkerJob>>,
    next: AtomicUsize,
    /// Cancelled to stop new connections and new exchanges.
    pub(crate) draining: CancellationToken,
    /// Cancelled to stop everything.
    pub(crate) stopping: CancellationToken,
}

impl WorkerThreads {
    /// Starts `count` threads.
    pub(crate) fn start(
        engine: &Arc<ProxyEngine>,
        count: usize,
    ) -> io::Result<(Arc<Self>, Vec<JoinHandle<()>>)> {
        // Unbounded, but at most as long as the limit of connections.
        let (jobs, receivers): (Vec<_>, Vec<_>) =
            (0..count).map(|_| mpsc::unbounded_channel()).unzip();
        let workers = Arc::new(Self {
            jobs,
            next: AtomicUsize::new(0),
            draining: CancellationToken::new(),
            stopping: CancellationToken::new(),
        });
        let mut threads = Vec::with_capacity(count);
        for (number, receiver) in receivers.into_iter().enumerate() {
            let (engine, workers) = (Arc::clone(engine), Arc::clone(&workers));
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let thread = std::thread::Builder::new().name(format!("squall-{number}"));
            let work = move || carry(runtime, run(engine, workers, receiver));
            threads.push(thread.spawn(work)?);
        }
        Ok((workers, threads))
    }

    /// Accepts from `listener` on one of the workers.
    pub(crate) fn listen(&self, listener: BoundListener) {
        self.give(WorkerJob::Listen(listener));
    }

    /// Sends a job to the next worker in turn.
    fn give(&self, job: WorkerJob) {
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.jobs.len();
        // A worker only ends with all others; then the connection is dropped.
        let _ = self.jobs[next].send(job);
    }
}

/// Runs one worker. It does not wait for work on other threads.
fn carry(runtime: Runtime, work: impl Future<Output = ()>) {
    let local = LocalSet::new();
    local.block_on(&runtime, work);
    drop(local);
    runtime.shutdown_background();
}

/// Serves jobs until the worker must stop.
async fn run(
    engine: Arc<ProxyEngine>,
    workers: Arc<WorkerThreads>,
    mut jobs: mpsc::UnboundedReceiver<WorkerJob>,
) {
    let worker = ExchangeWorker::new(engine, workers.draining.clone());
    let tasks = TaskTracker::new();
    let rounds = tokio::task::spawn_local(rounds(Rc::clone(&worker)));
    loop {
        let job = tokio::select! {
            job = jobs.recv() => job,
            () = workers.draining.cancelled() => None,
        };
        match job {
            Some(WorkerJob::Serve(accepted)) => {
                tasks.spawn_local(http::serve(Rc::clone(&worker), accepted));
            }
            Some(WorkerJob::Listen(listener)) => {
                tasks.spawn_local(accept(listener, Rc::clone(&worker), Arc::clone(&workers)));
            }
            None => break,
        }
    }
    tasks.close();
    tokio::select! {
        () = tasks.wait() => {}
        () = workers.stopping.cancelled() => {}
    }
    rounds.abort();
}

async fn rounds(worker: Rc<ExchangeWorker>) {
    loop {
        tokio::time::sleep(ROUND).await;
        worker.round();
    }
}

async fn accept(listener: BoundListener, worker: Rc<ExchangeWorker>, workers: Arc<WorkerThreads>) {
    let address = listener.address;
    let limit = Arc::clone(&worker.engine.connections);
    let serve = |accepted| workers.give(WorkerJob::Serve(accepted));
    let accepting = listener.accept(serve, limit, workers.draining.clone());
    if let Err(error) = accepting.await {
        tracing::error!(%address, %error, "stopped listening");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_worker_ends_before_the_work_that_it_gave_to_another_thread() {
        let (started, has_started) = channel();
        let (open, gate) = channel::<()>();
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        carry(runtime, async move {
            drop(tokio::task::spawn_blocking(move || {
                started.send(()).expect("the test waits");
                // An error: the test has failed.
                let _ = gate.recv();
            }));
            has_started.recv().expect("it starts");
        });
        open.send(()).expect("it still runs");
    }
}
