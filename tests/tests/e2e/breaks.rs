//! What breaks upstream breaks the same way to the agent, whatever the client and the path.

use squall_tests::program::Way;
use squall_tests::{End, Path, Stage, Upstream};

use crate::oracle::{self, Oracle};

const BREAKS: [(&str, Oracle); 4] = [
    ("/break/reset", oracle::RESET),
    ("/break/close", oracle::CLOSED),
    ("/break/short", oracle::SHORT),
    ("/break/unfinished", oracle::UNFINISHED),
];

#[test]
fn clients_report_breaks_of_the_upstream_itself_as_the_oracles_say() {
    let upstream = Upstream::plain();
    let mut wrong = Vec::new();
    for (target, oracle) in BREAKS {
        let way = Way::direct(format!("http://{}{target}", upstream.address));
        wrong.extend(oracle.disagreements(&way));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn passes_on_as_it_broke(path: Path) {
    let stage = Stage::new();
    let wrong: Vec<_> = BREAKS
        .iter()
        .flat_map(|(target, oracle)| oracle.disagreements(&stage.way(path, target)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_client_reports_a_break_behind_a_forward_proxy_as_it_broke() {
    passes_on_as_it_broke(Path::Forward);
}

#[test]
fn every_client_reports_a_break_inside_an_intercepted_tunnel_as_it_broke() {
    passes_on_as_it_broke(Path::Intercepted);
}

#[test]
fn every_client_reports_a_break_behind_a_route_as_it_broke() {
    passes_on_as_it_broke(Path::Reverse);
}

#[test]
fn every_byte_before_a_break_arrives_and_the_break_keeps_its_kind() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for (target, length, end) in [
            ("/break/short", 1000, End::Closed),
            ("/break/unfinished", 5, End::Closed),
            ("/break/short-reset", 1000, End::Reset),
        ] {
            let mut wire = stage.open(path);
            wire.request("GET", target, &[], b"");
            let head = wire.receive_until("\r\n\r\n");
            assert!(
                head.starts_with(b"HTTP/1.1 200 OK\r\n"),
                "{path:?} {target}"
            );
            if end == End::Reset {
                // The body is on the client's side before the upstream resets.
                assert_eq!(wire.receive(length).len(), length, "{path:?} {target}");
                stage.upstream(path).step();
                assert_eq!(wire.rest().1, end, "{path:?} {target}");
            } else {
                let (body, how) = wire.rest();
                let body = String::from_utf8_lossy(&body);
                assert!(
                    body.len() >= length && body.len() < 1020,
                    "{path:?} {target}: {body}"
                );
                assert!(
                    !body.ends_with("0\r\n\r\n"),
                    "{path:?} {target}: a clean end: {body}"
                );
                assert_eq!(how, end, "{path:?} {target}");
            }
        }
    }
}
