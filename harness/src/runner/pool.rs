//! The threads that compute verdicts. A verdict is pure computation and may never end, so it runs on a blocking
//! thread with a deadline. A thread cannot be stopped: after its deadline it stays busy until its verdict is
//! reached or its code calls [`deadline::is_late`].

use std::time::{Duration, Instant};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::deadline;

/// A bounded number of threads, shared by all runs of the process.
#[derive(Debug)]
pub(super) struct Pool {
    free: Semaphore,
    /// Limits the wait for a thread, and separately the wait for the verdict.
    deadline: Duration,
}

/// The pool of this process.
pub(super) static JUDGING: Pool = Pool::new(4, Duration::from_secs(10));

impl Pool {
    pub(super) const fn new(threads: usize, deadline: Duration) -> Self {
        Self {
            free: Semaphore::const_new(threads),
            deadline,
        }
    }

    /// Runs `judge` on one of the threads. The error explains why there is no verdict.
    pub(super) async fn run<T: Send + 'static>(
        &'static self,
        judge: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let seconds = self.deadline.as_secs();
        let Ok(Ok(permit)) = timeout(self.deadline, self.free.acquire()).await else {
            return Err(format!(
                "not judged: all judging threads are busy with verdicts that are past their deadline of {seconds} s"
            ));
        };
        let verdict = spawn_blocking(move || {
            let _permit = permit;
            deadline::set(Instant::now() + self.deadline);
            judge()
        });
        match timeout(self.deadline, verdict).await {
            Ok(verdict) => verdict.map_err(|error| format!("not judged: {error}")),
            Err(_) => Err(format!("not judged within the deadline of {seconds} s")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_verdict_past_its_deadline_is_an_error_and_keeps_its_thread_until_it_is_reached() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(2, Duration::from_millis(1))));
        let mut held = Vec::new();
        for _ in 0..2 {
            let (release, released) = mpsc::channel::<()>();
            let why = pool.run(move || released.recv()).await.expect_err("late");
            assert!(why.contains("deadline"), "{why}");
            held.push(release);
        }
        let why = pool.run(|| ()).await.expect_err("no thread");
        assert!(why.contains("all judging threads"), "{why}");
        drop(held);
        // Both threads are free again after their work is done.
        let both = pool.free.acquire_many(2).await.expect("open");
        drop(both);
    }

    #[tokio::test]
    async fn a_verdict_that_asks_whether_it_is_late_ends_at_its_deadline() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(1, Duration::from_millis(1))));
        // It may end just before the deadline or after it.
        let _ = pool.run(|| while !deadline::is_late() {}).await;
        drop(pool.free.acquire().await.expect("open"));
    }

    #[tokio::test]
    async fn a_panic_is_an_error_and_frees_its_thread() {
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(1, Duration::from_mins(1))));
        let why = pool.run(|| panic!("a bug")).await.map(|(): ()| ());
        assert!(why.expect_err("a panic").starts_with("not judged: "));
        assert_eq!(pool.run(|| 7).await, Ok(7));
    }
}
