//! HTTP/1.1: pooling, replacement, breaks, cancelling, upgrades, `Expect`.

use std::fmt::Write as _;
use std::time::Duration;

use http::{Method, StatusCode};
use http_body_util::StreamBody;
use squall_profiles::plan::Ending;
use tokio::sync::mpsc;

use super::*;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[test]
#[rustfmt::skip]
fn a_connection_is_used_again_for_every_kind_of_body() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let answers = [
            (Method::GET, OK, "ok"),
            (Method::GET, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", "a"),
            (Method::HEAD, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", ""),
            (Method::GET, "HTTP/1.1 204 No Content\r\n\r\n", ""),
            (Method::POST, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
            (Method::GET, OK, "ok"),
        ];
        let texts = answers.each_ref().map(|(_, answer, _)| *answer);
        let serving = spawn_local(async move {
            let mut peer = script.accept().await;
            for answer in texts {
                peer.answer(answer).await;
            }
        });
        for (method, answer, body) in answers {
            let mut request = get(Version::HTTP_11);
            *request.method_mut() = method;
            let response = upstreams
                .send(&origin, request, &OriginalNames::default())
                .await
                .unwrap();
            assert_eq!(text(response).await, body, "{answer}");
        }
        serving.await.unwrap();
        assert_eq!(upstreams.shared().counters().opened(), 1);
    });
}

#[test]
fn a_request_is_written_as_the_agent_wrote_it() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let mut request = get(Version::HTTP_11);
        request.headers_mut().insert("x-b", "1".parse().unwrap());
        request.headers_mut().insert("a", "2".parse().unwrap());
        let sent = send(&upstreams, &script.origin(), request);
        let head = script.accept().await.answer(OK).await;
        assert_eq!(sent.await.unwrap().unwrap().status(), StatusCode::OK);
        let host = script.address();
        assert_eq!(
            head,
            format!("GET /path?query HTTP/1.1\r\nx-b: 1\r\na: 2\r\nhost: {host}\r\n\r\n")
        );
    });
}

#[test]
fn a_pooled_connection_found_closed_before_the_first_byte_is_replaced() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let sent = send(&upstreams, &origin, get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        assert!(upstreams.is_reachable(&origin));

        // The agent's request and the upstream's FIN become known in one turn of the reactor, the
        // request first: it is handed to a connection that nobody knows to be closed.
        let agents = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = agents.local_addr().unwrap();
        let sending = upstreams.clone();
        let sent = spawn_local(async move {
            agents.accept().await.unwrap();
            sending
                .send(&origin, post(whole("body")), &OriginalNames::default())
                .await
        });
        tokio::task::yield_now().await;
        let _agent = std::net::TcpStream::connect(address).unwrap();
        drop(peer);
        let mut peer = script.accept().await;
        let head = peer.answer(OK).await;
        assert!(head.starts_with("POST / "), "{head}");
        assert_eq!(peer.read(4).await, "body");
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        assert_eq!(upstreams.shared().counters().replaced(), 1);
    });
}

#[test]
fn a_request_that_was_written_is_never_sent_again() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let origin = script.origin();
        let first = send(&upstreams, &origin, get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        assert_eq!(text(first.await.unwrap().unwrap()).await, "ok");

        let second = send(&upstreams, &origin, get(Version::HTTP_11));
        peer.head().await;
        drop(peer);
        assert_eq!(second.await.unwrap().unwrap_err().reason(), "closed");
        assert_eq!(upstreams.shared().counters().opened(), 1);
    });
}

#[test]
fn a_break_before_the_head_is_passed_on_as_it_was() {
    on_worker(async {
        for (reset, reason, ending) in [
            (false, "closed", Ending::Close),
            (true, "reset", Ending::Reset),
        ] {
            let (script, upstreams) = (Script::listen().await, upstreams());
            let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
            let mut peer = script.accept().await;
            peer.head().await;
            if reset {
                peer.reset();
            } else {
                drop(peer);
            }
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), reason);
            assert!(matches!(error.to_agent(), ToAgent::Break(b) if b.ending() == ending));
        }
    });
}

#[test]
fn a_break_in_the_body_is_passed_on_as_it_was_after_the_bytes_before_it() {
    on_worker(async {
        for head in ["Content-Length: 9", "Transfer-Encoding: chunked"] {
            for ending in [Ending::Close, Ending::Reset] {
                let (script, upstreams) = (Script::listen().await, upstreams());
                let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
                let mut peer = script.accept().await;
                peer.head().await;
                peer.say(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n3\r\nabc\r\n"))
                    .await;
                let mut body = sent.await.unwrap().unwrap().into_body();
                let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
                assert!(!first.is_empty());
                match ending {
                    Ending::Close => drop(peer),
                    Ending::Reset => peer.reset(),
                }
                let broken = body.collect().await.unwrap_err();
                assert_eq!(broken.ending(), ending, "{head}: {broken}");
            }
        }
    });
}

#[test]
fn ambiguous_framing_is_a_502_and_never_an_answer() {
    on_worker(async {
        for head in [
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
            "220 mail.example ESMTP\r\n\r\n",
        ] {
            let (script, upstreams) = (Script::listen().await, upstreams());
            let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
            script.accept().await.answer(head).await;
            let error = sent.await.unwrap().unwrap_err();
            assert_eq!(error.reason(), "framing", "{head:?}");
            assert!(matches!(
                error.to_agent(),
                ToAgent::Problem(StatusCode::BAD_GATEWAY)
            ));
        }
    });
}

#[test]
fn an_agent_that_goes_away_closes_the_upstream() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        // Before the head …
        let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.head().await;
        sent.abort();
        assert!(peer.is_closed().await);
        // … and within the body.
        let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
            .await;
        drop(sent.await.unwrap().unwrap());
        assert!(peer.is_closed().await);
        assert_eq!(upstreams.idle(), 0);
    });
}

#[test]
fn a_request_is_sent_on_while_nobody_reads_the_answer() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        // The answer begins before the request has ended.
        peer.answer(OK).await;
        let response = sent.await.unwrap().unwrap();
        let frame = http_body::Frame::data(Bytes::from_static(b"late"));
        frames.send(Ok(frame)).unwrap();
        drop(frames);
        let mut seen = String::new();
        while !seen.ends_with("\r\n0\r\n\r\n") {
            seen.push_str(&peer.read(1).await);
        }
        assert!(seen.contains("late"), "{seen}");
        assert_eq!(text(response).await, "ok");
    });
}

#[test]
fn an_agent_whose_body_breaks_off_is_not_an_upstreams_fault() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        peer.head().await;
        frames
            .send(Err(io::ErrorKind::ConnectionReset.into()))
            .unwrap();
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!(error.reason(), "request_body");
        assert!(error.is_agents());
        assert!(peer.is_closed().await);
    });
}

#[test]
fn no_head_in_time_is_a_504_that_counts_from_the_requests_end() {
    on_worker(async {
        let mut config = config();
        config.upstream.response = Some(Duration::from_millis(50));
        let (script, upstreams) = (Script::listen().await, upstreams_of(&config));
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        peer.head().await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!sent.is_finished(), "the request has not ended yet");
        drop(frames);
        let error = sent.await.unwrap().unwrap_err();
        assert_eq!(error.reason(), "response_timeout");
        assert!(matches!(
            error.to_agent(),
            ToAgent::Problem(StatusCode::GATEWAY_TIMEOUT)
        ));
    });
}

#[test]
fn idle_connections_are_closed_in_time() {
    on_worker(async {
        let mut config = config();
        config.upstream.idle = Duration::from_millis(40);
        let (script, upstreams) = (Script::listen().await, upstreams_of(&config));
        let sent = send(&upstreams, &script.origin(), get(Version::HTTP_11));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        text(sent.await.unwrap().unwrap()).await;
        assert_eq!(upstreams.idle(), 1);
        assert!(peer.is_closed().await);
        assert_eq!(upstreams.idle(), 0);
    });
}

#[test]
fn after_a_101_bytes_pass_both_ways() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let mut request = get(Version::HTTP_11);
        request
            .headers_mut()
            .insert("connection", "upgrade".parse().unwrap());
        request
            .headers_mut()
            .insert("upgrade", "echo".parse().unwrap());
        let sent = send(&upstreams, &script.origin(), request);
        let mut peer = script.accept().await;
        let head =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
        // The first bytes of the new protocol come along with the head.
        peer.answer(&format!("{head}hello")).await;
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let mut switched = response.into_body().into_switched().unwrap();
        let mut hello = [0; 5];
        switched.read_exact(&mut hello).await.unwrap();
        assert_eq!(&hello, b"hello");
        switched.write_all(b"world").await.unwrap();
        assert_eq!(peer.read(5).await, "world");
        peer.reset();
        let error = switched.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_body_waits_for_continue_and_is_not_sent_after_a_refusal() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let expecting = || {
            let mut request = post(whole("body"));
            request
                .headers_mut()
                .insert("expect", "100-continue".parse().unwrap());
            request
        };
        let sent = send(&upstreams, &script.origin(), expecting());
        let mut peer = script.accept().await;
        peer.answer("HTTP/1.1 100 Continue\r\n\r\n").await;
        assert_eq!(peer.read(4).await, "body");
        peer.say(OK).await;
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");

        let sent = send(&upstreams, &script.origin(), expecting());
        peer.answer("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno")
            .await;
        let response = sent.await.unwrap().unwrap();
        assert_eq!(response.status(), StatusCode::EXPECTATION_FAILED);
        assert_eq!(text(response).await, "no");
        assert!(
            peer.is_closed().await,
            "no byte of the body, and no other request"
        );
    });
}

#[test]
fn early_answers_are_passed_on_while_the_request_is_still_sent() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        peer.answer(OK).await;
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        frames
            .send(Ok(http_body::Frame::data(Bytes::from_static(b"late"))))
            .unwrap();
        assert_eq!(peer.read("4\r\nlate\r\n".len()).await, "4\r\nlate\r\n");
        drop(frames);
        assert_eq!(peer.read(5).await, "0\r\n\r\n");
        // Only now is the connection ready for another request.
        let next = send(&upstreams, &script.origin(), get(Version::HTTP_11));
        tokio::select! {
            _ = peer.answer(OK) => {}
            _ = script.accept() => panic!("another connection"),
        }
        assert_eq!(text(next.await.unwrap().unwrap()).await, "ok");
    });
}

#[test]
fn an_answer_counts_though_the_request_can_be_sent_no_further() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        peer.answer("HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\n")
            .await;
        let response = sent.await.unwrap().unwrap();
        peer.say("no!").await;
        drop(peer);
        // The first is answered by a reset, the others cannot be written.
        for _ in 0..3 {
            let frame = http_body::Frame::data(Bytes::from_static(b"late"));
            frames.send(Ok(frame)).unwrap();
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(text(response).await, "no!");
        assert_eq!(upstreams.idle(), 0);
    });
}

#[test]
fn large_bodies_and_trailers_are_sent_in_chunks() {
    on_worker(async {
        let (script, upstreams) = (Script::listen().await, upstreams());
        let (body, frames) = body_by_hand();
        let sent = send(&upstreams, &script.origin(), post(body));
        let mut peer = script.accept().await;
        let large = "x".repeat(100_000);
        let mut expected = String::new();
        for piece in ["small", &large, "", "end"] {
            let frame = http_body::Frame::data(Bytes::from(piece.to_owned()));
            frames.send(Ok(frame)).unwrap();
            if !piece.is_empty() {
                write!(expected, "{:X}\r\n{piece}\r\n", piece.len()).unwrap();
            }
        }
        let mut trailers = http::HeaderMap::new();
        trailers.insert("x-sum", "9".parse().unwrap());
        frames
            .send(Ok(http_body::Frame::trailers(trailers)))
            .unwrap();
        expected.push_str("0\r\nx-sum: 9\r\n\r\n");
        let head = peer.head().await;
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        assert!(peer.read(expected.len()).await == expected);
        peer.say(OK).await;
        assert_eq!(text(sent.await.unwrap().unwrap()).await, "ok");
        assert_eq!(upstreams.idle(), 1);
    });
}

type Frames = mpsc::UnboundedSender<io::Result<http_body::Frame<Bytes>>>;

/// A body whose frames the test sends; it ends when the sender is dropped.
fn body_by_hand() -> (Outgoing, Frames) {
    let (frames, mut receiver) = mpsc::unbounded_channel();
    let stream = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    (
        Box::pin(StreamBody::new(stream).map_err(Into::into)),
        frames,
    )
}
