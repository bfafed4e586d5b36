//! A connection's life as a chain of stages.
//!
//! What a connection is changes: sniffed, then HTTP, then a tunnel, then TLS, then HTTP again. Were
//! each stage awaited by the one before it, an intercepted connection would keep the memory of all
//! of them for as long as it idles. So a stage ends by naming the next, and is gone.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt as _;

/// One stage, and what comes after it.
pub(crate) struct Stage(Pin<Box<dyn Future<Output = Option<Stage>>>>);

impl Stage {
    /// A stage that names the next one, or none at the connection's end.
    pub(crate) fn new(stage: impl Future<Output = Option<Stage>> + 'static) -> Self {
        Self(Box::pin(stage))
    }

    /// A stage after which the connection is over.
    pub(crate) fn last(stage: impl Future<Output = ()> + 'static) -> Self {
        Self::new(stage.map(|()| None))
    }

    /// Goes through this stage and all that follow.
    pub(crate) async fn run(self) {
        let mut next = Some(self);
        while let Some(stage) = next {
            next = stage.0.await;
        }
    }
}
