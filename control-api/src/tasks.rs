//! Work on other tasks and threads.

use squall_proxy::recorder::Recorder;

/// The result of work that is carried to its end, even if whoever asked for it has gone.
pub(crate) async fn spawned<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Waits until everything that was recorded before is in the journal.
pub(crate) async fn flushed(recorder: &Recorder) {
    let recorder = recorder.clone();
    // The wait is for another thread: it has to block one that is not this runtime's.
    if let Err(error) = tokio::task::spawn_blocking(move || recorder.flush()).await {
        tracing::error!(%error, "the journal could not be waited for");
    }
}
