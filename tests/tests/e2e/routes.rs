//! Reverse mode, scopes, and what the proxy refuses on its own account.

use std::net::{SocketAddr, TcpListener};

use serde_json::json;
use squall_tests::upstream::standard::{self, JSON};
use squall_tests::{End, Path, Stage, Wire};

/// A port that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
}

#[test]
fn a_route_s_prefix_is_stripped_and_its_upstream_s_path_kept() {
    let upstream = squall_tests::Upstream::plain();
    let config = json!({ "routes": [
        { "name": "based", "prefix": "/based", "upstream": format!("http://{}/api/v2", upstream.address) },
        { "name": "longer", "prefix": "/up/longer", "upstream": format!("http://{}/longer", upstream.address) },
    ] });
    let stage = Stage::with(&config, standard::serve);
    for (asked, reached) in [
        ("/up/json?a=%20b", "/json?a=%20b"),
        ("/up", "/"),
        ("/based/items?x=1", "/api/v2/items?x=1"),
        ("/up/longer/x", "/longer/x"),
    ] {
        assert_eq!(stage.daemon.connect().get(asked).status, 200, "{asked}");
        let all = [stage.plain.requests(), upstream.requests()].concat();
        assert!(
            all.iter().any(|seen| seen.target == reached),
            "{asked}: {all:#?}"
        );
    }
}

#[test]
fn a_listener_of_a_route_s_own_serves_that_route_alone() {
    let address = free();
    let secure = Stage::new();
    let config = json!({
        "proxy": { "upstream_ca": [secure.authority.file()] },
        "routes": [{
            "name": "own",
            "listen": address.to_string(),
            "upstream": format!("https://{}", secure.secure_authority()),
        }],
    });
    let stage = Stage::with(&config, standard::serve);
    assert_eq!(Wire::connect(address).get("/json").text(), JSON);
    let seen = secure.secure.request_to("/json");
    let host = secure.secure_authority();
    assert_eq!(seen.header("host"), Some(host.as_str()));
    let exchanges = stage.daemon.api.wait_for_exchanges(1);
    assert_eq!(exchanges[0]["url"], format!("https://{host}/json"));
    // Through the proxy too, as programs with HTTP_PROXY ask.
    for host in [address.to_string(), format!("localhost:{}", address.port())] {
        let mut wire = stage.daemon.connect();
        wire.prefix = format!("http://{host}");
        assert_eq!(wire.get("/json").status, 200, "{host}");
        let mut wire = stage.daemon.connect();
        assert_eq!(wire.open_tunnel(&host, "").status, 200, "CONNECT {host}");
        assert_eq!(wire.get("/json").status, 200, "CONNECT {host}");
    }
    // It opens no tunnels; the main listener does.
    let target = stage.plain.address.to_string();
    let refused = Wire::connect(address).open_tunnel(&target, "");
    assert_eq!(refused.status, 405);
    let kind = &refused.json()["type"];
    assert_eq!(kind, "urn:squall:problem:not-a-forward-proxy");
    assert_eq!(stage.daemon.connect().open_tunnel(&target, "").status, 200);
}

#[test]
fn a_scope_is_named_by_header_prefix_or_credentials_and_never_reaches_the_upstream() {
    let stage = Stage::new();
    let api = stage.daemon.api;
    api.chaos_in(
        "cell",
        &json!({ "tool_faults": [{ "mode": "error", "error_code": 418 }] }),
    );

    // Outside of the scope nothing happens.
    for path in Path::THROUGH {
        assert_eq!(stage.open(path).get("/json").status, 200, "{path:?}");
    }
    for path in Path::THROUGH {
        let mut wire = stage.open(path);
        wire.request("GET", "/json", &[("x-squall-scope", "cell")], b"");
        assert_eq!(wire.response().status, 418, "{path:?}");
    }
    let mut prefixed = stage.daemon.connect();
    prefixed.prefix = "/_scope/cell/up".to_owned();
    assert_eq!(prefixed.get("/json").status, 418);

    // `cell:x` and `other:x` in base64.
    let mut named = stage.open(Path::Forward);
    named.request(
        "GET",
        "/json",
        &[("Proxy-Authorization", "Basic Y2VsbDp4")],
        b"",
    );
    assert_eq!(named.response().status, 418);
    let mut tunnel = stage.daemon.connect();
    let credentials = "Proxy-Authorization: Basic Y2VsbDp4\r\n";
    assert_eq!(
        tunnel
            .open_tunnel(&stage.secure_authority(), credentials)
            .status,
        200
    );
    let mut tunnel = tunnel.encrypt(&stage.daemon.ca, "localhost").unwrap();
    assert_eq!(tunnel.get("/json").status, 418);

    let baggage = [("baggage", "userId=1, squall.scope=cell")];
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", "/json", &baggage, b"");
    assert_eq!(wire.response().status, 418);

    let scopes: Vec<_> = api
        .wait_for_exchanges(10)
        .iter()
        .map(|one| one["scope"].clone())
        .collect();
    assert_eq!(
        scopes.iter().filter(|scope| **scope == "cell").count(),
        7,
        "{scopes:?}"
    );

    // A scope without chaos of its own passes, without the marks that named it.
    api.activate("/v1/scopes/quiet/chaos", &json!({ "profile": "none" }));
    let mut wire = stage.open(Path::Forward);
    let marks = [
        ("X-Squall-Scope", "quiet"),
        ("Proxy-Authorization", "Basic Y2VsbDp4"),
    ];
    wire.request("GET", "/json", &marks, b"");
    assert_eq!(wire.response().status, 200);
    let seen = stage.plain.request_to("/json");
    assert_eq!(seen.header("x-squall-scope"), None, "{seen:?}");
    assert_eq!(seen.header("proxy-authorization"), None, "{seen:?}");
}

#[test]
fn required_credentials_are_required() {
    let config = json!({ "proxy": { "credentials": "required" } });
    let stage = Stage::with(&config, standard::serve);
    let answer = stage.open(Path::Forward).get("/json");
    assert_eq!(answer.status, 407);
    assert!(answer.header("proxy-authenticate").is_some(), "{answer:?}");
    assert_eq!(
        stage
            .daemon
            .connect()
            .open_tunnel(&stage.secure_authority(), "")
            .status,
        407
    );
    assert_eq!(stage.plain.opened() + stage.secure.opened(), 0);
    let mut wire = stage.open(Path::Forward);
    wire.request(
        "GET",
        "/json",
        &[("Proxy-Authorization", "Basic Y2VsbDp4")],
        b"",
    );
    assert_eq!(wire.response().status, 200);
}

#[test]
fn destinations_that_are_denied_are_never_dialled() {
    // Unless the configuration says otherwise, cloud metadata.
    let stage = Stage::new();
    for host in ["169.254.169.254", "metadata.google.internal"] {
        let mut wire = stage.daemon.connect();
        wire.prefix = format!("http://{host}");
        assert_eq!(wire.get("/latest/meta-data/").status, 403, "{host}");
    }
    let config = json!({ "proxy": { "deny": ["169.254.169.254", "127.0.0.1", "*.secret.test"] } });
    let stage = Stage::with(&config, standard::serve);
    let plain = stage.plain.address;
    // By its address, and by a name that resolves to it.
    for host in [
        plain.to_string(),
        format!("localhost:{}", plain.port()),
        "x.secret.test:443".to_owned(),
    ] {
        let mut wire = stage.daemon.connect();
        wire.prefix = format!("http://{host}");
        let answer = wire.get("/json");
        assert_eq!(answer.status, 403, "{host}: {answer:?}");
        assert_eq!(answer.json()["status"], 403);
        assert_eq!(
            stage.daemon.connect().open_tunnel(&host, "").status,
            403,
            "CONNECT {host}"
        );
    }
    assert_eq!(stage.plain.opened(), 0);
    let seen = stage.daemon.api.wait_for_exchanges(6);
    assert!(
        seen.iter().all(|one| one["outcome"] == "denied"),
        "{seen:#?}"
    );
}

#[test]
fn routes_are_reached_through_the_proxy_itself() {
    let stage = Stage::new();
    let port = stage.daemon.proxy.port();
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}")] {
        let mut wire = stage.daemon.connect();
        wire.prefix = format!("http://{host}");
        assert_eq!(wire.get("/up/json").status, 200, "{host}");
        assert_eq!(wire.get("/_scope/s/up/json").status, 200, "{host}");
        let mut wire = stage.daemon.connect();
        assert_eq!(wire.open_tunnel(&host, "").status, 200, "CONNECT {host}");
        assert_eq!(wire.get("/up/json").status, 200, "CONNECT {host}");
    }
    let reached = stage.plain.requests();
    assert_eq!(reached.len(), 6);
    assert!(reached.iter().all(|seen| seen.target == "/json"));
    let scopes: Vec<_> = stage.daemon.api.exchanges();
    assert!(scopes.iter().any(|exchange| exchange["scope"] == "s"));
}

#[test]
fn idle_connections_are_closed_and_exchanges_under_way_are_not() {
    let limits = json!({ "idle_timeout": "300ms", "header_timeout": "300ms" });
    let config = json!({ "proxy": { "limits": limits } });
    let stage = Stage::with(&config, standard::serve);
    // A stream waits for its next event for as long as that takes.
    let mut wire = stage.open(Path::Forward);
    wire.request("GET", "/events", &[], b"");
    for event in ["data: 1\n\n", "data: 2\n\n", "data: 3\n\n"] {
        wire.receive_until(event);
        // What has been idle for less long is closed first.
        assert_eq!(stage.daemon.connect().rest().1, End::Closed, "{event}");
        stage.plain.step();
    }
    wire.receive_until("0\r\n\r\n");
    assert_eq!(
        wire.rest(),
        (Vec::new(), End::Closed),
        "idle after an answer"
    );
    let mut wire = stage.daemon.connect();
    wire.send("GET / HTTP/1.1\r\nHost: a\r\nX-Half:");
    assert_ne!(wire.rest().1, End::StillOpen, "a head that never ends");
    let mut wire = stage.open(Path::Forward);
    let target = stage.plain.address;
    wire.send(format!(
        "POST http://{target}/json HTTP/1.1\r\nHost: {target}\r\nContent-Length: 9\r\n\r\nhal"
    ));
    assert_ne!(wire.rest().1, End::StillOpen, "a body that never ends");
    let seen = stage.daemon.api.wait("the broken request", || {
        let exchanges = stage.daemon.api.exchanges();
        exchanges.into_iter().find(|one| one["method"] == "POST")
    });
    assert_eq!(seen["outcome"], "client_gone", "{seen}");
    let error = seen["error"].as_str().unwrap();
    assert!(error.contains("`proxy.limits.idle_timeout`"), "{error}");
}

#[test]
fn a_route_s_scope_is_for_requests_that_name_none() {
    let upstream = squall_tests::Upstream::plain();
    let config = json!({ "routes": [{
        "name": "scoped",
        "prefix": "/scoped",
        "upstream": format!("http://{}", upstream.address),
        "scope": "of-the-route",
    }] });
    let stage = Stage::with(&config, standard::serve);
    let mut wire = stage.daemon.connect();
    wire.get("/scoped/json");
    wire.request(
        "GET",
        "/scoped/json",
        &[("baggage", "squall.scope=named")],
        b"",
    );
    assert_eq!(wire.response().status, 200);
    let seen = stage.daemon.api.wait_for_exchanges(2);
    let mut scopes: Vec<&str> = seen
        .iter()
        .filter_map(|one| one["scope"].as_str())
        .collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["named", "of-the-route"]);
}

#[test]
#[rustfmt::skip]
fn what_the_proxy_refuses_by_itself_is_written_down() {
    let stage = Stage::new();
    for (sent, status, method, path) in [
        ("GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n", 404, "GET", "/nothing"),
        ("POST http://h:x/ HTTP/1.1\r\nHost: h\r\nx-squall-scope: a b\r\n\r\n", 400, "POST", ""),
        ("GET / HTTP/1.1\r\nHost: h\r\nbad : x\r\n\r\n", 400, "GET", "/"),
    ] {
        let before = stage.daemon.api.exchanges().len();
        let mut wire = Wire::connect(stage.daemon.proxy);
        wire.send(sent);
        assert_eq!(wire.response().status, status, "{sent}");
        let entry = &stage.daemon.api.wait_for_exchanges(before + 1)[before];
        assert_eq!(entry["outcome"], "denied", "{entry}");
        assert_eq!(entry["status"], status, "{entry}");
        assert_eq!(entry["method"], method, "{entry}");
        assert!(entry["error"].is_string(), "{entry}");
        let url = entry["url"].as_str().unwrap();
        assert!(url.ends_with(path), "{entry}");
    }
}
