//! The audit log as rows.

use sqlx::{Database, Encode, QueryBuilder, Type};

use crate::ledger::{Draft, Entry};

/// Which entries are wanted; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this workspace's things.
    pub workspace: Option<String>,
    /// By this token, or `squall`.
    pub actor: Option<String>,
    /// What was done.
    pub action: Option<String>,
    /// To what.
    pub target: Option<String>,
    /// `done`, `refused` or `failed`.
    pub outcome: Option<String>,
    /// At or after this point, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// What a row of `audit` is read as.
pub(super) type Row = (
    i64,
    i64,
    String,
    String,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
    String,
    String,
    String,
    String,
);

/// The columns of [`Row`].
pub(super) const COLUMNS: &str = "number, at, workspace, actor, source, action, target, before, after, \
                                  outcome, detail, previous, hash";

/// The end of the chain: its number and hash.
pub(super) const HEAD: &str = "SELECT number, hash FROM audit_head WHERE one = 1";

impl From<Row> for Entry {
    fn from(
        (
            number,
            at,
            workspace,
            actor,
            source,
            action,
            target,
            before,
            after,
            outcome,
            detail,
            previous,
            hash,
        ): Row,
    ) -> Self {
        Self {
            number,
            at,
            workspace,
            actor,
            source,
            action,
            target,
            before,
            after,
            outcome,
            detail,
            previous,
            hash,
        }
    }
}

/// What a database must be able to take.
pub(super) trait TakesAudit: Database
where
    for<'v> &'v str: Encode<'v, Self> + Type<Self>,
    for<'v> Option<&'v str>: Encode<'v, Self> + Type<Self>,
    for<'v> String: Encode<'v, Self> + Type<Self>,
    for<'v> i64: Encode<'v, Self> + Type<Self>,
{
    /// The statement that writes entries.
    fn append(entries: &[Entry]) -> QueryBuilder<Self> {
        let mut query = QueryBuilder::new(format!("INSERT INTO audit ({COLUMNS}) "));
        query.push_values(entries, |mut values, entry| {
            values
                .push_bind(entry.number)
                .push_bind(entry.at)
                .push_bind(entry.workspace.as_str())
                .push_bind(entry.actor.as_str())
                .push_bind(entry.source.as_str())
                .push_bind(entry.action.as_str())
                .push_bind(entry.target.as_str())
                .push_bind(entry.before.as_deref())
                .push_bind(entry.after.as_deref())
                .push_bind(entry.outcome.as_str())
                .push_bind(entry.detail.as_str())
                .push_bind(entry.previous.as_str())
                .push_bind(entry.hash.as_str());
        });
        query
    }

    /// The statement that moves the head behind an entry.
    fn move_head(last: &Entry) -> QueryBuilder<Self> {
        let mut query = QueryBuilder::new("UPDATE audit_head SET number = ");
        query.push_bind(last.number).push(", hash = ");
        query.push_bind(last.hash.as_str()).push(" WHERE one = 1");
        query
    }

    /// The statement that reads entries, newest first.
    fn entries(filter: &AuditFilter, before: Option<i64>, limit: i64) -> QueryBuilder<Self> {
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM audit WHERE TRUE"));
        if let Some(before) = before {
            query.push(" AND number < ").push_bind(before);
        }
        if let Some(since) = filter.since_ms {
            let since = i64::try_from(since).unwrap_or(i64::MAX);
            query.push(" AND at >= ").push_bind(since);
        }
        for (column, wanted) in [
            ("workspace", &filter.workspace),
            ("actor", &filter.actor),
            ("action", &filter.action),
            ("target", &filter.target),
            ("outcome", &filter.outcome),
        ] {
            if let Some(wanted) = wanted {
                query.push(format!(" AND {column} = "));
                query.push_bind(wanted.replace('\0', "\u{fffd}"));
            }
        }
        query.push(" ORDER BY number DESC LIMIT ").push_bind(limit);
        query
    }

    /// The statement that reads entries behind a number, oldest first, whatever their numbers are.
    fn following(number: i64, limit: i64) -> QueryBuilder<Self> {
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM audit WHERE number > "));
        query.push_bind(number);
        query.push(" ORDER BY number LIMIT ").push_bind(limit);
        query
    }
}

impl TakesAudit for sqlx::Sqlite {}

impl TakesAudit for sqlx::Postgres {}

/// The entries of drafts behind the end of the chain.
pub(super) fn chained(drafts: &[Draft], (number, hash): (i64, String)) -> Vec<Entry> {
    let mut head = (number, hash);
    let mut entries = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let entry = Entry::after(draft, head.0, &head.1);
        head = (entry.number, entry.hash.clone());
        entries.push(entry);
    }
    entries
}
