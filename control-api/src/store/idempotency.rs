//! Responses that are repeated for the same `Idempotency-Key`.
//!
//! A row is written before anything is done, by one of those who ask at once, in whichever daemon. Its
//! daemon promises for a while at a time that it is at it. One that dies in the middle leaves a promise that
//! has run out: whether what was asked is done is not known, so the key is not free for a day.

use super::statement::{signed, sql};
use super::{Store, StoreError};

/// A key, as somebody begins to act under it.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// SHA-256 of who asks, for what route, with what key; 64 hex digits.
    pub id: String,
    /// Whose.
    pub workspace: String,
    /// SHA-256 of what is asked, 64 hex digits.
    pub request: String,
    /// Who carries it out; no two attempts have the same.
    pub attempt: String,
}

/// An answer as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// Its headers and its body; `None` where they are not to be kept.
    pub content: Option<(String, Vec<u8>)>,
}

/// What there is under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begun {
    /// Nothing was: the attempt is whoever asked's.
    Yours,
    /// Another attempt is at it, for what has this digest.
    Running {
        /// SHA-256 of what is asked.
        request: String,
    },
    /// Another attempt was at it, and its daemon is silent: it may have been done or not.
    Abandoned {
        /// SHA-256 of what was asked.
        request: String,
    },
    /// It was answered.
    Answered {
        /// SHA-256 of what was asked.
        request: String,
        /// What was answered.
        answer: KeptAnswer,
    },
}

/// What a row is read as: request, until, status, headers, body.
type Row = (String, i64, Option<i64>, Option<String>, Option<Vec<u8>>);

/// Takes a key that is free: one that nobody has, whose answer is over, or whose attempt was abandoned a day
/// ago.
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
/// Ends the promises of a daemon that is not there any more, by the database's own clock.
pub(super) const ABANDON: &str = "UPDATE idempotency_keys \
     SET until = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 1 \
     WHERE status IS NULL AND until > CAST(unixepoch('subsec') * 1000 AS INTEGER)";
const FREE: &str = "DELETE FROM idempotency_keys WHERE id = $1 AND attempt = $2";
const PRUNE: &str = "DELETE FROM idempotency_keys \
     WHERE until < $1 - CASE WHEN status IS NULL THEN 86400000 ELSE 0 END OR id IN \
     (SELECT id FROM idempotency_keys WHERE status IS NOT NULL ORDER BY until DESC LIMIT 1000 OFFSET $2)";

impl Store {
    /// Begins to act under a key, or says what there is under it. The attempt is waited for until `until`,
    /// and `now` is when it begins (milliseconds since 1970).
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
                // There is none when the key was freed in between.
                let look = sql(LOOK).bind(&key.id);
                let rows: Vec<Row> = look.rows(&self.reader).await?;
                if let Some(row) = rows.into_iter().next() {
                    return Ok(read(row, now));
                }
            }
        })
        .await
    }

    /// Has an attempt waited for until `until`.
    pub async fn prolong_key(&self, key: &IdempotencyKey, until: u64) -> Result<(), StoreError> {
        let prolong = sql(PROLONG).bind(&key.id).bind(&key.attempt);
        self.execute(prolong.bind(signed(until))).await?;
        Ok(())
    }

    /// Writes an attempt's answer down, to be given again until `until`. One that has taken too long, so
    /// that another was begun, writes nothing.
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

    /// Frees a key: its attempt has come to nothing.
    pub async fn free_key(&self, key: &IdempotencyKey) -> Result<(), StoreError> {
        let free = sql(FREE).bind(&key.id).bind(&key.attempt);
        self.execute(free).await?;
        Ok(())
    }

    /// Deletes keys whose end is before `now`, and of those that are answered the oldest of more than
    /// `most`, at most a thousand of them.
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
