//! Queries about runs.

use sqlx::AnyConnection;
use squall_harness::run::{RunRecord, RunState};
use squall_journal::tape::Recorded;

use super::error::Cause;
use super::recording::RecordedRow;
use super::run::{self, Abandoned, GivenUp, NewRun, RunEventRow, RunFilter, RunStep};
use super::statement::{SqlStatement, signed, sql};
use super::{Store, StoreError, at_most, can_be_there};

/// Newest runs of a workspace whose evidence exchanges are stored; those of older runs are deleted.
const KEEPING_EXCHANGES: i64 = 100;

/// Most runs deleted in one transaction: each may have 32 MiB of exchanges.
const PRUNED_AT_ONCE: usize = 20;

impl Store {
    /// Writes a new run. Only the newest 100 runs of its workspace keep their stored exchanges.
    pub async fn add_run(&self, run: NewRun<'_>) -> Result<(), StoreError> {
        let (record, cells) = run::written(run.record);
        let forget = sql(
            "DELETE FROM run_exchanges WHERE run IN (SELECT id FROM runs WHERE workspace = $1 \
             AND lease_until IS NULL AND part_of IS NULL ORDER BY id DESC LIMIT 1000 OFFSET $2)",
        )
        .bind(run.workspace)
        .bind(KEEPING_EXCHANGES - 1);
        let insert = sql(format!(
            "INSERT INTO runs (id, workspace, kind, name, state, daemon, lease_until, record, cells, part_of, posted) \
             VALUES ($1, $2, $3, $4, $5, $6, {} + $7, $8, $9, $10, $11)",
            self.now()
        ))
        .bind(&run.record.id)
        .bind(run.workspace)
        .bind(run.record.kind.as_str())
        // PostgreSQL supports no NUL in a text; the JSON record escapes it.
        .bind(run.record.name.replace('\0', "\u{fffd}"))
        .bind(run.record.state.as_str())
        .bind(&run.record.daemon)
        .bind(run.lease_ms)
        .bind(record)
        .bind(cells)
        .bind((run.record.part_of.as_ref()).map(|part| &*part.run))
        // A NUL in JSON or YAML is escaped.
        .bind(run.posted);
        self.bounded(async {
            let mut transaction = self.begin().await?;
            forget.execute(&mut *transaction).await?;
            insert.execute(&mut *transaction).await?;
            add_events(&mut transaction, &run.record.id, run.events).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }

    /// Writes a change of a run and its events. `false`, and nothing is written, when the run is in another state
    /// or no longer its daemon's.
    pub async fn advance_run(&self, step: RunStep<'_>) -> Result<bool, StoreError> {
        let (record, cells) = run::written(step.record);
        let lease = if step.record.state.is_over() {
            "NULL, posted = NULL"
        } else {
            "lease_until"
        };
        let advance = sql(format!(
            "UPDATE runs SET state = $4, record = $5, cells = $6, lease_until = {lease} \
             WHERE id = $1 AND daemon = $2 AND state = $3 AND lease_until IS NOT NULL"
        ))
        .bind(&step.record.id)
        .bind(&step.record.daemon)
        .bind(step.from.as_str())
        .bind(step.record.state.as_str())
        .bind(record)
        .bind(cells);
        self.move_run(advance, &step.record.id, step.events).await
    }

    /// Writes events of a run, with heads and bodies of the exchanges that are their evidence; those of a part belong
    /// to the whole run. `false`, and nothing is written, when the run is no longer its daemon's.
    pub async fn add_run_events(
        &self,
        run: &str,
        daemon: &str,
        events: &[RunEventRow],
        exchanges: &[RecordedRow],
    ) -> Result<bool, StoreError> {
        let own =
            sql("SELECT COALESCE(part_of, id) FROM runs WHERE id = $1 AND daemon = $2 AND lease_until IS NOT NULL")
                .bind(run)
                .bind(daemon);
        self.bounded(async {
            let mut transaction = self.begin().await?;
            let own: Vec<(String,)> = own.rows(&mut *transaction).await?;
            let Some((whole,)) = own.first() else {
                return Ok(false);
            };
            add_events(&mut transaction, run, events).await?;
            for row in exchanges {
                row.insert("run_exchanges (run, exchange, entry)", whole)
                    .execute(&mut *transaction)
                    .await?;
            }
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Heads and bodies of a run's stored exchanges, in order of their start.
    pub async fn run_exchanges(&self, run: &str) -> Result<Vec<Recorded>, StoreError> {
        let page = "SELECT exchange, entry FROM run_exchanges \
                    WHERE run = $1 AND exchange > $2 ORDER BY exchange LIMIT $3";
        self.all_recorded(page, run).await
    }

    /// Renews the leases of all runs of a daemon. Returns their ids.
    pub async fn renew_runs(&self, daemon: &str, lease_ms: i64) -> Result<Vec<String>, StoreError> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        let renew = sql(format!(
            "UPDATE runs SET lease_until = {} + $2 \
             WHERE daemon = $1 AND lease_until IS NOT NULL RETURNING id",
            self.now()
        ));
        let renewed = renew.bind(daemon).bind(lease_ms).rows(&self.writer);
        let ids: Vec<(String,)> = self.bounded(renewed).await?;
        Ok(ids.into_iter().map(|(id,)| id).collect())
    }

    /// Marks runs without a daemon as errored, for the reason `why` and at the time `at`, with the events from
    /// `events`. Returns these runs.
    pub async fn give_up_runs(
        &self,
        which: Abandoned<'_>,
        why: &str,
        at: &str,
        events: impl Fn(&RunRecord, i64) -> Vec<RunEventRow> + Send + Sync,
    ) -> Result<Vec<GivenUp>, StoreError> {
        // Another daemon may be faster, or the run's own may have renewed its lease.
        let (of_daemon, expired) = match which {
            Abandoned::OfDaemon(daemon) => (daemon, String::new()),
            Abandoned::Expired => ("", format!(" AND lease_until < {}", self.now())),
        };
        let abandoned = sql(format!(
            "SELECT workspace, record, cells, \
             (SELECT COALESCE(MAX(ordinal), 0) FROM run_events WHERE run = runs.id) FROM runs \
             WHERE lease_until IS NOT NULL AND ($1 = '' OR daemon = $1){expired} ORDER BY id"
        ));
        let found: Vec<(String, String, String, i64)> =
            self.read(abandoned.bind(of_daemon)).await?;
        let mut given_up = Vec::new();
        for (workspace, record, cells, last) in found {
            let Some(before) = run::read(&record, &cells) else {
                continue;
            };
            let mut after = before.clone();
            after.state = RunState::Errored;
            after.passed = None;
            after.error = Some(why.to_owned());
            after.finished_at = Some(at.to_owned());
            let (record, cells) = run::written(&after);
            let mark = sql(format!(
                "UPDATE runs SET state = $2, record = $3, cells = $4, lease_until = NULL, posted = NULL \
                 WHERE id = $1 AND lease_until IS NOT NULL{expired}"
            ))
            .bind(&after.id)
            .bind(after.state.as_str())
            .bind(record)
            .bind(cells);
            if self
                .move_run(mark, &after.id, &events(&after, last))
                .await?
            {
                given_up.push(GivenUp {
                    workspace,
                    before,
                    after,
                });
            }
        }
        Ok(given_up)
    }

    /// Executes `update` and writes events; `false`, and nothing is written, when it finds no run.
    async fn move_run(
        &self,
        update: SqlStatement,
        run: &str,
        events: &[RunEventRow],
    ) -> Result<bool, StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            if update.execute(&mut *transaction).await? == 0 {
                return Ok(false);
            }
            add_events(&mut transaction, run, events).await?;
            transaction.commit().await?;
            Ok(true)
        })
        .await
    }

    /// Deletes some of the finished runs beyond the newest `most` of each workspace, with their events and parts. Returns
    /// whether there are more.
    pub(super) async fn prune_runs(&self, most: u64) -> Result<bool, StoreError> {
        let old = sql(format!(
            "SELECT id FROM (SELECT id, ROW_NUMBER() OVER \
             (PARTITION BY workspace ORDER BY id DESC) AS place FROM runs \
             WHERE lease_until IS NULL AND part_of IS NULL) AS ended WHERE place > $1 \
             ORDER BY id LIMIT {PRUNED_AT_ONCE}"
        ));
        let old: Vec<(String,)> = self.read(old.bind(signed(most))).await?;
        if old.is_empty() {
            return Ok(false);
        }
        self.bounded(async {
            let mut transaction = self.begin().await?;
            for (run,) in &old {
                for delete in [
                    "DELETE FROM run_exchanges WHERE run = $1",
                    "DELETE FROM runs WHERE id = $1 OR part_of = $1",
                ] {
                    let delete = sql(delete).bind(run);
                    delete.execute(&mut *transaction).await?;
                }
            }
            transaction.commit().await?;
            Ok(old.len() >= PRUNED_AT_ONCE)
        })
        .await
    }

    /// At most `limit` runs of a workspace, newest first, without their cells, of every daemon that writes to
    /// this store.
    pub async fn runs(
        &self,
        workspace: &str,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let page = sql("SELECT record FROM runs WHERE workspace = $1 \
             AND ($2 = '' OR state = $2) AND ($3 = '' OR kind = $3) AND ($4 = '' OR id < $4) \
             AND ($5 = '' OR name = $5) AND COALESCE(part_of, '') = $6 ORDER BY id DESC LIMIT $7")
        .bind(workspace)
        .bind(filter.state.map_or("", |state| state.as_str()))
        .bind(filter.kind.map_or("", |kind| kind.as_str()))
        .bind(filter.before.as_deref().unwrap_or(""))
        // As it was written.
        .bind((filter.name.as_deref().unwrap_or("")).replace('\0', "\u{fffd}"))
        .bind((filter.part_of.as_deref().unwrap_or("")).replace('\0', "\u{fffd}"))
        .bind(at_most(limit));
        let rows: Vec<(String,)> = self.read(page).await?;
        let runs = rows.iter().filter_map(|(record,)| run::read(record, "[]"));
        Ok(runs.collect())
    }

    /// One run of a workspace.
    pub async fn run(&self, workspace: &str, id: &str) -> Result<Option<RunRecord>, StoreError> {
        if !can_be_there(id) {
            return Ok(None);
        }
        let one = sql("SELECT record, cells FROM runs WHERE workspace = $1 AND id = $2");
        let rows: Vec<(String, String)> = self.read(one.bind(workspace).bind(id)).await?;
        Ok(rows
            .first()
            .and_then(|(record, cells)| run::read(record, cells)))
    }

    /// The spread runs in progress: workspace, id and name of each.
    pub async fn spread_runs(&self) -> Result<Vec<(String, String, String)>, StoreError> {
        let running = "SELECT workspace, id, name FROM runs \
                       WHERE posted IS NOT NULL AND state = 'running' AND lease_until IS NOT NULL";
        self.read(sql(running)).await
    }

    /// A spread run that is not over, and its request.
    pub async fn spread_run(&self, id: &str) -> Result<Option<(RunRecord, String)>, StoreError> {
        let one = sql("SELECT record, posted FROM runs WHERE id = $1 AND posted IS NOT NULL");
        let rows: Vec<(String, String)> = self.read(one.bind(id)).await?;
        let first = rows.into_iter().next();
        Ok(first.and_then(|(record, posted)| Some((run::read(&record, "[]")?, posted))))
    }

    /// At most `limit` events of a run after number `after`, in order.
    pub async fn run_events(
        &self,
        run: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RunEventRow>, StoreError> {
        let events = sql(
            "SELECT ordinal, type, data FROM run_events WHERE run = $1 AND ordinal > $2 \
             ORDER BY ordinal LIMIT $3",
        )
        .bind(run)
        .bind(after)
        .bind(at_most(limit));
        let rows = self.read(events).await?.into_iter();
        let row = |(ordinal, name, data)| RunEventRow {
            ordinal,
            name,
            data,
        };
        Ok(rows.map(row).collect())
    }
}

async fn add_events(
    connection: &mut AnyConnection,
    run: &str,
    events: &[RunEventRow],
) -> Result<(), Cause> {
    for event in events {
        sql("INSERT INTO run_events (run, ordinal, type, data) VALUES ($1, $2, $3, $4)")
            .bind(run)
            .bind(event.ordinal)
            .bind(&event.name)
            .bind(&event.data)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}
