//! Getting there: resolving, trying addresses, being denied, going through another proxy.

use std::time::Duration;

use futures_util::FutureExt as _;
use http::StatusCode;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// An address that takes connections into a full queue and never answers.
fn hanging(address: &str) -> (socket2::Socket, Vec<socket2::Socket>, SocketAddr) {
    let new = || {
        let tcp = Some(socket2::Protocol::TCP);
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, tcp);
        let socket = socket.unwrap();
        socket.set_nonblocking(true).unwrap();
        socket
    };
    let listener = new();
    let address: SocketAddr = address.parse().unwrap();
    listener.bind(&address.into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let queued = (0..3)
        .map(|_| new())
        .inspect(|s| drop(s.connect(&address.into())))
        .collect();
    (listener, queued, address)
}

#[test]
fn an_address_that_hangs_does_not_keep_the_next_one_from_being_tried() {
    on_worker(async {
        let (_listener, _queued, hung) = hanging("127.0.0.1:0");
        let script = Script::listen_on(&format!("127.0.0.2:{}", hung.port())).await;
        let names: [(&str, &[&str]); 1] = [("up.example", &["127.0.0.1", "127.0.0.2"])];
        let upstreams = upstreams_where(&config(), &names);
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", hung.port());
        let dialled = upstreams.connect_tcp(&origin).await.unwrap();
        assert_eq!(dialled.address(), script.address());
    });
}

#[test]
fn an_upstream_that_hangs_on_connect_is_a_504() {
    on_worker(async {
        let (_listener, _queued, hung) = hanging("127.0.0.1:0");
        let mut config = config();
        config.upstream.connect = Duration::from_millis(50);
        let origin = UpstreamOrigin::new(Scheme::Http, "127.0.0.1", hung.port());
        let error = upstreams_of(&config)
            .connect_tcp(&origin)
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "connect_timeout");
        assert!(error.to_string().contains(&hung.to_string()), "{error}");
        assert!(matches!(
            error.to_agent(),
            ToAgent::Problem(StatusCode::GATEWAY_TIMEOUT)
        ));
    });
}

#[test]
fn a_refusal_names_every_address_that_refused() {
    on_worker(async {
        let port = Script::listen().await.address().port();
        let names: [(&str, &[&str]); 1] = [("up.example", &["127.0.0.1", "127.0.0.2"])];
        let upstreams = upstreams_where(&config(), &names);
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", port);
        let error = upstreams
            .send(&origin, get(Version::HTTP_11), &OriginalNames::default())
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "refused");
        assert_eq!(
            error.to_string(),
            format!(
                "up.example:{port} refused the connection (at 127.0.0.1:{port} and \
                 127.0.0.2:{port}); is the upstream running?"
            )
        );
        assert!(matches!(
            error.to_agent(),
            ToAgent::Problem(StatusCode::BAD_GATEWAY)
        ));
    });
}

#[test]
fn a_name_without_an_address_is_a_dns_failure() {
    on_worker(async {
        let upstreams = upstreams_where(&config(), &[]);
        let origin = UpstreamOrigin::new(Scheme::Http, "nowhere.example", 80);
        let error = upstreams
            .send(&origin, get(Version::HTTP_11), &OriginalNames::default())
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "dns");
        assert!(matches!(
            error.to_agent(),
            ToAgent::Problem(StatusCode::BAD_GATEWAY)
        ));
    });
}

#[test]
fn connect_to_changes_what_is_dialled_and_nothing_else() {
    on_worker(async {
        let script = Script::listen().await;
        let mut config = config();
        config.connect_to = vec![("up.example:80".into(), script.address().to_string())];
        let upstreams = upstreams_where(&config, &[]);
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 80);
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let head = script.accept().await.answer(OK).await;
        assert!(head.contains("host: up.example\r\n"), "{head}");
        assert_eq!(sent.await.unwrap().unwrap().status(), StatusCode::OK);
    });
}

#[test]
fn an_innocent_name_does_not_hide_a_denied_address() {
    on_worker(async {
        let mut config = config();
        config.deny = vec!["127.0.0.0/8".into()];
        let script = Script::listen().await;
        let names: [(&str, &[&str]); 2] = [
            ("up.example", &["127.0.0.1"]),
            ("mapped.example", &["::ffff:127.0.0.1"]),
        ];
        let upstreams = upstreams_where(&config, &names);
        for name in ["up.example", "mapped.example"] {
            let origin = UpstreamOrigin::new(Scheme::Http, name, script.address().port());
            assert!(
                upstreams.check(&origin).is_ok(),
                "the name alone is allowed"
            );
            let error = upstreams.connect_tcp(&origin).await.unwrap_err();
            assert_eq!(error.reason(), "denied");
            assert!(matches!(
                error.to_agent(),
                ToAgent::Problem(StatusCode::FORBIDDEN)
            ));
        }
        assert_eq!(upstreams.shared().counters().opened(), 0);
    });
}

#[test]
fn of_several_addresses_only_allowed_ones_are_dialled() {
    on_worker(async {
        let denied = Script::listen().await;
        let port = denied.address().port();
        let allowed = Script::listen_on(&format!("127.0.0.2:{port}")).await;
        let mut config = config();
        config.deny = vec!["127.0.0.1".into()];
        let names: [(&str, &[&str]); 1] = [("up.example", &["127.0.0.1", "127.0.0.2"])];
        let upstreams = upstreams_where(&config, &names);
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", port);
        let dialled = upstreams.connect_tcp(&origin).await.unwrap();
        assert_eq!(dialled.address(), allowed.address());
    });
}

#[test]
fn squalls_own_listeners_are_a_loop() {
    on_worker(async {
        let script = Script::listen().await;
        let port = script.address().port();
        let names: [(&str, &[&str]); 1] = [("me.example", &["127.0.0.1"])];
        let upstreams = upstreams_where(&config(), &names);
        upstreams
            .shared()
            .set_own_listeners(OwnListeners::new([script.address()]));
        for host in ["me.example", "127.0.0.1", "0.0.0.0", "::ffff:127.0.0.1"] {
            let origin = UpstreamOrigin::new(Scheme::Http, host, port);
            let error = upstreams.connect_tcp(&origin).await.unwrap_err();
            assert_eq!(error.reason(), "loop", "{host}");
            assert!(matches!(
                error.to_agent(),
                ToAgent::Problem(StatusCode::LOOP_DETECTED)
            ));
        }
    });
}

#[test]
fn a_reload_is_in_force_for_pooled_connections_too() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        text(sent.await.unwrap().unwrap()).await;
        assert!(upstreams.is_reachable(&origin));

        let mut stricter = config();
        stricter.deny = vec!["127.0.0.1".into()];
        upstreams.shared().reload(&stricter).unwrap();
        assert!(!upstreams.is_reachable(&origin));
        let error = upstreams
            .send(&origin, get(Version::HTTP_11), &OriginalNames::default())
            .await
            .unwrap_err();
        assert_eq!(error.reason(), "denied");
        assert!(peer.is_closed().await);
    });
}

#[test]
fn an_origin_dialled_for_a_tunnel_is_reachable_for_a_second() {
    on_worker(async {
        tokio::time::pause();
        let upstreams = upstreams();
        let origin = UpstreamOrigin::new(Scheme::Https, "up.example", 443);
        let other = UpstreamOrigin::new(Scheme::Https, "up.example", 8443);
        assert!(!upstreams.is_reachable(&origin));
        upstreams.note_reached(&origin);
        assert!(upstreams.is_reachable(&origin) && !upstreams.is_reachable(&other));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(!upstreams.is_reachable(&origin));
    });
}

#[test]
fn a_dialled_socket_serves_the_first_request() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let dialled = upstreams.connect_tcp(&origin).await.unwrap();
        let mut peer = script.accept().await;
        upstreams.keep(&origin, dialled).await.unwrap();
        assert!(upstreams.is_reachable(&origin));
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        peer.answer(OK).await;
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        assert_eq!(upstreams.shared().counters().opened(), 1);
    });
}

#[test]
fn an_upstream_that_speaks_first_is_heard_and_loses_no_byte() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let dialled = upstreams.connect_tcp(&script.origin()).await.unwrap();
        let mut peer = script.accept().await;
        peer.say("220 hi").await;
        dialled.speaks().await;
        let mut stream = dialled.into_stream();
        let mut heard = [0; 6];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"220 hi");
        assert_eq!(upstreams.shared().counters().open(), 1);
        drop(stream);
        assert_eq!(upstreams.shared().counters().open(), 0);
    });
}

#[test]
fn an_upstream_that_begins_with_settings_waits_for_the_preface() {
    on_worker(async {
        for (said, speaks) in [
            ("\0\0\x12\x04\0\0\0\0\0\0\x04", false),
            ("\0\0\0\x04\0\0\0\0\0", false),
            ("\0\0\0\x04\x01\0\0\0\0", true), // an acknowledgement of nothing
            ("220 hi", true),
        ] {
            let (script, upstreams) = (Script::listen().await, upstreams());
            let dialled = upstreams.connect_tcp(&script.origin()).await.unwrap();
            let mut peer = script.accept().await;
            peer.say(said).await;
            dialled.socket.readable().await.unwrap();
            assert_eq!(
                dialled.speaks().now_or_never().is_some(),
                speaks,
                "{said:?}"
            );
            let mut heard = vec![0; said.len()];
            dialled.into_stream().read_exact(&mut heard).await.unwrap();
            assert_eq!(heard, said.as_bytes());
        }
    });
}

async fn behind_a_proxy(credentials: &str) -> (Script, Upstreams) {
    let script = Script::listen().await;
    let mut config = config();
    config.upstream_proxy = Some(format!("http://{credentials}{}", script.address()));
    (script, upstreams_where(&config, &[]))
}

#[test]
fn another_proxy_takes_clear_requests_in_absolute_form() {
    on_worker(async {
        let (script, upstreams) = behind_a_proxy("u:p@").await;
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", 80);
        // An HTTP/2 exchange goes through it as HTTP/1.1.
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let sent = send(&upstreams, &origin, get(version));
            let head = script.accept().await.answer(OK).await;
            assert!(
                head.starts_with("GET http://up.example/path?query HTTP/1.1\r\n"),
                "{head}"
            );
            assert!(
                head.contains("proxy-authorization: Basic dTpw\r\n"),
                "{head}"
            );
            assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
            upstreams.close_idle();
        }
    });
}

#[test]
fn what_is_denied_here_is_not_left_to_another_proxy() {
    on_worker(async {
        let (chained, own) = (Script::listen().await, Script::listen().await);
        let mut config = config();
        config.upstream_proxy = Some(format!("http://{}", chained.address()));
        config.deny = vec!["10.0.0.0/8".into()];
        let names: [(&str, &[&str]); 4] = [
            ("me.example", &["127.0.0.1"]),
            ("far.example", &["192.0.2.1"]),
            ("meta.example", &["169.254.169.254"]),
            ("half.example", &["192.0.2.1", "10.1.1.1"]),
        ];
        let upstreams = upstreams_where(&config, &names);
        upstreams
            .shared()
            .set_own_listeners(OwnListeners::new([own.address()]));
        let port = own.address().port();
        for (host, port, reason) in [
            ("me.example", port, "loop"),
            ("localhost", port, "loop"),
            ("api.localhost.", port, "loop"),
            ("127.1", port, "loop"),
            ("0", port, "loop"),
            ("0x7f000001", port, "loop"),
            // Elsewhere when this machine looks; the other proxy looks again.
            ("nowhere.example", port, "denied"),
            ("far.example", port, "denied"),
            ("meta.example", 80, "denied"),
            ("half.example", 80, "denied"),
            ("2852039166", 80, "denied"),
            ("169.254.169.254.", 80, "denied"),
            ("425.510.425.510", 80, "denied"),
            ("012.1.1.1", 80, "denied"),
        ] {
            for scheme in [Scheme::Http, Scheme::Https] {
                let origin = UpstreamOrigin::new(scheme, host, port);
                let error = upstreams
                    .send(&origin, get(Version::HTTP_11), &OriginalNames::default())
                    .await
                    .unwrap_err();
                assert_eq!(error.reason(), reason, "{origin}");
            }
        }
        assert_eq!(upstreams.shared().counters().opened(), 0);
    });
}

#[test]
fn what_a_suite_may_not_dial_of_squall_itself_is_known_at_once() {
    let shared = Shared::new(&config()).unwrap();
    shared.set_own_listeners(OwnListeners::new(["127.0.0.1:7071".parse().unwrap()]));
    for (host, said) in [
        (
            "127.0.0.1",
            "127.0.0.1:7071 is one of Squall's own listeners",
        ),
        (
            "localhost",
            "localhost:7071 leads to 127.0.0.1:7071 and is one of",
        ),
    ] {
        let origin = UpstreamOrigin::new(Scheme::Http, host, 7071);
        let error = shared.check(&origin).unwrap_err().to_string();
        assert!(error.starts_with(said), "{error}");
    }
}

#[test]
fn a_name_that_only_an_address_could_allow_is_not_left_to_another_proxy() {
    on_worker(async {
        let chained = Script::listen().await;
        let mut config = config();
        config.upstream_proxy = Some(format!("http://{}", chained.address()));
        config.allow = vec!["192.0.2.0/24".into()];
        let names: [(&str, &[&str]); 1] = [("other.example", &["198.51.100.1"])];
        let upstreams = upstreams_where(&config, &names);
        for host in ["other.example", "nowhere.example"] {
            let origin = UpstreamOrigin::new(Scheme::Https, host, 443);
            let error = upstreams.connect_tcp(&origin).await.unwrap_err();
            assert_eq!(error.reason(), "denied", "{host}");
        }
        assert_eq!(upstreams.shared().counters().opened(), 0);
    });
}

#[test]
fn another_proxy_is_asked_for_a_tunnel_and_its_first_bytes_are_kept() {
    on_worker(async {
        let (script, upstreams) = behind_a_proxy("").await;
        let dialling = upstreams.clone();
        let origin = UpstreamOrigin::new(Scheme::Https, "up.example", 443);
        let dialled = spawn_local(async move { dialling.connect_tcp(&origin).await });
        let mut peer = script.accept().await;
        let head = peer.answer("HTTP/1.1 200 Fine\r\nX: y\r\n\r\nfirst").await;
        assert_eq!(
            head,
            "CONNECT up.example:443 HTTP/1.1\r\nHost: up.example:443\r\n\r\n"
        );
        let mut stream = dialled.await.unwrap().unwrap().into_stream();
        let mut first = [0; 5];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"first");
    });
}

#[test]
fn another_proxy_that_says_no_is_quoted() {
    on_worker(async {
        for (answer, told) in [
            (
                "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
                "407 Proxy Authentication",
            ),
            ("HTTP/1.1 503\r\n\r\n", "503"),
            ("SSH-2.0\r\n\r\n", "not HTTP"),
        ] {
            let (script, upstreams) = behind_a_proxy("u:secret@").await;
            let origin = UpstreamOrigin::new(Scheme::Https, "up.example", 443);
            let sent = send(&upstreams, &origin, get(Version::HTTP_11));
            script.accept().await.answer(answer).await;
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), "proxy_refused");
            let text = error.to_string();
            assert!(text.contains(told) && !text.contains("secret"), "{text}");
        }
    });
}
