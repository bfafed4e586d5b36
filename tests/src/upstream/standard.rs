//! Ready-made answers, by path.
//!
//! | path | answer |
//! |---|---|
//! | `/json` | a small JSON document |
//! | `/tool` | a JSON answer as a tool gives it: nested, with a big integer, odd spacing |
//! | `/bytes/N` | N bytes of a pattern, `content-length` |
//! | `/chunked/N` | the same in chunks of 1,000 |
//! | `/gzip` | JSON compressed with gzip |
//! | `/status/N` | that status, no body for 204 and 304 |
//! | `/headers` | repeated headers in odd cases |
//! | `/trailers` | chunks, then a trailer |
//! | `/early-hints` | 103, then `/json` |
//! | `/events` | three server-sent events, the second and third only after a step each |
//! | `/hang` | nothing, for ever |
//! | `/break/reset`, `/break/close` | RST or FIN in place of an answer |
//! | `/break/short` | 1,000 of 5,000 announced bytes, then FIN |
//! | `/break/short-reset` | the same, then RST |
//! | `/break/chunk` | a chunk whose size is no number |
//! | `/break/unfinished` | chunks without the last one, then FIN |
//! | `/websocket` | upgrades and echoes bytes |
//! | `…/chat/completions` | [`super::chat`] |
//! | `/v1/messages` | [`super::messages`] |
//! | `/v1/responses` | [`super::responses`] |
//! | `…:generateContent`, `…:streamGenerateContent` | [`super::gemini`] |
//! | `/api/chat`, `/api/generate` | [`super::ollama`] |
//! | `/model/…` | [`super::bedrock`] |
//! | anything else | the request's own head and body |

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use serde_json::Value;

use super::{Connection, Request, bedrock, chat, gemini, messages, ollama, responses};

/// The document of `/json`.
pub const JSON: &str = r#"{"answer":42,"of":"the upstream"}"#;

/// The document of `/tool`: what editing must leave alone.
pub const TOOL: &str = "{ \"id\" : 12345678901234567890123,\n  \"price\": 1.10, \"name\":\"caf\\u00e9\",\
    \"items\": [ {\"sku\":\"a\",\"n\":1}, {\"sku\":\"b\",\"n\":2} ], \"ok\": true }";

/// Serves one connection until it ends.
pub fn serve(mut connection: Connection) {
    while let Some(request) = connection.request() {
        match answer(connection, &request) {
            Some(still_open) => connection = still_open,
            None => return,
        }
    }
}

/// Answers one request; gives the connection back if it goes on.
fn answer(mut connection: Connection, request: &Request) -> Option<Connection> {
    let path = request.target.split('?').next().unwrap_or_default();
    let number = |prefix| path.strip_prefix(prefix)?.parse::<usize>().ok();
    let written = match path {
        "/json" => connection.send(whole("200 OK", "application/json", JSON.as_bytes())),
        "/tool" => connection.send(whole("200 OK", "application/json", TOOL.as_bytes())),
        "/gzip" => connection.send(gzip()),
        "/headers" => connection.send(HEADERS),
        "/trailers" => connection.send(TRAILERS),
        "/early-hints" => {
            connection.send("HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n")
                && connection.send(whole("200 OK", "application/json", JSON.as_bytes()))
        }
        "/events" => events(&mut connection),
        "/hang" => {
            connection.hold();
            return None;
        }
        "/break/reset" => {
            connection.reset();
            return None;
        }
        "/break/close" => return None,
        "/break/short" => {
            connection.send(short());
            return None;
        }
        "/break/short-reset" => {
            connection.send(short());
            // What the peer has not read yet, an RST would take away again.
            connection.wait_for_step();
            connection.reset();
            return None;
        }
        "/break/chunk" => {
            connection.send(format!("{CHUNKED_HEAD}5\r\nhello\r\nxyz\r\n"));
            return None;
        }
        "/break/unfinished" => {
            connection.send(format!("{CHUNKED_HEAD}5\r\nhello\r\n"));
            return None;
        }
        "/websocket" => {
            upgrade(connection, request);
            return None;
        }
        "/v1/messages" => messages::answer(&mut connection, request),
        "/v1/responses" => responses::answer(&mut connection, request),
        "/api/chat" | "/api/generate" => ollama::answer(&mut connection, request),
        _ => {
            let last = path.rsplit('/').next().unwrap_or_default();
            if path.ends_with("/chat/completions") {
                chat::answer(&mut connection, request)
            } else if last.to_ascii_lowercase().ends_with("generatecontent") {
                gemini::answer(&mut connection, request)
            } else if bedrock::PATHS.contains(&last) {
                bedrock::answer(&mut connection, request, last)
            } else if let Some(length) = number("/bytes/") {
                connection.send(whole(
                    "200 OK",
                    "application/octet-stream",
                    &pattern(length),
                ))
            } else if let Some(length) = number("/chunked/") {
                connection.send(chunked(&pattern(length)))
            } else if let Some(status) = number("/status/") {
                connection.send(bare(status))
            } else {
                connection.send(mirror(request))
            }
        }
    };
    (written && !closes(request)).then_some(connection)
}

fn closes(request: &Request) -> bool {
    request
        .header("connection")
        .is_some_and(|value| value.eq_ignore_ascii_case("close"))
}

const CHUNKED_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n";

/// Odd, and all of it legal.
pub const HEADERS: &str = "HTTP/1.1 200 OK\r\nX-First: 1\r\nx-MiXed-CaSe: Kept\r\n\
    Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=2\r\nX-Empty:\r\nx-last: two  spaces\r\n\
    Content-Length: 2\r\n\r\nok";

const TRAILERS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\
    transfer-encoding: chunked\r\ntrailer: X-Checksum\r\n\r\n5\r\nhello\r\n0\r\nX-Checksum: abc\r\n\r\n";

/// `length` bytes in which every place can be told from its neighbours.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| b'a' + u8::try_from((at * 7 + at / 251) % 26).unwrap_or(0))
        .collect()
}

/// A whole answer with `content-length`.
pub fn whole(status: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut bytes = CHUNKED_HEAD.as_bytes().to_vec();
    for piece in body.chunks(1000) {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// The body of `/gzip`, as it goes over the wire.
pub fn gzipped() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder
        .write_all(TOOL.as_bytes())
        .expect("a Vec takes every write");
    encoder.finish().expect("a Vec takes every write")
}

fn gzip() -> Vec<u8> {
    let body = gzipped();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

fn bare(status: usize) -> Vec<u8> {
    match status {
        204 => "HTTP/1.1 204 No Content\r\nx-kept: yes\r\n\r\n".into(),
        // A 304 may tell the length that a 200 would have had.
        304 => "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\ncontent-length: 5000\r\n\r\n".into(),
        _ => whole(
            &format!("{status} Status"),
            "application/json",
            br#"{"error":"as asked"}"#,
        ),
    }
}

fn short() -> Vec<u8> {
    let mut bytes = whole("200 OK", "application/octet-stream", &pattern(5000));
    bytes.truncate(bytes.len() - 4000);
    bytes
}

/// What it was asked, told back; a HEAD gets the head alone.
fn mirror(request: &Request) -> Vec<u8> {
    let mut body = request.head.clone();
    body.extend_from_slice(&request.body);
    let answer = whole("200 OK", "text/plain", &body);
    match request.method.as_str() {
        "HEAD" => answer[..answer.len() - body.len()].to_vec(),
        _ => answer,
    }
}

/// Sends a JSON document; false when the peer is gone.
pub(super) fn document(connection: &mut Connection, body: &Value) -> bool {
    connection.send(whole(
        "200 OK",
        "application/json",
        body.to_string().as_bytes(),
    ))
}

/// Sends a stream, a chunk for each piece; false when the peer is gone.
pub(super) fn streamed(
    connection: &mut Connection,
    media_type: &str,
    pieces: impl IntoIterator<Item: AsRef<[u8]>>,
) -> bool {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    connection.send(head)
        && pieces.into_iter().all(|piece| {
            let piece = piece.as_ref();
            let size = format!("{:x}\r\n", piece.len());
            connection.send([size.as_bytes(), piece, b"\r\n"].concat())
        })
        && connection.send("0\r\n\r\n")
}

/// JSON documents, one a line.
pub(super) fn lines(text: &str) -> Vec<Value> {
    let lines = text.trim().lines();
    lines
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

fn events(connection: &mut Connection) -> bool {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n";
    connection.send(format!("{head}{}", chunk("data: 1\n\n")))
        && connection.wait_for_step()
        && connection.send(chunk("data: 2\n\n"))
        && connection.wait_for_step()
        && connection.send(format!("{}0\r\n\r\n", chunk("data: 3\n\n")))
}

/// One chunk of a chunked body.
pub fn chunk(data: &str) -> String {
    format!("{:x}\r\n{data}\r\n", data.len())
}

/// A WebSocket handshake without looking, then an echo of raw bytes.
fn upgrade(mut connection: Connection, request: &Request) {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let accept = websocket_accept(key);
    let protocol = request
        .header("sec-websocket-protocol")
        .map_or(String::new(), |value| {
            format!(
                "Sec-WebSocket-Protocol: {}\r\n",
                value.split(',').next().unwrap_or_default()
            )
        });
    connection.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {accept}\r\n{protocol}\r\n"
    ));
    loop {
        let bytes = connection.receive();
        if bytes.is_empty() || !connection.send(unmask(&bytes)) {
            return;
        }
    }
}

/// `base64(sha1(key + GUID))`, RFC 6455 §4.2.2, from ring's own SHA-1.
pub fn websocket_accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base64(ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()).as_ref())
}

pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for piece in bytes.chunks(3) {
        let word = piece
            .iter()
            .fold(0_u32, |word, &byte| word << 8 | u32::from(byte))
            << (8 * (3 - piece.len()));
        for place in 0..4 {
            if place <= piece.len() {
                text.push(char::from(DIGITS[(word >> (18 - 6 * place)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// A client's frames as a server would send them: without the mask. Frames of less than 126 bytes,
/// whole, are all that the tests send.
fn unmask(bytes: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    let mut rest = bytes;
    while let [first, second, masked @ ..] = rest {
        let length = usize::from(second & 0x7f);
        if second & 0x80 == 0 || masked.len() < 4 + length {
            break;
        }
        let (mask, payload) = masked.split_at(4);
        frames.extend([*first, second & 0x7f]);
        frames.extend(
            payload[..length]
                .iter()
                .zip(mask.iter().cycle())
                .map(|(a, b)| a ^ b),
        );
        rest = &payload[length..];
    }
    frames
}
