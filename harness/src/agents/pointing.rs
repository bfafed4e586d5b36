//! The environment variables that configure the proxy for programs. Commands print them, and agents that Squall
//! starts get them.

use std::path::Path;
use std::sync::Arc;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

/// Proxy URL variables in both cases: curl reads only the lower-case one for `http`, other programs only the
/// upper-case one.
const PROXY: [&str; 6] = [
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// Set but empty, so that calls to loopback addresses use the proxy too.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The variables that name a CA bundle, one for each TLS library or tool.
pub const BUNDLE: [&str; 9] = [
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

/// A variable's name and value.
pub type Variable = (&'static str, String);

/// Returns the proxy variables for a scope; `None`: without a scope.
pub type ProxyVariables = Arc<dyn Fn(Option<&str>) -> Vec<Variable> + Send + Sync>;

/// The variables for a proxy at `authority` (`host:port`). Programs must trust `bundle`, a file with the system's
/// roots and Squall's own. The scope is the user name in the proxy's URL.
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

/// The variables for a proxy, by scope.
pub fn at(authority: &str, bundle: &Path) -> ProxyVariables {
    let (authority, bundle) = (authority.to_owned(), bundle.to_owned());
    Arc::new(move |scope| variables(&authority, scope, &bundle))
}

/// All characters except those that RFC 3986 leaves unreserved.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Encodes a name as a user name or path segment of a URL.
pub fn encode(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, &RESERVED)
}

/// A language in which variables are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellLanguage {
    /// bash, zsh and other POSIX shells.
    Bash,
    /// fish.
    Fish,
    /// `PowerShell`.
    Powershell,
    /// A `.env` file.
    Dotenv,
}

/// The variables as shell commands, one a line.
pub fn script(language: ShellLanguage, variables: &[Variable]) -> String {
    let line = |(name, value): &Variable| match language {
        ShellLanguage::Bash => format!("export {name}={}\n", quoted(value, "'\\''")),
        ShellLanguage::Fish => format!(
            "set -gx {name} {}\n",
            quoted(&value.replace('\\', "\\\\"), "\\'")
        ),
        ShellLanguage::Powershell => format!("$env:{name} = {}\n", quoted(value, "''")),
        ShellLanguage::Dotenv => {
            format!(
                "{name}=\"{}\"\n",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            )
        }
    };
    variables.iter().map(line).collect()
}

/// The text in single quotes; `escape` replaces a single quote in it.
pub fn quoted(text: &str, escape: &str) -> String {
    format!("'{}'", text.replace('\'', escape))
}
