//! HTTP/2: finding out who speaks it, sharing connections, codes both ways.

use std::cell::Cell;
use std::rc::Rc;

use http::StatusCode;
use squall_profiles::plan::Ending;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

type H2Peer = h2::server::Connection<TcpStream, Bytes>;

async fn accept_h2(script: &Script) -> H2Peer {
    h2::server::handshake(script.accept().await.0)
        .await
        .unwrap()
}

/// Serves `connection` in the background: every request gets "ok".
fn serve_ok(mut connection: H2Peer, served: Rc<Cell<usize>>) {
    spawn_local(async move {
        while let Some(Ok((_, mut respond))) = connection.accept().await {
            served.set(served.get() + 1);
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
        }
    });
}

#[test]
fn a_clear_text_upstream_that_speaks_http2_gets_it_on_one_connection() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let all: Vec<_> = (0..10)
            .map(|_| send(&upstreams, &origin, get(Version::HTTP_2)))
            .collect();
        let served = Rc::new(Cell::new(0));
        serve_ok(accept_h2(&script).await, served.clone());
        for sent in all {
            let response = sent.await.unwrap().unwrap();
            assert_eq!(response.version(), Version::HTTP_2);
            assert_eq!(text(response).await, "ok");
        }
        assert_eq!(served.get(), 10);
        assert_eq!(upstreams.shared().counters().opened(), 1);
        assert!(upstreams.is_reachable(&origin));
    });
}

#[test]
fn a_clear_text_upstream_that_does_not_is_asked_once() {
    on_worker(async {
        for reply in [
            Some("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
            None,
        ] {
            let (script, upstreams) = (Script::listen().await, upstreams());
            let sent = send(&upstreams, &script.origin(), get(Version::HTTP_2));
            let mut asked = script.accept().await;
            assert_eq!(asked.head().await, "PRI * HTTP/2.0\r\n\r\n");
            match reply {
                Some(reply) => asked.say(reply).await,
                None => drop(asked),
            }
            let mut peer = script.accept().await;
            let head = peer.answer(OK).await;
            assert!(head.starts_with("GET /path?query HTTP/1.1\r\n"), "{head}");
            assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");

            let again = send(&upstreams, &script.origin(), get(Version::HTTP_2));
            peer.answer(OK).await;
            assert_eq!(text(again.await.unwrap().unwrap()).await, "ok");
            assert_eq!(upstreams.shared().counters().opened(), 2);
        }
    });
}

#[test]
fn an_http1_exchange_goes_out_as_http1_even_where_http2_is_spoken() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let sent = send(&upstreams, &origin, get(Version::HTTP_2));
        serve_ok(accept_h2(&script).await, Rc::default());
        text(sent.await.unwrap().unwrap()).await;
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        script.accept().await.answer(OK).await;
        assert_eq!(sent.await.unwrap().unwrap().version(), Version::HTTP_11);
    });
}

#[test]
fn a_streams_code_is_passed_on_before_and_within_the_answer() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let first = send(&upstreams, &origin, get(Version::HTTP_2));
        let mut connection = accept_h2(&script).await;
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        respond.send_reset(h2::Reason::ENHANCE_YOUR_CALM);
        let second = send(&upstreams, &origin, get(Version::HTTP_2));
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        let error = first.await.unwrap().unwrap_err();
        assert_eq!(error.reason(), "h2");
        let broken = match error.to_agent() {
            ToAgent::Break(broken) => broken,
            ToAgent::Problem(status) => panic!("{status}"),
        };
        assert_eq!(broken.reason(), h2::Reason::ENHANCE_YOUR_CALM);

        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"some"), false).unwrap();
        spawn_local(async move { while connection.accept().await.is_some() {} });
        let mut received = second.await.unwrap().unwrap().into_body();
        received.frame().await.unwrap().unwrap();
        body.send_reset(h2::Reason::REFUSED_STREAM);
        let broken = received.frame().await.unwrap().unwrap_err();
        assert_eq!(broken.reason(), h2::Reason::REFUSED_STREAM);
        assert!(upstreams.is_reachable(&origin), "siblings live on");
    });
}

#[test]
fn a_connection_that_ends_is_told_as_fin_or_rst() {
    on_worker(async {
        let mut kept = Vec::new();
        for (reset, ending) in [(false, Ending::Close), (true, Ending::Reset)] {
            let (script, upstreams) = (Script::listen().await, upstreams());
            let sent = send(&upstreams, &script.origin(), get(Version::HTTP_2));
            // SETTINGS, so that it counts as HTTP/2, and then nothing more.
            let mut peer = script.accept().await;
            peer.say("\0\0\0\x04\0\0\0\0\0").await;
            let mut preface = [0; 24];
            peer.0.read_exact(&mut preface).await.unwrap();
            wait_for_headers(&mut peer).await;
            if reset {
                peer.reset();
            } else {
                // Kept: closing with frames unread would be an RST.
                peer.0.shutdown().await.unwrap();
                kept.push(peer);
            }
            let broken = match sent.await.unwrap().unwrap_err().to_agent() {
                ToAgent::Break(broken) => broken,
                ToAgent::Problem(status) => panic!("{status}"),
            };
            assert_eq!(broken.ending(), ending);
        }
    });
}

/// Reads frames up to the first HEADERS.
async fn wait_for_headers(peer: &mut Peer) {
    loop {
        let mut head = [0; 9];
        peer.0.read_exact(&mut head).await.unwrap();
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        peer.0.read_exact(&mut vec![0; length]).await.unwrap();
        if head[3] == 1 {
            return;
        }
    }
}

#[test]
fn an_agent_that_goes_away_resets_its_stream_only() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let gone = send(&upstreams, &origin, get(Version::HTTP_2));
        let mut connection = accept_h2(&script).await;
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        let stays = send(&upstreams, &origin, get(Version::HTTP_2));
        let (_, mut sibling) = connection.accept().await.unwrap().unwrap();
        spawn_local(async move { while connection.accept().await.is_some() {} });
        gone.abort();
        let reason = std::future::poll_fn(|cx| respond.poll_reset(cx))
            .await
            .unwrap();
        assert_eq!(reason, h2::Reason::CANCEL);

        let mut body = sibling.send_response(Response::new(()), false).unwrap();
        let received = stays.await.unwrap().unwrap();
        body.send_data(Bytes::from_static(b"some"), false).unwrap();
        drop(received);
        let reason = std::future::poll_fn(|cx| body.poll_reset(cx))
            .await
            .unwrap();
        assert_eq!(reason, h2::Reason::CANCEL);
    });
}

#[test]
fn past_the_upstreams_limit_of_streams_another_connection_is_opened() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let accept = async || -> H2Peer {
            let io = script.accept().await.0;
            h2::server::Builder::new()
                .max_concurrent_streams(1)
                .handshake(io)
                .await
                .unwrap()
        };
        let first = send(&upstreams, &origin, get(Version::HTTP_2));
        let mut one = accept().await;
        let (_, mut respond) = one.accept().await.unwrap().unwrap();
        let mut open = respond.send_response(Response::new(()), false).unwrap();
        spawn_local(async move { while one.accept().await.is_some() {} });
        let first = first.await.unwrap().unwrap();

        let second = send(&upstreams, &origin, get(Version::HTTP_2));
        serve_ok(accept().await, Rc::default());
        assert_eq!(text(second.await.unwrap().unwrap()).await, "ok");
        open.send_data(Bytes::from_static(b"late"), true).unwrap();
        assert_eq!(text(first).await, "late");
    });
}

#[test]
fn a_connection_that_said_goaway_is_not_used_again() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        for _ in 0..2 {
            let sent = send(&upstreams, &origin, get(Version::HTTP_2));
            let mut connection = accept_h2(&script).await;
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            connection.graceful_shutdown();
            let mut body = respond.send_response(Response::new(()), false).unwrap();
            body.send_data(Bytes::from_static(b"ok"), true).unwrap();
            let closed = spawn_local(async move { while connection.accept().await.is_some() {} });
            let response = sent.await.unwrap().unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(text(response).await, "ok");
            closed.await.unwrap();
        }
    });
}
