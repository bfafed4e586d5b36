//! Pointing programs at the proxy: the one set of variables that `env`, `run` and `demo` hand out.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};

use crate::args::Shell;

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
pub(crate) type Variable = (&'static str, String);

/// The set for a proxy at `authority` (`host:port`), for programs that must trust `bundle`.
pub(crate) fn variables(authority: &str, scope: Option<&str>, bundle: &Path) -> Vec<Variable> {
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

/// The set as commands of a shell, one a line.
pub(crate) fn script(shell: Shell, variables: &[Variable]) -> String {
    let line = |(name, value): &Variable| match shell {
        Shell::Bash => format!("export {name}={}\n", quoted(value, "'\\''")),
        Shell::Fish => format!(
            "set -gx {name} {}\n",
            quoted(&value.replace('\\', "\\\\"), "\\'")
        ),
        Shell::Powershell => format!("$env:{name} = {}\n", quoted(value, "''")),
        Shell::Dotenv => {
            format!(
                "{name}=\"{}\"\n",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            )
        }
    };
    variables.iter().map(line).collect()
}

/// The text in single quotes; `escape` stands for a single quote inside.
fn quoted(text: &str, escape: &str) -> String {
    format!("'{}'", text.replace('\'', escape))
}

/// Everything but what RFC 3986 leaves unreserved.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A name as the user name or a path segment of a URL.
pub(crate) fn encode(name: &str) -> PercentEncode<'_> {
    utf8_percent_encode(name, &RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_the_whole_set() {
        let variables = variables(
            "127.0.0.1:7070",
            Some("job 1"),
            Path::new("/home/it's/ca.pem"),
        );
        let scripts: Vec<_> = [Shell::Bash, Shell::Fish, Shell::Powershell, Shell::Dotenv]
            .map(|shell| script(shell, &variables))
            .into();
        insta::assert_snapshot!(scripts.join("\n"));
    }
}
