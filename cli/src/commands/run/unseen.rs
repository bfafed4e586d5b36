//! Why nothing of a program came through the proxy, as far as can be told from outside.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

/// Programs that run JavaScript by the `node` of the PATH.
const ON_NODE: [&str; 6] = ["npm", "npx", "pnpm", "yarn", "tsx", "ts-node"];

/// How long `node --version` may take.
const VERSION_TIME: Duration = Duration::from_secs(5);

/// What to look at when nothing came through the proxy; `code` is what the program ended with.
pub(super) async fn advice(command: &[OsString], code: u8) -> String {
    let node = match command.first() {
        Some(program) => old_node(Path::new(program)).await,
        None => None,
    };
    if let Some(version) = node {
        return format!(
            "nothing came through: Node {version} does not read HTTP_PROXY and HTTPS_PROXY. Node 22.21, 24 \
             and later do, because `squall run` sets NODE_USE_ENV_PROXY. Use one of these, give the client an \
             `EnvHttpProxyAgent` of `undici`, or try `--base-urls`."
        );
    }
    if code != 0 {
        return format!(
            "nothing came through: the program ended with exit code {code} before the proxy saw a request. \
             See the program's own output above for the error. If it calls an API all the same, try \
             `--base-urls`."
        );
    }
    "nothing came through: the program made no request, or it does not read HTTP_PROXY and HTTPS_PROXY. Many \
     libraries have an option for it (`trust_env` or `proxy`). For programs that ignore proxies try \
     `--base-urls`, or point the base URL at a route of the proxy."
        .to_owned()
}

/// The version of the Node that runs a program, if it is one that does not read proxy variables.
async fn old_node(program: &Path) -> Option<String> {
    let name = program.file_name()?.to_str()?;
    let node = match name {
        "node" => program,
        name if ON_NODE.contains(&name) => Path::new("node"),
        _ => return None,
    };
    let mut asked = Command::new(node);
    asked
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(VERSION_TIME, asked.output()).await;
    let output = output.ok()?.ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let version = version.trim();
    reads_no_proxy(version)?.then(|| version.to_owned())
}

/// Whether a version of Node does not know `NODE_USE_ENV_PROXY`; `None` for what is no version.
fn reads_no_proxy(version: &str) -> Option<bool> {
    let mut numbers = version.strip_prefix('v')?.split('.');
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let (major, minor) = (number()?, number()?);
    Some(major < 22 || major == 23 || (major == 22 && minor < 21))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_that_read_proxy_variables_are_known() {
        for (version, old) in [
            ("v18.20.4", Some(true)),
            ("v22.20.0", Some(true)),
            ("v22.21.0", Some(false)),
            ("v23.11.1", Some(true)),
            ("v24.0.0", Some(false)),
            ("v26.1.0", Some(false)),
            ("20.1.0", None),
            ("v20", None),
            ("", None),
        ] {
            assert_eq!(reads_no_proxy(version), old, "{version}");
        }
    }
}
