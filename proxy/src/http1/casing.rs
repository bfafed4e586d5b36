//! The original casing of field names in response heads, in the format of hyper's server.
//!
//! hyper writes the response to the agent. Its format is internal, and only its own parser creates
//! it. So hyper's client parses an in-memory response with the names, once per list of names.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Extensions, Request};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;

use super::head::FieldSpan;

/// Most cached lists of names per worker; one more clears the cache.
const KEPT: usize = 256;

/// Longest cached list of names, bytes.
const LONGEST: usize = 4096;

/// The casings of one worker, by the names of a head.
#[derive(Debug, Default)]
pub struct CasingCache(RefCell<HashMap<Vec<u8>, Extensions>>);

impl CasingCache {
    /// The casing of these names. If hyper cannot parse them, they are written in lower case.
    pub(super) fn of(&self, section: &[u8], fields: &[FieldSpan]) -> Extensions {
        let names = names(section, fields);
        if !names.iter().any(u8::is_ascii_uppercase) {
            return Extensions::new();
        }
        let mut known = self.0.borrow_mut();
        if let Some(casing) = known.get(&names) {
            return casing.clone();
        }
        let casing = casing(&names, fields.len()).unwrap_or_default();
        if names.len() <= LONGEST {
            if known.len() >= KEPT {
                known.clear();
            }
            known.insert(names, casing.clone());
        }
        casing
    }
}

/// The original names of `fields`, each followed by a line feed.
pub(super) fn names(section: &[u8], fields: &[FieldSpan]) -> Vec<u8> {
    let length = fields.iter().map(|field| field.name(section).len() + 1);
    let mut names = Vec::with_capacity(length.sum());
    for field in fields {
        names.extend_from_slice(field.name(section));
        names.push(b'\n');
    }
    names
}

fn casing(names: &[u8], count: usize) -> Option<Extensions> {
    let mut text = b"HTTP/1.1 304 Not Modified\r\n".to_vec();
    for name in names.split_inclusive(|b| *b == b'\n') {
        text.extend_from_slice(name.trim_ascii_end());
        text.extend_from_slice(b":\r\n");
    }
    text.extend_from_slice(b"\r\n");
    let most = text.len().max(8192);
    let (mut server, client) = tokio::io::duplex(most);
    let mut builder = http1::Builder::new();
    builder
        .preserve_header_case(true)
        .max_headers(count)
        .max_buf_size(most);
    let opened = builder.handshake::<_, Empty<Bytes>>(TokioIo::new(client));
    let (mut sender, connection) = opened.now_or_never()?.ok()?;
    let mut connection = pin!(connection);
    let mut answer = pin!(sender.send_request(Request::new(Empty::new())));
    let parsing = poll_fn(|cx| {
        // hyper reads no response before it has written its request.
        let _pending = connection.as_mut().poll(cx);
        let _written = pin!(server.write_all(&text)).poll(cx);
        let _pending = connection.as_mut().poll(cx);
        answer.as_mut().poll(cx)
    });
    let answer = tokio::task::unconstrained(parsing).now_or_never()?;
    Some(answer.ok()?.extensions().clone())
}
