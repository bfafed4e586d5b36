//! Runs, asked of whichever database there is.

use squall_journal::run::{RunRecord, RunState};
use squall_journal::tape::Recorded;

use super::document::signed;
use super::recording::RecordedRow;
use super::run::{self, Abandoned, GivenUp, NewRun, RunEventRow, RunFilter, RunStep};
use super::{Database, Store, StoreError, bounded, can_be_there};

/// Asks the database inside a transaction that is kept when `$ask` succeeds.
macro_rules! write {
    ($store:expr, $function:ident ( $($argument:expr),* )) => {
        bounded(&$store.place, async {
            match &$store.database {
                Database::Sqlite(sqlite) => {
                    let mut writer = sqlite.begin().await?;
                    let done = run::sqlite::$function(&mut writer, $($argument),*).await;
                    super::sqlite::finish(writer, done).await
                }
                Database::Postgres(postgres) => {
                    let mut transaction = postgres.begin().await?;
                    let done = run::postgres::$function(&mut transaction, $($argument),*).await?;
                    transaction.commit().await?;
                    Ok(done)
                }
            }
        })
        .await
    };
}

/// Asks the database for what there is; `$nothing` where nobody has written yet.
macro_rules! read {
    ($store:expr, $nothing:expr, $function:ident ( $($argument:expr),* )) => {
        bounded(&$store.place, async {
            match &$store.database {
                Database::Sqlite(sqlite) if sqlite.is_blank() => Ok($nothing),
                Database::Sqlite(sqlite) => {
                    let mut reader = sqlite.reader().await?;
                    run::sqlite::$function(&mut reader, $($argument),*).await
                }
                Database::Postgres(postgres) => {
                    let mut reader = postgres.reader().await?;
                    run::postgres::$function(&mut reader, $($argument),*).await
                }
            }
        })
        .await
    };
}

impl Store {
    /// Writes a run for the first time. Of all but the newest 100 runs of its workspace the exchanges that
    /// were kept go.
    pub async fn add_run(&self, run: NewRun<'_>) -> Result<(), StoreError> {
        write!(self, add(&run))
    }

    /// Writes that a run has come further, with what happened. `false`, and nothing is written, when it
    /// is in another state than was thought, or not its daemon's any more.
    pub async fn advance_run(&self, step: RunStep<'_>) -> Result<bool, StoreError> {
        write!(self, advance(&step))
    }

    /// Writes what happened in a run, and heads and bodies of exchanges that show why. `false`, and nothing
    /// is written, when it is not this daemon's any more.
    pub async fn tell_of_run(
        &self,
        run: &str,
        daemon: &str,
        events: &[RunEventRow],
        exchanges: &[RecordedRow],
    ) -> Result<bool, StoreError> {
        write!(self, tell(run, daemon, events, exchanges))
    }

    /// Heads and bodies of the exchanges that are kept of a run, in the order in which they began.
    pub async fn run_exchanges(&self, run: &str) -> Result<Vec<Recorded>, StoreError> {
        const AT_ONCE: usize = 64;
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let limit = i64::try_from(AT_ONCE).unwrap_or(i64::MAX);
            let rows = read!(self, Vec::new(), exchanges(run, &after, limit))?;
            let was_last = rows.len() < AT_ONCE;
            found.extend(
                rows.iter()
                    .filter_map(|(_, entry)| RecordedRow::read(entry)),
            );
            match rows.into_iter().last() {
                Some((last, _)) if !was_last => after = last,
                _ => return Ok(found),
            }
        }
    }

    /// Promises for every run of a daemon that it is there for so long from now on. The ids of its runs.
    pub async fn renew_runs(&self, daemon: &str, lease_ms: i64) -> Result<Vec<String>, StoreError> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        write!(self, renew(daemon, lease_ms))
    }

    /// Marks runs that nobody executes any more as errored. `why` is told, `at` is milliseconds since
    /// 1970; `events` says in events what has become of a run. The runs that were marked.
    pub async fn give_up_runs(
        &self,
        which: Abandoned<'_>,
        why: &str,
        at: &str,
        events: impl Fn(&RunRecord, i64) -> Vec<RunEventRow> + Send + Sync,
    ) -> Result<Vec<GivenUp>, StoreError> {
        let found = read!(self, Vec::new(), abandoned(which))?;
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
            let happened = events(&after, last);
            if write!(self, give_up(which, &after, &happened))? {
                given_up.push(GivenUp {
                    workspace,
                    before,
                    after,
                });
            }
        }
        Ok(given_up)
    }

    /// Deletes runs that are over, of each workspace those beyond the newest so many, a few at a time: whether
    /// there are more.
    pub(super) async fn prune_runs(&self, most: u64) -> Result<bool, StoreError> {
        let pruned = write!(self, prune(signed(most)))?;
        Ok(pruned >= run::PRUNED_AT_ONCE)
    }

    /// At most `limit` runs of a workspace, newest first, without their cells: of every daemon that
    /// writes to this store.
    pub async fn runs(
        &self,
        workspace: &str,
        filter: &RunFilter,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let page = read!(self, Vec::new(), page(workspace, filter, limit))?;
        Ok(page.iter().filter_map(|one| run::read(one, "[]")).collect())
    }

    /// One run of a workspace.
    pub async fn run(&self, workspace: &str, id: &str) -> Result<Option<RunRecord>, StoreError> {
        if !can_be_there(id) {
            return Ok(None);
        }
        let one = read!(self, None, one(workspace, id))?;
        Ok(one.and_then(|(record, cells)| run::read(&record, &cells)))
    }

    /// At most `limit` things that happened in a run after number `after`, in order.
    pub async fn run_events(
        &self,
        run: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<RunEventRow>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let events = read!(self, Vec::new(), events(run, after, limit))?;
        let row = |(ordinal, name, data)| RunEventRow {
            ordinal,
            name,
            data,
        };
        Ok(events.into_iter().map(row).collect())
    }
}
