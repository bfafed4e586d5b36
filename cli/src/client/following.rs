//! Event streams that reconnect.

use std::time::Duration;

use super::{Client, Events, ServerEvent, segment};
use crate::failure::Failure;
use crate::render::output;

/// Pause before a reconnect.
const PAUSE: Duration = Duration::from_secs(1);

/// A stream of events that reconnects whenever the connection breaks.
#[derive(Debug)]
pub(crate) struct Following {
    client: Client,
    path: String,
    events: Events,
    last: Option<String>,
}

impl Following {
    /// The events of a run, from its beginning.
    pub(crate) async fn run(client: &Client, run: &str) -> Result<Self, Failure> {
        Self::begin(client, format!("/v1/runs/{}/events", segment(run))).await
    }

    /// The events of a path. The first connection must succeed; later ones are retried.
    pub(crate) async fn begin(client: &Client, path: String) -> Result<Self, Failure> {
        let events = client.events(&path, None).await?;
        Ok(Self {
            client: client.clone(),
            path,
            events,
            last: None,
        })
    }

    /// The next event. Callers must stop at a run's `done` event, which is the last one.
    pub(crate) async fn next(&mut self) -> Result<ServerEvent, Failure> {
        loop {
            if let Ok(Some(event)) = self.events.next().await {
                return Ok(event);
            }
            let last = self.events.last_id().map(str::to_owned);
            self.last = last.or(self.last.take());
            output::tell_line(&format!(
                "squall: the daemon at {} has gone; waiting for it",
                self.client.server()
            ));
            self.events = self.again().await?;
        }
    }

    async fn again(&self) -> Result<Events, Failure> {
        loop {
            tokio::time::sleep(PAUSE).await;
            match self.client.events(&self.path, self.last.as_deref()).await {
                Err(Failure::Unreachable { .. }) => {}
                found => return found,
            }
        }
    }
}
