//! The tables, as they came to be: one script a version, for each database.

use super::error::Cause;

/// A step from one version of the tables to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Migration {
    /// The version it leads to, from 1 without holes.
    pub(super) version: i64,
    pub(super) sqlite: &'static str,
    pub(super) postgres: &'static str,
}

/// All of them, in order. A script that has been released is never changed.
const ALL: [Migration; 8] = [
    Migration {
        version: 1,
        sqlite: include_str!("migrations/sqlite/0001_documents.sql"),
        postgres: include_str!("migrations/postgres/0001_documents.sql"),
    },
    Migration {
        version: 2,
        sqlite: include_str!("migrations/sqlite/0002_exchanges.sql"),
        postgres: include_str!("migrations/postgres/0002_exchanges.sql"),
    },
    Migration {
        version: 3,
        sqlite: include_str!("migrations/sqlite/0003_tokens.sql"),
        postgres: include_str!("migrations/postgres/0003_tokens.sql"),
    },
    Migration {
        version: 4,
        sqlite: include_str!("migrations/sqlite/0004_runs.sql"),
        postgres: include_str!("migrations/postgres/0004_runs.sql"),
    },
    Migration {
        version: 5,
        sqlite: include_str!("migrations/sqlite/0005_idempotency.sql"),
        postgres: include_str!("migrations/postgres/0005_idempotency.sql"),
    },
    Migration {
        version: 6,
        sqlite: include_str!("migrations/sqlite/0006_audit.sql"),
        postgres: include_str!("migrations/postgres/0006_audit.sql"),
    },
    Migration {
        version: 7,
        sqlite: include_str!("migrations/sqlite/0007_recordings.sql"),
        postgres: include_str!("migrations/postgres/0007_recordings.sql"),
    },
    Migration {
        version: 8,
        sqlite: include_str!("migrations/sqlite/0008_run_exchanges.sql"),
        postgres: include_str!("migrations/postgres/0008_run_exchanges.sql"),
    },
];

/// What says which version the tables have.
pub(super) const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS squall_schema (version BIGINT PRIMARY KEY)";

/// The version of a store; `NULL` when it is new.
pub(super) const VERSION: &str = "SELECT MAX(version) FROM squall_schema";

/// What is left to do for a store of version `found`. An error if it is beyond what is known here.
pub(super) fn after(found: i64) -> Result<&'static [Migration], Cause> {
    let known = ALL.last().map_or(0, |last| last.version);
    if found > known {
        return Err(Cause::Newer { found, known });
    }
    let done = usize::try_from(found).unwrap_or_default();
    Ok(ALL.get(done..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_count_from_one_without_holes() {
        let versions: Vec<i64> = ALL.iter().map(|one| one.version).collect();
        let counted: Vec<i64> = (1..).take(ALL.len()).collect();
        assert_eq!(versions, counted);
    }
}
