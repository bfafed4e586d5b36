//! Recordings in SQLite.

use sqlx::sqlite::SqliteConnection;

use super::{Sqlite, finish};
use crate::store::error::Cause;
use crate::store::recording::{keep_recorded, recordings};
use crate::store::{RecordedRow, StoredRecording};

recordings!(Sqlite, writers, readers);

impl Sqlite {
    pub(in crate::store) async fn keep_recorded(
        &self,
        recording: &StoredRecording,
        rows: &[RecordedRow],
    ) -> Result<(), Cause> {
        let mut writer = self.begin().await?;
        let kept = keep(&mut writer, recording, rows).await;
        finish(writer, kept).await
    }

    /// Nothing can run in a store that nobody has used.
    pub(in crate::store) fn has_no_recordings(&self) -> bool {
        self.is_blank()
    }
}

async fn keep(
    writer: &mut SqliteConnection,
    recording: &StoredRecording,
    rows: &[RecordedRow],
) -> Result<(), Cause> {
    keep_recorded!(writer, recording, rows)
}
