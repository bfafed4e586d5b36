//! The place of a store: `sqlite`, `sqlite:PATH`, `postgres://…`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use sqlx::ConnectOptions as _;
use sqlx::any::AnyConnectOptions;
use sqlx::postgres::PgConnectOptions;

/// Default file in `$SQUALL_HOME`.
const FILE: &str = "squall.db";

/// The place of a store. Printing it shows no password.
#[derive(Clone, PartialEq, Eq)]
pub enum StorePlace {
    /// In this process; it ends with the process.
    Memory,
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database.
    Postgres {
        /// The URL, with its password.
        url: String,
        /// Server and database, without a password.
        shown: String,
    },
}

/// A text that is not a store; the error does not repeat it, as it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "this names no store{0}; write `sqlite`, `sqlite:PATH` or `postgres://user:password@host/database`"
)]
pub struct BadStoreUrl(String);

impl StorePlace {
    /// Reads `sqlite` (a file in `home`), `sqlite:PATH` (relative to `base`), `sqlite::memory:` or
    /// `postgres://…`.
    pub fn parse(text: &str, home: &Path, base: &Path) -> Result<Self, BadStoreUrl> {
        match text.split_once(':') {
            None if text == "sqlite" => Ok(Self::in_home(home)),
            Some(("sqlite", ":memory:")) => Ok(Self::Memory),
            Some(("sqlite", path)) => {
                // Other programs write `sqlite:///var/squall.db`.
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    return Err(BadStoreUrl(String::new()));
                }
                Ok(Self::Sqlite(base.join(path).components().collect()))
            }
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Self::postgres(text)
                    .map_err(|_| BadStoreUrl(" that PostgreSQL could be reached by".to_owned()))
            }
            _ => Err(BadStoreUrl(String::new())),
        }
    }

    fn postgres(text: &str) -> Result<Self, sqlx::Error> {
        let mut url = AnyConnectOptions::from_str(text)?.database_url;
        let options = PgConnectOptions::from_url(&url)?;
        url.query_pairs_mut()
            .append_pair("application_name", "squall");
        let server = match options.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", options.get_host(), options.get_port()),
        };
        let database = options.get_database();
        Ok(Self::Postgres {
            url: url.into(),
            shown: server + &database.map_or(String::new(), |name| format!("/{name}")),
        })
    }

    /// The default file in `home`.
    pub fn in_home(home: &Path) -> Self {
        Self::Sqlite(home.join(FILE))
    }

    pub(super) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("in memory"),
            Self::Sqlite(path) => write!(f, "SQLite, {}", path.display()),
            Self::Postgres { shown, .. } => write!(f, "PostgreSQL at {shown}"),
        }
    }
}

impl fmt::Debug for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StorePlace({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_by_a_word_a_file_or_a_url() {
        let parse = |text: &str| {
            StorePlace::parse(text, Path::new("/home/squall"), Path::new("/etc/squall"))
                .map(|place| place.to_string())
                .map_err(|error| error.to_string())
        };
        for (text, place) in [
            ("sqlite", "SQLite, /home/squall/squall.db"),
            ("sqlite:./a.db", "SQLite, /etc/squall/a.db"),
            ("sqlite:/var/a.db", "SQLite, /var/a.db"),
            ("sqlite:///var/a.db", "SQLite, /var/a.db"),
            ("sqlite::memory:", "in memory"),
            (
                "postgres://u:secret@db.example/squall",
                "PostgreSQL at db.example:5432/squall",
            ),
            (
                "postgresql://u@[::1]:5433/squall",
                "PostgreSQL at [::1]:5433/squall",
            ),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(place), "{text}");
        }
        for text in [
            "",
            "sqlite:",
            "mysql://a/b",
            "postgres",
            "postgres:secret",
            "postgres://a:b:c@/:x",
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("write `sqlite`"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn another_password_is_another_place_and_is_shown_nobody() {
        let place =
            |url: &str| StorePlace::parse(url, Path::new("/"), Path::new("/")).expect("a URL");
        let (one, two) = (place("postgres://u:one@h/d"), place("postgres://u:two@h/d"));
        assert_ne!(one, two);
        assert!(!format!("{one:?} {one}").contains("one"), "{one:?}");
    }
}
