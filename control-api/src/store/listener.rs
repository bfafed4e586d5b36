//! Notices of other daemons on the same PostgreSQL.

use std::io::ErrorKind;
use std::time::Duration;

use sqlx::postgres::PgListener;

use super::error::Cause;
use super::{Place, Store, StoreError, bounded};

/// The channel on which daemons say what they have changed.
pub(super) const CHANNEL: &str = "squall";

/// A connection that has been silent for so long is tested.
const QUIET: Duration = Duration::from_secs(30);

/// Receives a notice when another daemon changes a document or a token.
pub struct Listener {
    place: Place,
    notices: PgListener,
}

impl Store {
    /// Listens from now on; `None` where there is no other daemon.
    pub async fn listen(&self) -> Result<Option<Listener>, StoreError> {
        let Place::Postgres { url, .. } = &self.place else {
            return Ok(None);
        };
        let listening = async {
            let mut notices = PgListener::connect(url).await?;
            // Notices are lost while nobody listens, so a lost connection is an error.
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
    /// Waits until something may have changed. After an error it receives nothing any more, and notices
    /// since then are lost.
    pub async fn changed(&mut self) -> Result<(), StoreError> {
        match tokio::time::timeout(QUIET, self.notices.try_recv()).await {
            Ok(Ok(Some(_))) => Ok(()),
            Ok(received) => {
                let closed = sqlx::Error::Io(ErrorKind::BrokenPipe.into());
                let cause = Cause::Sql(received.err().unwrap_or(closed));
                Err(StoreError::new(&self.place, cause))
            }
            Err(_) => {
                // A connection that nobody has closed may lead nowhere.
                let test = sqlx::query("SELECT 1").execute(&mut self.notices);
                bounded(&self.place, async { Ok(test.await.map(drop)?) }).await
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
