//! The dashboard in Chromium, as a person uses it while an agent calls through the proxy.

use serde_json::{Value, json};
use squall_tests::postgres::Postgres;
use squall_tests::program::{client, told};
use squall_tests::upstream::standard;
use squall_tests::{Daemon, Stage, Wire};

/// What a person found who did as `visit` in `tests/clients/dashboard.mjs` says.
fn visited(daemon: &Daemon, visit: &str, data: &Value) -> Value {
    visited_by("dashboard.mjs", daemon, visit, data)
}

/// The same, as `visit` in `script` says.
pub(crate) fn visited_by(script: &str, daemon: &Daemon, visit: &str, data: &Value) -> Value {
    let mut command = client(script);
    command.args(["--url", &format!("http://{}", daemon.api.address)]);
    command.args(["--proxy", &format!("http://{}", daemon.proxy)]);
    command.args(["--client", visit, "--data", &data.to_string()]);
    let told = told(&mut command);
    assert_eq!(told["ok"], true, "{told}");
    assert_eq!(
        told["complaints"],
        json!([]),
        "what the policy or a script objected to"
    );
    let own = format!("http://{}/", daemon.api.address);
    for asked in told["asked"].as_array().into_iter().flatten() {
        let asked = asked.as_str().unwrap_or_default();
        assert!(asked.starts_with(&own) || asked == "data:,", "{asked}");
    }
    for (look, found) in told["against"].as_object().into_iter().flatten() {
        assert_eq!(*found, json!([]), "axe, {look}");
    }
    told
}

/// `pictures` of `docs/images` are written only when `SQUALL_PICTURES` names a folder.
pub(crate) fn with_pictures(mut data: Value) -> Value {
    if let Ok(folder) = std::env::var("SQUALL_PICTURES") {
        data["pictures"] = json!(folder);
    }
    data
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list");
    list.iter()
        .map(|text| text.as_str().expect("a text"))
        .collect()
}

#[test]
fn exchanges_appear_as_they_end_and_a_click_explains_one() {
    let stage = Stage::with(&json!({}), standard::serve);
    let slow = json!({ "tool_faults": [
        { "tool": "*", "mode": "slow", "delay_ms": 40, "match_url": "*late*" },
        { "tool": "*", "mode": "error", "error_code": 503, "match_url": "*late*", "probability": 1e-6 },
    ] });
    stage.daemon.api.chaos_in("faulty", &slow);
    let upstream = format!("http://{}", stage.plain.address);
    let told = visited(
        &stage.daemon,
        "live",
        &with_pictures(json!({ "upstream": upstream })),
    );

    assert_eq!(told["address"], "/live");
    assert_eq!(told["empty"], true);
    let weight = told["weight"].as_u64().unwrap();
    assert!(
        (20_000..60_000).contains(&weight),
        "the first page has {weight} bytes"
    );
    assert_eq!(told["got"], json!([200, 404]));
    let rows = texts(&told["rows"]);
    assert!(
        rows[0].contains("/status/404") && rows[0].contains("404"),
        "{rows:?}"
    );
    assert!(
        rows[1].contains("/json") && rows[1].contains("200"),
        "{rows:?}"
    );

    assert_eq!(told["paused"], "?pause=1");
    assert_eq!(told["whilePaused"], 2);
    let filtered = texts(&told["filtered"]);
    let of_status = |text: &&str| text.contains("/status/4");
    assert!(
        filtered.len() == 2 && filtered.iter().all(of_status),
        "{filtered:?}"
    );

    let explained = told["explained"].as_str().unwrap();
    for part in [
        "applied",
        "slow",
        "not drawn",
        "error",
        "drew 0.",
        "matching call 1",
        "delay_ms: 40",
    ] {
        assert!(explained.contains(part), "no {part} in {explained}");
    }
    assert!(told["focused"].as_str().unwrap().contains("late"), "{told}");
    let curl = told["curl"].as_str().unwrap();
    let proxy = format!(
        "-x 'http://{}' -H 'x-squall-scope: faulty'",
        stage.daemon.proxy
    );
    assert!(
        curl.starts_with("curl -g -X 'GET' 'http://") && curl.ends_with(&proxy),
        "{curl}"
    );
    let shown = told["curlShown"].as_str().unwrap();
    assert!(shown.starts_with("curl -g -X 'GET' 'http://"), "{shown}");
    let recorded = told["recorded"].as_str().unwrap();
    assert!(
        recorded.contains("authorization") && recorded.contains("the upstream"),
        "{recorded}"
    );
    assert!(!recorded.contains("very-secret"), "{recorded}");
}

#[test]
fn a_switch_shows_in_an_agent_s_traffic_and_the_stop_button_ends_it() {
    let stage = Stage::with(&json!({}), standard::serve);
    let upstream = format!("http://{}", stage.plain.address);
    let data = with_pictures(json!({ "upstream": upstream }));
    let told = visited(&stage.daemon, "chaos", &data);
    assert_eq!(told["before"], json!([200]));
    assert_eq!(told["shareBefore"], "0.0 %");
    let table = told["table"].as_str().unwrap();
    for part in ["default", "api_outage", "42", "min", "Stop"] {
        assert!(table.contains(part), "no {part} in {table}");
    }
    assert_eq!(told["plotted"], 1);
    let error = told["error"].as_str().unwrap();
    assert!(
        error.contains("seven") && error.contains("/seed"),
        "{error}"
    );
    assert_eq!(told["stillInForce"], 1);
    assert_eq!(told["ended"], "No chaos");
    assert!(
        told["plain"].as_str().unwrap().contains("brownout"),
        "{told}"
    );
    assert_eq!(told["plainEnded"], "No chaos");
    println!(
        "first fault after {} ms, shown after {} ms",
        told["faultAfter"], told["shownAfter"]
    );
}

fn ask(daemon: &Daemon, method: &str, path: &str, token: Option<&str>, body: &[u8]) -> Value {
    let mut wire = Wire::connect(daemon.api.address);
    let authorization = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(
        authorization
            .as_deref()
            .map(|value| ("Authorization", value)),
    );
    wire.request(method, path, &headers, body);
    wire.response().json()
}

/// The secret of a token that is created.
fn new_token(daemon: &Daemon, by: Option<&str>, token: &Value) -> String {
    let created = ask(
        daemon,
        "POST",
        "/v1/tokens",
        by,
        token.to_string().as_bytes(),
    );
    let secret = created["token"].as_str();
    secret.unwrap_or_else(|| panic!("{created}")).to_owned()
}

#[test]
fn chaos_is_stopped_in_all_daemons_of_a_fleet() {
    let server = Postgres::start();
    let config = json!({ "store": { "url": server.database("squall") } });
    let [here, there] = [(); 2].map(|()| Daemon::start(&config));
    let profile = json!({ "profile": "api_outage" });
    for daemon in [&here, &there] {
        let put = daemon.api.call("PUT", "/v1/chaos", Some(&profile));
        assert_eq!(put.status, 200, "{}", put.text());
    }
    let data = json!({ "there": format!("http://{}", there.api.address) });
    let told = visited(&here, "fleet", &data);
    assert_eq!(told["there"], "api_outage");
    assert_eq!(told["stopped"], 200);
    there.api.wait("the end of chaos", || {
        (there.api.get("/v1/chaos")["profile"] == "none").then_some(())
    });
}

#[test]
fn a_role_sees_what_it_may_do_and_forged_forms_are_refused() {
    let daemon = Daemon::start(&json!({}));
    let admin = new_token(&daemon, None, &json!({ "name": "boss", "role": "admin" }));
    let other = |token: &Value| new_token(&daemon, Some(&admin), token);
    let data = json!({
        "viewer": other(&json!({ "name": "eye", "role": "viewer" })),
        "operator": other(&json!({ "name": "hand", "role": "operator" })),
        "member": other(&json!({ "name": "mate", "role": "operator", "workspace": "payments" })),
    });
    let told = visited(&daemon, "login", &with_pictures(data));
    assert_eq!(told["led"], "/login?next=%2Fchaos");
    assert!(
        told["wrong"].as_str().unwrap().contains("unknown"),
        "{told}"
    );
    assert_eq!(told["viewerButtons"], json!(["Log out"]));
    assert!(
        !told["viewerText"].as_str().unwrap().contains("Switch"),
        "{told}"
    );
    assert_eq!(told["viewerPosts"], json!([403, 403]));
    assert_eq!(told["viewerProfiles"], json!([]));
    assert_eq!(told["viewerTyped"], false);
    let only = json!(["Compare with the current text"]);
    assert_eq!(told["viewerProfile"], only);
    assert_eq!(told["viewerSaves"], json!([403, 403]));
    let buttons = texts(&told["operatorButtons"]);
    assert_eq!(buttons[0], "Stop all chaos");
    assert!(!buttons.contains(&"Stop in all daemons"), "{buttons:?}");
    let cookie =
        json!([{ "name": "squall_session", "httpOnly": true, "sameSite": "Strict", "path": "/" }]);
    assert_eq!(told["cookies"], cookie);
    assert_eq!(told["seen"], "");
    assert_eq!(told["forged"], json!([403, 403, 403, 403]));
    assert!(
        told["member"].as_str().unwrap().contains("No chaos"),
        "{told}"
    );
    assert_eq!(told["loggedOut"], 303);
    assert_eq!(told["long"], 413);
    // Only the operator's own click changed anything.
    let path = "/v1/audit?action=PUT%20/v1/scopes/%7Bscope%7D/chaos";
    let audit = ask(&daemon, "GET", path, Some(&admin), b"");
    let entries = audit["items"].as_array().unwrap();
    let by: Vec<_> = entries
        .iter()
        .map(|entry| (&entry["actor"], &entry["source"], &entry["outcome"]))
        .collect();
    assert!(
        by.contains(&(
            &json!("hand"),
            &json!("127.0.0.1 dashboard"),
            &json!("done")
        )),
        "{audit}"
    );
    assert_eq!(
        by.iter()
            .filter(|(.., outcome)| **outcome == json!("done"))
            .count(),
        1,
        "{audit}"
    );
}

#[test]
fn what_a_hostile_exchange_says_stays_text() {
    let stage = Stage::with(&json!({}), standard::serve);
    let upstream = format!("http://{}", stage.plain.address);
    let told = visited(&stage.daemon, "hostile", &json!({ "upstream": upstream }));
    assert_eq!(told["dialogs"], 0);
    assert_eq!(told["elements"], json!([]));
    let (text, explained) = (
        told["text"].as_str().unwrap(),
        told["explained"].as_str().unwrap(),
    );
    for part in ["<img src=x onerror=alert(2)>", "streamed"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(
        explained.contains("<script>alert(1)</script>"),
        "{explained}"
    );
    assert!(told["last"].as_str().unwrap().ends_with("/live"), "{told}");
}

/// `scripts/dashboard-load` runs it for a minute, and reads what it prints.
#[test]
fn a_page_keeps_answering_and_does_not_grow_under_all_the_traffic_there_is() {
    let stage = Stage::with(&json!({}), standard::serve);
    let synthetic = json!({ "tool": "*", "mode": "silent_noop", "match_url": "*/load" });
    let chaos = json!({ "chaos": { "tool_faults": [synthetic] } });
    stage.daemon.api.activate("/v1/chaos", &chaos);
    let upstream = format!("http://{}", stage.plain.address);
    let named = std::env::var("SQUALL_DASHBOARD_SECONDS").ok();
    let seconds: u32 = named.map_or(6, |text| text.parse().unwrap());
    let data = json!({ "upstream": upstream, "seconds": seconds });

    let mut told = visited(&stage.daemon, "load", &data);
    assert_eq!(told["counted"], told["total"], "shown or counted: {told}");
    let rows = told["most"].as_u64().unwrap();
    assert!((100..=200).contains(&rows), "{told}");
    let heap = |index: usize| told["heap"][index].as_i64().unwrap();
    let grown = heap(1) - heap(0);
    assert!(
        grown < 4 << 20,
        "the page has grown by {grown} bytes: {told}"
    );
    assert_eq!(told["wrk"]["broken"], 0, "{told}");

    let latency = visited(&stage.daemon, "latency", &data)["latency"].take();
    assert_eq!(latency["count"], seconds * 50, "{latency}");
    told["latency"] = latency;
    told["asked"].take();
    println!("{told}");
}
