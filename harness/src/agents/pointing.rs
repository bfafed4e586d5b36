//! Pointing programs at the proxy: the one set of variables that the commands hand out and that agents
//! get which Squall starts.

use std::path::Path;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// The variables that carry the proxy's URL, in both cases: curl reads only the lower one for
/// `http`, others only the upper.
const PROXY: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Set but empty, so that tools on loopback are seen too.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The variables that name a file of trusted roots, one per TLS library or tool.
const BUNDLE: [&str; 9] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "DENO_CERT",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
];

/// A name and its value.
pub type Variable = (&'static str, String);

/// The variables that point a program at the proxy: those of a scope, or those that name none.
pub type ProxyVariables = Arc<dyn Fn(Option<&str>) -> Vec<Variable> + Send + Sync>;

/// The set for a proxy at `authority` (`host:port`), for programs that must trust `bundle`: a file with
/// the roots of the system and Squall's own. Their scope travels as the user of the proxy's URL.
pub fn variables(authority: &str, scope: Option<&str>, bundle: &Path) -> Vec<Variable> {
    let proxy = match scope {
        Some(scope) => format!("http://{}:x@{authority}", encode(scope)),
        None => format!("http://{authority}"),
    };
    let bundle = bundle.display().to_string();
    let proxies = PROXY.iter().map(|name| (*name, proxy.clone()));
    let exceptions = NO_PROXY.iter().map(|name| (*name, String::new()));
    let bundles = BUNDLE.iter().map(|name| (*name, bundle.clone()));
    let node = std::iter::once(("NODE_USE_ENV_PROXY", "1".to_owned()));
    proxies
        .chain(exceptions)
        .chain(bundles)
        .chain(node)
        .collect()
}

/// The sets for a proxy, by scope.
pub fn at(authority: &str, bundle: &Path) -> ProxyVariables {
    let (authority, bundle) = (authority.to_owned(), bundle.to_owned());
    Arc::new(move |scope| variables(&authority, scope, &bundle))
}

/// Everything but what RFC 3986 leaves unreserved.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A name as the user name or a path segment of a URL.
pub fn encode(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, &RESERVED)
}
