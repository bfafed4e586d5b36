//! Recordings as rows, and their exchanges as JSON.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sqlx::any::AnyRow;
use sqlx::{FromRow, Row as _};
use squall_documents::named;
use squall_journal::tape::Recorded;
use squall_journal::timestamp;

use super::statement::{SqlStatement, signed, sql};
use super::{Store, StoreError, at_most, can_be_there};

named! {
    /// The state of a recording.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum RecordingState {
        /// It runs.
        Recording = "recording",
        /// A client stopped it, or its daemon stopped gracefully.
        Stopped = "stopped",
        /// It reached the limit of a recording and ended.
        Full = "full",
        /// Its daemon disappeared while it ran; only exchanges written by then are there.
        Cut = "cut",
    }
}

/// The size of a recording so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RecordingSize {
    /// Number of its exchanges.
    pub exchanges: u64,
    /// Their approximate size in bytes.
    pub bytes: u64,
    /// Exchanges that did not fit. A full recording soon stops counting them.
    pub left_out: u64,
}

/// A recording, without its exchanges. Times are milliseconds since 1970, and shown as RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Recording")]
pub struct StoredRecording {
    /// Its id; ids of one daemon sort by start.
    pub id: String,
    /// Its workspace.
    #[serde(skip)]
    pub workspace: String,
    /// Its title.
    pub name: Option<String>,
    /// Its scope; `null`: every scope of the workspace.
    pub scope: Option<String>,
    /// Its state.
    pub state: RecordingState,
    /// Id of the daemon that records, as in `GET /v1/chaos`.
    pub daemon: String,
    /// When it began, RFC 3339.
    #[serde(serialize_with = "as_date")]
    #[schemars(with = "String")]
    pub started_at: u64,
    /// When its daemon last marked it as alive.
    #[serde(skip)]
    pub seen_at: u64,
    /// When it ended, RFC 3339; `null` while it runs.
    #[serde(serialize_with = "as_date")]
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<u64>,
    /// Its size.
    #[serde(flatten)]
    pub size: RecordingSize,
}

fn as_date<S: Serializer>(
    at: &(impl Copy + Into<Option<u64>>),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let at: Option<u64> = (*at).into();
    at.map(timestamp::rfc3339).serialize(serializer)
}

impl Store {
    /// Writes a new recording, and deletes the oldest finished ones of its workspace until `most` are left.
    pub async fn add_recording(
        &self,
        recording: &StoredRecording,
        most: u64,
    ) -> Result<(), StoreError> {
        for (table, key) in [("recorded", "recording"), ("recordings", "id")] {
            let prune = sql(format!(
                "DELETE FROM {table} WHERE {key} IN (SELECT id FROM recordings WHERE workspace = $1 \
                 AND state <> 'recording' ORDER BY id DESC LIMIT 1000 OFFSET $2)"
            ));
            let prune = prune.bind(&recording.workspace);
            self.execute(prune.bind(signed(most.saturating_sub(1))))
                .await?;
        }
        let insert = sql(format!(
            "INSERT INTO recordings ({COLUMNS}) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
        ))
        .bind(&recording.id)
        .bind(&recording.workspace)
        .bind(&recording.name)
        .bind(&recording.scope)
        .bind(recording.state.as_str())
        .bind(&recording.daemon)
        .bind(signed(recording.started_at));
        self.execute(progress(insert, recording)).await?;
        Ok(())
    }

    /// Writes exchanges of a recording and its new state, all or nothing.
    pub async fn keep_recorded(
        &self,
        recording: &StoredRecording,
        rows: &[RecordedRow],
    ) -> Result<(), StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            for row in rows {
                row.insert("recorded (recording, exchange, entry)", &recording.id)
                    .execute(&mut *transaction)
                    .await?;
            }
            let update = sql(
                "UPDATE recordings SET state = $2, seen_at = $3, ended_at = $4, exchanges = $5, \
                 bytes = $6, left_out = $7 WHERE id = $1",
            );
            let update = update.bind(&recording.id).bind(recording.state.as_str());
            progress(update, recording)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            Ok(())
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
        let page = sql(format!(
            "SELECT {COLUMNS} FROM recordings WHERE workspace = $1 AND ($2 = '' OR id < $2) \
             ORDER BY id DESC LIMIT $3"
        ));
        let page = page.bind(workspace).bind(before).bind(at_most(limit));
        self.read(page).await
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
        let one = sql(format!(
            "SELECT {COLUMNS} FROM recordings WHERE workspace = $1 AND id = $2"
        ));
        let found = self.read(one.bind(workspace).bind(id)).await?;
        Ok(found.into_iter().next())
    }

    /// The exchanges of a recording, in order of their start.
    pub async fn recorded(&self, recording: &str) -> Result<Vec<Recorded>, StoreError> {
        let page = "SELECT exchange, entry FROM recorded \
                    WHERE recording = $1 AND exchange > $2 ORDER BY exchange LIMIT $3";
        self.all_recorded(page, recording).await
    }

    /// All exchanges that a statement returns in pages: of `$1`, after `$2`, at most `$3`.
    pub(super) async fn all_recorded(
        &self,
        page: &str,
        of: &str,
    ) -> Result<Vec<Recorded>, StoreError> {
        const AT_ONCE: usize = 64;
        let mut recorded = Vec::new();
        let mut after = String::new();
        loop {
            let page = sql(page).bind(of).bind(&after).bind(at_most(AT_ONCE));
            let rows: Vec<(String, String)> = self.read(page).await?;
            let was_last = rows.len() < AT_ONCE;
            recorded.extend(
                rows.iter()
                    .filter_map(|(_, entry)| RecordedRow::read(entry)),
            );
            match rows.into_iter().last() {
                Some((last, _)) if !was_last => after = last,
                _ => return Ok(recorded),
            }
        }
    }

    /// Marks running recordings as cut: for a store with a single daemon, at its start. Returns their number.
    pub async fn cut_recordings(&self) -> Result<u64, StoreError> {
        if self.is_blank() {
            return Ok(0);
        }
        let cut =
            "UPDATE recordings SET state = 'cut', ended_at = seen_at WHERE state = 'recording'";
        self.execute(sql(cut)).await
    }
}

/// Binds the columns that change while a recording runs.
fn progress(statement: SqlStatement, recording: &StoredRecording) -> SqlStatement {
    let size = recording.size;
    statement
        .bind(signed(recording.seen_at))
        .bind(recording.ended_at.map(signed))
        .bind(signed(size.exchanges))
        .bind(signed(size.bytes))
        .bind(signed(size.left_out))
}

/// The columns of a [`StoredRecording`].
const COLUMNS: &str = "id, workspace, name, scope, state, daemon, started_at, seen_at, ended_at, \
                       exchanges, bytes, left_out";

/// The row of a recorded exchange.
#[derive(Debug, Clone)]
pub struct RecordedRow {
    exchange: String,
    entry: String,
}

impl RecordedRow {
    /// The row of an exchange.
    pub fn of(recorded: &Recorded) -> Self {
        Self {
            exchange: recorded.id.clone(),
            entry: serde_json::json!(recorded).to_string(),
        }
    }

    /// Inserts it into a table, with the id of its owner; nothing if it is already there.
    pub(super) fn insert(&self, table: &str, of: &str) -> SqlStatement {
        let insert = format!("INSERT INTO {table} VALUES ($1, $2, $3) ON CONFLICT DO NOTHING");
        sql(insert).bind(of).bind(&self.exchange).bind(&self.entry)
    }

    /// Reads an entry; `None` for one that this version cannot read.
    fn read(entry: &str) -> Option<Recorded> {
        serde_json::from_str(entry)
            .inspect_err(|error| tracing::warn!(%error, "a recorded exchange cannot be read"))
            .ok()
    }
}

impl FromRow<'_, AnyRow> for StoredRecording {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let number = |value: i64| u64::try_from(value).unwrap_or_default();
        let count = |column| row.try_get(column).map(number);
        let state: String = row.try_get(4)?;
        let state = RecordingState::parse(&state);
        Ok(Self {
            id: row.try_get(0)?,
            workspace: row.try_get(1)?,
            name: row.try_get(2)?,
            scope: row.try_get(3)?,
            state: state.ok_or_else(|| sqlx::Error::Decode("an unknown state".into()))?,
            daemon: row.try_get(5)?,
            started_at: count(6)?,
            seen_at: count(7)?,
            ended_at: row.try_get::<Option<i64>, _>(8)?.map(number),
            size: RecordingSize {
                exchanges: count(9)?,
                bytes: count(10)?,
                left_out: count(11)?,
            },
        })
    }
}
