//! The upstream's end of a WebSocket whose calls a tape answers: nothing is dialled.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use ring::digest;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::frames::{MessageReader, Sender, SocketMessage, binary_frame, reply};
use super::live::LiveMessage;
use crate::upstream::Received;

/// Bytes in flight, in each direction.
const PIPE: usize = 16 << 10;

/// Longest message that is read, bytes.
const MESSAGE: usize = 1 << 20;

/// What a server appends to the key (RFC 6455 §4.2.2).
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Accepts an upgrade. The other end answers pings, Close frames and the setup of Gemini Live, and drops all
/// other messages.
pub(in crate::exchange) fn accept(upgrade: &HeaderMap) -> Response<Received> {
    let (proxy, upstream) = duplex(PIPE);
    tokio::task::spawn_local(answer_frames(upstream));
    let mut response = Response::new(Received::switched(proxy));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    if let Ok(accept) = HeaderValue::from_str(&accept_key(upgrade)) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    let offered = upgrade.get(SEC_WEBSOCKET_PROTOCOL);
    let offered = offered.and_then(|offered| offered.to_str().ok()?.split(',').next());
    if let Some(Ok(first)) = offered.map(|first| HeaderValue::from_str(first.trim())) {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, first);
    }
    response
}

fn accept_key(upgrade: &HeaderMap) -> String {
    let key = upgrade.get(SEC_WEBSOCKET_KEY);
    let key = key.map_or(&b""[..], HeaderValue::as_bytes);
    let text = [key, KEY_SUFFIX].concat();
    BASE64_STANDARD.encode(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &text))
}

async fn answer_frames(mut socket: DuplexStream) {
    let mut reader = MessageReader::new(Sender::Agent, MESSAGE, None).reading_binary(true);
    let mut buffer = BytesMut::new();
    while let Ok(1..) = socket.read_buf(&mut buffer).await {
        reader.push(&buffer.split());
        // The session has checked the frames.
        while let Ok(Some(message)) = reader.next() {
            let closes = matches!(message, SocketMessage::Close { .. });
            let reply = match message {
                SocketMessage::Text { text, .. } => {
                    let is_setup = LiveMessage::of(&text).prefix().is_some();
                    is_setup.then(|| binary_frame(Bytes::from_static(br#"{"setupComplete":{}}"#)))
                }
                SocketMessage::Control { frames } | SocketMessage::Close { frames } => {
                    reply(&frames)
                }
                SocketMessage::Unread { .. } => None,
            };
            if let Some(reply) = reply
                && socket.write_all(&reply).await.is_err()
            {
                return;
            }
            if closes {
                // The session may be gone.
                let _ = socket.shutdown().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::websocket::frames::text_frame;

    #[tokio::test]
    async fn a_message_over_the_limit_is_dropped_and_a_ping_behind_it_answered() {
        let (mut agent, upstream) = duplex(PIPE);
        let serving = answer_frames(upstream);
        let talking = async {
            let mask = Some([0xff; 4]);
            // Pieces of it that look like frames of any length.
            let long = "\u{7f}".repeat(3 << 20);
            agent
                .write_all(&text_frame(long.into(), mask))
                .await
                .unwrap();
            agent.write_all(b"\x89\x80\0\0\0\0").await.unwrap();
            let mut pong = [0; 2];
            agent.read_exact(&mut pong).await.unwrap();
            assert_eq!(pong, *b"\x8a\0");
            drop(agent);
        };
        tokio::join!(serving, talking);
    }
}
