//! The upstream: as little work per request as possible, so that the proxy is what is measured.
//!
//! | path | answer |
//! |---|---|
//! | `/1m` | 1 MiB, `content-length` |
//! | `/sse` | events every 10 ms without end, each holding the monotonic clock's nanoseconds |
//! | `/v1/responses`, GET | a WebSocket: the same as text messages, once the agent has sent something |
//! | those of [`STREAMS`] | a streamed answer of a dialect |
//! | anything else | a small JSON document ([`SMALL`]) |

use std::fmt::Write as _;
use std::net::TcpStream as StdStream;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Result;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

use crate::clock;
use crate::pki::Pki;
use crate::streams::STREAMS;

/// Body of the small answer.
pub const SMALL: &[u8] =
    br#"{"id":"answer-1","object":"result","ok":true,"value":"0123456789abcdef0123456789abcdef"}"#;

/// Size of the large answer.
pub const LARGE: usize = 1 << 20;

/// Events written at a time.
const BURST: usize = 5;

/// Pause between two events of `/sse`.
const PACE: Duration = Duration::from_millis(10);

type Socket = (StdStream, bool);

/// Serves plain HTTP and TLS on two ports, with one thread per core, until the process is killed.
pub fn serve(pki: &Pki) -> Result<()> {
    let tls = pki.server_config()?;
    let cores = std::thread::available_parallelism()?.get();
    let workers: Vec<_> = (0..cores)
        .map(|_| {
            let (send, receive) = mpsc::unbounded_channel();
            let tls = tls.clone();
            std::thread::spawn(move || worker(tls, receive));
            send
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let plain = TcpListener::bind(("127.0.0.1", 0)).await?;
        let secure = TcpListener::bind(("127.0.0.1", 0)).await?;
        println!(
            "ready http={} https={}",
            plain.local_addr()?.port(),
            secure.local_addr()?.port()
        );
        for next in (0..workers.len()).cycle() {
            let (socket, encrypted) = tokio::select! {
                accepted = plain.accept() => (accepted?.0, false),
                accepted = secure.accept() => (accepted?.0, true),
            };
            socket.set_nodelay(true)?;
            workers[next].send((socket.into_std()?, encrypted))?;
        }
        Ok(())
    })
}

fn worker(tls: Arc<ServerConfig>, mut sockets: mpsc::UnboundedReceiver<Socket>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let acceptor = TlsAcceptor::from(tls);
    tokio::task::LocalSet::new().block_on(&runtime, async {
        while let Some((socket, encrypted)) = sockets.recv().await {
            let socket = TcpStream::from_std(socket)?;
            let acceptor = acceptor.clone();
            // A peer that leaves in the middle is the load generator's affair.
            tokio::task::spawn_local(async move {
                if encrypted {
                    let stream = acceptor.accept(socket).await?;
                    answer_all(stream).await
                } else {
                    answer_all(socket).await
                }
            });
        }
        Ok(())
    })
}

async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    let mut buffer = Vec::with_capacity(16 * 1024);
    loop {
        let Some(head) = read_head(&mut stream, &mut buffer).await? else {
            return Ok(());
        };
        let request = Request::parse(&buffer[..head]);
        while buffer.len() < head + request.body {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        buffer.drain(..head + request.body);
        match request.answer {
            Answer::Small => stream.write_all(small()).await?,
            Answer::Large => stream.write_all(large()).await?,
            Answer::Stream(index) => {
                for burst in &streams()[index] {
                    stream.write_all(burst).await?;
                }
            }
            Answer::Clock => return tick(stream).await,
            Answer::Socket => return talk(stream).await,
        }
        stream.flush().await?;
    }
}

/// Reads until a whole head is buffered; its length, or `None` at the end of the connection.
async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<Option<usize>> {
    loop {
        if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            return Ok(Some(at + 4));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

enum Answer {
    Small,
    Large,
    Clock,
    Socket,
    /// One of [`STREAMS`].
    Stream(usize),
}

struct Request {
    answer: Answer,
    body: usize,
}

impl Request {
    fn parse(head: &[u8]) -> Self {
        let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let contains = |path: &[u8]| line.windows(path.len()).any(|window| window == path);
        let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let streamed = STREAMS
            .iter()
            .position(|stream| target.ends_with(stream.path.as_bytes()));
        let answer = match line.first() {
            Some(b'P') => streamed.map_or(Answer::Small, Answer::Stream),
            Some(b'G') if contains(b"/1m ") => Answer::Large,
            Some(b'G') if contains(b"/sse ") => Answer::Clock,
            Some(b'G') if contains(b"/v1/responses ") => Answer::Socket,
            _ => Answer::Small,
        };
        let body = match line.first() {
            Some(b'P') => crate::http::content_length(head).unwrap_or(0),
            _ => 0,
        };
        Self { answer, body }
    }
}

fn small() -> &'static [u8] {
    static SMALL_ANSWER: OnceLock<Vec<u8>> = OnceLock::new();
    SMALL_ANSWER.get_or_init(|| whole("application/json", SMALL))
}

fn large() -> &'static [u8] {
    static LARGE_ANSWER: OnceLock<Vec<u8>> = OnceLock::new();
    LARGE_ANSWER.get_or_init(|| whole("application/octet-stream", &vec![b'x'; LARGE]))
}

fn whole(content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn stream_head(media_type: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncache-control: no-cache\r\n\
         transfer-encoding: chunked\r\n\r\n"
    )
}

/// The bytes of every streamed answer, as the writes they go out in.
fn streams() -> &'static [Vec<Vec<u8>>] {
    static WRITES: OnceLock<Vec<Vec<Vec<u8>>>> = OnceLock::new();
    WRITES.get_or_init(|| {
        let writes = STREAMS.iter().map(|stream| {
            let events = (stream.events)();
            let bursts = events.chunks(BURST);
            let mut writes: Vec<Vec<u8>> = bursts
                .map(|burst| burst.iter().flat_map(|event| chunk(event)).collect())
                .collect();
            writes[0].splice(0..0, stream_head(stream.media_type).into_bytes());
            if let Some(last) = writes.last_mut() {
                last.extend_from_slice(b"0\r\n\r\n");
            }
            writes
        });
        writes.collect()
    })
}

fn chunk(data: &[u8]) -> Vec<u8> {
    let size = format!("{:x}\r\n", data.len());
    [size.as_bytes(), data, b"\r\n"].concat()
}

/// Tells the time for as long as somebody listens.
async fn tick(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    stream
        .write_all(stream_head("text/event-stream").as_bytes())
        .await?;
    stream.flush().await?;
    let mut pace = tokio::time::interval(PACE);
    let mut event = String::new();
    loop {
        pace.tick().await;
        event.clear();
        write!(event, "data: {:020}\n\n", clock::nanoseconds())?;
        stream.write_all(&chunk(event.as_bytes())).await?;
        stream.flush().await?;
    }
}

/// The answer to the key of [`Route::upgrade`](crate::route::Route::upgrade).
const SWITCHED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
    sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

/// Tells the time in the events of a response, for as long as somebody listens.
async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    stream.write_all(SWITCHED).await?;
    stream.flush().await?;
    if stream.read(&mut [0; 1024]).await? == 0 {
        return Ok(());
    }
    let begun = r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]}}"#;
    stream.write_all(&text(begun)?).await?;
    let mut pace = tokio::time::interval(PACE);
    let mut event = String::new();
    loop {
        pace.tick().await;
        event.clear();
        write!(
            event,
            r#"{{"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"data: {:020}"}}"#,
            clock::nanoseconds()
        )?;
        stream.write_all(&text(&event)?).await?;
        stream.flush().await?;
    }
}

/// The frame of a text.
fn text(text: &str) -> Result<Vec<u8>> {
    let length = u16::try_from(text.len())?;
    let head = match u8::try_from(length) {
        Ok(short) if short < 126 => vec![0x81, short],
        _ => [&[0x81, 126], &length.to_be_bytes()[..]].concat(),
    };
    Ok([&head, text.as_bytes()].concat())
}
