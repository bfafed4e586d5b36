//! Checks what a configuration exposes to other machines.

use squall_control_api::access::Access;

use super::{Config, ConfiguredToken};
use crate::failure::Failure;
use crate::text;

/// Fewest characters of a configured token when other machines can reach the control API.
const SHORTEST_TOKEN: usize = 16;

impl Config {
    /// Rejects a configuration that exposes too much. Called after flags are applied.
    pub(crate) fn check_exposure(&self) -> Result<(), Failure> {
        let mut errors = Vec::new();
        let proxy = self.proxy.listen;
        let anywhere = self.proxy.allow.iter().find(|glob| is_everything(glob));
        if let (false, false, Some(glob)) = (self.open, proxy.ip().is_loopback(), anywhere) {
            errors.push(format!(
                "the proxy would listen on {proxy}, where others could reach any destination \
                 through it (`{glob}`); narrow `proxy.allow` to what agents need, or set \
                 `proxy.open: true`"
            ));
        }
        let api = self.api.listen;
        if proxy == api && proxy.port() != 0 {
            errors.push(format!(
                "proxy and control API cannot both listen on {proxy}"
            ));
        }
        text::no_errors(&errors)
    }

    /// Rejects a control API that other machines can reach without a token, or with a token that is easy to
    /// guess. Called once the store's tokens are known, since they count too.
    pub(crate) fn check_api(&self, access: &Access) -> Result<(), Failure> {
        let api = self.api.listen;
        if api.ip().is_loopback() {
            return Ok(());
        }
        let is_short = |token: &&ConfiguredToken| token.secret.len() < SHORTEST_TOKEN;
        if let Some(short) = self.api.tokens.iter().find(is_short) {
            return Err(Failure::Usage(format!(
                "the control API would listen on {api}, and the token of `{}` has {} characters; outside of \
                 loopback give it at least {SHORTEST_TOKEN}, such as those of `openssl rand -hex 24`, or take it \
                 out and make one with `squall token create NAME --role {}`",
                short.name,
                short.secret.len(),
                short.role.as_str(),
            )));
        }
        if !self.api.tokens.is_empty() || access.has_stored() {
            return Ok(());
        }
        Err(Failure::Usage(format!(
            "the control API would listen on {api} without a token; add one under `api.tokens`, or listen \
             on 127.0.0.1 and make one there with `squall token create NAME --role admin`"
        )))
    }
}

/// Whether an entry of `proxy.allow` allows everything: all hosts, even on one port only, or a network of all
/// addresses.
fn is_everything(entry: &str) -> bool {
    let entry = entry.trim();
    if let Some((_, prefix)) = entry.split_once('/') {
        return prefix.parse() == Ok(0_u8);
    }
    let host = entry.split_once(':').map_or(entry, |(host, _)| host);
    host.contains('*') && host.bytes().all(|byte| matches!(byte, b'*' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::is_everything;

    #[test]
    fn stars_and_networks_of_everything_narrow_nothing() {
        for everything in [
            "*",
            "**",
            "*.*",
            "*.",
            " * ",
            "*:443",
            "0.0.0.0/0",
            "::/0",
            "10.0.0.0/00",
        ] {
            assert!(is_everything(everything), "{everything}");
        }
        for narrowed in [
            "*.example",
            "10.0.0.0/8",
            "10.*",
            "api.example:443",
            "::1",
            "fd00::/8",
            "",
        ] {
            assert!(!is_everything(narrowed), "{narrowed}");
        }
    }
}
