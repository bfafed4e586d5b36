//! Exchanges as rows: the JSON entry, and the columns that filters use.

use std::sync::Arc;

use serde_json::json;
use squall_journal::id::ExchangeId;
use squall_journal::record::{ExchangeRecord, RuleOutcome, RuleRecord};
use squall_journal::ring::{Entry, Filter, StatusFilter, Traits, host_and_port};
use squall_journal::scopes::Scopes;

use super::statement::{Statement, signed, sql};
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
            tools: storable(&tools(record)),
            host: storable(&host),
            authority: storable(&authority),
            status: record.status.map(i32::from),
            faults: storable(&faults(record)),
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

fn tools(record: &ExchangeRecord) -> String {
    let mut tools = String::new();
    let called = record.llm.iter().flat_map(|llm| &llm.tool_calls);
    let told_of = record.rules.iter().flat_map(|rule| &rule.told_of);
    let named = record.tool.iter().chain(&record.more_tools);
    for tool in named.chain(called).chain(told_of) {
        tools.push_str(if tools.is_empty() { "\n" } else { "" });
        tools.push_str(tool);
        tools.push('\n');
    }
    tools
}

fn faults(record: &ExchangeRecord) -> String {
    let mut faults = String::new();
    for rule in applied(record) {
        for name in [&rule.rule, &rule.mode] {
            if !faults.contains(&format!(" {name} ")) {
                faults.push_str(if faults.is_empty() { " " } else { "" });
                faults.push_str(name);
                faults.push(' ');
            }
        }
    }
    faults
}

fn applied(record: &ExchangeRecord) -> impl Iterator<Item = &RuleRecord> {
    let rules = record.rules.iter();
    rules.filter(|rule| rule.outcome == RuleOutcome::Applied)
}

/// PostgreSQL supports no NUL in a text. The JSON entry escapes it, and filters also check the entry.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A stored exchange.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredExchange {
    /// Its id.
    pub id: ExchangeId,
    /// The exchange, as the API shows it.
    pub record: ExchangeRecord,
    more_tools: Box<[Arc<str>]>,
}

impl StoredExchange {
    /// An exchange; `None` if it has no id.
    pub fn new(record: ExchangeRecord) -> Option<Self> {
        let more_tools = record.more_tools.iter().map(|tool| tool.as_str().into());
        Some(Self {
            id: record.id.parse().ok()?,
            more_tools: more_tools.collect(),
            record,
        })
    }

    /// Reads an entry; `None` for one that this version cannot read.
    fn read(entry: &str) -> Option<Self> {
        let record: ExchangeRecord = serde_json::from_str(entry)
            .inspect_err(|error| tracing::warn!(%error, "an exchange in the store cannot be read"))
            .ok()?;
        Self::new(record)
    }
}

impl Entry for StoredExchange {
    fn id(&self) -> ExchangeId {
        self.id
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }

    fn traits(&self) -> Traits<'_> {
        Traits {
            scope: &self.record.scope,
            kind: self.record.kind,
            tool: self.record.tool.as_deref(),
            more_tools: &self.more_tools,
            tool_calls: self.record.llm.as_ref().map_or(&[], |llm| &llm.tool_calls),
            url: &self.record.url,
            status: self.record.status,
            outcome: self.record.outcome,
        }
    }

    fn had_fault(&self, name: &str) -> bool {
        applied(&self.record).any(|rule| name == "*" || name == rule.mode || name == rule.rule)
    }

    fn told_of(&self, tool: &str) -> bool {
        let mut told_of = self.record.rules.iter().flat_map(|rule| &rule.told_of);
        told_of.any(|told| told == tool)
    }
}

/// Limits of stored exchanges and runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Greatest number of exchanges.
    pub exchanges: u64,
    /// Exchanges that began before this are deleted, milliseconds since 1970.
    pub since_ms: u64,
    /// Greatest number of finished runs of each workspace.
    pub runs: u64,
}

impl Keeping {
    /// The lowest possible id of an exchange that began at [`Self::since_ms`].
    fn oldest(self) -> String {
        ExchangeId::new(self.since_ms, 0, 0).to_string()
    }
}

/// Most exchanges deleted in one transaction: other writers wait for it.
const PRUNED_AT_ONCE: i64 = 1_000;

/// Most workspaces in a statement.
const MOST_NAMED: usize = 64;

impl Store {
    /// Writes exchanges, all or none; those already stored stay unchanged. Returns the number of new ones.
    pub async fn keep(&self, rows: &[ExchangeRow]) -> Result<u64, StoreError> {
        self.bounded(async {
            let mut transaction = self.begin().await?;
            let mut kept = 0;
            for rows in rows.chunks(AT_ONCE) {
                kept += insert(rows).execute(&mut *transaction).await?;
            }
            transaction.commit().await?;
            Ok(kept)
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
    ) -> Result<Vec<StoredExchange>, StoreError> {
        if self.is_blank() {
            return Ok(Vec::new());
        }
        self.bounded(async {
            let mut found = Vec::new();
            loop {
                let page = page(filter, before, limit);
                let rows: Vec<(String, String)> = page.rows(&self.reader).await?;
                let was_last = rows.len() < limit;
                before = rows.last().and_then(|(id, _)| id.parse().ok());
                let read = rows
                    .iter()
                    .filter_map(|(_, entry)| StoredExchange::read(entry));
                found.extend(read.filter(|one| filter.holds(one)));
                if was_last || found.len() >= limit || before.is_none() {
                    found.truncate(limit);
                    return Ok(found);
                }
            }
        })
        .await
    }

    /// One exchange; `None` when it is not stored.
    pub async fn exchange(&self, id: ExchangeId) -> Result<Option<StoredExchange>, StoreError> {
        let one = sql("SELECT entry FROM exchanges WHERE id = $1").bind(id.to_string());
        let rows: Vec<(String,)> = self.read(one).await?;
        Ok(rows
            .first()
            .and_then(|(entry,)| StoredExchange::read(entry)))
    }

    /// Deletes the oldest exchanges beyond the limits, at most a thousand, and finished runs with their data.
    /// Returns whether there are more.
    pub async fn prune(&self, keeping: Keeping) -> Result<bool, StoreError> {
        if self.is_blank() {
            return Ok(false);
        }
        let old = sql(
            "DELETE FROM exchanges WHERE id IN (SELECT id FROM exchanges WHERE id <= \
             (SELECT MAX(id) FROM (SELECT $1 AS id UNION ALL SELECT * FROM \
             (SELECT id FROM exchanges ORDER BY id DESC LIMIT 1 OFFSET $2) AS beyond) AS ends) \
             ORDER BY id LIMIT $3)",
        )
        .bind(keeping.oldest())
        .bind(signed(keeping.exchanges))
        .bind(PRUNED_AT_ONCE);
        let pruned = self.execute(old).await?;
        let more = pruned >= PRUNED_AT_ONCE.unsigned_abs();
        Ok(self.prune_runs(keeping.runs).await? || more)
    }
}

/// Writes rows; those already stored stay unchanged.
fn insert(rows: &[ExchangeRow]) -> Statement {
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

/// Reads entries, newest first: all that match `filter`, and possibly a few more.
fn page(filter: &Filter, before: Option<ExchangeId>, limit: usize) -> Statement {
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
fn of_workspace(query: &mut Statement, workspace: &str) {
    query.push("(scope = ").push_bind(workspace);
    query.push(" OR (scope >= ");
    query.push_bind(format!("{workspace}."));
    // The character that follows the dot in ASCII.
    query.push(" AND scope < ");
    query.push_bind(format!("{workspace}/")).push("))");
}

/// The databases differ in their search functions, but both have `REPLACE`.
fn contains(query: &mut Statement, column: &str, text: &str) {
    query.push("REPLACE(").push(column).push(", ");
    query
        .push_bind(storable(text))
        .push(", '') <> ")
        .push(column);
}
