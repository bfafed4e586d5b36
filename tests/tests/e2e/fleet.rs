//! Daemons that share a PostgreSQL: one switch for all of them.

use std::process::Command;

use serde_json::{Value, json};
use squall_tests::daemon::squall;
use squall_tests::postgres::Postgres;
use squall_tests::relay::Relay;
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Path, Stage, Wire};

fn sharing(url: &str) -> Value {
    json!({ "store": { "url": url } })
}

fn errors(status: u16) -> Value {
    json!({ "chaos": { "tool_faults": [{ "tool": "*", "match_url": "*/json", "mode": "error", "error_code": status }] } })
}

/// Waits until the proxy of a stage gives this status.
fn gives(stage: &Stage, status: u16) {
    stage.daemon.api.wait(&format!("a {status}"), || {
        (now(stage) == status).then_some(())
    });
}

fn now(stage: &Stage) -> u16 {
    stage.open(Path::Forward).get("/json").status
}

fn call(daemon: &Daemon, method: &str, path: &str, body: Option<&Value>, status: u16) -> Value {
    let answer = daemon.api.call(method, path, body);
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    if answer.body.is_empty() {
        Value::Null
    } else {
        answer.json()
    }
}

/// The fleet as a daemon shows it, once it is as `is_so` wants it.
fn fleet(daemon: &Daemon, is_so: impl Fn(&[Value]) -> bool) -> Value {
    daemon.api.wait("the fleet as it must be", || {
        let fleet = daemon.api.get("/v1/fleet");
        let daemons = fleet["daemons"].as_array().unwrap().clone();
        is_so(&daemons).then_some(fleet)
    })
}

#[test]
fn a_switch_takes_hold_in_every_daemon_and_again_in_one_that_starts_again() {
    let server = Postgres::start();
    let url = server.database("squall");
    let mut config = sharing(&url);
    let [two, mut three] = [(); 2].map(|()| Stage::with(&config, standard::serve));
    config["chaos"] = json!({ "seed": 7 });
    let one = Stage::with(&config, standard::serve);
    let stages = [&one, &two, &three];
    call(
        &one.daemon,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&errors(503)),
        200,
    );
    assert_eq!(
        now(&one),
        503,
        "it is in force when the request is answered"
    );
    for stage in stages {
        gives(stage, 503);
    }
    let job = "/v1/scopes/job/chaos";
    call(
        &two.daemon,
        "PUT",
        &format!("{job}?fleet=true"),
        Some(&json!({ "profile": "api_outage" })),
        200,
    );
    for stage in stages {
        let api = &stage.daemon.api;
        api.wait("the job's profile", || {
            (api.get(job)["profile"] == "api_outage").then_some(())
        });
        assert_eq!(
            api.get("/v1/chaos")["seed"],
            7,
            "the seed of the daemon that switched"
        );
    }
    let shown = fleet(&two.daemon, |daemons| {
        let up_to_date =
            |one: &Value| one["behind"] == false && one["in_force"].as_array().unwrap().len() == 2;
        daemons.len() == 3 && daemons.iter().all(up_to_date)
    });
    let scopes: Vec<_> = shown["chaos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["scope"])
        .collect();
    assert!(
        scopes.contains(&&json!("default")) && scopes.contains(&&json!("job")),
        "{shown:#}"
    );

    three.daemon.kill();
    call(
        &one.daemon,
        "DELETE",
        &format!("{job}?fleet=true"),
        None,
        204,
    );
    three.daemon.start_again();
    assert_eq!(now(&three), 503, "from its first exchange on");
    assert_eq!(
        three.daemon.api.get(job)["inherited"],
        true,
        "what was ended meanwhile does not come back"
    );
}

#[test]
fn a_stop_ends_all_chaos_of_every_daemon_and_keeps_what_starts_later() {
    let server = Postgres::start();
    let config = sharing(&server.database("squall"));
    let [one, two, mut three] = [(); 3].map(|()| Stage::with(&config, standard::serve));
    let job = "/v1/scopes/job/chaos";
    call(
        &one.daemon,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&errors(503)),
        200,
    );
    for stage in [&one, &two, &three] {
        gives(stage, 503);
    }
    // Chaos of its own ends, too.
    call(
        &three.daemon,
        "PUT",
        "/v1/scopes/own/chaos",
        Some(&errors(418)),
        200,
    );
    let output = squall(&one.daemon.home)
        .args([
            "off",
            "--fleet",
            "--server",
            &two.daemon.api.address.to_string(),
        ])
        .output();
    assert!(output.unwrap().status.success());
    for stage in [&one, &two, &three] {
        gives(stage, 200);
    }
    let own = || three.daemon.api.get("/v1/scopes/own/chaos");
    assert_eq!(own()["inherited"], true, "{:#}", own());
    // A stop is no reason for others to lose what they start later.
    call(&three.daemon, "PUT", "/v1/chaos", Some(&errors(418)), 200);
    call(
        &one.daemon,
        "PUT",
        &format!("{job}?fleet=true"),
        Some(&errors(500)),
        200,
    );
    three.daemon.api.wait("the job", || {
        (three.daemon.api.get(job)["inherited"] == false).then_some(())
    });
    assert_eq!(now(&three), 418);

    let audit = one.daemon.api.get("/v1/audit?action=PUT+/v1/chaos");
    let entries = audit["items"].as_array().unwrap();
    let details: Vec<_> = entries
        .iter()
        .filter_map(|entry| entry["detail"].as_str())
        .collect();
    assert_eq!(
        details,
        [
            "profile inline, seed 42",
            "profile inline, seed 42, for the fleet"
        ],
        "one entry a switch"
    );
    let is_even = |one: &Value| one["behind"] == false;
    fleet(&one.daemon, |daemons| daemons.iter().all(is_even));
    let listed = squall(&one.daemon.home)
        .args(["fleet", "--server", &one.daemon.api.address.to_string()])
        .output()
        .unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("up to date").count(), 3, "{listed}");
    three.daemon.signal(rustix::process::Signal::TERM);
    three.daemon.wait();
    fleet(&one.daemon, |daemons| daemons.len() == 2);
}

#[test]
fn a_daemon_without_its_database_goes_on_and_catches_up_when_it_returns() {
    let server = Postgres::start();
    let url = server.database("squall");
    let relay = Relay::to(server.address());
    let far = url.replace(&server.address().to_string(), &relay.address.to_string());
    let [one, two] = [(); 2].map(|()| Stage::with(&sharing(&url), standard::serve));
    let cut = Stage::with(&sharing(&far), standard::serve);
    let put = |stage: &Stage, status| {
        call(
            &stage.daemon,
            "PUT",
            "/v1/chaos?fleet=true",
            Some(&errors(status)),
            200,
        );
    };
    put(&one, 503);
    for stage in [&one, &two, &cut] {
        gives(stage, 503);
    }

    relay.cut();
    put(&one, 500);
    gives(&two, 500);
    fleet(&one.daemon, |daemons| {
        daemons.iter().filter(|one| one["behind"] == true).count() == 1
    });
    assert_eq!(now(&cut), 503, "nothing on the wire changes");
    call(
        &cut.daemon,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&errors(418)),
        503,
    );
    assert_eq!(now(&cut), 503, "it is for all or for none");
    relay.mend();
    gives(&cut, 500);

    relay.cut();
    call(
        &two.daemon,
        "DELETE",
        "/v1/chaos?all=true&fleet=true",
        None,
        204,
    );
    gives(&one, 200);
    assert_eq!(now(&cut), 500);
    relay.mend();
    gives(&cut, 200);

    // Its own chaos can be ended without the store.
    put(&one, 503);
    gives(&cut, 503);
    relay.cut();
    let problem = call(&cut.daemon, "DELETE", "/v1/chaos?fleet=true", None, 503);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("chaos has ended in this daemon"),
        "{problem}"
    );
    assert_eq!((now(&cut), now(&one)), (200, 503));
}

/// A library that moves the clock of a program by `CLOCK_OFFSET` seconds.
const OTHER_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    const char *offset = getenv("CLOCK_OFFSET");
    if (result == 0 && id == CLOCK_REALTIME && offset) now->tv_sec += atol(offset);
    return result;
}
"#;

#[test]
fn a_time_to_live_ends_rightly_in_daemons_with_other_clocks() {
    let server = Postgres::start();
    let config = sharing(&server.database("squall"));
    let dir = tempfile::tempdir().unwrap();
    let (source, library) = (dir.path().join("clock.c"), dir.path().join("clock.so"));
    std::fs::write(&source, OTHER_CLOCK).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&source)
        .arg("-ldl")
        .status();
    assert!(compiled.unwrap().success());
    let library = library.to_str().unwrap();
    let with_clock = |offset: &str| {
        Daemon::start_among(
            &config,
            &[("LD_PRELOAD", library), ("CLOCK_OFFSET", offset)],
        )
    };
    let (right, late, early) = (
        Daemon::start(&config),
        with_clock("-7200"),
        with_clock("7200"),
    );
    let put = |daemon: &Daemon, ttl: &str| {
        let mut chaos = errors(503);
        chaos["ttl"] = json!(ttl);
        call(daemon, "PUT", "/v1/chaos?fleet=true", Some(&chaos), 200);
    };
    for daemon in [&right, &late] {
        put(daemon, "1h");
        let started_at: Vec<_> = [&right, &late, &early]
            .into_iter()
            .map(|daemon| {
                let chaos = daemon.api.wait("chaos", || {
                    let chaos = daemon.api.get("/v1/chaos");
                    (chaos["profile"] == "inline").then_some(chaos)
                });
                let left = chaos["ttl"].as_str().unwrap();
                assert!(left == "1h" || left.starts_with("59m"), "{chaos:#}");
                // Up to the hour.
                chaos["started_at"].as_str().unwrap()[..13].to_owned()
            })
            .collect();
        assert!(
            started_at[1] < started_at[0] && started_at[0] < started_at[2],
            "{started_at:?}"
        );
        call(&right, "DELETE", "/v1/chaos?fleet=true", None, 204);
        for daemon in [&right, &late, &early] {
            daemon.api.wait("the end", || {
                (daemon.api.get("/v1/chaos")["profile"] == "none").then_some(())
            });
        }
    }
    put(&right, "2s");
    for daemon in [&right, &late, &early] {
        daemon.api.wait("the beginning", || {
            (daemon.api.get("/v1/chaos")["profile"] == "inline").then_some(())
        });
    }
    for daemon in [&right, &late, &early] {
        daemon.api.wait("the end", || {
            (daemon.api.get("/v1/chaos")["profile"] == "none").then_some(())
        });
    }
}

#[test]
fn a_lost_notice_only_delays_a_switch_and_what_cannot_be_applied_is_reported() {
    let server = Postgres::start();
    let daemon = Daemon::start(&sharing(&server.database("squall")));
    let switch = |number: i64, body: &str| {
        server.sql(
            "squall",
            &format!(
                "UPDATE fleet SET generation = {number}; DELETE FROM fleet_chaos; \
             INSERT INTO fleet_chaos (workspace, scope, generation, body, actor, switched_at) \
             VALUES ('default', 'default', {number}, '{body}', 'x', 0)"
            ),
        );
    };
    switch(1, r#"{"profile":"brownout","seed":5}"#);
    let chaos = daemon.api.wait("chaos", || {
        let chaos = daemon.api.get("/v1/chaos");
        (chaos["profile"] == "brownout").then_some(chaos)
    });
    assert_eq!(chaos["seed"], 5);
    switch(2, r#"{"profile":"elsewhere","seed":5}"#);
    let shown = fleet(&daemon, |daemons| {
        daemons[0]["behind"] == true && daemons[0]["problems"] != json!([])
    });
    let problem = shown["daemons"][0]["problems"][0].as_str().unwrap();
    assert!(
        problem.contains("there is no profile `elsewhere`"),
        "{problem}"
    );
    // Once it can be applied, it is.
    call(
        &daemon,
        "PUT",
        "/v1/profiles/elsewhere",
        Some(&errors(418)),
        201,
    );
    fleet(&daemon, |daemons| {
        daemons[0]["behind"] == false && daemons[0]["problems"] == json!([])
    });
    assert_eq!(daemon.api.get("/v1/chaos")["profile"], "elsewhere");
}

#[test]
fn what_no_fleet_can_have_is_rejected() {
    let server = Postgres::start();
    let (shared, alone) = (
        Daemon::start(&sharing(&server.database("squall"))),
        Daemon::start(&json!({})),
    );
    let mut chaos = errors(503);
    let problem = call(&alone, "PUT", "/v1/chaos?fleet=true", Some(&chaos), 409);
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("share a PostgreSQL"),
        "{problem}"
    );
    call(&alone, "GET", "/v1/fleet", None, 409);
    call(&alone, "DELETE", "/v1/chaos?fleet=true", None, 204);
    let off = squall(&alone.home)
        .args(["off", "--fleet", "--server"])
        .arg(alone.api.address.to_string())
        .output()
        .unwrap();
    let off = String::from_utf8_lossy(&off.stdout);
    assert!(off.contains("it belongs to no fleet"), "{off}");
    chaos["secrets"] = json!({ "KEY": "value" });
    let problem = call(&shared, "PUT", "/v1/chaos?fleet=true", Some(&chaos), 422);
    assert_eq!(problem["errors"][0]["pointer"], "/secrets", "{problem}");
    let unknown = json!({ "profile": "elsewhere" });
    call(&shared, "PUT", "/v1/chaos?fleet=true", Some(&unknown), 422);
    let fleet = shared.api.get("/v1/fleet");
    assert_eq!(
        (&fleet["generation"], &fleet["chaos"]),
        (&json!(0), &json!([])),
        "nothing was switched"
    );
}

#[test]
fn a_workspace_switches_its_own_scopes_only() {
    let server = Postgres::start();
    let mut config = sharing(&server.database("squall"));
    config["api"] = json!({ "tokens": [
        { "name": "all", "role": "admin", "token": "${ALL}" },
        { "name": "team", "role": "operator", "token": "${TEAM}", "workspace": "team" },
    ] });
    let (all, team) = ("all-0123456789abcdef", "team-0123456789abcdef");
    let start = || Daemon::start_among(&config, &[("ALL", all), ("TEAM", team)]);
    let (one, two) = (start(), start());
    let ask = |daemon: &Daemon, token: &str, method: &str, path: &str, body: Option<&Value>| {
        let mut wire = Wire::connect(daemon.api.address);
        let body = body.map(Value::to_string).unwrap_or_default();
        let authorization = format!("Bearer {token}");
        wire.request(
            method,
            path,
            &[("Authorization", &authorization)],
            body.as_bytes(),
        );
        let answer = wire.response();
        assert!(
            (200..300).contains(&answer.status),
            "{method} {path}: {}",
            answer.text()
        );
        if answer.body.is_empty() {
            Value::Null
        } else {
            answer.json()
        }
    };
    let profile = |daemon: &Daemon, token: &str| {
        ask(daemon, token, "GET", "/v1/chaos", None)["profile"].clone()
    };
    let is = |daemon: &Daemon, token: &str, expected: &str| {
        daemon.api.wait(expected, || {
            (profile(daemon, token) == expected).then_some(())
        });
    };
    let chaos = |profile: &str| json!({ "profile": profile });
    ask(
        &one,
        all,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&chaos("brownout")),
    );
    // The same name is another profile in the workspace.
    ask(&one, team, "PUT", "/v1/profiles/own", Some(&errors(418)));
    ask(
        &one,
        team,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&chaos("own")),
    );
    is(&two, team, "own");
    is(&two, all, "brownout");
    let shown = ask(&two, team, "GET", "/v1/fleet", None);
    let scopes: Vec<_> = shown["chaos"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["scope"])
        .collect();
    assert_eq!(scopes, ["team"], "{shown:#}");
    assert!(!shown.to_string().contains("brownout"), "{shown:#}");
    ask(&two, team, "DELETE", "/v1/chaos?all=true&fleet=true", None);
    is(&one, team, "brownout");
    is(&one, all, "brownout");
    ask(
        &one,
        team,
        "PUT",
        "/v1/chaos?fleet=true",
        Some(&chaos("own")),
    );
    is(&two, team, "own");
    ask(&two, all, "DELETE", "/v1/chaos?all=true&fleet=true", None);
    is(&one, team, "none");
    is(&one, all, "none");
}
