//! Event streams that reconnect.

use std::time::Duration;

use reqwest::Response;

use super::events::{EventParser, ServerEvent};
use super::{Client, RUNS, path};
use crate::failure::Failure;
use crate::render::output;

/// Pause before a reconnect.
const PAUSE: Duration = Duration::from_secs(1);

/// A stream of events that reconnects whenever the connection breaks.
#[derive(Debug)]
pub(crate) struct Following {
    client: Client,
    path: String,
    response: Response,
    parser: EventParser,
}

impl Following {
    /// The events of a run, from its beginning.
    pub(crate) async fn run(client: &Client, run: &str) -> Result<Self, Failure> {
        Self::begin(client, path(&[RUNS, run, "events"], &[])).await
    }

    /// The events of a path. The first connection must succeed; later ones are retried.
    pub(crate) async fn begin(client: &Client, path: String) -> Result<Self, Failure> {
        Ok(Self {
            response: client.events(&path, None).await?,
            client: client.clone(),
            path,
            parser: EventParser::default(),
        })
    }

    /// The next event. Callers must stop at a run's `done` event, which is the last one.
    pub(crate) async fn next(&mut self) -> Result<ServerEvent, Failure> {
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(event);
            }
            if let Ok(Some(chunk)) = self.response.chunk().await {
                self.parser.push(&chunk);
                continue;
            }
            output::report_line(&format!(
                "squall: the daemon at {} has gone; waiting for it",
                self.client.server()
            ));
            self.parser = self.parser.after_last();
            self.response = self.reconnect().await?;
        }
    }

    async fn reconnect(&self) -> Result<Response, Failure> {
        loop {
            tokio::time::sleep(PAUSE).await;
            match self.client.events(&self.path, self.parser.last_id()).await {
                Err(Failure::Unreachable { .. }) => {}
                found => return found,
            }
        }
    }
}
