//! Responses that are repeated for the same `Idempotency-Key`.
//!
//! One of several concurrent requests, on any daemon, writes a row before it does anything. If its daemon dies, the
//! row stays without a response: the outcome is unknown, so the key stays taken for a day.

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
pub struct StoredResponse {
    /// Its status.
    pub status: u16,
    /// Its headers and body; `None` when they must not be stored.
    pub content: Option<(String, Vec<u8>)>,
}

/// The state of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyState {
    /// It was free: the caller's attempt holds it now.
    Taken,
    /// Another attempt holds it, for a request with this digest; its response, once it is there.
    Held(String, Option<StoredResponse>),
}

/// The columns of a row: request, status, headers, body.
type Row = (String, Option<i64>, Option<String>, Option<Vec<u8>>);

/// Takes a free key: an unused or expired one.
const TAKE: &str = "INSERT INTO idempotency_keys (id, workspace, request, attempt, until) \
     VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (id) DO UPDATE SET request = excluded.request, attempt = excluded.attempt, \
     until = excluded.until, status = NULL, headers = NULL, body = NULL \
     WHERE idempotency_keys.until < $6";
const LOOK: &str = "SELECT request, status, headers, body FROM idempotency_keys WHERE id = $1";
const ANSWER: &str = "UPDATE idempotency_keys SET until = $3, status = $4, headers = $5, body = $6 \
     WHERE id = $1 AND attempt = $2";
const FREE: &str = "DELETE FROM idempotency_keys WHERE id = $1 AND attempt = $2";
const PRUNE: &str = "DELETE FROM idempotency_keys WHERE until < $1 OR id IN \
     (SELECT id FROM idempotency_keys WHERE status IS NOT NULL ORDER BY until DESC LIMIT 1000 OFFSET $2)";

impl Store {
    /// Takes a key until `until`, or returns its state; `now` is milliseconds since 1970.
    pub async fn take_key(
        &self,
        key: &IdempotencyKey,
        until: u64,
        now: u64,
    ) -> Result<KeyState, StoreError> {
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
                    return Ok(KeyState::Taken);
                }
                // No row: the key was freed in between.
                let look = sql(LOOK).bind(&key.id);
                let rows: Vec<Row> = look.rows(&self.reader).await?;
                if let Some((request, status, headers, body)) = rows.into_iter().next() {
                    let status = status.and_then(|status| u16::try_from(status).ok());
                    let content = headers.zip(body);
                    let response = status.map(|status| StoredResponse { status, content });
                    return Ok(KeyState::Held(request, response));
                }
            }
        })
        .await
    }

    /// Stores an attempt's response, to be repeated until `until`. Writes nothing if another attempt has taken
    /// the key since.
    pub async fn answer_key(
        &self,
        key: &IdempotencyKey,
        response: StoredResponse,
        until: u64,
    ) -> Result<(), StoreError> {
        let (headers, body) = response.content.unzip();
        let answer = sql(ANSWER)
            .bind(&key.id)
            .bind(&key.attempt)
            .bind(signed(until))
            .bind(i64::from(response.status))
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
        let prune = sql(PRUNE).bind(signed(now)).bind(most);
        self.execute(prune).await?;
        Ok(())
    }
}
