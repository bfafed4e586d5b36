//! Responses that are repeated for the same `Idempotency-Key`.
//!
//! One of several concurrent requests, on any daemon, writes a row before it does anything. Its daemon renews a
//! lease on the row. If the daemon dies, the lease expires: the outcome is unknown, so the key stays taken for a
//! day.

use super::statement::{signed, sql};
use super::{Store, StoreError};

/// A key, and an attempt to act under it.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// SHA-256 of caller, route and key; 64 hex digits.
    pub id: String,
    /// Its workspace.
    pub workspace: String,
    /// SHA-256 of the request, 64 hex digits.
    pub request: String,
    /// Unique id of the attempt.
    pub attempt: String,
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers and body; `None` when they must not be stored.
    pub content: Option<(String, Vec<u8>)>,
}

/// The state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// It was free: the caller's attempt holds it now.
    Yours,
    /// Another attempt is in progress.
    Running {
        /// SHA-256 of its request.
        request: String,
    },
    /// The lease of another attempt has expired: its outcome is unknown.
    Abandoned {
        /// SHA-256 of its request.
        request: String,
    },
    /// A response is stored.
    Answered {
        /// SHA-256 of the request.
        request: String,
        /// The response.
        answer: KeptAnswer,
    },
}

/// The columns of a row: request, until, status, headers, body.
type Row = (String, i64, Option<i64>, Option<String>, Option<Vec<u8>>);

/// Takes a free key: an unused one, one whose response has expired, or one whose attempt was abandoned a day ago.
const TAKE: &str = "INSERT INTO idempotency_keys (id, workspace, request, attempt, until) \
     VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (id) DO UPDATE SET request = excluded.request, attempt = excluded.attempt, \
     until = excluded.until, status = NULL, headers = NULL, body = NULL \
     WHERE idempotency_keys.until < $6 - CASE WHEN idempotency_keys.status IS NULL THEN 86400000 ELSE 0 END";
const LOOK: &str =
    "SELECT request, until, status, headers, body FROM idempotency_keys WHERE id = $1";
const PROLONG: &str =
    "UPDATE idempotency_keys SET until = $3 WHERE id = $1 AND attempt = $2 AND status IS NULL";
const ANSWER: &str = "UPDATE idempotency_keys SET until = $3, status = $4, headers = $5, body = $6 \
     WHERE id = $1 AND attempt = $2";
/// Ends the leases of a daemon that has ended, by the database's clock.
pub(super) const ABANDON: &str = "UPDATE idempotency_keys \
     SET until = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 1 \
     WHERE status IS NULL AND until > CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const FREE: &str = "DELETE FROM idempotency_keys WHERE id = $1 AND attempt = $2";
const PRUNE: &str = "DELETE FROM idempotency_keys \
     WHERE until < $1 - CASE WHEN status IS NULL THEN 86400000 ELSE 0 END OR id IN \
     (SELECT id FROM idempotency_keys WHERE status IS NOT NULL ORDER BY until DESC LIMIT 1000 OFFSET $2)";

impl Store {
    /// Takes a key, or returns its state. The lease of the attempt ends at `until`; `now` is its start
    /// (milliseconds since 1970).
    pub async fn begin_key(
        &self,
        key: &IdempotencyKey,
        until: u64,
        now: u64,
    ) -> Result<Begun, StoreError> {
        self.bounded(async {
            loop {
                let take = sql(TAKE)
                    .bind(&key.id)
                    .bind(&key.workspace)
                    .bind(&key.request)
                    .bind(&key.attempt)
                    .bind(signed(until))
                    .bind(signed(now));
                if take.execute(&self.writer).await? > 0 {
                    return Ok(Begun::Yours);
                }
                // No row: the key was freed in between.
                let look = sql(LOOK).bind(&key.id);
                let rows: Vec<Row> = look.rows(&self.reader).await?;
                if let Some(row) = rows.into_iter().next() {
                    return Ok(read(row, now));
                }
            }
        })
        .await
    }

    /// Extends an attempt's lease to `until`.
    pub async fn prolong_key(&self, key: &IdempotencyKey, until: u64) -> Result<(), StoreError> {
        let prolong = sql(PROLONG).bind(&key.id).bind(&key.attempt);
        self.execute(prolong.bind(signed(until))).await?;
        Ok(())
    }

    /// Stores an attempt's response, to be repeated until `until`. Writes nothing if another attempt has taken
    /// the key since.
    pub async fn answer_key(
        &self,
        key: &IdempotencyKey,
        answer: &KeptAnswer,
        until: u64,
    ) -> Result<(), StoreError> {
        let (headers, body) = answer.content.clone().unzip();
        let answer = sql(ANSWER)
            .bind(&key.id)
            .bind(&key.attempt)
            .bind(signed(until))
            .bind(i64::from(answer.status))
            .bind(headers)
            .bind(body);
        self.execute(answer).await?;
        Ok(())
    }

    /// Frees a key after its attempt failed.
    pub async fn free_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        let free = sql(FREE).bind(&key.id).bind(&key.attempt);
        self.execute(free).await?;
        Ok(())
    }

    /// Deletes keys that expired before `now`. If more than `most` have responses, it also deletes the oldest of
    /// them. Deletes at most a thousand.
    pub async fn prune_keys(&self, now: u64, most: i64) -> Result<(), StoreError> {
        self.execute(sql(PRUNE).bind(signed(now)).bind(most))
            .await?;
        Ok(())
    }
}

fn read((request, until, status, headers, body): Row, now: u64) -> Begun {
    match status.and_then(|status| u16::try_from(status).ok()) {
        Some(status) => {
            let content = headers.zip(body);
            let answer = KeptAnswer { status, content };
            Begun::Answered { request, answer }
        }
        None if until < signed(now) => Begun::Abandoned { request },
        None => Begun::Running { request },
    }
}
