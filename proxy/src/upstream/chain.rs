//! `upstream_proxy`: another proxy between Squall and every upstream.
//!
//! TLS and tunnels use CONNECT (RFC 9110 §9.3.6), plain HTTP uses the absolute form. That proxy
//! resolves names itself. Squall checks the addresses that it can resolve; only that proxy can
//! check others.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::error::FailureCause;
use super::origin::host_and_port;
use crate::config::ConfigError;

/// Longest response to a CONNECT, bytes.
const LONGEST_ANSWER: usize = 16 << 10;

/// Another proxy, and the credentials for it.
pub(super) struct UpstreamProxy {
    host: String,
    port: u16,
    authorization: Option<HeaderValue>,
}

impl UpstreamProxy {
    /// Parses `http://[user:password@]host[:port]`; the port defaults to 80 as in any URL.
    pub(super) fn parse(text: &str) -> Result<Self, ConfigError> {
        // Without the value, which may contain a password.
        let bad = |why: &str| {
            ConfigError(format!(
                "`proxy.upstream_proxy`: {why}; write `http://host:port` or \
                 `http://user:password@host:port`"
            ))
        };
        let uri: Uri = text.parse().map_err(|_| bad("not a URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(bad("only http:// proxies can be chained"));
        }
        let authority = uri.authority().ok_or_else(|| bad("no host"))?;
        let authorization = match authority.as_str().rsplit_once('@') {
            Some((credentials, _)) => {
                Some(basic(credentials).ok_or_else(|| bad("credentials that no header can hold"))?)
            }
            None => None,
        };
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        Ok(Self {
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(80),
            authorization,
        })
    }

    /// The value of `Proxy-Authorization` for requests in absolute form.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Its host and port.
    pub(super) fn place(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// Sends it a CONNECT to `target` on `socket`.
    pub(super) async fn ask(
        &self,
        socket: &mut TcpStream,
        target: &str,
    ) -> Result<(), FailureCause> {
        let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n").into_bytes();
        if let Some(authorization) = &self.authorization {
            request.extend_from_slice(b"Proxy-Authorization: ");
            request.extend_from_slice(authorization.as_bytes());
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        socket
            .write_all(&request)
            .await
            .map_err(|error| self.failed(&error.to_string()))?;
        let head = read_head(socket).await.map_err(|why| self.failed(&why))?;
        let mut fields = [httparse::EMPTY_HEADER; 100];
        let mut response = httparse::Response::new(&mut fields);
        match response.parse(&head).map(|_| response.code) {
            Ok(Some(200..=299)) => Ok(()),
            Ok(Some(code)) => {
                let phrase = response.reason.unwrap_or_default();
                Err(self.failed(format!("it answered {code} {phrase}").trim_end()))
            }
            _ => Err(self.failed("its answer to CONNECT is not HTTP")),
        }
    }

    pub(super) fn failed(&self, why: &str) -> FailureCause {
        FailureCause::ProxyRefused(format!("{}: {why}", host_and_port(&self.host, self.port)))
    }
}

impl fmt::Debug for UpstreamProxy {
    /// Without the credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamProxy({})", host_and_port(&self.host, self.port))
    }
}

/// Reads exactly one head, byte by byte: the bytes after it belong to the tunnel.
async fn read_head(socket: &mut TcpStream) -> Result<Vec<u8>, String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == LONGEST_ANSWER {
            return Err(format!(
                "its answer to CONNECT is longer than {LONGEST_ANSWER} bytes"
            ));
        }
        let byte = socket.read_u8().await;
        head.push(byte.map_err(|error| format!("it did not answer CONNECT: {error}"))?);
    }
    Ok(head)
}

/// `Basic` credentials (RFC 7617) from a URL's user information.
fn basic(credentials: &str) -> Option<HeaderValue> {
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut plain: Vec<u8> = percent_decode_str(user).collect();
    plain.push(b':');
    plain.extend(percent_decode_str(password));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(plain))).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_decoded_and_never_printed() {
        let proxy = UpstreamProxy::parse("http://us%40er:p%3Ass@[::1]:3128").unwrap();
        assert_eq!((proxy.host.as_str(), proxy.port), ("::1", 3128));
        let value = proxy.authorization().unwrap().to_str().unwrap();
        assert_eq!(value, format!("Basic {}", STANDARD.encode("us@er:p:ss")));
        assert_eq!(format!("{proxy:?}"), "UpstreamProxy([::1]:3128)");
    }

    #[test]
    fn only_http_proxies_can_be_chained_and_the_password_stays_out_of_the_error() {
        for text in ["socks5://u:secret@h:1", "https://u:secret@h:1", "h:1", ""] {
            let error = UpstreamProxy::parse(text).unwrap_err().to_string();
            assert!(
                error.contains("proxy.upstream_proxy") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
