//! Recordings in PostgreSQL.

use super::Postgres;
use crate::store::error::Cause;
use crate::store::recording::{keep_recorded, recordings};
use crate::store::{RecordedRow, StoredRecording};

recordings!(Postgres, pools, pools);

impl Postgres {
    pub(in crate::store) async fn keep_recorded(
        &self,
        recording: &StoredRecording,
        rows: &[RecordedRow],
    ) -> Result<(), Cause> {
        let mut transaction = self.pool.begin().await?;
        keep_recorded!(transaction, recording, rows)?;
        transaction.commit().await?;
        Ok(())
    }
}
