//! Errors of the store, with a remedy.

use std::fmt;

use super::StorePlace;

/// An error of the store. Its message has the cause and a remedy.
#[derive(Debug, Clone)]
pub struct StoreError {
    /// The kind of failure, which decides the remedy.
    pub kind: StoreFailure,
    place: StorePlace,
    cause: String,
}

/// The kind of a failure of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreFailure {
    /// The store cannot be reached.
    Unreachable,
    /// The disk is full.
    Full,
    /// The store is overloaded.
    Busy,
    /// The store denies access or writing, or a newer Squall wrote it; with the remedy.
    Unusable(&'static str),
    /// The database rejected a query: a bug in Squall, or its tables were changed.
    Rejected,
}

impl std::error::Error for StoreError {}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, remedy) = match self.kind {
            StoreFailure::Unreachable => (
                "does not answer",
                "start it, or set another one as `store.url`",
            ),
            StoreFailure::Full => ("is full", "make room, or store less with `store.retain`"),
            StoreFailure::Busy => ("is busy", "try again"),
            StoreFailure::Unusable(remedy) => ("cannot be used", remedy),
            StoreFailure::Rejected => (
                "rejected a query",
                "if its tables were changed by hand, restore them",
            ),
        };
        write!(
            f,
            "the store ({}) {what}: {}; {remedy}",
            self.place, self.cause
        )
    }
}

/// Why a query failed, without the place of the store.
#[derive(Debug)]
pub(super) enum Cause {
    Sql(sqlx::Error),
    Other(StoreFailure, String),
}

impl From<sqlx::Error> for Cause {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Self {
        let remedy = "give it a directory that can be written, or another `store.url`";
        Self::Other(StoreFailure::Unusable(remedy), error.to_string())
    }
}

impl StoreError {
    pub(super) fn new(place: &StorePlace, cause: Cause) -> Self {
        let (kind, cause) = match cause {
            Cause::Other(kind, cause) => (kind, cause),
            Cause::Sql(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                let kind = if place.is_postgres() {
                    of_postgres(&code)
                } else {
                    of_sqlite(&code)
                };
                (kind, error.message().to_owned())
            }
            Cause::Sql(sqlx::Error::PoolTimedOut) => (
                StoreFailure::Unreachable,
                "no connection could be had in time".to_owned(),
            ),
            Cause::Sql(error) => {
                let kind = match error {
                    sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
                    | sqlx::Error::BeginFailed
                    | sqlx::Error::Protocol(_) => StoreFailure::Unreachable,
                    _ => StoreFailure::Rejected,
                };
                (kind, error.to_string())
            }
        };
        let place = place.clone();
        Self { kind, place, cause }
    }
}

/// By SQLite's result codes; the low byte is the primary one.
fn of_sqlite(code: &str) -> StoreFailure {
    match code.parse::<i32>().map(|code| code & 0xff) {
        Ok(5 | 6) => StoreFailure::Busy,
        Ok(13) => StoreFailure::Full,
        Ok(3 | 8 | 23) => StoreFailure::Unusable(
            "make the file and its directory writable, or name another with `store.url`",
        ),
        Ok(14) => {
            StoreFailure::Unusable("make its directory, or name another file with `store.url`")
        }
        Ok(11 | 26) => StoreFailure::Unusable(
            "it is no SQLite database, or a damaged one: restore it, or name another file with `store.url`",
        ),
        Ok(10) => StoreFailure::Unreachable,
        _ => StoreFailure::Rejected,
    }
}

/// By SQLSTATE, PostgreSQL's appendix A.
fn of_postgres(code: &str) -> StoreFailure {
    match code {
        "53100" => StoreFailure::Full,
        "53300" | "40001" | "40P01" | "55P03" => StoreFailure::Busy,
        "57P01" | "57P02" | "57P03" => StoreFailure::Unreachable,
        "28P01" | "28000" => {
            StoreFailure::Unusable("give `store.url` a user and password that the server takes")
        }
        "3D000" => StoreFailure::Unusable("create the database, or name another in `store.url`"),
        "42501" | "25006" => StoreFailure::Unusable(
            "let the user of `store.url` create and write tables there, on the primary server",
        ),
        code if code.starts_with("08") => StoreFailure::Unreachable,
        code if code.starts_with("53") => StoreFailure::Full,
        _ => StoreFailure::Rejected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_of_a_database_gives_the_kind_of_failure() {
        use StoreFailure::{Busy, Full, Rejected, Unreachable, Unusable};
        for (code, kind) in [
            ("5", Busy),
            ("517", Busy), // SQLITE_BUSY_SNAPSHOT
            ("13", Full),
            ("1", Rejected),
            ("", Rejected),
        ] {
            assert_eq!(of_sqlite(code), kind, "{code}");
        }
        assert!(matches!(of_sqlite("1032"), Unusable(_)), "read-only");
        for (code, kind) in [
            ("53100", Full),
            ("53300", Busy),
            ("57P01", Unreachable),
            ("08006", Unreachable),
            ("42P01", Rejected),
        ] {
            assert_eq!(of_postgres(code), kind, "{code}");
        }
        assert!(matches!(of_postgres("28P01"), Unusable(_)), "password");
    }
}
