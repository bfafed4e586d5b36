//! A daemon with an upstream in clear and an encrypted one behind it, and the ways between.

use serde_json::{Value, json};

use crate::authority::Authority;
use crate::program::Way;
use crate::upstream::{Connection, Upstream, standard};
use crate::{Daemon, Wire};

/// How a client reaches the upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Without Squall: what every other path is compared with.
    Direct,
    /// Absolute-form requests to the proxy.
    Forward,
    /// CONNECT, TLS, interception.
    Intercepted,
    /// A route's prefix on the proxy's listener.
    Reverse,
}

impl Path {
    /// The ways through Squall.
    pub const THROUGH: [Self; 3] = [Self::Forward, Self::Intercepted, Self::Reverse];
}

/// Daemon and upstreams of one test.
#[derive(Debug)]
pub struct Stage {
    /// The daemon. Its route `/up` leads to [`Stage::plain`].
    pub daemon: Daemon,
    /// The upstream in clear.
    pub plain: Upstream,
    /// The encrypted upstream, for `localhost` and `127.0.0.1`.
    pub secure: Upstream,
    /// Who vouches for the encrypted upstream.
    pub authority: Authority,
}

impl Stage {
    /// With upstreams that give the standard answers.
    pub fn new() -> Self {
        Self::with(&json!({}), standard::serve)
    }

    /// With a configuration laid over the usual one, and upstreams that do as `handler` does.
    pub fn with(
        config: &Value,
        handler: impl Fn(Connection) + Send + Sync + Clone + 'static,
    ) -> Self {
        let authority = Authority::new();
        let plain = Upstream::start(None, handler.clone());
        let tls = authority.server(&["localhost", "127.0.0.1"], &["http/1.1"]);
        let secure = Upstream::start(Some(tls), handler);
        let mut whole = json!({
            "proxy": { "upstream_ca": [authority.file()] },
            "routes": [{
                "name": "up", "prefix": "/up", "upstream": format!("http://{}", plain.address),
            }],
        });
        for (section, settings) in config.as_object().into_iter().flatten() {
            match (&mut whole[section], settings) {
                (Value::Object(base), Value::Object(over)) => base.extend(over.clone()),
                (Value::Array(base), Value::Array(over)) => base.extend(over.clone()),
                (base, over) => *base = over.clone(),
            }
        }
        Self {
            daemon: Daemon::start(&whole),
            plain,
            secure,
            authority,
        }
    }

    /// The upstream at the end of `path`.
    pub fn upstream(&self, path: Path) -> &Upstream {
        match path {
            Path::Intercepted => &self.secure,
            Path::Direct | Path::Forward | Path::Reverse => &self.plain,
        }
    }

    /// A connection that is ready for requests.
    pub fn open(&self, path: Path) -> Wire {
        match path {
            Path::Direct => Wire::connect(self.plain.address),
            Path::Forward => {
                let mut wire = self.daemon.connect();
                wire.prefix = format!("http://{}", self.plain.address);
                wire.host = self.plain.address.to_string();
                wire
            }
            Path::Reverse => {
                let mut wire = self.daemon.connect();
                wire.prefix.push_str("/up");
                wire
            }
            Path::Intercepted => {
                let mut wire = self.daemon.connect();
                let response = wire.open_tunnel(&self.secure_authority(), "");
                assert_eq!(response.status, 200, "CONNECT: {response:?}");
                let mut wire = wire
                    .encrypt(&self.daemon.ca, "localhost")
                    .expect("a handshake");
                wire.host = self.secure_authority();
                wire
            }
        }
    }

    /// `localhost:PORT` of the encrypted upstream.
    pub fn secure_authority(&self) -> String {
        format!("localhost:{}", self.secure.address.port())
    }

    /// The URL that a program asks for, its proxy set or not.
    pub fn url(&self, path: Path, target: &str) -> String {
        match path {
            Path::Direct | Path::Forward => format!("http://{}{target}", self.plain.address),
            Path::Intercepted => format!("https://{}{target}", self.secure_authority()),
            Path::Reverse => format!("http://{}/up{target}", self.daemon.proxy),
        }
    }

    /// What a program is told that asks for `target`.
    pub fn way(&self, path: Path, target: &str) -> Way {
        let proxied = matches!(path, Path::Forward | Path::Intercepted);
        Way {
            url: self.url(path, target),
            proxy: proxied.then(|| format!("http://{}", self.daemon.proxy)),
            ca: proxied.then(|| self.daemon.ca.clone()),
        }
    }
}

impl Default for Stage {
    fn default() -> Self {
        Self::new()
    }
}
