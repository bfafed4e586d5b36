//! The upstream: as little work per request as possible, so that the proxy is what is measured.
//!
//! | path | answer |
//! |---|---|
//! | `/1m` | 1 MiB, `content-length` |
//! | `/sse` | events every 10 ms without end, each holding the monotonic clock's nanoseconds |
//! | `/v1/chat/completions` | a chat completion streamed in [`EVENTS`] events |
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

/// Body of the small answer.
pub const SMALL: &[u8] =
    br#"{"id":"answer-1","object":"result","ok":true,"value":"0123456789abcdef0123456789abcdef"}"#;

/// Size of the large answer.
pub const LARGE: usize = 1 << 20;

/// Events of one streamed chat completion, `[DONE]` not counted.
pub const EVENTS: usize = 200;

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
            Answer::Chat => {
                for burst in chat() {
                    stream.write_all(burst).await?;
                }
            }
            Answer::Clock => return tick(stream).await,
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
    Chat,
}

struct Request {
    answer: Answer,
    body: usize,
}

impl Request {
    fn parse(head: &[u8]) -> Self {
        let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
        let contains = |path: &[u8]| line.windows(path.len()).any(|window| window == path);
        let answer = match line.first() {
            Some(b'P') if contains(b"/v1/chat/completions") => Answer::Chat,
            Some(b'G') if contains(b"/1m ") => Answer::Large,
            Some(b'G') if contains(b"/sse ") => Answer::Clock,
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

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";

/// The chat completion's bytes, as the writes they go out in.
fn chat() -> &'static [Vec<u8>] {
    static WRITES: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    WRITES.get_or_init(|| {
        let mut events: Vec<String> = (0..EVENTS)
            .map(|index| {
                format!(
                    "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\
                     \"created\":1700000000,\"model\":\"gpt-4o-mini\",\"choices\":[{{\"index\":0,\
                     \"delta\":{{\"content\":\" word{index}\"}},\"finish_reason\":null}}]}}\n\n"
                )
            })
            .collect();
        events.push("data: [DONE]\n\n".to_owned());
        let mut writes: Vec<Vec<u8>> = events
            .chunks(BURST)
            .map(|burst| {
                burst
                    .iter()
                    .flat_map(|event| chunk(event).into_bytes())
                    .collect()
            })
            .collect();
        writes[0].splice(0..0, STREAM_HEAD.bytes());
        if let Some(last) = writes.last_mut() {
            last.extend_from_slice(b"0\r\n\r\n");
        }
        writes
    })
}

fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// Tells the time for as long as somebody listens.
async fn tick(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Result<()> {
    stream.write_all(STREAM_HEAD.as_bytes()).await?;
    stream.flush().await?;
    let mut pace = tokio::time::interval(PACE);
    let mut event = String::new();
    loop {
        pace.tick().await;
        event.clear();
        write!(event, "data: {:020}\n\n", clock::nanoseconds())?;
        stream.write_all(chunk(&event).as_bytes()).await?;
        stream.flush().await?;
    }
}
