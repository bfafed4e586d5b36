//! Parsers of single values: each returns the value, or an error with valid alternatives.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use squall_documents::allowed;
use squall_documents::variables::is_one_variable;
use squall_profiles::glob::Glob;
use squall_profiles::tools::ToolNames;
use squall_proxy::upstream::HostPatterns;

use super::quantity;

/// "unknown `what` `found`, did you mean …? Expected one of …".
pub(crate) fn unknown(what: &str, found: &str, names: &[&str]) -> String {
    let rest = allowed(found, names.iter().copied());
    format!("unknown {what} `{found}`{rest}")
}

/// Reads `host:port` with a literal address: listeners must not depend on DNS.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("http://")
        .unwrap_or(text)
        .trim_end_matches('/');
    let literal = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}"),
        None => text.to_owned(),
    };
    SocketAddr::from_str(&literal).map_err(|_| {
        format!("`{text}` is not an address to listen on; write `127.0.0.1:7070` or `[::1]:7070`")
    })
}

/// The name of a dialect or a variant that this version supports.
pub(super) fn dialect_name(name: &str) -> Result<String, String> {
    let supported = squall_dialects::endpoint_names();
    if supported.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(unknown("dialect", name, &supported))
}

pub(super) fn variable(text: &str) -> Result<String, String> {
    if is_one_variable(&format!("${{{text}}}")) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` is not the name of a variable; write `STAGING_KEY`, without `${{}}`"
    ))
}

pub(super) fn workspace(text: &str) -> Result<String, String> {
    if squall_control_api::is_workspace_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{text}` cannot be a workspace; write 1 to 64 characters of a-z, A-Z, 0-9, `_` and `-`"
    ))
}

/// A glob over names of suites and hosts.
pub(super) fn approval(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(format!(
            "`{text}` is no glob over names of suites and hosts; write one like `*.prod.example`"
        ));
    }
    host_pattern(text)
}

/// A glob over names.
pub(super) fn glob(text: &str) -> Result<Glob, String> {
    Glob::new(text).map_err(|error| error.to_string())
}

/// The redactor compiles patterns again when the daemon starts, when their places are unknown.
pub(super) fn secret_pattern(text: &str) -> Result<String, String> {
    match squall_journal::redact::Redactor::with_patterns([text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            // The regex crate marks the error over several lines; the last line is the message.
            let picture = error.to_string();
            let why = picture
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ");
            Err(format!("`{text}` is not a regular expression: {why}"))
        }
    }
}

pub(super) fn size_in_memory(text: &str) -> Result<usize, String> {
    usize::try_from(quantity::size(text)?)
        .map_err(|_| format!("`{text}` is more than fits in memory"))
}

pub(super) fn some_time(text: &str) -> Result<Duration, String> {
    match quantity::duration(text)? {
        Duration::ZERO => Err(format!("`{text}` would let nothing through; write `10s`")),
        time => Ok(time),
    }
}

pub(super) fn time_or_none(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    some_time(text)
        .map(Some)
        .map_err(|message| format!("{message}, or `none`"))
}

/// The proxy compiles patterns again when it starts, when their places are unknown.
pub(super) fn host_pattern(text: &str) -> Result<String, String> {
    let compiled = HostPatterns::new(&[text.to_owned()]);
    let compiled = compiled.map(|_| text.to_owned());
    compiled.map_err(|error| error.to_string())
}

/// The same for a glob over URLs.
pub(super) fn url_glob(text: &str) -> Result<String, String> {
    let compiled = ToolNames::new([("match_url", &[text.to_owned()][..])]);
    let compiled = compiled.map(|_| text.to_owned());
    compiled.map_err(|error| error.message)
}

pub(super) fn host_and_port(text: &str) -> Result<String, String> {
    match text.parse::<http::uri::Authority>() {
        Ok(authority) if authority.port_u16().is_some() && !text.contains('@') => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(format!(
            "`{text}` is not a host and a port; write `api.openai.com:443`"
        )),
    }
}

pub(super) fn prefix_path(text: &str) -> Result<String, String> {
    let prefix = text.trim_end_matches('/');
    if !prefix.starts_with('/') || prefix.contains(['?', '#', ' ']) {
        return Err(format!("`{text}` is not a path prefix; write `/openai`"));
    }
    if prefix == "/_scope" || prefix.starts_with("/_scope/") {
        return Err(
            "`/_scope/` is how requests name their scope; choose another prefix".to_owned(),
        );
    }
    Ok(prefix.to_owned())
}

/// Reads the base URL of an upstream.
pub(crate) fn upstream_url(text: &str) -> Result<http::Uri, String> {
    let complaint = || format!("`{text}` is not an upstream; write `https://api.openai.com`");
    let uri: http::Uri = text.parse().map_err(|_| complaint())?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() && uri.query().is_none() => Ok(uri),
        _ => Err(complaint()),
    }
}

/// The error does not repeat the value, as it may hold a password.
pub(super) fn proxy_url(text: &str) -> Result<String, String> {
    let complaint = || "this is not a proxy; write `http://[user:password@]host:port`".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| complaint())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err(complaint()),
    }
}

/// Suggests a variable for a token: `ci` → `SQUALL_CI_TOKEN`.
pub(super) fn variable_name(token: &str) -> String {
    let name = token.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    format!("SQUALL_{}_TOKEN", name.to_ascii_uppercase())
}
