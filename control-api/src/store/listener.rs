//! Notices of other daemons on the same PostgreSQL.

use std::io::ErrorKind;
use std::time::Duration;

use sqlx::postgres::PgListener;

use super::error::Cause;
use super::{Store, StoreError, StorePlace, bounded, fleet};

/// The channel for notices of changes.
pub(super) const CHANNEL: &str = "squall";

/// After this silence the connection is tested.
const QUIET: Duration = Duration::from_secs(30);

/// What has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A document or a token, or nothing.
    Stored,
    /// The fleet's chaos.
    Fleet,
}

/// Receives a notice when a daemon changes a document, a token or the fleet's chaos.
pub struct Listener {
    place: StorePlace,
    notices: PgListener,
}

impl Store {
    /// Listens from now on; `None` for a store with a single daemon.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        let StorePlace::Postgres { url, .. } = &self.place else {
            return Ok(None);
        };
        let listening = async {
            let mut notices = PgListener::connect(url).await?;
            // Notices are lost while the connection is down, so a lost connection is an error.
            notices.eager_reconnect(false);
            notices.listen(CHANNEL).await?;
            Ok(notices)
        };
        Ok(Some(Listener {
            place: self.place.clone(),
            notices: self.bounded(listening).await?,
        }))
    }
}

impl Listener {
    /// Waits until something may have changed. After an error it receives nothing more, and later notices are
    /// lost.
    pub async fn changed(&mut self) -> Result<Notice, StoreError> {
        match tokio::time::timeout(QUIET, self.notices.try_recv()).await {
            Ok(Ok(Some(notice))) => Ok(match notice.payload() {
                fleet::NOTICE => Notice::Fleet,
                _ => Notice::Stored,
            }),
            Ok(received) => {
                let closed = sqlx::Error::Io(ErrorKind::BrokenPipe.into());
                let cause = Cause::Sql(received.err().unwrap_or(closed));
                Err(StoreError::new(&self.place, cause))
            }
            Err(_) => {
                // The peer may have vanished without closing the connection.
                let test = sqlx::query("SELECT 1").execute(&mut self.notices);
                bounded(&self.place, async {
                    Ok(test.await.map(|_| Notice::Stored)?)
                })
                .await
            }
        }
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}
