//! Errors of the store, with a remedy.

use std::time::Duration;

use super::Place;

/// Errors of the store. Every message has the cause and a remedy.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be reached.
    #[error(
        "the store ({place}) does not answer: {cause}; start it, or set another one as `store.url`"
    )]
    Unreachable {
        /// Its place.
        place: Place,
        /// The error of the attempt.
        cause: String,
    },
    /// The disk is full.
    #[error("the store ({place}) is full: {cause}; make room, or store less with `store.retain`")]
    Full {
        /// Its place.
        place: Place,
        /// The database's message.
        cause: String,
    },
    /// The store is overloaded.
    #[error("the store ({place}) is busy: {cause}; try again")]
    Busy {
        /// Its place.
        place: Place,
        /// The database's message.
        cause: String,
    },
    /// The store denies access, or writing.
    #[error("the store ({place}) cannot be used: {cause}; {instead}")]
    Unusable {
        /// Its place.
        place: Place,
        /// The database's message.
        cause: String,
        /// The remedy.
        instead: &'static str,
    },
    /// A newer Squall wrote it.
    #[error(
        "the store ({place}) has tables of version {found}, and this Squall supports up to {known}; \
         use the newer Squall, or another `store.url`"
    )]
    Newer {
        /// Its place.
        place: Place,
        /// The version of its tables.
        found: i64,
        /// The newest version this program knows.
        known: i64,
    },
    /// The database rejected a query: a bug in Squall, or its tables were changed.
    #[error(
        "the store ({place}) refused: {cause}; if its tables were changed by hand, restore them"
    )]
    Refused {
        /// Its place.
        place: Place,
        /// The database's message.
        cause: String,
    },
}

impl StoreError {
    pub(super) fn new(place: &Place, cause: Cause) -> Self {
        let place = place.clone();
        match cause {
            Cause::Newer { found, known } => Self::Newer {
                place,
                found,
                known,
            },
            Cause::Silent(patience) => Self::Unreachable {
                place,
                cause: format!("nothing came within {patience:?}"),
            },
            Cause::File(cause) => Self::Unusable {
                place,
                cause: cause.to_string(),
                instead: "give it a directory that can be written, or another `store.url`",
            },
            Cause::Occupied => Self::Unusable {
                place,
                cause: "another daemon uses it, and a SQLite file can have only one daemon"
                    .to_owned(),
                instead: "stop that one, give this one another SQUALL_HOME or `store.url`, or let both share \
                          PostgreSQL",
            },
            Cause::Sql(error) => Self::sql(place, &error),
        }
    }

    fn sql(place: Place, error: &sqlx::Error) -> Self {
        let sqlx::Error::Database(said) = error else {
            let cause = match error {
                sqlx::Error::PoolTimedOut => "no connection could be had in time".to_owned(),
                other => other.to_string(),
            };
            return match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
                | sqlx::Error::BeginFailed
                | sqlx::Error::Protocol(_) => Self::Unreachable { place, cause },
                _ => Self::Refused { place, cause },
            };
        };
        let cause = said.message().to_owned();
        let code = said.code().unwrap_or_default();
        let sort = if place.is_postgres() {
            of_postgres(&code)
        } else {
            of_sqlite(&code)
        };
        match sort {
            Sort::Unreachable => Self::Unreachable { place, cause },
            Sort::Full => Self::Full { place, cause },
            Sort::Busy => Self::Busy { place, cause },
            Sort::Unusable(instead) => Self::Unusable {
                place,
                cause,
                instead,
            },
            Sort::Refused => Self::Refused { place, cause },
        }
    }
}

/// Why a query failed, without the place of the store.
#[derive(Debug)]
pub(super) enum Cause {
    Sql(sqlx::Error),
    File(std::io::Error),
    Newer {
        found: i64,
        known: i64,
    },
    Silent(Duration),
    /// Another daemon owns the file.
    Occupied,
}

impl Cause {
    pub(super) fn silent(patience: Duration) -> Self {
        Self::Silent(patience)
    }
}

impl From<sqlx::Error> for Cause {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<std::io::Error> for Cause {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Unreachable,
    Full,
    Busy,
    Unusable(&'static str),
    Refused,
}

/// By SQLite's result codes; the low byte is the primary one.
fn of_sqlite(code: &str) -> Sort {
    match code.parse::<i32>().map(|code| code & 0xff) {
        Ok(5 | 6) => Sort::Busy,
        Ok(13) => Sort::Full,
        Ok(3 | 8 | 23) => Sort::Unusable(
            "make the file and its directory writable, or name another with `store.url`",
        ),
        Ok(14) => Sort::Unusable("make its directory, or name another file with `store.url`"),
        Ok(11 | 26) => Sort::Unusable(
            "it is no SQLite database, or a damaged one: restore it, or name another file with `store.url`",
        ),
        Ok(10) => Sort::Unreachable,
        _ => Sort::Refused,
    }
}

/// By SQLSTATE, PostgreSQL's appendix A.
fn of_postgres(code: &str) -> Sort {
    match code {
        "53100" => Sort::Full,
        "53300" | "40001" | "40P01" | "55P03" => Sort::Busy,
        "57P01" | "57P02" | "57P03" => Sort::Unreachable,
        "28P01" | "28000" => {
            Sort::Unusable("give `store.url` a user and password that the server takes")
        }
        "3D000" => Sort::Unusable("create the database, or name another in `store.url`"),
        "42501" | "25006" => Sort::Unusable(
            "let the user of `store.url` create and write tables there, on the primary server",
        ),
        code if code.starts_with("08") => Sort::Unreachable,
        code if code.starts_with("53") => Sort::Full,
        _ => Sort::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_s_code_says_what_to_do() {
        for (code, sort) in [
            ("5", Sort::Busy),
            ("517", Sort::Busy), // SQLITE_BUSY_SNAPSHOT
            ("13", Sort::Full),
            ("1", Sort::Refused),
            ("", Sort::Refused),
        ] {
            assert_eq!(of_sqlite(code), sort, "{code}");
        }
        assert!(matches!(of_sqlite("1032"), Sort::Unusable(_)), "read-only");
        for (code, sort) in [
            ("53100", Sort::Full),
            ("53300", Sort::Busy),
            ("57P01", Sort::Unreachable),
            ("08006", Sort::Unreachable),
            ("42P01", Sort::Refused),
        ] {
            assert_eq!(of_postgres(code), sort, "{code}");
        }
        assert!(
            matches!(of_postgres("28P01"), Sort::Unusable(_)),
            "password"
        );
    }
}
