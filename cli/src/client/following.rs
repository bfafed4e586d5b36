//! Event streams that reconnect.

use std::time::Duration;

use reqwest::Response;
use squall_documents::duration;
use tokio::time::timeout;

use super::events::{EventParser, ServerEvent};
use super::{Client, RUNS, path};
use crate::failure::Failure;
use crate::render::output;

/// Pause before a reconnect.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a run's reader waits for a daemon that has gone. Its lease of the run has ended by then.
const RUN_PATIENCE: Duration = Duration::from_mins(1);

/// A stream of events that reconnects whenever the connection breaks.
#[derive(Debug)]
pub(crate) struct Following {
    client: Client,
    path: String,
    response: Response,
    parser: EventParser,
    /// How long it waits for a daemon that has gone; `None`: for ever.
    patience: Option<Duration>,
}

impl Following {
    /// The events of a run, from its beginning.
    pub(crate) async fn run(client: &Client, run: &str) -> Result<Self, Failure> {
        let following = Self::begin(client, path(&[RUNS, run, "events"], &[])).await?;
        Ok(Self {
            patience: Some(RUN_PATIENCE),
            ..following
        })
    }

    /// The events of a path. The first connection must succeed; later ones are retried.
    pub(crate) async fn begin(client: &Client, path: String) -> Result<Self, Failure> {
        Ok(Self {
            response: client.events(&path, None).await?,
            client: client.clone(),
            path,
            parser: EventParser::default(),
            patience: None,
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
        let back = async {
            loop {
                tokio::time::sleep(PAUSE).await;
                match self.client.events(&self.path, self.parser.last_id()).await {
                    Err(Failure::Unreachable { .. }) => {}
                    found => return found,
                }
            }
        };
        let Some(patience) = self.patience else {
            return back.await;
        };
        timeout(patience, back).await.unwrap_or_else(|_| {
            Err(Failure::CouldNotRun(format!(
                "the daemon at {} did not come back within {}, so the run is lost; `squall runs list` lists it as \
                 errored, there or at another daemon of the same store",
                self.client.server(),
                duration::format(patience)
            )))
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_reader_of_a_run_gives_up_on_a_daemon_that_stays_away() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let daemon = async {
            let (mut agent, _) = listener.accept().await.expect("a connection");
            let mut request = [0; 1024];
            let _ = agent.read(&mut request).await.expect("a request");
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            agent.write_all(head).await.expect("it is sent");
            drop((agent, listener));
        };
        let client = Client::with_token(&format!("http://{address}"), None).expect("a client");
        let (following, ()) = tokio::join!(Following::run(&client, "0194"), daemon);
        let mut following = following.expect("events");
        following.patience = Some(Duration::ZERO);
        let Err(Failure::CouldNotRun(why)) = following.next().await else {
            panic!("it waits");
        };
        assert!(why.contains("did not come back"), "{why}");
    }
}
