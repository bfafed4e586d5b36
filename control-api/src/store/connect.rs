//! Opens stores.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{AnyConnection, AnyPool, ConnectOptions as _, Connection as _};

use super::error::Cause;
use super::migrations::migrate;
use super::{Store, StoreError, StoreFailure, StorePlace, Tenure, bounded};
use crate::claim::{Claim, check_regular};

/// How long to wait for a connection when all are in use, or none can be made.
pub(super) const ACQUIRE: Duration = Duration::from_secs(2);

/// Read-only connections to a SQLite file.
const READERS: u32 = 4;

/// Most connections to PostgreSQL.
const CONNECTIONS: u32 = 5;

/// How long an idle connection to PostgreSQL stays open.
const IDLE: Duration = Duration::from_mins(1);

/// The busy timeout is two seconds. After a power cut the last transactions may be lost, but the file stays
/// consistent; a killed process loses nothing.
const PRAGMAS: &str =
    "PRAGMA busy_timeout = 2000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";

impl Store {
    /// A store that ends with the process. It uses no memory before its first use.
    pub fn in_memory() -> Self {
        let pool = memory();
        Self {
            place: StorePlace::Memory,
            writer: pool.clone(),
            reader: pool,
            _claim: None,
        }
    }

    pub(super) async fn open_as(tenure: Tenure, place: StorePlace) -> Result<Self, StoreError> {
        if place == StorePlace::Memory {
            return Ok(Self::in_memory());
        }
        bounded(&place.clone(), Self::connect(tenure, place)).await
    }

    async fn connect(tenure: Tenure, place: StorePlace) -> Result<Self, Cause> {
        let claim = match &place {
            StorePlace::Sqlite(path) => {
                make_file(path)?;
                (tenure == Tenure::Resident)
                    .then(|| claim(path))
                    .transpose()?
            }
            StorePlace::Memory | StorePlace::Postgres { .. } => None,
        };
        let options = place.options("")?;
        // A pool retries until its timeout and then loses the cause; this connection reports it.
        let mut first = options.connect().await?;
        if !place.is_postgres() {
            prepare(&mut first).await?;
        }
        migrate(&mut first, place.is_postgres()).await?;
        first.close().await?;
        let (writer, reader) = if place.is_postgres() {
            let pool = AnyPoolOptions::new()
                .max_connections(CONNECTIONS)
                .acquire_timeout(ACQUIRE)
                .idle_timeout(IDLE)
                .connect_lazy_with(options);
            (pool.clone(), pool)
        } else {
            let reader = sqlite(READERS).connect_lazy_with(place.options("?mode=ro")?);
            (sqlite(1).connect_lazy_with(options), reader)
        };
        Ok(Self {
            place,
            writer,
            reader,
            _claim: claim.map(Arc::new),
        })
    }
}

impl StorePlace {
    /// Options of a connection to it.
    fn options(&self, parameters: &str) -> Result<AnyConnectOptions, sqlx::Error> {
        sqlx::any::install_default_drivers();
        match self {
            Self::Memory => "sqlite::memory:".parse(),
            Self::Sqlite(path) => {
                let path = path.as_os_str().as_encoded_bytes();
                // Percent-encoded as a whole, so that no URL parser changes it.
                let path =
                    percent_encoding::percent_encode(path, percent_encoding::NON_ALPHANUMERIC);
                format!("sqlite:{path}{parameters}").parse()
            }
            Self::Postgres { url, .. } => url.parse(),
        }
    }
}

/// One connection, which is the whole in-memory database.
fn memory() -> AnyPool {
    let options = StorePlace::Memory.options("").expect("its URL is constant");
    sqlite(1)
        .after_connect(|connection, _| {
            Box::pin(async move {
                migrate(connection, false)
                    .await
                    .map_err(|cause| match cause {
                        Cause::Sql(error) => error,
                        Cause::Other(_, cause) => sqlx::Error::Protocol(cause),
                    })
            })
        })
        .connect_lazy_with(options)
}

/// Connections stay open as long as the store: opening one is expensive.
fn sqlite(most: u32) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(ACQUIRE)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .after_connect(|connection, _| Box::pin(prepare(connection)))
        .after_release(|connection, _| {
            Box::pin(async move {
                // When the disk is full, SQLite rolls back a transaction by itself, but sqlx still counts it.
                // Such a connection would never write again. The ping runs after a rollback in progress.
                connection.ping().await?;
                Ok(!connection.is_in_transaction())
            })
        })
}

async fn prepare(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(PRAGMAS).execute(connection).await?;
    Ok(())
}

/// The journal is private, so only the owner may access its file. SQLite creates the files beside it with the
/// same permissions.
fn make_file(path: &Path) -> io::Result<()> {
    let mut directory = DirBuilder::new();
    let mut file = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        directory.mode(0o700);
        file.mode(0o600);
    }
    if let Some(parent) = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
    {
        directory.recursive(true).create(parent)?;
    }
    for beside in ["", "-wal", "-shm", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(beside);
        check_regular(Path::new(&name))?;
    }
    file.append(true).create(true).open(path)?;
    Ok(())
}

/// The lock of the daemon that owns a file. It is a separate file, because SQLite locks the database file itself.
fn claim(path: &Path) -> Result<Claim, Cause> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    Claim::on(Path::new(&beside))?.ok_or_else(|| {
        let remedy = "stop that one, give this one another SQUALL_HOME or `store.url`, or let both share PostgreSQL";
        let why = "another daemon uses it, and a SQLite file can have only one daemon";
        Cause::Other(StoreFailure::Unusable(remedy), why.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::statement::sql;
    use crate::store::{DEFAULT_WORKSPACE, DocumentKey, DocumentKind, DocumentText, WriteError};

    #[tokio::test]
    async fn a_full_disk_leaves_what_was_there_and_nothing_half_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("squall.db");
        let store = Store::open(StorePlace::Sqlite(path))
            .await
            .expect("it opens");
        let put = async |name: &str, body: &str| {
            let key = DocumentKey {
                workspace: DEFAULT_WORKSPACE.to_owned(),
                kind: DocumentKind::Profile,
                name: name.to_owned(),
            };
            let text = DocumentText {
                body: body.to_owned(),
                variables: None,
            };
            store.write(&key, Some(&text), 0, 1, None).await
        };
        put("small", "x").await.expect("room");
        // A limit of the file's size has the same effect as a full disk.
        let limit = sql("PRAGMA max_page_count = 1");
        store.execute(limit).await.expect("a limit");
        let long = "x".repeat(100_000);
        let error = put("big", &long).await.expect_err("full");
        let WriteError::Store(full) = &error else {
            panic!("{error:?}");
        };
        assert_eq!(full.kind, StoreFailure::Full);
        assert!(error.to_string().contains("make room"), "{error}");
        let held = store.documents(DocumentKind::Profile).await;
        let names: Vec<_> = held
            .expect("an answer")
            .into_iter()
            .map(|one| one.name)
            .collect();
        assert_eq!(names, ["small"]);
        let written = put("big", &long).await;
        assert_eq!(written.expect("room again"), 1);
    }

    #[tokio::test]
    async fn a_pipe_is_rejected_and_not_opened() {
        let dir = tempfile::tempdir().expect("a directory");
        for pipe in ["squall.db", "squall.db-wal", "squall.db-lock"] {
            let home = dir.path().join(format!("with {pipe}"));
            std::fs::create_dir(&home).expect("a directory");
            let made = std::process::Command::new("mkfifo")
                .arg(home.join(pipe))
                .status();
            assert!(made.expect("mkfifo").success());
            let place = StorePlace::Sqlite(home.join("squall.db"));
            let error = Store::move_in(place).await.expect_err(pipe);
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_file_may_have_any_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a b%20c?mode=ro#d/../über.db");
        let place = StorePlace::Sqlite(path.clone());
        let store = Store::open(place).await.expect("it opens");
        store.prune_keys(0, 0).await.expect("it can be written");
        let tokens = store.tokens().await.expect("it can be read");
        assert_eq!(tokens, []);
        store.close().await;
        assert!(path.metadata().expect("the file").len() > 0);
    }
}
