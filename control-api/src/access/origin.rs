//! Rejects requests that did not come from the client itself: browsers (DNS rebinding, foreign pages) and
//! proxies.

use std::net::IpAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};

use crate::problem::ApiProblem;

/// The host and port the request is for: `:authority` on HTTP/2, `Host` before.
pub(super) fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<&'a str, ApiProblem> {
    let mut hosts = headers.get_all(HOST).iter();
    let named = hosts.next().and_then(|value| value.to_str().ok());
    // With several it is ambiguous which one is meant (RFC 9112 §3.2).
    if hosts.next().is_some() {
        return Err(ApiProblem::malformed("there is more than one Host header"));
    }
    uri.authority()
        .map(http::uri::Authority::as_str)
        .or(named)
        .ok_or_else(|| ApiProblem::malformed("the Host header is missing"))
}

pub(super) fn refuse_foreign_host(host: &str) -> Result<(), ApiProblem> {
    if is_this_machine(without_port(host)) {
        return Ok(());
    }
    Err(ApiProblem::forbidden(format!(
        "without tokens the API is only for this machine: ask for 127.0.0.1 or localhost, not `{}`",
        shortened(host)
    )))
}

/// Headers that forward proxies add to a request or leave in it.
pub const OF_PROXIES: [&str; 7] = [
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "proxy-connection",
    "proxy-authorization",
];

/// An agent must not reach the API through `upstream_proxy`. A proxy that adds no header cannot be distinguished
/// from a local program.
pub(super) fn refuse_proxied(headers: &HeaderMap) -> Result<(), ApiProblem> {
    match OF_PROXIES.iter().find(|name| headers.contains_key(**name)) {
        None => Ok(()),
        Some(name) => Err(ApiProblem::forbidden(format!(
            "without tokens the API is only for this machine: this request came through a proxy, as its \
             header `{name}` shows"
        ))),
    }
}

/// A page may call the host that served it.
pub(super) fn refuse_foreign_origin(host: &str, headers: &HeaderMap) -> Result<(), ApiProblem> {
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or("\u{fffd}");
    let authority = origin
        .split_once("://")
        .map_or(origin, |(_, authority)| authority);
    if authority.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    Err(ApiProblem::forbidden(format!(
        "a page from `{}` may not use this API",
        shortened(origin)
    )))
}

fn without_port(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    match address.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

fn shortened(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}
