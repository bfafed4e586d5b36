//! `Idempotency-Key` and a daemon that is killed between what it did and its answer.

use std::path::Path;

use serde_json::{Value, json};
use squall_tests::postgres::Postgres;
use squall_tests::program::{clean, python};
use squall_tests::wire::Response;
use squall_tests::{Daemon, Wire};

/// The store's answer to an answer that is to be kept: none, for as long as anybody waits.
const POSTGRES_THINKS: &str = "CREATE FUNCTION thinks() RETURNS trigger AS \
    $$ BEGIN PERFORM pg_sleep(600); RETURN NEW; END $$ LANGUAGE plpgsql; \
    CREATE TRIGGER thinks BEFORE UPDATE ON idempotency_keys FOR EACH ROW \
    WHEN (NEW.status IS NOT NULL) EXECUTE FUNCTION thinks()";

/// Its connection is not told that the daemon is gone.
const POSTGRES_GOES_ON: &str = "DROP TRIGGER IF EXISTS thinks ON idempotency_keys";
const POSTGRES_FORGETS: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
    WHERE query LIKE 'UPDATE idempotency_keys%'";

/// The same for SQLite: it counts to a number that it never comes to.
const SQLITE_THINKS: &str = "CREATE VIEW endless AS WITH RECURSIVE up(n) AS \
    (SELECT 1 UNION ALL SELECT n + 1 FROM up WHERE n < 1000000000000) SELECT count(*) AS n FROM up; \
    CREATE TRIGGER thinks BEFORE UPDATE ON idempotency_keys \
    WHEN NEW.status IS NOT NULL BEGIN SELECT n FROM endless; END;";
const SQLITE_GOES_ON: &str = "DROP TRIGGER thinks; DROP VIEW endless;";

/// Runs SQL in a file of SQLite's.
fn sqlite(home: &Path, sql: &str) {
    let program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], timeout=20); \
                   c.executescript(sys.argv[2]); c.close()";
    let output = clean(python())
        .args(["-c", program])
        .arg(home.join("squall.db"))
        .arg(sql)
        .output()
        .unwrap();
    assert!(output.status.success(), "{sql}: {output:?}");
}

fn begin(daemon: &Daemon, path: &str, key: &str, body: &Value) -> Wire {
    let mut wire = Wire::connect(daemon.api.address);
    let headers = [
        ("Content-Type", "application/json"),
        ("Idempotency-Key", key),
    ];
    wire.request("POST", path, &headers, body.to_string().as_bytes());
    wire
}

fn ask(daemon: &Daemon, path: &str, key: &str, body: &Value) -> Response {
    begin(daemon, path, key, body).response()
}

fn count(daemon: &Daemon, path: &str) -> usize {
    daemon.api.get(path)["items"].as_array().unwrap().len()
}

/// What may be posted and is there twice if it is done twice.
fn posts() -> [(&'static str, Value); 2] {
    let suite = json!({
        "name": "weather",
        "agent": { "endpoint": "http://127.0.0.1:9/ask" },
        "golden_prompts": ["Weather?"],
        "invariants": [{ "id": "says-so", "type": "contains", "value": "sun" }],
        "chaos": { "network_faults": [{ "mode": "latency", "delay_ms": 1 }] },
    });
    [
        ("/v1/recordings", json!({ "name": "mine" })),
        ("/v1/runs", json!({ "kind": "chaos", "suite": suite })),
    ]
}

/// Kills the daemon once what was asked is there and before it is answered, and asks the next one again.
fn check(daemon: &mut Daemon, think: impl Fn(), go_on: impl Fn()) {
    for (path, body) in posts() {
        think();
        let asking = begin(daemon, path, "k", &body);
        daemon.api.wait("what was asked for", || {
            (count(daemon, path) == 1).then_some(())
        });
        daemon.kill();
        drop(asking);
        go_on();
        daemon.start_again();
        for _ in 0..2 {
            let again = ask(daemon, path, "k", &body);
            assert_eq!(again.status, 409, "{path}: {}", again.text());
            assert!(again.text().contains("not done again"), "{}", again.text());
        }
        let other = ask(daemon, path, "k", &json!({ "name": "another" }));
        assert_eq!(other.status, 422, "{path}: {}", other.text());
        assert_eq!(count(daemon, path), 1, "{path}");
        let new = ask(daemon, path, "l", &body);
        assert_eq!(new.status, 201, "{path}: {}", new.text());
        assert_eq!(ask(daemon, path, "l", &body).body, new.body);
        assert_eq!(count(daemon, path), 2, "{path}");
    }
}

#[test]
fn what_was_done_and_never_answered_is_not_done_again_on_sqlite() {
    let mut daemon = Daemon::start(&json!({}));
    let home = daemon.home.clone();
    check(
        &mut daemon,
        || sqlite(&home, SQLITE_THINKS),
        || sqlite(&home, SQLITE_GOES_ON),
    );
}

#[test]
fn what_was_done_and_never_answered_is_not_done_again_on_postgres() {
    let server = Postgres::start();
    let mut daemon = Daemon::start(&json!({ "store": { "url": server.database("squall") } }));
    check(
        &mut daemon,
        || drop(server.sql("squall", POSTGRES_THINKS)),
        || {
            server.sql("squall", POSTGRES_FORGETS);
            server.sql("squall", POSTGRES_GOES_ON);
            server.sql("squall", "DROP FUNCTION thinks");
        },
    );
}
