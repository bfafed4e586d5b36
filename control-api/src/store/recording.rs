//! Recordings as rows: what each is, and its exchanges as JSON.

use serde::Serialize;
use squall_journal::tape::Recorded;

use super::document::signed;
use super::{Database, Store, StoreError, bounded, can_be_there};

/// How a recording is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordingState {
    /// It runs.
    Recording,
    /// Somebody stopped it, or its daemon ended in good order.
    Stopped,
    /// It ended by itself: it holds as much as a recording may.
    Full,
    /// Its daemon ended while it ran; what was written by then is there.
    Cut,
}

impl RecordingState {
    /// The name in store and API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Stopped => "stopped",
            Self::Full => "full",
            Self::Cut => "cut",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Recording, Self::Stopped, Self::Full, Self::Cut]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// What a recording holds so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Exchanges that are in it.
    pub exchanges: u64,
    /// Bytes that they take, about.
    pub bytes: u64,
    /// Exchanges that found no room in it.
    pub left_out: u64,
}

/// A recording, without its exchanges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecording {
    /// Its id; later ones sort behind earlier ones of the same daemon.
    pub id: String,
    /// Whose.
    pub workspace: String,
    /// A title.
    pub name: Option<String>,
    /// Which scope; `None`: every one of the workspace.
    pub scope: Option<String>,
    /// How it is doing.
    pub state: RecordingState,
    /// The daemon that records.
    pub daemon: String,
    /// When it began, milliseconds since 1970.
    pub started_at: u64,
    /// When its daemon last said that it runs, milliseconds since 1970.
    pub seen_at: u64,
    /// When it ended, milliseconds since 1970.
    pub ended_at: Option<u64>,
    /// What it holds.
    pub tally: Tally,
}

impl Store {
    /// Writes a recording down that begins, and deletes the oldest that have ended of its workspace:
    /// `most` are left.
    pub async fn add_recording(
        &self,
        recording: &StoredRecording,
        most: u64,
    ) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.add_recording(recording, most).await,
                Database::Postgres(postgres) => postgres.add_recording(recording, most).await,
            }
        })
        .await
    }

    /// Writes down exchanges of a recording and how it is doing with them, all of it or nothing.
    pub async fn keep_recorded(
        &self,
        recording: &StoredRecording,
        rows: &[RecordedRow],
    ) -> Result<(), StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.keep_recorded(recording, rows).await,
                Database::Postgres(postgres) => postgres.keep_recorded(recording, rows).await,
            }
        })
        .await
    }

    /// At most `limit` recordings of a workspace, newest first, those older than `before` (empty: from
    /// the newest).
    pub async fn recordings(
        &self,
        workspace: &str,
        before: &str,
        limit: usize,
    ) -> Result<Vec<StoredRecording>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.recordings(workspace, before, limit).await,
                Database::Postgres(postgres) => postgres.recordings(workspace, before, limit).await,
            }
        });
        let rows = rows.await?.into_iter();
        Ok(rows.filter_map(StoredRecording::read).collect())
    }

    /// One recording of a workspace.
    pub async fn recording(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<Option<StoredRecording>, StoreError> {
        if !can_be_there(id) {
            return Ok(None);
        }
        let row = bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) => sqlite.recording(workspace, id).await,
                Database::Postgres(postgres) => postgres.recording(workspace, id).await,
            }
        });
        Ok(row.await?.and_then(StoredRecording::read))
    }

    /// The exchanges of a recording, in the order in which they began.
    pub async fn recorded(&self, recording: &str) -> Result<Vec<Recorded>, StoreError> {
        const AT_ONCE: usize = 64;
        let mut recorded = Vec::new();
        let mut after = String::new();
        loop {
            let rows = bounded(&self.place, async {
                let limit = i64::try_from(AT_ONCE).unwrap_or(i64::MAX);
                match &self.database {
                    Database::Sqlite(sqlite) => sqlite.recorded(recording, &after, limit).await,
                    Database::Postgres(postgres) => {
                        postgres.recorded(recording, &after, limit).await
                    }
                }
            });
            let rows = rows.await?;
            let was_last = rows.len() < AT_ONCE;
            if let Some((last, _)) = rows.last() {
                after.clone_from(last);
            }
            recorded.extend(
                rows.iter()
                    .filter_map(|(_, entry)| RecordedRow::read(entry)),
            );
            if was_last {
                return Ok(recorded);
            }
        }
    }

    /// Says of recordings that run that their daemon is gone: for a store that only one has. How many
    /// there were.
    pub async fn cut_recordings(&self) -> Result<u64, StoreError> {
        bounded(&self.place, async {
            match &self.database {
                Database::Sqlite(sqlite) if sqlite.has_no_recordings() => Ok(0),
                Database::Sqlite(sqlite) => sqlite.cut_recordings().await,
                Database::Postgres(postgres) => postgres.cut_recordings().await,
            }
        })
        .await
    }
}

/// The columns of [`Row`].
pub(super) const COLUMNS: &str = "id, workspace, name, scope, state, daemon, started_at, seen_at, \
                                  ended_at, exchanges, bytes, left_out";

/// What a row of `recordings` is read as.
pub(super) type Row = (
    String,
    String,
    Option<String>,
    Option<String>,
    String,
    String,
    i64,
    i64,
    Option<i64>,
    i64,
    i64,
    i64,
);

/// An exchange of a recording on its way into the store.
#[derive(Debug, Clone)]
pub struct RecordedRow {
    pub(super) exchange: String,
    pub(super) entry: String,
}

impl RecordedRow {
    /// The row of an exchange.
    pub fn of(recorded: &Recorded) -> Self {
        Self {
            exchange: recorded.id.clone(),
            entry: serde_json::json!(recorded).to_string(),
        }
    }

    /// Reads an entry; `None` for one that this version cannot read.
    pub(super) fn read(entry: &str) -> Option<Recorded> {
        serde_json::from_str(entry)
            .inspect_err(|error| tracing::warn!(%error, "a recorded exchange cannot be read"))
            .ok()
    }
}

impl StoredRecording {
    /// Reads a row; `None` for one that this version cannot read.
    pub(super) fn read(row: Row) -> Option<Self> {
        let (
            id,
            workspace,
            name,
            scope,
            state,
            daemon,
            started,
            seen,
            ended,
            exchanges,
            bytes,
            left_out,
        ) = row;
        let number = |value: i64| u64::try_from(value).unwrap_or_default();
        Some(Self {
            id,
            workspace,
            name,
            scope,
            state: RecordingState::parse(&state)?,
            daemon,
            started_at: number(started),
            seen_at: number(seen),
            ended_at: ended.map(number),
            tally: Tally {
                exchanges: number(exchanges),
                bytes: number(bytes),
                left_out: number(left_out),
            },
        })
    }
}

/// How databases say it: the same words, on connections of their own.
pub(super) const INSERT: &str = "INSERT INTO recordings (id, workspace, name, scope, state, daemon, \
     started_at, seen_at, ended_at, exchanges, bytes, left_out) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
pub(super) const UPDATE: &str = "UPDATE recordings SET state = $2, seen_at = $3, ended_at = $4, \
     exchanges = $5, bytes = $6, left_out = $7 WHERE id = $1";
pub(super) const KEEP: &str = "INSERT INTO recorded (recording, exchange, entry) \
     VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
pub(super) const CUT: &str = "UPDATE recordings SET state = 'cut', ended_at = seen_at \
     WHERE state = 'recording'";
pub(super) const ENTRIES: &str = "SELECT exchange, entry FROM recorded \
     WHERE recording = $1 AND exchange > $2 ORDER BY exchange LIMIT $3";
/// The oldest that have ended, beyond so many.
pub(super) const PRUNE_ENTRIES: &str = "DELETE FROM recorded WHERE recording IN (SELECT id FROM \
     recordings WHERE workspace = $1 AND state <> 'recording' ORDER BY id DESC LIMIT 1000 OFFSET $2)";
pub(super) const PRUNE: &str = "DELETE FROM recordings WHERE id IN (SELECT id FROM recordings \
     WHERE workspace = $1 AND state <> 'recording' ORDER BY id DESC LIMIT 1000 OFFSET $2)";

pub(super) fn page() -> String {
    format!(
        "SELECT {COLUMNS} FROM recordings WHERE workspace = $1 AND ($2 = '' OR id < $2) \
         ORDER BY id DESC LIMIT $3"
    )
}

pub(super) fn one() -> String {
    format!("SELECT {COLUMNS} FROM recordings WHERE workspace = $1 AND id = $2")
}

/// A time or a number as databases take it.
pub(super) fn optional(value: Option<u64>) -> Option<i64> {
    value.map(signed)
}

/// The questions about recordings, for a database whose connections are found like this.
macro_rules! recordings {
    ($database:ident, $write:ident, $read:ident) => {
        impl $database {
            pub(in crate::store) async fn add_recording(
                &self,
                recording: &crate::store::StoredRecording,
                most: u64,
            ) -> Result<(), crate::store::error::Cause> {
                use crate::store::document::signed;
                use crate::store::recording::{INSERT, PRUNE, PRUNE_ENTRIES, optional};
                for prune in [PRUNE_ENTRIES, PRUNE] {
                    sqlx::query(prune)
                        .bind(&recording.workspace)
                        .bind(signed(most.saturating_sub(1)))
                        .execute(self.$write())
                        .await?;
                }
                sqlx::query(INSERT)
                    .bind(&recording.id)
                    .bind(&recording.workspace)
                    .bind(&recording.name)
                    .bind(&recording.scope)
                    .bind(recording.state.as_str())
                    .bind(&recording.daemon)
                    .bind(signed(recording.started_at))
                    .bind(signed(recording.seen_at))
                    .bind(optional(recording.ended_at))
                    .bind(signed(recording.tally.exchanges))
                    .bind(signed(recording.tally.bytes))
                    .bind(signed(recording.tally.left_out))
                    .execute(self.$write())
                    .await?;
                Ok(())
            }

            pub(in crate::store) async fn recordings(
                &self,
                workspace: &str,
                before: &str,
                limit: i64,
            ) -> Result<Vec<crate::store::recording::Row>, crate::store::error::Cause> {
                let page = crate::store::recording::page();
                let rows = sqlx::query_as(sqlx::AssertSqlSafe(page))
                    .bind(workspace)
                    .bind(before)
                    .bind(limit);
                Ok(rows.fetch_all(self.$read()).await?)
            }

            pub(in crate::store) async fn recording(
                &self,
                workspace: &str,
                id: &str,
            ) -> Result<Option<crate::store::recording::Row>, crate::store::error::Cause> {
                let one = crate::store::recording::one();
                let row = sqlx::query_as(sqlx::AssertSqlSafe(one))
                    .bind(workspace)
                    .bind(id);
                Ok(row.fetch_optional(self.$read()).await?)
            }

            pub(in crate::store) async fn recorded(
                &self,
                recording: &str,
                after: &str,
                limit: i64,
            ) -> Result<Vec<(String, String)>, crate::store::error::Cause> {
                let rows = sqlx::query_as(crate::store::recording::ENTRIES)
                    .bind(recording)
                    .bind(after)
                    .bind(limit);
                Ok(rows.fetch_all(self.$read()).await?)
            }

            pub(in crate::store) async fn cut_recordings(
                &self,
            ) -> Result<u64, crate::store::error::Cause> {
                let cut = sqlx::query(crate::store::recording::CUT);
                Ok(cut.execute(self.$write()).await?.rows_affected())
            }
        }
    };
}
pub(super) use recordings;

/// Writes exchanges and what the recording holds with them, inside a transaction.
macro_rules! keep_recorded {
    ($connection:expr, $recording:expr, $rows:expr) => {{
        use crate::store::document::signed;
        use crate::store::recording::{KEEP, UPDATE, optional};
        let (recording, rows): (&crate::store::StoredRecording, &[crate::store::RecordedRow]) =
            ($recording, $rows);
        for row in rows {
            sqlx::query(KEEP)
                .bind(&recording.id)
                .bind(&row.exchange)
                .bind(&row.entry)
                .execute(&mut *$connection)
                .await?;
        }
        sqlx::query(UPDATE)
            .bind(&recording.id)
            .bind(recording.state.as_str())
            .bind(signed(recording.seen_at))
            .bind(optional(recording.ended_at))
            .bind(signed(recording.tally.exchanges))
            .bind(signed(recording.tally.bytes))
            .bind(signed(recording.tally.left_out))
            .execute(&mut *$connection)
            .await?;
        Ok::<(), crate::store::error::Cause>(())
    }};
}
pub(super) use keep_recorded;
