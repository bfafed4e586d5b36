//! Work on other tasks and threads.

use squall_proxy::recorder::Recorder;
use tracing::Instrument as _;

/// The result of work that continues to its end even if the client disconnects.
pub(crate) async fn spawned<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(work.in_current_span()).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The result of slow work, on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Waits until everything that was recorded before is in the journal.
pub(crate) async fn flushed(recorder: &Recorder) {
    let recorder = recorder.clone();
    // The wait blocks, so it needs a thread outside this runtime.
    blocking(move || recorder.flush()).await;
}
