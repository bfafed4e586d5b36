//! CONNECT: dial first, then 200, then look at what comes.

use serde_json::{Value, json};
use squall_tests::upstream::standard::JSON;
use squall_tests::{End, Path, Stage, Upstream, dead};

#[test]
fn tls_inside_a_tunnel_is_intercepted_with_a_leaf_for_the_name_asked_for() {
    let stage = Stage::new();
    for name in ["localhost", "127.0.0.1"] {
        let mut wire = stage.daemon.connect();
        let authority = format!("{name}:{}", stage.secure.address.port());
        assert_eq!(wire.open_tunnel(&authority, "").status, 200, "{name}");
        let mut wire = wire.encrypt(&stage.daemon.ca, name).unwrap();
        assert_eq!(wire.get("/json").text(), JSON, "{name}");
    }
    let minted = stage
        .daemon
        .api
        .metric("squall_leaf_certificates_minted_total", &[]);
    assert!(minted >= 2.0, "{minted} leaves");
}

#[test]
fn a_server_of_many_hosts_is_asked_for_the_one_that_the_agent_wrote() {
    let stage = Stage::new();
    let authority = stage.secure_authority();
    for host in ["shop.example", "LocalHost:443", ""] {
        let mut wire = stage.daemon.connect();
        assert_eq!(wire.open_tunnel(&authority, "").status, 200);
        let mut wire = wire.encrypt(&stage.daemon.ca, "localhost").unwrap();
        wire.host = host.to_owned();
        assert_eq!(wire.get("/json").text(), JSON);
        let seen = stage.secure.requests().pop().unwrap();
        assert_eq!(seen.header("host"), Some(host), "{seen:?}");
    }
}

#[test]
fn an_excluded_host_is_tunnelled_untouched_and_its_rules_are_bypassed_with_the_reason() {
    let config = json!({ "proxy": { "intercept": { "hosts": ["*"], "exclude": ["localhost"] } } });
    let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
    let elsewhere =
        json!({ "id": "elsewhere", "mode": "latency", "delay_ms": 1, "match_url": "https://x/*" });
    let here = json!({ "id": "here", "mode": "latency", "delay_ms": 1 });
    let of_model = |id, url| json!({ "id": id, "mode": "garbage", "match_url": url });
    let models = [
        of_model("model", "https://localhost*/v1/*"),
        of_model("any-host", "*://*/v1/responses"),
        of_model("other-host", "https://api.example/v1/*"),
        json!({ "id": "no-host", "mode": "garbage" }),
    ];
    let chaos = json!({ "network_faults": [elsewhere, here], "llm_faults": models });
    stage.daemon.api.chaos(&chaos);
    let mut wire = stage.daemon.connect();
    assert_eq!(wire.open_tunnel(&stage.secure_authority(), "").status, 200);
    // Only the upstream's own authority vouches for what is presented.
    let mut wire = wire.encrypt(&stage.authority.file(), "localhost").unwrap();
    wire.host = stage.secure_authority();
    assert_eq!(wire.get("/json").text(), JSON);
    drop(wire);
    let seen = &stage.daemon.api.wait_for_exchanges(1)[0];
    let what = (&seen["kind"], &seen["method"]);
    assert_eq!(what, (&json!("other"), &json!("CONNECT")), "{seen}");
    let rules = seen["rules"].as_array().unwrap();
    let ids: Vec<_> = rules.iter().map(|rule| &rule["rule"]).collect();
    assert_eq!(ids, ["here", "model", "any-host"], "{seen}");
    let why =
        "the host is excluded from interception: what passes through the connection is not read";
    for rule in rules {
        let verdict = (&rule["outcome"], &rule["reason"]);
        assert_eq!(verdict, (&json!("bypassed"), &json!(why)), "{seen}");
    }
}

#[test]
fn plain_http_of_any_method_is_served_inside_a_tunnel() {
    let stage = Stage::new();
    for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        let mut wire = stage.daemon.connect();
        assert_eq!(
            wire.open_tunnel(&stage.plain.address.to_string(), "")
                .status,
            200
        );
        wire.host = stage.plain.address.to_string();
        wire.request(method, "/any", &[], b"hello");
        let answer = wire.response();
        assert_eq!(answer.status, 200, "{method}: {answer:?}");
        let seen = stage.plain.requests().pop().unwrap();
        assert_eq!(
            (seen.method.as_str(), seen.body.as_slice()),
            (method, &b"hello"[..])
        );
    }
    // They were seen as exchanges, not as opaque tunnels.
    let seen = stage.daemon.api.wait_for_exchanges(6);
    assert!(seen.iter().all(|one| one["kind"] == "tool"), "{seen:#?}");
}

#[test]
fn a_server_that_speaks_first_is_tunnelled() {
    let stage = Stage::new();
    let mail = Upstream::start(None, |mut connection| {
        connection.send("220 mail.example ready\r\n");
        let heard = connection.receive();
        connection.send([b"you said ", heard.as_slice()].concat());
    });
    let mut wire = stage.daemon.connect();
    assert_eq!(wire.open_tunnel(&mail.address.to_string(), "").status, 200);
    wire.receive_until("220 mail.example ready\r\n");
    wire.send("EHLO agent\r\n");
    wire.receive_until("you said EHLO agent\r\n");
    assert_eq!(wire.rest().1, End::Closed);
}

#[test]
fn bytes_that_are_neither_tls_nor_http_are_tunnelled_both_ways() {
    let stage = Stage::new();
    let echo = Upstream::start(None, |mut connection| {
        loop {
            let bytes = connection.receive();
            if bytes.is_empty() || !connection.send(&bytes) {
                return;
            }
        }
    });
    let mut wire = stage.daemon.connect();
    assert_eq!(wire.open_tunnel(&echo.address.to_string(), "").status, 200);
    let bytes: Vec<u8> = (0x80..=0xff).cycle().take(100_000).collect();
    wire.send(&bytes);
    assert!(wire.receive(bytes.len()) == bytes);
    wire.finish();
    assert_eq!(wire.rest().1, End::Closed);
}

#[test]
fn an_upstream_that_closes_at_once_is_an_upstream_error() {
    let stage = Stage::new();
    let mute = Upstream::start(None, drop);
    let address = mute.address.to_string();
    // An agent that waits for the upstream's first word, and two that speak first.
    let mut waits = stage.daemon.connect();
    assert_eq!(waits.open_tunnel(&address, "").status, 200);
    assert_eq!(waits.rest().1, End::Closed);
    drop(waits);
    let mut speaks = stage.daemon.connect();
    assert_eq!(speaks.open_tunnel(&address, "").status, 200);
    speaks.send([0x80, 0x81]);
    assert_ne!(speaks.rest().1, End::StillOpen);
    drop(speaks);
    let mut asks = stage.daemon.connect();
    asks.prefix = format!("http://{address}");
    asks.request("GET", "/json", &[], b"");
    assert_ne!(asks.rest().1, End::StillOpen);
    for seen in stage.daemon.api.wait_for_exchanges(3) {
        assert_eq!(seen["outcome"], "upstream_error", "{seen}");
    }
}

#[test]
fn a_dead_upstream_gives_502_on_every_path_with_a_problem_that_names_it() {
    let dead = dead::refusing();
    let config = json!({ "routes": [{ "name": "dead", "prefix": "/dead", "upstream": format!("http://{dead}") }] });
    let stage = Stage::with(&config, squall_tests::upstream::standard::serve);
    let mut forward = stage.daemon.connect();
    forward.prefix = format!("http://{dead}");
    let mut reverse = stage.daemon.connect();
    reverse.prefix = "/dead".to_owned();
    let mut tunnel = stage.daemon.connect();
    for answer in [
        forward.get("/json"),
        reverse.get("/json"),
        // Before its 200.
        tunnel.open_tunnel(&dead.to_string(), ""),
    ] {
        assert_eq!(answer.status, 502, "{answer:?}");
        let kind = answer.header("content-type");
        assert_eq!(kind, Some("application/problem+json"));
        let problem = answer.json();
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("127.0.0.1"), "{problem}");
        for member in ["type", "title", "status", "detail"] {
            assert!(!problem[member].is_null(), "no `{member}` in {problem}");
        }
    }
    for seen in stage.daemon.api.wait_for_exchanges(3) {
        assert_eq!(seen["outcome"], "upstream_error", "{seen}");
    }
    let errors = stage.daemon.api.metric("squall_upstream_errors_total", &[]);
    assert!(errors >= 3.0, "{errors}");
}

#[test]
fn a_client_that_rejects_the_leaf_is_written_down_with_the_way_out() {
    let stage = Stage::new();
    let mut wire = stage.daemon.connect();
    assert_eq!(wire.open_tunnel(&stage.secure_authority(), "").status, 200);
    // It trusts the upstream's authority, not Squall's.
    let refused = wire.encrypt(&stage.authority.file(), "localhost");
    assert!(refused.is_err(), "an unknown authority was trusted");
    let seen = stage.daemon.api.wait_for_exchanges(1);
    assert_eq!(seen[0]["outcome"], "client_rejected_ca", "{seen:?}");
    // Another program at the same address, whose CONNECT names it, and which trusts the CA at its second try.
    let agent = "User-Agent: node\r\n";
    let mut wire = stage.daemon.connect();
    wire.open_tunnel(&stage.secure_authority(), agent);
    assert!(wire.encrypt(&stage.authority.file(), "localhost").is_err());
    let mut wire = stage.daemon.connect();
    wire.open_tunnel(&stage.secure_authority(), agent);
    let mut trusting = wire.encrypt(&stage.daemon.ca, "localhost").unwrap();
    assert_eq!(trusting.get("/json").status, 200);
    let mut plain = stage.open(Path::Forward);
    assert_eq!(plain.get("/json").status, 200);
    stage.daemon.api.wait_for_exchanges(4);
    let clients = stage.daemon.api.get("/v1/clients");
    let clients = clients["items"].as_array().unwrap();
    let line = |user_agent: Value| {
        let mut found = clients.iter().filter(|one| one["user_agent"] == user_agent);
        found
            .next()
            .unwrap_or_else(|| panic!("no {user_agent} in {clients:?}"))
    };
    let (node, nameless) = (line(json!("node")), line(Value::Null));
    let counts = |one: &Value| (one["exchanges"].clone(), one["handshakes_refused"].clone());
    assert_eq!(counts(node), (json!(2), json!(1)), "{clients:?}");
    assert_eq!(counts(nameless), (json!(2), json!(1)), "{clients:?}");
    for one in [node, nameless] {
        assert_eq!(one["address"], "127.0.0.1");
        assert_eq!(one["refused_hosts"], json!([stage.secure_authority()]));
    }
    assert_eq!(node["client"], "Node.js");
    assert_eq!(node["ca_variables"], json!(["NODE_EXTRA_CA_CERTS"]));
    let known = nameless["ca_variables"].as_array().unwrap();
    assert!(known.contains(&json!("SSL_CERT_FILE")), "{nameless}");
}
