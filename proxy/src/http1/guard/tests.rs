use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;

const LIMITS: HeadLimits = HeadLimits {
    header_bytes: 4096,
    header_count: 20,
};

const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves requests on `stream` as the proxy does: a refused head with its status and reason, a
/// refused body with 400, anything else with its own path and body.
async fn serve<T>(stream: T) -> hyper::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let guard = RequestGuard::new(stream, LIMITS, HEAD_TIMEOUT);
    let state = guard.state();
    let service = service_fn(move |request: Request<Incoming>| {
        let state = Rc::clone(&state);
        async move { Ok::<_, Infallible>(answer(&state, request).await) }
    });
    hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(guard), service)
        .await
}

async fn answer(state: &RequestState, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path().to_owned();
    if let Some(rejection) = state.take_rejection(&path) {
        return reply(rejection.status, rejection.reason.to_string());
    }
    if request.method() == Method::CONNECT || request.headers().contains_key("upgrade") {
        state.upgrade_refused();
    }
    match request.into_body().collect().await {
        Ok(body) => {
            let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
            reply(StatusCode::OK, format!("{path}={body}"))
        }
        Err(_) => reply(
            StatusCode::BAD_REQUEST,
            state.body_error().unwrap().to_string(),
        ),
    }
}

fn reply(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
}

/// What a client reads that sends `input`, cut up into writes of `step` bytes, and waits for the
/// end.
async fn talk(input: &[u8], step: usize) -> String {
    let (mut client, server) = duplex(1 << 16);
    let ((), output) = tokio::join!(
        async {
            // How the connection ended is seen from the client's side.
            let _ = serve(server).await;
        },
        async move {
            for piece in input.chunks(step) {
                // After a rejection nobody reads on.
                if client.write_all(piece).await.is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            let mut output = Vec::new();
            client.read_to_end(&mut output).await.unwrap();
            String::from_utf8(output).unwrap()
        }
    );
    output
}

/// Status and body of each response in `output`.
fn answers(output: &str) -> Vec<(u16, &str)> {
    let responses = output.split("HTTP/1.1 ").skip(1);
    responses
        .map(|response| {
            let (head, body) = response.split_once("\r\n\r\n").unwrap();
            (head[..3].parse().unwrap(), body)
        })
        .collect()
}

const CLOSING: &str = "GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn a_refused_head_is_answered_when_its_turn_comes() {
    let input = "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi\
                 GET /b HTTP/1.1\r\nHost: h\r\n\r\n\
                 GET /c HTTP/1.1\r\nHost: h\r\nX : y\r\n\r\n\
                 GET /never HTTP/1.1\r\nHost: h\r\n\r\n";
    for step in [1, 3, 50, 10_000] {
        let output = talk(input.as_bytes(), step).await;
        let refused = "a field name is followed by white space";
        let expected = [(200, "/a=hi"), (200, "/b="), (400, refused)];
        assert_eq!(answers(&output), expected, "steps of {step}");
        assert_eq!(output.matches("connection: close").count(), 1);
    }
}

#[tokio::test]
async fn a_head_out_of_bounds_is_answered_with_431() {
    let input = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
        "x".repeat(5000)
    );
    for step in [7, 10_000] {
        let output = talk(input.as_bytes(), step).await;
        assert_eq!(
            answers(&output),
            [(431, "the head is longer than 4096 bytes")]
        );
    }
}

#[tokio::test]
async fn a_bad_chunk_fails_the_read_of_its_body() {
    let input = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n\nGET";
    for step in [1, 10_000] {
        let output = talk(input.as_bytes(), step).await;
        assert_eq!(answers(&output), [(400, "a chunk size is malformed")]);
    }
}

#[tokio::test]
async fn nobody_can_ask_for_a_refusal() {
    let guard = RequestGuard::new(tokio::io::empty(), LIMITS, HEAD_TIMEOUT);
    assert_eq!(guard.state().take_rejection("/"), None);
    let output = talk(CLOSING.as_bytes(), 10_000).await;
    assert_eq!(answers(&output), [(200, "/last=")]);
}

#[tokio::test]
async fn behind_a_refused_upgrade_the_next_request_is_served_and_checked() {
    let upgrade = "POST /h2c HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\
                   Content-Length: 2\r\n\r\nhi";
    for step in [1, 40, 10_000] {
        let output = talk(format!("{upgrade}{CLOSING}").as_bytes(), step).await;
        assert_eq!(
            answers(&output),
            [(200, "/h2c=hi"), (200, "/last=")],
            "steps of {step}"
        );
        let output = talk(format!("{upgrade}GET /\n").as_bytes(), step).await;
        let refused = "a line ends in LF without CR";
        assert_eq!(
            answers(&output),
            [(200, "/h2c=hi"), (400, refused)],
            "steps of {step}"
        );
    }
}

#[tokio::test]
async fn behind_a_granted_connect_every_byte_is_kept_and_passes() {
    let (mut client, server) = duplex(1 << 16);
    let guard = RequestGuard::new(server, LIMITS, HEAD_TIMEOUT);
    let state = guard.state();
    let service = service_fn(move |_: Request<Incoming>| {
        state.upgrade_granted();
        async { Ok::<_, Infallible>(Response::new(Empty::<Bytes>::new())) }
    });
    // An eager client: it speaks before it has the answer.
    client
        .write_all(b"CONNECT h:443 HTTP/1.1\r\n\r\n\x16\x03\x01 early\n")
        .await
        .unwrap();
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(guard), service);
    let parts = connection.without_shutdown().await.unwrap();
    client.write_all(b"late").await.unwrap();
    client.shutdown().await.unwrap();
    let mut stream = Rewind::new(parts.io.into_inner().into_rewind(), parts.read_buf);
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"\x16\x03\x01 early\nlate");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_does_not_end_is_refused_in_time() {
    let (mut client, server) = duplex(1 << 16);
    let ((), ()) = tokio::join!(
        async {
            let _ = serve(server).await;
        },
        async move {
            // Silence before a head is no late head.
            tokio::time::sleep(Duration::from_mins(1)).await;
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                .await
                .unwrap();
            let begun = Instant::now();
            client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            tokio::time::sleep(Duration::from_secs(29)).await;
            client.write_all(b"X: y\r\n").await.unwrap();
            let mut output = String::new();
            client.read_to_string(&mut output).await.unwrap();
            let expected = [(200, "/="), (408, "the head did not arrive in time")];
            assert_eq!(answers(&output), expected);
            assert_eq!(begun.elapsed().as_secs(), 30);
        }
    );
}

/// A stream that gives one piece per read, then ends.
struct Pieces(RefCell<VecDeque<Vec<u8>>>);

impl AsyncRead for Pieces {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut pieces = self.0.borrow_mut();
        if let Some(mut piece) = pieces.pop_front() {
            let rest = piece.split_off(piece.len().min(buffer.remaining()));
            buffer.put_slice(&piece);
            if !rest.is_empty() {
                pieces.push_front(rest);
            }
        }
        Poll::Ready(Ok(()))
    }
}

proptest! {
    #[test]
    fn what_goes_in_comes_out_for_every_chunking(
        messages in prop::collection::vec(prop::sample::select(vec![
            &b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"[..],
            b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nGET ",
            b"\r\nPUT / HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n\r\n\r\r\n0\r\nT: x\r\n\r\n",
        ]), 0..6),
        sizes in prop::collection::vec(1usize..70, 1..8),
        capacity in 1usize..100,
    ) {
        let input = messages.concat();
        let mut rest = &input[..];
        let mut pieces = VecDeque::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, more) = rest.split_at(rest.len().min(*size));
            pieces.push_back(piece.to_vec());
            rest = more;
        }
        let mut guard = RequestGuard::new(Pieces(RefCell::new(pieces)), LIMITS, HEAD_TIMEOUT);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let output = runtime.block_on(async {
            let (mut output, mut buffer) = (Vec::new(), vec![0; capacity]);
            loop {
                match guard.read(&mut buffer).await.unwrap() {
                    0 => break output,
                    read => output.extend_from_slice(&buffer[..read]),
                }
            }
        });
        prop_assert_eq!(output, input);
    }
}

#[tokio::test]
async fn an_idle_guard_holds_no_buffer() {
    let (near, mut far): (DuplexStream, DuplexStream) = duplex(1024);
    let mut guard = RequestGuard::new(near, LIMITS, HEAD_TIMEOUT);
    for piece in [&b"GET / HT"[..], b"TP/1.1\r\nHost: h\r\n\r\n"] {
        far.write_all(piece).await.unwrap();
        let mut buffer = [0; 100];
        let read = guard.read(&mut buffer);
        tokio::select! {
            biased;
            read = read => assert_eq!(read.unwrap(), 27),
            () = tokio::task::yield_now() => assert_eq!(guard.held.len(), 8),
        }
    }
    assert_eq!(guard.held.capacity(), 0);
}
