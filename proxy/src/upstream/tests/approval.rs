//! Hosts that a run reaches only once somebody has approved it.

use http::StatusCode;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

fn listing(approval: &[&str]) -> ProxyConfig {
    let mut config = config();
    config.approval = approval.iter().map(|entry| (*entry).to_owned()).collect();
    config
}

#[test]
fn an_unapproved_run_dials_a_listed_host_in_no_form_and_everybody_else_does() {
    on_worker(async {
        let script = Script::listen().await;
        let port = script.address().port();
        let address = format!("127.0.0.1:{port}");
        let mut config = listing(&[&address, "listed.example"]);
        config.connect_to = vec![
            ("detour.example:80".into(), address.clone()),
            (
                "by-name.example:80".into(),
                format!("listed.example:{port}"),
            ),
        ];
        let names: [(&str, &[&str]); 4] = [
            ("innocent.example", &["127.0.0.1"]),
            ("mapped.example", &["::ffff:127.0.0.1"]),
            ("listed.example", &["127.0.0.1"]),
            ("listed.example.", &["127.0.0.1"]),
        ];
        let upstreams = upstreams_where(&config, &names);
        let mut origins: Vec<_> = [
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "[::ffff:7f00:1]",
            "localhost.",
            "innocent.example",
            "mapped.example",
            "LISTED.example",
            "listed.example.",
        ]
        .map(|host| UpstreamOrigin::new(Scheme::Http, host, port))
        .into();
        origins.push(UpstreamOrigin::new(Scheme::Http, "detour.example", 80));
        origins.push(UpstreamOrigin::new(Scheme::Http, "by-name.example", 80));
        for origin in origins {
            let unapproved = upstreams.origin_for(origin.clone(), true);
            let error = upstreams.connect_tcp(&unapproved).await.unwrap_err();
            let denied = ToAgent::Problem(StatusCode::FORBIDDEN);
            assert_eq!(
                format!("{:?}", error.to_agent()),
                format!("{denied:?}"),
                "{error}"
            );
            assert!(error.to_string().contains("`approval` has"), "{error}");
            let addresses = upstreams.shared().addresses(&unapproved).await;
            let goes_elsewhere = origin.port() == 80;
            assert!(addresses.is_err() || goes_elsewhere, "{origin}");
            let dialled = upstreams.connect_tcp(&origin).await;
            assert!(dialled.is_ok(), "{origin}");
        }
    });
}

#[test]
#[rustfmt::skip]
fn names_in_tls_and_in_host_count_and_other_ports_do_not() {
    let upstreams = upstreams_of(&listing(&["listed.example:443"]));
    let other = UpstreamOrigin::new(Scheme::Https, "other.example", 443);
    for (origin, unapproved, may) in [
        (other.clone(), true, true),
        (other.clone().with_server_name("Listed.example"), true, false),
        (other.clone().with_server_name("listed.example"), false, true),
        (UpstreamOrigin::new(Scheme::Https, "listed.example", 443), true, false),
        (UpstreamOrigin::new(Scheme::Http, "listed.example", 80), true, true),
    ] {
        let origin = upstreams.origin_for(origin, unapproved);
        assert_eq!(upstreams.check(&origin).is_ok(), may, "{origin:?}");
    }
    for (host, unapproved, may) in [
        ("other.example", true, true),
        ("listed.example", true, false),
        ("LISTED.example.:8443", true, false),
        ("listed.example", false, true),
        ("", true, true),
    ] {
        let origin = upstreams.origin_for(other.clone(), unapproved);
        let host = HeaderValue::from_static(host);
        assert_eq!(
            upstreams.check_host(&origin, &host).is_ok(),
            may,
            "{host:?}"
        );
    }
}

#[test]
fn an_unapproved_run_takes_no_connection_that_another_scope_made() {
    on_worker(async {
        let (script, names) = (Script::listen().await, [("up.example", &["127.0.0.1"][..])]);
        let upstreams = upstreams_where(&listing(&["127.0.0.1"]), &names);
        let origin = UpstreamOrigin::new(Scheme::Http, "up.example", script.address().port());
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        text(sent.await.unwrap().unwrap()).await;
        let unapproved = upstreams.origin_for(origin.clone(), true);
        assert!(upstreams.is_reachable(&origin) && !upstreams.is_reachable(&unapproved));
        let sent = upstreams.send(
            &unapproved,
            get(Version::HTTP_11),
            &OriginalNames::default(),
        );
        assert_eq!(sent.await.unwrap_err().reason(), "denied");

        let dialled = upstreams.connect_tcp(&origin).await.unwrap();
        let learned = upstreams.learn_alpn(&unapproved, Some(dialled), Alpn::Http1);
        assert_eq!(learned.await.unwrap_err().reason(), "denied");

        // Where nothing needs approval, all scopes share their connections.
        upstreams.shared().reload(&config()).unwrap();
        assert_eq!(upstreams.origin_for(origin.clone(), true), origin);
    });
}
