//! Why an upstream failed, as a sentence and as a label for metrics.
//!
//! If the upstream was not reached, the agent gets a problem body. If the upstream breaks off, the
//! agent's connection breaks off the same way. [`UpstreamError::to_agent`] decides between them.

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use http::StatusCode;
use squall_profiles::plan::Ending;

use super::origin::UpstreamOrigin;
use crate::abort::Abort;

/// An upstream that was not reached, rejected the request, or broke off before its response's head.
#[derive(Debug)]
pub struct UpstreamError {
    place: String,
    cause: FailureCause,
}

/// The cause of the failure.
#[derive(Debug)]
pub enum FailureCause {
    /// The name has no address.
    Dns(String),
    /// Every address refused the connection.
    Refused(Vec<SocketAddr>),
    /// No connection, or no TLS handshake, within this time.
    ConnectTimeout(Duration, Vec<SocketAddr>),
    /// The network reports no route.
    Unreachable(String),
    /// The certificate is expired or not yet valid.
    TlsExpired(String),
    /// The certificate is for other names.
    TlsWrongHost(String),
    /// The certificate has no trusted issuer.
    TlsUnknownIssuer(String),
    /// The handshake failed in another way.
    TlsHandshake(String),
    /// `upstream_proxy` failed or rejected the connection.
    ProxyRefused(String),
    /// No response head within this time after the request's end.
    ResponseTimeout(Duration),
    /// RST before the head.
    Reset,
    /// FIN before the head.
    Closed,
    /// The response's head or framing is invalid.
    Framing(String),
    /// The HTTP/2 stream or connection ended with this code.
    H2(h2::Reason),
    /// `allow` or `deny` forbids it.
    Denied(String),
    /// The destination is one of Squall's own listeners.
    Loop(SocketAddr),
    /// The agent's request body broke off; this is not the upstream's failure.
    RequestBody(String),
}

/// What the agent gets for an [`UpstreamError`].
#[derive(Debug)]
pub(crate) enum ToAgent {
    /// A problem body with this status and the error's sentence.
    Problem(StatusCode),
    /// The same abort: FIN, RST or the HTTP/2 code.
    Break(Abort),
}

/// Values of `reason` in `squall_upstream_errors_total`.
pub const REASONS: [&str; 14] = [
    "dns",
    "refused",
    "connect_timeout",
    "unreachable",
    "tls_expired",
    "tls_wrong_host",
    "tls_unknown_issuer",
    "tls_handshake",
    "proxy_refused",
    "response_timeout",
    "reset",
    "closed",
    "framing",
    "h2",
];

impl UpstreamError {
    pub(crate) fn new(origin: &UpstreamOrigin, cause: FailureCause) -> Self {
        Self {
            place: origin.host_and_port(),
            cause,
        }
    }

    /// The cause of the failure.
    pub fn cause(&self) -> &FailureCause {
        &self.cause
    }

    /// One of [`REASONS`], or `denied`, `loop` or `request_body`, which are not failures of an
    /// upstream.
    pub fn reason(&self) -> &'static str {
        self.names().0
    }

    /// The last part of the problem's type.
    pub fn slug(&self) -> &'static str {
        self.names().1
    }

    /// The reason for metrics, and the last part of the problem's type.
    fn names(&self) -> (&'static str, &'static str) {
        match self.cause {
            FailureCause::Dns(_) => ("dns", "dns-failure"),
            FailureCause::Refused(_) => ("refused", "upstream-unreachable"),
            FailureCause::ConnectTimeout(..) => ("connect_timeout", "upstream-timeout"),
            FailureCause::Unreachable(_) => ("unreachable", "upstream-unreachable"),
            FailureCause::TlsExpired(_) => ("tls_expired", "upstream-tls"),
            FailureCause::TlsWrongHost(_) => ("tls_wrong_host", "upstream-tls"),
            FailureCause::TlsUnknownIssuer(_) => ("tls_unknown_issuer", "upstream-tls"),
            FailureCause::TlsHandshake(_) => ("tls_handshake", "upstream-tls"),
            FailureCause::ProxyRefused(_) => ("proxy_refused", "upstream-unreachable"),
            FailureCause::ResponseTimeout(_) => ("response_timeout", "upstream-timeout"),
            FailureCause::Reset => ("reset", "upstream-unreachable"),
            FailureCause::Closed => ("closed", "upstream-unreachable"),
            FailureCause::Framing(_) => ("framing", "upstream-framing"),
            FailureCause::H2(_) => ("h2", "upstream-unreachable"),
            FailureCause::Denied(_) => ("denied", "destination-denied"),
            FailureCause::Loop(_) => ("loop", "loop"),
            FailureCause::RequestBody(_) => ("request_body", "upstream-unreachable"),
        }
    }

    /// The problem's title.
    pub fn title(&self) -> &'static str {
        match self.slug() {
            "destination-denied" => "Destination denied",
            "loop" => "Destination is Squall itself",
            "dns-failure" => "Name not resolved",
            "upstream-timeout" => "Upstream timed out",
            "upstream-tls" => "TLS with the upstream failed",
            "upstream-framing" => "Bad answer from the upstream",
            _ => "Upstream unreachable",
        }
    }

    /// What the agent gets.
    pub(crate) fn to_agent(&self) -> ToAgent {
        match &self.cause {
            FailureCause::ConnectTimeout(..) | FailureCause::ResponseTimeout(_) => {
                ToAgent::Problem(StatusCode::GATEWAY_TIMEOUT)
            }
            FailureCause::Denied(_) => ToAgent::Problem(StatusCode::FORBIDDEN),
            FailureCause::Loop(_) => ToAgent::Problem(StatusCode::LOOP_DETECTED),
            FailureCause::Dns(_)
            | FailureCause::Refused(_)
            | FailureCause::Unreachable(_)
            | FailureCause::TlsExpired(_)
            | FailureCause::TlsWrongHost(_)
            | FailureCause::TlsUnknownIssuer(_)
            | FailureCause::TlsHandshake(_)
            | FailureCause::ProxyRefused(_)
            | FailureCause::Framing(_) => ToAgent::Problem(StatusCode::BAD_GATEWAY),
            FailureCause::Reset => ToAgent::Break(Abort::reset(self.to_string())),
            FailureCause::Closed | FailureCause::RequestBody(_) => {
                ToAgent::Break(Abort::close(self.to_string()))
            }
            FailureCause::H2(reason) => {
                ToAgent::Break(Abort::new(Ending::Close, *reason, self.to_string()))
            }
        }
    }

    /// True if the agent closed, rather than the upstream failing.
    pub(crate) fn is_agents(&self) -> bool {
        matches!(self.cause, FailureCause::RequestBody(_))
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = &self.place;
        match &self.cause {
            FailureCause::Dns(why) => write!(
                f,
                "{place} could not be resolved: {why}; check the name, or name an address for it \
                 in `proxy.connect_to`"
            ),
            FailureCause::Refused(addresses) => write!(
                f,
                "{place} refused the connection{}; is the upstream running?",
                AddressList(addresses)
            ),
            FailureCause::ConnectTimeout(after, addresses) => write!(
                f,
                "{place} could not be connected within {after:?}{}; check the address, or raise \
                 `proxy.upstream.connect_timeout`",
                AddressList(addresses)
            ),
            FailureCause::Unreachable(why) => write!(f, "{place} cannot be reached: {why}"),
            FailureCause::TlsExpired(why) => {
                write!(
                    f,
                    "{place} has a certificate that is out of its dates: {why}"
                )
            }
            FailureCause::TlsWrongHost(why) => {
                write!(f, "{place} has a certificate for another name: {why}")
            }
            FailureCause::TlsUnknownIssuer(why) => write!(
                f,
                "{place} has a certificate that no trusted root signed: {why}; add its root to \
                 `proxy.upstream_ca`"
            ),
            FailureCause::TlsHandshake(why) => write!(f, "TLS with {place} failed: {why}"),
            FailureCause::ProxyRefused(why) => write!(
                f,
                "{place} could not be reached through `proxy.upstream_proxy`: {why}"
            ),
            FailureCause::ResponseTimeout(after) => write!(
                f,
                "{place} sent no answer within {after:?} of the request's end \
                 (`proxy.upstream.response_timeout`)"
            ),
            FailureCause::Reset => write!(f, "{place} reset the connection before it answered"),
            FailureCause::Closed => write!(f, "{place} closed the connection before it answered"),
            FailureCause::Framing(why) => {
                write!(f, "{place} sent an answer that is not HTTP: {why}")
            }
            FailureCause::H2(reason) => write!(f, "{place} ended the HTTP/2 stream: {reason}"),
            FailureCause::Denied(why) => write!(f, "{place} is not an allowed destination: {why}"),
            FailureCause::Loop(own) => {
                let own = own.to_string();
                let leads = if own == *place {
                    String::new()
                } else {
                    format!("leads to {own} and ")
                };
                write!(
                    f,
                    "{place} {leads}is one of Squall's own listeners, which is never a destination; an upstream or an \
                     agent needs an address of its own"
                )
            }
            FailureCause::RequestBody(why) => {
                write!(f, "the request body for {place} broke off: {why}")
            }
        }
    }
}

impl Error for UpstreamError {}

/// ` (at 127.0.0.1:1 and 127.0.0.2:1)`.
struct AddressList<'a>(&'a [SocketAddr]);

impl fmt::Display for AddressList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((last, others)) = self.0.split_last() else {
            return Ok(());
        };
        f.write_str(" (at ")?;
        for (n, address) in others.iter().enumerate() {
            write!(f, "{}{address}", if n == 0 { "" } else { ", " })?;
        }
        write!(f, "{}{last})", if others.is_empty() { "" } else { " and " })
    }
}

/// The cause of a hyper error before the response's head.
pub(super) fn cause_of(error: &hyper::Error) -> FailureCause {
    if error.is_user() {
        return FailureCause::RequestBody(innermost(error));
    }
    if error.is_parse() {
        return FailureCause::Framing(innermost(error));
    }
    break_of(error)
}

impl FailureCause {
    /// The abort for an upstream that broke off in its response's body.
    pub(super) fn in_answer(self) -> Abort {
        match self {
            Self::H2(reason) => {
                let why = format!("the upstream ended the stream: {reason}");
                Abort::new(Ending::Close, reason, why)
            }
            Self::Reset => Abort::reset("the upstream reset the connection in its answer"),
            Self::Framing(why) => {
                Abort::close(format!("the upstream's answer is not HTTP: {why}"))
            }
            Self::TlsHandshake(why) => {
                Abort::close(format!("TLS ended in the upstream's answer: {why}"))
            }
            Self::Closed
            // The other causes occur before a response.
            | Self::Dns(_)
            | Self::Refused(_)
            | Self::ConnectTimeout(..)
            | Self::Unreachable(_)
            | Self::TlsExpired(_)
            | Self::TlsWrongHost(_)
            | Self::TlsUnknownIssuer(_)
            | Self::ProxyRefused(_)
            | Self::ResponseTimeout(_)
            | Self::Denied(_)
            | Self::Loop(_)
            | Self::RequestBody(_) => {
                Abort::close("the upstream closed the connection in its answer")
            }
        }
    }
}

/// How an upstream broke off, according to hyper's error.
pub(super) fn break_of(error: &hyper::Error) -> FailureCause {
    let mut link: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = link {
        if let Some(h2) = error.downcast_ref::<h2::Error>()
            && let Some(reason) = h2.reason()
        {
            // After a graceful GOAWAY without this stream, the upstream did not process it (RFC
            // 9113 §8.7).
            let left_out = h2.is_go_away() && reason == h2::Reason::NO_ERROR;
            return FailureCause::H2(if left_out {
                h2::Reason::REFUSED_STREAM
            } else {
                reason
            });
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if let Some(why) = alert_of(io) {
                return FailureCause::TlsHandshake(why);
            }
            return match io.kind() {
                // Without an OS error code, it is how h2 reports a FIN without GOAWAY.
                io::ErrorKind::BrokenPipe if io.raw_os_error().is_none() => FailureCause::Closed,
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted => FailureCause::Reset,
                io::ErrorKind::InvalidData => FailureCause::Framing(io.to_string()),
                _ => FailureCause::Closed,
            };
        }
        link = error.source();
    }
    FailureCause::Closed
}

/// The innermost source of `error`, as text.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// The alert that an upstream sends after the handshake; in TLS 1.3 it reports a missing client
/// certificate then. HTTP/2 only keeps the text of rustls' error.
pub(super) fn alert_of(error: &io::Error) -> Option<String> {
    let text = error.to_string();
    let alert = text.strip_prefix("received fatal alert: ")?;
    Some(about_alert(alert))
}

/// A sentence about an alert, by rustls' name of it.
pub(super) fn about_alert(name: &str) -> String {
    match name {
        "CertificateRequired" => {
            "the upstream requires a client's certificate, and Squall has none".to_owned()
        }
        name => format!("the upstream sent the alert `{}`", in_words(name)),
    }
}

/// The first word of rustls' debug text, as words.
pub(super) fn in_words(debug: &str) -> String {
    let end = debug.find(|c: char| !c.is_ascii_alphanumeric());
    let mut words = String::new();
    for c in debug[..end.unwrap_or(debug.len())].chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Scheme;

    #[test]
    fn every_cause_is_told_in_one_sentence() {
        let (why, soon) = (|| "a reason".to_owned(), Duration::from_millis(1500));
        let at: Vec<SocketAddr> = ["127.0.0.1:1", "[::1]:1", "127.0.0.2:1"]
            .map(|a| a.parse().unwrap())
            .into();
        let causes = [
            FailureCause::Dns(why()),
            FailureCause::Refused(at.clone()),
            FailureCause::Refused(vec![at[0]]),
            FailureCause::ConnectTimeout(soon, at.clone()),
            FailureCause::ConnectTimeout(soon, Vec::new()),
            FailureCause::Unreachable(why()),
            FailureCause::TlsExpired(why()),
            FailureCause::TlsWrongHost(why()),
            FailureCause::TlsUnknownIssuer(why()),
            FailureCause::TlsHandshake(why()),
            FailureCause::ProxyRefused(why()),
            FailureCause::ResponseTimeout(soon),
            FailureCause::Reset,
            FailureCause::Closed,
            FailureCause::Framing(why()),
            FailureCause::H2(h2::Reason::ENHANCE_YOUR_CALM),
            FailureCause::Denied(why()),
            FailureCause::Loop(at[0]),
            FailureCause::RequestBody(why()),
        ];
        let origin = UpstreamOrigin::new(Scheme::Https, "up.example", 443);
        let lines = causes.map(|cause| {
            let error = UpstreamError::new(&origin, cause);
            let of_others = ["denied", "loop", "request_body"];
            assert_ne!(
                REASONS.contains(&error.reason()),
                of_others.contains(&error.reason()),
                "{}",
                error.reason()
            );
            let shown = match error.to_agent() {
                ToAgent::Problem(status) => format!("{} {}", status.as_u16(), error.title()),
                ToAgent::Break(b) => format!("{:?}, {:?} on HTTP/2", b.ending(), b.reason()),
            };
            format!("{} → {shown} [{}]\n  {error}", error.reason(), error.slug())
        });
        insta::assert_snapshot!(lines.join("\n"));
    }
}
