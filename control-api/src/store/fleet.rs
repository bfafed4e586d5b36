//! Chaos of the fleet, and the daemons that share the store. All times are the database's, so that the clocks of the
//! daemons do not matter.

use std::time::Duration;

use super::statement::sql;
use super::{Store, StoreError, audit};
use crate::ledger::AuditEntry;

/// The scope of a row that ends the chaos of a whole workspace.
pub const ALL_SCOPES: &str = "*";

/// Text of a notice of a switch.
pub(super) const NOTICE: &str = "fleet";

/// How long rows of ended chaos and of lost daemons are kept, milliseconds.
const KEPT: i64 = 24 * 60 * 60 * 1000;

/// Chaos that was put or ended for the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetChaos {
    /// Its workspace.
    pub workspace: String,
    /// Its scope, or [`ALL_SCOPES`].
    pub scope: String,
    /// The number of the switch.
    pub generation: i64,
    /// The request, JSON; `None`: chaos was ended.
    pub body: Option<String>,
    /// Name of the token that switched.
    pub actor: String,
    /// Remaining time to live when it was read; `None` without one.
    pub left: Option<Duration>,
}

/// A switch for the fleet.
#[derive(Debug, Clone)]
pub struct FleetSwitch<'a> {
    /// Its workspace.
    pub workspace: &'a str,
    /// Its scope, or [`ALL_SCOPES`] to end chaos.
    pub scope: &'a str,
    /// The request, JSON; `None` ends chaos.
    pub body: Option<&'a str>,
    /// Name of the caller's token.
    pub actor: &'a str,
    /// Its time to live.
    pub ttl: Option<Duration>,
}

/// A daemon of the fleet.
#[derive(Debug, Clone)]
pub struct FleetDaemonRow {
    /// Its id.
    pub id: String,
    /// When it started, milliseconds since 1970.
    pub started_at: u64,
    /// When it reported last.
    pub seen_at: u64,
    /// Time since then, milliseconds.
    pub silent_ms: i64,
    /// The last switch that it has applied.
    pub generation: i64,
    /// Its report, JSON.
    pub record: String,
}

type ChaosColumns = (
    i64,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<String>,
    Option<String>,
    Option<i64>,
);

impl Store {
    /// The number of the last switch, and the chaos that is in force or was ended since yesterday.
    pub async fn fleet_chaos(&self) -> Result<(i64, Vec<FleetChaos>), StoreError> {
        let now = self.now();
        let rows: Vec<ChaosColumns> = self
            .read(sql(format!(
                "SELECT f.generation, c.workspace, c.scope, c.generation, c.body, c.actor, c.expires_at - {now} \
                 FROM fleet f LEFT JOIN fleet_chaos c ON c.expires_at IS NULL OR c.expires_at > {now}"
            )))
            .await?;
        let newest = rows.first().map_or(0, |row| row.0);
        let read = |(_, workspace, scope, generation, body, actor, left): ChaosColumns| {
            let left = left.map(|left| Duration::from_millis(left.max(1).unsigned_abs()));
            Some(FleetChaos {
                workspace: workspace?,
                scope: scope?,
                generation: generation?,
                body,
                actor: actor.unwrap_or_default(),
                left,
            })
        };
        Ok((newest, rows.into_iter().filter_map(read).collect()))
    }

    /// Writes a switch and its audit entry, and notifies the daemons.
    pub async fn switch_fleet(
        &self,
        switch: &FleetSwitch<'_>,
        entry: Option<&AuditEntry>,
    ) -> Result<(), StoreError> {
        let now = self.now();
        // Its lock keeps the numbers in the order of commits.
        let count = sql("UPDATE fleet SET generation = generation + 1");
        let replaced = sql(format!(
            "DELETE FROM fleet_chaos WHERE (workspace = $1 AND scope = $2) \
             OR ($2 = '{ALL_SCOPES}' AND $1 IN (workspace, 'default')) \
             OR (body IS NULL AND switched_at < {now} - {KEPT}) OR expires_at < {now} - {KEPT}"
        ))
        .bind(switch.workspace)
        .bind(switch.scope);
        let ttl = switch.ttl.map(|ttl| ttl.as_millis());
        let ttl = ttl.map(|ttl| i64::try_from(ttl).unwrap_or(i64::MAX / 2));
        let insert = sql(format!(
            "INSERT INTO fleet_chaos (workspace, scope, generation, body, actor, switched_at, expires_at) \
             SELECT $1, $2, generation, $3, $4, {now}, {now} + $5 FROM fleet"
        ))
        .bind(switch.workspace)
        .bind(switch.scope)
        .bind(switch.body)
        .bind(switch.actor)
        .bind(ttl);
        self.bounded(async {
            let mut transaction = self.begin().await?;
            count.execute(&mut *transaction).await?;
            replaced.execute(&mut *transaction).await?;
            insert.execute(&mut *transaction).await?;
            audit::append(&mut transaction, entry.map_or(&[], std::slice::from_ref)).await?;
            self.notify(&mut transaction, NOTICE).await?;
            transaction.commit().await?;
            Ok(())
        })
        .await
    }

    /// Adds a daemon that has started, and deletes those that were lost a day ago.
    pub async fn join_fleet(&self, daemon: &str) -> Result<(), StoreError> {
        let now = self.now();
        let old = sql(format!(
            "DELETE FROM daemons WHERE id = $1 OR seen_at < {now} - {KEPT}"
        ));
        self.execute(old.bind(daemon)).await.map(drop)
    }

    /// Writes a daemon's report. Returns the number of the last switch.
    pub async fn report_daemon(
        &self,
        daemon: &str,
        generation: i64,
        record: &str,
    ) -> Result<i64, StoreError> {
        let now = self.now();
        let report = sql(format!(
            "INSERT INTO daemons (id, started_at, seen_at, generation, record) VALUES ($1, {now}, {now}, $2, $3) \
             ON CONFLICT (id) DO UPDATE SET seen_at = {now}, generation = $2, record = $3 \
             RETURNING (SELECT MAX(generation) FROM fleet)"
        ))
        .bind(daemon)
        .bind(generation)
        .bind(record);
        let newest: Vec<(i64,)> = self.bounded(report.rows(&self.writer)).await?;
        Ok(newest.first().map_or(0, |(newest,)| *newest))
    }

    /// Removes a daemon that stops.
    pub async fn leave_fleet(&self, daemon: &str) -> Result<(), StoreError> {
        let leave = sql("DELETE FROM daemons WHERE id = $1");
        self.execute(leave.bind(daemon)).await.map(drop)
    }

    /// The daemons, by id.
    pub async fn fleet_daemons(&self) -> Result<Vec<FleetDaemonRow>, StoreError> {
        type Row = (String, i64, i64, i64, i64, String);
        let now = self.now();
        let rows: Vec<Row> = self
            .read(sql(format!(
                "SELECT id, started_at, seen_at, {now} - seen_at, generation, record FROM daemons ORDER BY id"
            )))
            .await?;
        let read = |(id, started_at, seen_at, silent_ms, generation, record): Row| FleetDaemonRow {
            id,
            started_at: started_at.unsigned_abs(),
            seen_at: seen_at.unsigned_abs(),
            silent_ms,
            generation,
            record,
        };
        Ok(rows.into_iter().map(read).collect())
    }
}
