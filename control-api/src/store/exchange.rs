//! Exchanges as rows: the JSON entry, and the columns that filters use.

use std::time::Duration;

use serde_json::json;
use squall_journal::id::ExchangeId;
use squall_journal::record::{ExchangeRecord, RuleOutcome};
use squall_journal::ring::{Filter, StatusFilter, host_and_port};
use squall_journal::scopes::Scopes;

use super::statement::{SqlStatement, signed, sql};
use super::{Store, StoreError, at_most};

/// Rows per statement: enough to make the round trip negligible.
const AT_ONCE: usize = 64;

/// The row of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeRow {
    id: String,
    scope: String,
    kind: &'static str,
    tools: String,
    host: String,
    authority: String,
    status: Option<i32>,
    faults: String,
    entry: String,
}

impl ExchangeRow {
    /// The row of an exchange that has ended.
    pub fn of(record: &ExchangeRecord) -> Self {
        let (host, authority) = at(&record.url);
        Self {
            id: record.id.clone(),
            scope: storable(&record.scope),
            kind: record.kind.as_str(),
            tools: storable(&between('\n', tools(record))),
            host: storable(&host),
            authority: storable(&authority),
            status: record.status.map(i32::from),
            faults: storable(&between(' ', faults(record))),
            entry: json!(record).to_string(),
        }
    }
}

/// Host and authority, in the form that filters compare.
fn at(url: &str) -> (String, String) {
    let (host, port) = host_and_port(url);
    let host = host.to_ascii_lowercase();
    let authority = match port {
        Some(port) => format!("{host}:{port}"),
        None => host.clone(),
    };
    (host, authority)
}

fn tools(record: &ExchangeRecord) -> impl Iterator<Item = &String> {
    let called = record.llm.iter().flat_map(|llm| &llm.tool_calls);
    let changed = record.rules.iter().flat_map(|rule| &rule.told_of);
    let named = record.tool.iter().chain(&record.more_tools);
    named.chain(called).chain(changed)
}

/// Ids and modes of the applied rules.
fn faults(record: &ExchangeRecord) -> impl Iterator<Item = &String> {
    let rules = record.rules.iter();
    let applied = rules.filter(|rule| rule.outcome == RuleOutcome::Applied);
    applied.flat_map(|rule| [&rule.rule, &rule.mode])
}

/// Distinct names, each between two separators; empty for none.
fn between<'a>(separator: char, names: impl Iterator<Item = &'a String>) -> String {
    let mut text = String::new();
    for name in names {
        if !text.contains(&format!("{separator}{name}{separator}")) {
            text.extend(text.is_empty().then_some(separator));
            text.push_str(name);
            text.push(separator);
        }
    }
    text
}

/// PostgreSQL supports no NUL in a text. The JSON entry escapes it.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Limits of stored exchanges and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retain {
    /// Greatest number of exchanges. Default 100,000.
    pub exchanges: u64,
    /// Greatest age, by their start. Default seven days.
    pub age: Duration,
    /// Greatest number of finished runs of each workspace, at least 1. Default 1,000.
    pub runs: u64,
}

impl Default for Retain {
    fn default() -> Self {
        Self {
            exchanges: 100_000,
            age: Duration::from_hours(7 * 24),
            runs: 1_000,
        }
    }
}

/// Most exchanges deleted in one transaction: other writers wait for it.
const PRUNED_AT_ONCE: i64 = 1_000;

/// Most responses for idempotency keys; the oldest are deleted.
const KEYS: i64 = 10_000;

/// Most workspaces in a statement.
const MOST_NAMED: usize = 64;

impl Store {
    /// Writes exchanges, all or none; those already stored stay unchanged. Returns the number of new ones.
    pub async fn keep(&self, rows: &[ExchangeRow]) -> Result<u64, StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            let mut stored = 0;
            for rows in rows.chunks(AT_ONCE) {
                stored += insert(rows).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(stored)
        })
        .await
    }

    /// At most `limit` exchanges that match `filter`, newest first and older than `before`, of every daemon that
    /// writes to this store.
    pub async fn exchanges(
        &self,
        filter: &Filter,
        mut before: Option<ExchangeId>,
        limit: usize,
    ) -> Result<Vec<ExchangeRecord>, StoreError> {
        let mut found = Vec::new();
        loop {
            let rows: Vec<(String, String)> = self.read(page(filter, before, limit)).await?;
            before = rows.last().and_then(|(id, _)| id.parse().ok());
            let read = rows.iter().filter_map(|(_, entry)| read(entry));
            // The statement names a limited number of workspaces.
            found.extend(read.filter(|record| filter.scopes.hold(&record.scope)));
            if rows.len() < limit || found.len() >= limit || before.is_none() {
                found.truncate(limit);
                return Ok(found);
            }
        }
    }

    /// One exchange; `None` when it is not stored.
    pub async fn exchange(&self, id: ExchangeId) -> Result<Option<ExchangeRecord>, StoreError> {
        let one = sql("SELECT entry FROM exchanges WHERE id = $1").bind(id.to_string());
        let rows: Vec<(String,)> = self.read(one).await?;
        Ok(rows.first().and_then(|(entry,)| read(entry)))
    }

    /// Deletes the oldest exchanges beyond the limits, at most a thousand, finished runs with their data, and expired
    /// idempotency keys.
    /// Returns whether there are more. `now` is milliseconds since 1970.
    pub async fn prune(&self, retain: Retain, now: u64) -> Result<bool, StoreError> {
        if self.is_blank() {
            return Ok(false);
        }
        let age = u64::try_from(retain.age.as_millis()).unwrap_or(u64::MAX);
        let oldest = ExchangeId::new(now.saturating_sub(age), 0, 0);
        let old = sql(
            "DELETE FROM exchanges WHERE id IN (SELECT id FROM exchanges WHERE id <= \
             (SELECT MAX(id) FROM (SELECT $1 AS id UNION ALL SELECT * FROM \
             (SELECT id FROM exchanges ORDER BY id DESC LIMIT 1 OFFSET $2) AS beyond) AS ends) \
             ORDER BY id LIMIT $3)",
        )
        .bind(oldest.to_string())
        .bind(signed(retain.exchanges))
        .bind(PRUNED_AT_ONCE);
        let pruned = self.execute(old).await?;
        let more = pruned >= PRUNED_AT_ONCE.unsigned_abs();
        self.prune_keys(now, KEYS).await?;
        Ok(self.prune_runs(retain.runs).await? || more)
    }
}

/// Reads an entry; `None` for one that this version cannot read.
fn read(entry: &str) -> Option<ExchangeRecord> {
    serde_json::from_str(entry)
        .inspect_err(|error| tracing::warn!(%error, "an exchange in the store cannot be read"))
        .ok()
}

/// Writes rows; those already stored stay unchanged.
fn insert(rows: &[ExchangeRow]) -> SqlStatement {
    let mut query = sql("INSERT INTO exchanges \
         (id, scope, kind, tools, host, authority, status, faults, entry) VALUES ");
    for (at, row) in rows.iter().enumerate() {
        query.push(if at == 0 { "(" } else { ", (" });
        query.push_bind(row.id.as_str());
        let (scope, tools) = (row.scope.as_str(), row.tools.as_str());
        for text in [scope, row.kind, tools, &row.host, &row.authority] {
            query.push(", ").push_bind(text);
        }
        query.push(", ").push_bind(row.status);
        query.push(", ").push_bind(row.faults.as_str());
        query.push(", ").push_bind(row.entry.as_str()).push(")");
    }
    query.push(" ON CONFLICT (id) DO NOTHING");
    query.is_kept = rows.len() == AT_ONCE;
    query
}

/// Reads entries, newest first, that match `filter`; of more than [`MOST_NAMED`] workspaces, possibly a few more.
fn page(filter: &Filter, before: Option<ExchangeId>, limit: usize) -> SqlStatement {
    let mut query = sql("SELECT id, entry FROM exchanges WHERE TRUE");
    if let Some(before) = before {
        query.push(" AND id < ").push_bind(before.to_string());
    }
    if let Some(since) = filter.since_ms {
        let first = ExchangeId::new(since, 0, 0);
        query.push(" AND id >= ").push_bind(first.to_string());
    }
    match &filter.scopes {
        Scopes::All => {}
        Scopes::Of(workspace) => {
            query.push(" AND ");
            of_workspace(&mut query, workspace);
        }
        Scopes::OfNone(workspaces) => {
            // Databases limit the depth of expressions; the other workspaces are filtered out afterwards.
            for workspace in workspaces.names().iter().take(MOST_NAMED) {
                query.push(" AND NOT ");
                of_workspace(&mut query, workspace);
            }
        }
    }
    if let Some(scope) = &filter.scope {
        query.push(" AND scope = ").push_bind(storable(scope));
    }
    if let Some(kind) = filter.kind {
        query.push(" AND kind = ").push_bind(kind.as_str());
    }
    if let Some(tool) = &filter.tool {
        query.push(" AND ");
        contains(&mut query, "tools", &format!("\n{tool}\n"));
    }
    if let Some(run) = &filter.run {
        query.push(" AND ");
        // Within a text of the entry, its quotes would be escaped.
        contains(&mut query, "entry", &format!("\"run\":{}", json!(run)));
    }
    if let Some(host) = &filter.host {
        let host = storable(&host.to_ascii_lowercase());
        query.push(" AND (host = ").push_bind(host.clone());
        query.push(" OR authority = ").push_bind(host).push(")");
    }
    match filter.fault.as_deref() {
        None => {}
        Some("*") => {
            query.push(" AND faults <> ''");
        }
        Some(fault) => {
            query.push(" AND faults <> '' AND ");
            contains(&mut query, "faults", &format!(" {fault} "));
        }
    }
    match filter.status {
        None => {}
        Some(StatusFilter::Exactly(status)) => {
            query.push(" AND status = ").push_bind(i32::from(status));
        }
        Some(StatusFilter::Class(class)) => {
            let first = i32::from(class) * 100;
            query.push(" AND status >= ").push_bind(first);
            query.push(" AND status < ").push_bind(first + 100);
        }
        Some(StatusFilter::NoAnswer) => {
            query.push(" AND status IS NULL");
        }
    }
    query.push(" ORDER BY id DESC LIMIT ");
    query.push_bind(at_most(limit));
    query
}

/// Scopes of a workspace: its name, alone or followed by a dot.
fn of_workspace(query: &mut SqlStatement, workspace: &str) {
    query.push("(scope = ").push_bind(workspace);
    query.push(" OR (scope >= ");
    query.push_bind(format!("{workspace}."));
    // The character that follows the dot in ASCII.
    query.push(" AND scope < ");
    query.push_bind(format!("{workspace}/")).push("))");
}

/// The databases differ in their search functions, but both have `REPLACE`.
fn contains(query: &mut SqlStatement, column: &str, text: &str) {
    query.push("REPLACE(").push(column).push(", ");
    query
        .push_bind(storable(text))
        .push(", '') <> ")
        .push(column);
}
