//! Protocols of upstreams: learned at a dial, remembered for a while, shared by all workers.
//!
//! With TLS, the handshake decides. A plain upstream gets an HTTP/2 preface once, when an agent
//! first uses HTTP/2 for it (RFC 9113 §3.3). If it responds with SETTINGS, it supports HTTP/2. Any
//! other response, a close or a timeout means HTTP/1.1.

use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::io::InspectReader;

use super::origin::UpstreamOrigin;
use crate::tls::Alpn;

/// How long a learned protocol is used.
const BELIEVED_FOR: Duration = Duration::from_mins(10);

/// Time for an upstream's response to an HTTP/2 preface.
pub(super) const PROBE_PATIENCE: Duration = Duration::from_secs(1);

/// Most remembered origins.
const REMEMBERED: usize = 10_000;

/// The protocol of each origin, and when it was learned.
#[derive(Debug)]
pub(super) struct SpokenProtocols(Cache<UpstreamOrigin, (Alpn, Instant)>);

impl Default for SpokenProtocols {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl SpokenProtocols {
    /// The known protocol of `origin`.
    pub(super) fn of(&self, origin: &UpstreamOrigin) -> Option<Alpn> {
        let (alpn, since) = self.0.get(origin)?;
        (since.elapsed() < BELIEVED_FOR).then_some(alpn)
    }

    /// Records the protocol of `origin`.
    pub(super) fn learn(&self, origin: &UpstreamOrigin, alpn: Alpn) {
        self.0.insert(origin.clone(), (alpn, Instant::now()));
    }

    /// Forgets the protocol of `origin`.
    pub(super) fn forget(&self, origin: &UpstreamOrigin) {
        self.0.remove(origin);
    }
}

/// Checks whether the first frame that `io` reads is SETTINGS: `verdict` gets `true` for SETTINGS,
/// `false` for other bytes; a close drops it.
///
/// hyper uses the connection through it from the first byte, so that an HTTP/2 connection is usable
/// immediately.
pub(super) fn watch_first_frame<T: AsyncRead>(
    io: T,
    verdict: oneshot::Sender<bool>,
) -> InspectReader<T, impl FnMut(&[u8])> {
    let (mut verdict, mut head) = (Some(verdict), Vec::with_capacity(FRAME_HEAD));
    InspectReader::new(io, move |bytes: &[u8]| {
        let missing = FRAME_HEAD - head.len();
        head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        if let Some(is_settings) = is_settings(&head)
            && let Some(verdict) = verdict.take()
        {
            // The receiver is gone if the exchange was abandoned.
            let _ = verdict.send(is_settings);
        }
    })
}

/// Length of a frame's header, bytes (RFC 9113 §4.1).
pub(super) const FRAME_HEAD: usize = 9;

/// Checks a whole header: length, type 4, flags without ACK, stream 0. `None` while bytes are
/// missing.
pub(super) fn is_settings(head: &[u8]) -> Option<bool> {
    if head.starts_with(b"H") {
        return Some(false); // "HTTP/1.1 400": 4.7 MB of SETTINGS are not to be waited for
    }
    let [_, _, _, kind, flags, stream @ ..] = head else {
        return None;
    };
    (stream.len() == 4).then(|| *kind == 4 && flags & 1 == 0 && stream.iter().all(|&b| b == 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Scheme;

    #[test]
    fn only_a_settings_frame_is_http2() {
        for (bytes, verdict) in [
            (&b"\0\0\x12\x04\0\0\0\0\0"[..], Some(true)),
            (b"\0\0\0\x04\0\0\0\0\0", Some(true)),
            (b"\0\0\0\x04\x01\0\0\0\0", Some(false)), // an ACK comes second at the earliest
            (b"\0\0\x08\x07\0\0\0\0\0", Some(false)), // GOAWAY
            (b"\0\0\0\x04\0\0\0\0\x01", Some(false)),
            (b"HTTP/1.1 ", Some(false)),
            (b"H", Some(false)),
            (b"\0\0\x12\x04", None),
        ] {
            assert_eq!(is_settings(bytes), verdict, "{bytes:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_learned_is_believed_for_a_while() {
        let speaks = SpokenProtocols::default();
        let origin = UpstreamOrigin::new(Scheme::Https, "h", 443);
        assert_eq!(speaks.of(&origin), None);
        speaks.learn(&origin, Alpn::H2);
        assert_eq!(speaks.of(&origin), Some(Alpn::H2));
        tokio::time::advance(BELIEVED_FOR).await;
        assert_eq!(speaks.of(&origin), None);
        speaks.learn(&origin, Alpn::H2);
        speaks.forget(&origin);
        assert_eq!(speaks.of(&origin), None);
    }
}
