//! HTTP/2 on either side: by prior knowledge, by ALPN, gRPC, resets that hurt no sibling.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Version};

use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use squall_tests::program::Way;
use squall_tests::upstream::standard::{self, pattern};
use squall_tests::{Authority, Daemon, H2Upstream, Stage, Wire, authority};
use tokio::net::TcpStream;

type Sender = SendRequest<Empty<Bytes>>;

/// Runs a future on a thread of its own kind.
fn block<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// HTTP/2 by prior knowledge.
async fn h2c(address: SocketAddr) -> Sender {
    let socket = TcpStream::connect(address).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(socket))
        .await
        .unwrap();
    tokio::task::spawn_local(connection);
    sender
}

/// HTTP/2 by ALPN inside an intercepted tunnel; `None` when another protocol was chosen.
async fn intercepted(daemon: &Daemon, authority: &str) -> Option<Sender> {
    let mut wire = Wire::connect(daemon.proxy);
    assert_eq!(wire.open_tunnel(authority, "").status, 200);
    let socket = wire.into_socket();
    socket.set_nonblocking(true).unwrap();
    let config = authority::client(&daemon.ca, &["h2", "http/1.1"]);
    let connector = tokio_rustls::TlsConnector::from(config);
    let socket = TcpStream::from_std(socket).unwrap();
    let stream = connector
        .connect("localhost".try_into().unwrap(), socket)
        .await
        .unwrap();
    if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
        return None;
    }
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::task::spawn_local(connection);
    Some(sender)
}

/// GETs a URL; status and body, or the reason of a reset.
async fn get(sender: &mut Sender, url: &str) -> Result<(u16, Vec<u8>), h2::Reason> {
    let request = Request::get(url)
        .version(Version::HTTP_2)
        .body(Empty::new())
        .unwrap();
    sender.ready().await.map_err(|error| reason(&error))?;
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| reason(&error))?;
    let status = response.status().as_u16();
    let body = response
        .into_body()
        .collect()
        .await
        .map_err(|error| reason(&error))?;
    Ok((status, body.to_bytes().to_vec()))
}

fn reason(error: &hyper::Error) -> h2::Reason {
    let source =
        std::error::Error::source(error).and_then(|source| source.downcast_ref::<h2::Error>());
    source
        .and_then(h2::Error::reason)
        .unwrap_or_else(|| panic!("no reset: {error:?}"))
}

struct Secure {
    daemon: Daemon,
    upstream: H2Upstream,
}

impl Secure {
    fn start(protocols: &[&str]) -> Self {
        let authority = Authority::new();
        let tls: Arc<_> = authority.server(&["localhost"], protocols);
        let upstream = H2Upstream::start(Some(tls));
        let daemon = Daemon::start(&json!({ "proxy": { "upstream_ca": [authority.file()] } }));
        Self { daemon, upstream }
    }

    fn name(&self) -> String {
        format!("localhost:{}", self.upstream.address.port())
    }
}

#[test]
fn an_agent_speaks_http_2_by_prior_knowledge_on_every_listener() {
    let own = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap();
    let upstream = H2Upstream::start(None);
    let target = format!("http://{}", upstream.address);
    let config =
        json!({ "routes": [{ "name": "own", "listen": own.to_string(), "upstream": target }] });
    let stage = Stage::with(&config, standard::serve);
    block(async {
        // The route's upstream speaks HTTP/1.1.
        let mut sender = h2c(stage.daemon.proxy).await;
        let url = format!("http://{}/up/bytes/50000", stage.daemon.proxy);
        assert_eq!(
            get(&mut sender, &url).await.unwrap(),
            (200, pattern(50_000))
        );
        // Forward, in clear.
        let url = format!("http://{}/bytes/500", stage.plain.address);
        assert_eq!(get(&mut sender, &url).await.unwrap(), (200, pattern(500)));
        // With trailers, which end the answer.
        let url = format!("http://{}/trailers", stage.plain.address);
        let hello = (200, b"hello".to_vec());
        assert_eq!(get(&mut sender, &url).await.unwrap(), hello);
        // A route's own listener; its upstream speaks HTTP/2.
        let mut sender = h2c(own).await;
        let spoken = get(&mut sender, &format!("http://{own}/version")).await;
        assert_eq!(spoken.unwrap(), (200, b"HTTP/2.0".to_vec()));
        // A prefix, by whatever name the agent knows Squall.
        let mut sender = h2c(stage.daemon.proxy).await;
        let url = "http://squall.internal:9/_scope/s1/up/bytes/10";
        assert_eq!(get(&mut sender, url).await.unwrap(), (200, pattern(10)));
    });
    for exchange in stage.daemon.api.wait_for_exchanges(5) {
        assert_eq!(exchange["outcome"], "ok", "{exchange}");
    }
}

#[test]
fn heads_beyond_the_limits_are_431() {
    let limits = json!({ "header_count": 5, "header_bytes": "8KiB" });
    let stage = Stage::with(&json!({ "proxy": { "limits": limits } }), standard::serve);
    block(async {
        let mut sender = h2c(stage.daemon.proxy).await;
        for (fields, length, status) in [(5, 1, 200), (6, 1, 431), (3, 3000, 431)] {
            let url = format!("http://{}/json", stage.plain.address);
            let mut request = Request::get(url).version(Version::HTTP_2);
            for field in 0..fields {
                request = request.header(format!("x-{field}"), "1".repeat(length));
            }
            let request = request.body(Empty::new()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            assert_eq!(answer.status(), status, "{fields} fields of {length}");
        }
    });
}

#[test]
fn the_agent_is_never_offered_more_than_the_upstream_speaks() {
    let stage = Stage::new();
    block(async {
        let offered = intercepted(&stage.daemon, &stage.secure_authority()).await;
        assert!(
            offered.is_none(),
            "h2 was agreed on for an upstream that speaks HTTP/1.1"
        );
    });
}

#[test]
fn clients_speak_http_2_through_the_tunnel() {
    let secure = Secure::start(&["h2", "http/1.1"]);
    let way = Way {
        url: format!("https://{}/bytes/100000", secure.name()),
        proxy: Some(format!("http://{}", secure.daemon.proxy)),
        ca: Some(secure.daemon.ca.clone()),
    };
    let output = way.curl(&["--http2", "--write-out", "%{stderr}%{http_version}"]);
    assert!(output.stdout == pattern(100_000), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "2");
    let told = way.ask("httpx_get.py", &["--http2"]);
    assert_eq!(told["length"], 100_000, "{told}");
    let headers = told["headers"].to_string();
    assert!(headers.contains("HTTP/2"), "{headers}");
    block(async {
        let mut sender = intercepted(&secure.daemon, &secure.name())
            .await
            .expect("h2 by ALPN");
        let url = format!("https://{}/version", secure.name());
        let spoken = get(&mut sender, &url).await.unwrap();
        assert_eq!(spoken, (200, b"HTTP/2.0".to_vec()), "to the upstream too");
    });
}

#[test]
fn a_tape_speaks_http_2_where_it_was_recorded_so_and_dials_nothing() {
    let secure = Secure::start(&["h2"]);
    let api = secure.daemon.api;
    let url = format!("https://{}/version", secure.name());
    let begun = api.call("POST", "/v1/recordings", Some(&json!({})));
    let id = begun.json()["id"].as_str().unwrap().to_owned();
    block(async {
        let mut sender = intercepted(&secure.daemon, &secure.name()).await.unwrap();
        assert_eq!(get(&mut sender, &url).await.unwrap().0, 200);
    });
    api.wait_for_exchanges(1);
    let stopped = api.call("POST", &format!("/v1/recordings/{id}/stop"), None);
    assert_eq!(stopped.json()["exchanges"], 1, "{}", stopped.text());
    let opened = secure.upstream.opened();
    let tape = "/v1/scopes/default/tape";
    api.activate(tape, &json!({ "recording": id }));
    block(async {
        let mut sender = intercepted(&secure.daemon, &secure.name())
            .await
            .expect("h2 by ALPN");
        let played = get(&mut sender, &url).await.unwrap();
        assert_eq!(played, (200, b"HTTP/2.0".to_vec()));
        let missed = get(&mut sender, &format!("{url}s")).await.unwrap();
        assert_eq!(missed.0, 404);
    });
    // Of what was not recorded nobody knows what it speaks.
    api.activate(tape, &json!({ "session": { "id": "empty" } }));
    block(async {
        let offered = intercepted(&secure.daemon, &secure.name()).await;
        assert!(offered.is_none(), "h2 was agreed on for what nobody knows");
    });
    assert_eq!(secure.upstream.opened(), opened);
    assert_eq!(api.get(tape)["dialled"], 0);
}

#[test]
fn a_faulted_stream_is_reset_with_its_code_and_siblings_complete() {
    let secure = Secure::start(&["h2"]);
    for (rule, reset) in [
        (json!({ "mode": "reset_peer" }), h2::Reason::INTERNAL_ERROR),
        (
            json!({ "mode": "limit_data", "bytes": 100 }),
            h2::Reason::INTERNAL_ERROR,
        ),
        (
            json!({ "mode": "timeout", "delay_ms": 50 }),
            h2::Reason::CANCEL,
        ),
        (json!({ "mode": "refuse" }), h2::Reason::REFUSED_STREAM),
    ] {
        let mut rule = rule;
        rule["match_url"] = json!("*/bytes/50001");
        secure
            .daemon
            .api
            .chaos(&json!({ "network_faults": [rule] }));
        block(async {
            let sender = intercepted(&secure.daemon, &secure.name())
                .await
                .expect("h2 by ALPN");
            let siblings: Vec<_> = (0..8)
                .map(|_| {
                    let mut sender = sender.clone();
                    let url = format!("https://{}/bytes/200000", secure.name());
                    tokio::task::spawn_local(async move { get(&mut sender, &url).await })
                })
                .collect();
            let mut hurt = sender.clone();
            let url = format!("https://{}/bytes/50001", secure.name());
            assert_eq!(get(&mut hurt, &url).await, Err(reset), "{rule}");
            for sibling in siblings {
                assert_eq!(
                    sibling.await.unwrap(),
                    Ok((200, pattern(200_000))),
                    "{rule}"
                );
            }
            let url = format!("https://{}/bytes/10", secure.name());
            assert_eq!(
                get(&mut hurt, &url).await,
                Ok((200, pattern(10))),
                "after {rule}"
            );
        });
    }
}

#[test]
fn a_stream_the_upstream_resets_is_reset_with_the_same_code() {
    let secure = Secure::start(&["h2"]);
    block(async {
        let mut sender = intercepted(&secure.daemon, &secure.name())
            .await
            .expect("h2 by ALPN");
        for reset in [
            h2::Reason::REFUSED_STREAM,
            h2::Reason::ENHANCE_YOUR_CALM,
            h2::Reason::CANCEL,
        ] {
            let url = format!("https://{}/reset/{}", secure.name(), u32::from(reset));
            assert_eq!(get(&mut sender, &url).await, Err(reset));
        }
        let url = format!("https://{}/bytes/10", secure.name());
        assert_eq!(get(&mut sender, &url).await, Ok((200, pattern(10))));
    });
}

#[test]
fn a_request_without_a_body_gains_no_length() {
    let upstream = H2Upstream::start(None);
    let daemon = Daemon::start(&json!({}));
    block(async {
        let socket = TcpStream::connect(daemon.proxy).await.unwrap();
        let (sender, connection) = h2::client::handshake(socket).await.unwrap();
        tokio::task::spawn_local(connection);
        for method in ["OPTIONS", "POST", "GET"] {
            let mut sender = sender.clone().ready().await.unwrap();
            let request = Request::builder()
                .method(method)
                .uri(format!("http://{}/length", upstream.address))
                .version(Version::HTTP_2)
                .body(())
                .unwrap();
            let (answer, _) = sender.send_request(request, true).unwrap();
            let mut body = answer.await.unwrap().into_body();
            let said = body.data().await.unwrap().unwrap();
            assert_eq!(said, "none", "{method}");
        }
    });
}

#[test]
fn grpc_passes_with_its_trailers_encrypted_and_in_clear_and_meets_faults() {
    let secure = Secure::start(&["h2"]);
    let clear = H2Upstream::start(None);
    let proxy = Some(format!("http://{}", secure.daemon.proxy));
    let passed = json!({
        "ok": true, "unary": "hello", "code": "OK", "echoes": ["one", "two", "three"],
    });
    for url in [
        format!("https://{}", secure.name()),
        format!("http://{}", clear.address),
    ] {
        let ca = Some(secure.daemon.ca.clone());
        let proxy = proxy.clone();
        let way = Way { url, proxy, ca };
        assert_eq!(way.ask("grpc_echo.py", &[]), passed, "{way:?}");
    }
    for call in secure.daemon.api.wait_for_exchanges(4) {
        assert_eq!(call["outcome"], "ok", "{call}");
    }
    // Each channel has a CONNECT of its own.
    let rule = json!({ "mode": "error", "error_code": 503 });
    let chaos = json!({ "tool_faults": [rule] });
    secure.daemon.api.chaos(&chaos);
    let url = format!("http://{}", clear.address);
    let way = Way {
        url,
        proxy,
        ca: None,
    };
    let told = way.ask("grpc_echo.py", &["--channels", "20"]);
    assert_eq!(told["codes"], json!(vec!["UNAVAILABLE"; 20]), "{told}");
}
