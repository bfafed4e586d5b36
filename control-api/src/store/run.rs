//! Runs and what happened in them.
//!
//! A run belongs to the daemon that took it, which promises again and again to be there (its lease, by
//! the database's clock). What it writes is written only while the run is still its own: once another has
//! marked the run as errored, it is over.

use serde_json::json;
use squall_journal::run::{RunKind, RunRecord, RunState};

/// Runs of a workspace that keep the exchanges of what failed in them; of older ones these go.
pub(super) const KEEPING_EXCHANGES: i64 = 100;

/// Most runs that are deleted in one transaction: each may have 32 MiB of exchanges.
pub(super) const PRUNED_AT_ONCE: usize = 20;

/// A run that is written for the first time.
#[derive(Debug, Clone)]
pub struct NewRun<'a> {
    /// Whose.
    pub workspace: &'a str,
    /// The run; its cells are empty.
    pub record: &'a RunRecord,
    /// How long its daemon is trusted to be there, milliseconds.
    pub lease_ms: i64,
    /// What happened first.
    pub events: &'a [RunEventRow],
}

/// What is written of a run that has come further.
#[derive(Debug, Clone)]
pub struct RunStep<'a> {
    /// The state that it is in so far; nothing is written if it is in another.
    pub from: RunState,
    /// The run from now on; its state is the new one.
    pub record: &'a RunRecord,
    /// What happened.
    pub events: &'a [RunEventRow],
}

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRow {
    /// Which it is in its run, from 1 without holes.
    pub ordinal: i64,
    /// `state`, `progress`, `cell`, `score` or `done`.
    pub name: String,
    /// A JSON document.
    pub data: String,
}

/// Which runs are wanted; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// How far they are.
    pub state: Option<RunState>,
    /// What they try.
    pub kind: Option<RunKind>,
    /// Only those asked for before this one.
    pub before: Option<String>,
}

/// Runs that nobody executes any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned<'a> {
    /// Those of this daemon, which has just started.
    OfDaemon(&'a str),
    /// Those whose daemon has not kept its promise to be there.
    Expired,
}

/// A run that was marked as errored because nobody executes it.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenUp {
    /// Whose it is.
    pub workspace: String,
    /// What was written of it before.
    pub before: RunRecord,
    /// What is written of it now.
    pub after: RunRecord,
}

/// A run as it is stored: the run without its cells, and its cells.
pub(super) fn written(record: &RunRecord) -> (String, String) {
    let mut document = json!(record);
    let cells = document.as_object_mut().and_then(|run| run.remove("cells"));
    let cells = cells.map_or_else(|| "[]".to_owned(), |cells| cells.to_string());
    (document.to_string(), cells)
}

/// Reads a run back; `None` for one that this version cannot read.
pub(super) fn read(record: &str, cells: &str) -> Option<RunRecord> {
    let mut run: RunRecord = serde_json::from_str(record)
        .inspect_err(|error| tracing::warn!(%error, "a run in the store cannot be read"))
        .ok()?;
    run.cells = serde_json::from_str(cells)
        .inspect_err(|error| tracing::warn!(%error, run = run.id, "a run's cells cannot be read"))
        .ok()?;
    Some(run)
}

/// PostgreSQL takes no NUL in a text; the record has it escaped.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// What both databases do alike, in a transaction that somebody else keeps or drops.
macro_rules! runs_in {
    ($database:ident, $connection:ty, $now:literal) => {
        pub(super) mod $database {
            use sqlx::{AssertSqlSafe, query, query_as, query_scalar};
            use squall_journal::run::RunRecord;

            use super::super::error::Cause;
            use super::super::recording::RecordedRow;
            use super::{
                Abandoned, KEEPING_EXCHANGES, NewRun, PRUNED_AT_ONCE, RunEventRow, RunFilter,
                RunStep, storable, written,
            };

            pub(in crate::store) async fn add(
                connection: &mut $connection,
                run: &NewRun<'_>,
            ) -> Result<(), Cause> {
                let (record, cells) = written(run.record);
                query(
                    "DELETE FROM run_exchanges WHERE run IN (SELECT id FROM runs WHERE workspace = $1 \
                     AND lease_until IS NULL ORDER BY id DESC LIMIT 1000 OFFSET $2)",
                )
                .bind(run.workspace)
                .bind(KEEPING_EXCHANGES - 1)
                .execute(&mut *connection)
                .await?;
                query(concat!(
                    "INSERT INTO runs \
                     (id, workspace, kind, name, state, daemon, lease_until, record, cells) \
                     VALUES ($1, $2, $3, $4, $5, $6, ", $now, " + $7, $8, $9)"
                ))
                .bind(&run.record.id)
                .bind(run.workspace)
                .bind(run.record.kind.as_str())
                .bind(storable(&run.record.name))
                .bind(run.record.state.as_str())
                .bind(&run.record.daemon)
                .bind(run.lease_ms)
                .bind(record)
                .bind(cells)
                .execute(&mut *connection)
                .await?;
                happened(connection, &run.record.id, run.events).await
            }

            /// `false` when the run is not the daemon's own any more, or in another state.
            pub(in crate::store) async fn advance(
                connection: &mut $connection,
                step: &RunStep<'_>,
            ) -> Result<bool, Cause> {
                let (record, cells) = written(step.record);
                let lease = if step.record.state.is_over() {
                    "NULL"
                } else {
                    "lease_until"
                };
                let moved = query(AssertSqlSafe(format!(
                    "UPDATE runs SET state = $4, record = $5, cells = $6, lease_until = {lease} \
                     WHERE id = $1 AND daemon = $2 AND state = $3 AND lease_until IS NOT NULL"
                )))
                .bind(&step.record.id)
                .bind(&step.record.daemon)
                .bind(step.from.as_str())
                .bind(step.record.state.as_str())
                .bind(record)
                .bind(cells)
                .execute(&mut *connection)
                .await?;
                if moved.rows_affected() == 0 {
                    return Ok(false);
                }
                happened(connection, &step.record.id, step.events).await?;
                Ok(true)
            }

            /// `false` when the run is not the daemon's own any more.
            pub(in crate::store) async fn tell(
                connection: &mut $connection,
                run: &str,
                daemon: &str,
                events: &[RunEventRow],
                exchanges: &[RecordedRow],
            ) -> Result<bool, Cause> {
                let own: Option<i32> = query_scalar(
                    "SELECT 1 FROM runs WHERE id = $1 AND daemon = $2 AND lease_until IS NOT NULL",
                )
                .bind(run)
                .bind(daemon)
                .fetch_optional(&mut *connection)
                .await?;
                if own.is_none() {
                    return Ok(false);
                }
                happened(connection, run, events).await?;
                for row in exchanges {
                    query(
                        "INSERT INTO run_exchanges (run, exchange, entry) VALUES ($1, $2, $3) \
                         ON CONFLICT DO NOTHING",
                    )
                    .bind(run)
                    .bind(&row.exchange)
                    .bind(&row.entry)
                    .execute(&mut *connection)
                    .await?;
                }
                Ok(true)
            }

            async fn happened(
                connection: &mut $connection,
                run: &str,
                events: &[RunEventRow],
            ) -> Result<(), Cause> {
                for event in events {
                    query("INSERT INTO run_events (run, ordinal, type, data) VALUES ($1, $2, $3, $4)")
                        .bind(run)
                        .bind(event.ordinal)
                        .bind(&event.name)
                        .bind(&event.data)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(())
            }

            /// Ids of those that the daemon still has.
            pub(in crate::store) async fn renew(
                connection: &mut $connection,
                daemon: &str,
                lease_ms: i64,
            ) -> Result<Vec<String>, Cause> {
                let held = query_scalar(concat!(
                    "UPDATE runs SET lease_until = ", $now, " + $2 \
                     WHERE daemon = $1 AND lease_until IS NOT NULL RETURNING id"
                ))
                .bind(daemon)
                .bind(lease_ms)
                .fetch_all(&mut *connection)
                .await?;
                Ok(held)
            }

            /// Runs that nobody executes: whose they are, their records, and the number of the last thing that happened.
            pub(in crate::store) async fn abandoned(
                connection: &mut $connection,
                which: Abandoned<'_>,
            ) -> Result<Vec<(String, String, String, i64)>, Cause> {
                const COLUMNS: &str = "workspace, record, cells, (SELECT COALESCE(MAX(ordinal), 0) FROM run_events \
                     WHERE run = runs.id)";
                let found = match which {
                    Abandoned::OfDaemon(daemon) => {
                        query_as(AssertSqlSafe(format!(
                            "SELECT {COLUMNS} FROM runs \
                             WHERE lease_until IS NOT NULL AND daemon = $1 ORDER BY id"
                        )))
                        .bind(daemon)
                        .fetch_all(&mut *connection)
                        .await?
                    }
                    Abandoned::Expired => {
                        query_as(AssertSqlSafe(format!(
                            "SELECT {COLUMNS} FROM runs \
                             WHERE lease_until IS NOT NULL AND lease_until < {} ORDER BY id",
                            $now
                        )))
                        .fetch_all(&mut *connection)
                        .await?
                    }
                };
                Ok(found)
            }

            /// `false` when somebody else was faster, or its daemon is there after all.
            pub(in crate::store) async fn give_up(
                connection: &mut $connection,
                which: Abandoned<'_>,
                record: &RunRecord,
                events: &[RunEventRow],
            ) -> Result<bool, Cause> {
                let (text, cells) = written(record);
                let expired = match which {
                    Abandoned::OfDaemon(_) => String::new(),
                    Abandoned::Expired => format!(" AND lease_until < {}", $now),
                };
                let given_up = query(AssertSqlSafe(format!(
                    "UPDATE runs SET state = $2, record = $3, cells = $4, lease_until = NULL \
                     WHERE id = $1 AND lease_until IS NOT NULL{expired}"
                )))
                .bind(&record.id)
                .bind(record.state.as_str())
                .bind(text)
                .bind(cells)
                .execute(&mut *connection)
                .await?;
                if given_up.rows_affected() == 0 {
                    return Ok(false);
                }
                happened(connection, &record.id, events).await?;
                Ok(true)
            }

            /// Deletes runs that are over beyond the newest `most` of their workspace, the oldest first, a bounded
            /// number; how many. Their events go with them.
            pub(in crate::store) async fn prune(
                connection: &mut $connection,
                most: i64,
            ) -> Result<usize, Cause> {
                let pruned: Vec<String> = query_scalar(AssertSqlSafe(format!(
                    "DELETE FROM runs WHERE id IN (SELECT id FROM (SELECT id, ROW_NUMBER() OVER \
                     (PARTITION BY workspace ORDER BY id DESC) AS place FROM runs \
                     WHERE lease_until IS NULL) AS ended WHERE place > $1 \
                     ORDER BY id LIMIT {PRUNED_AT_ONCE}) RETURNING id"
                )))
                .bind(most)
                .fetch_all(&mut *connection)
                .await?;
                for run in &pruned {
                    query("DELETE FROM run_exchanges WHERE run = $1")
                        .bind(run)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok(pruned.len())
            }

            /// Newest first, without their cells.
            pub(in crate::store) async fn page(
                connection: &mut $connection,
                workspace: &str,
                filter: &RunFilter,
                limit: i64,
            ) -> Result<Vec<String>, Cause> {
                let any = "";
                let page = query_scalar(
                    "SELECT record FROM runs WHERE workspace = $1 \
                     AND ($2 = '' OR state = $2) AND ($3 = '' OR kind = $3) AND ($4 = '' OR id < $4) \
                     ORDER BY id DESC LIMIT $5",
                )
                .bind(workspace)
                .bind(filter.state.map_or(any, |state| state.as_str()))
                .bind(filter.kind.map_or(any, |kind| kind.as_str()))
                .bind(filter.before.as_deref().unwrap_or(any))
                .bind(limit)
                .fetch_all(&mut *connection)
                .await?;
                Ok(page)
            }

            pub(in crate::store) async fn one(
                connection: &mut $connection,
                workspace: &str,
                id: &str,
            ) -> Result<Option<(String, String)>, Cause> {
                let one = query_as("SELECT record, cells FROM runs WHERE workspace = $1 AND id = $2")
                    .bind(workspace)
                    .bind(id)
                    .fetch_optional(&mut *connection)
                    .await?;
                Ok(one)
            }

            /// Heads and bodies of exchanges after one, in the order in which they began.
            pub(in crate::store) async fn exchanges(
                connection: &mut $connection,
                run: &str,
                after: &str,
                limit: i64,
            ) -> Result<Vec<(String, String)>, Cause> {
                let exchanges = query_as(
                    "SELECT exchange, entry FROM run_exchanges WHERE run = $1 AND exchange > $2 \
                     ORDER BY exchange LIMIT $3",
                )
                .bind(run)
                .bind(after)
                .bind(limit)
                .fetch_all(&mut *connection)
                .await?;
                Ok(exchanges)
            }

            pub(in crate::store) async fn events(
                connection: &mut $connection,
                run: &str,
                after: i64,
                limit: i64,
            ) -> Result<Vec<(i64, String, String)>, Cause> {
                let events = query_as(
                    "SELECT ordinal, type, data FROM run_events WHERE run = $1 AND ordinal > $2 \
                     ORDER BY ordinal LIMIT $3",
                )
                .bind(run)
                .bind(after)
                .bind(limit)
                .fetch_all(&mut *connection)
                .await?;
                Ok(events)
            }
        }
    };
}

runs_in!(
    sqlite,
    sqlx::SqliteConnection,
    "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
);
runs_in!(
    postgres,
    sqlx::PgConnection,
    "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
);
