//! The compiled configuration of the data plane; a reload replaces it as a whole.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Uri;
use http::header::HeaderValue;
use squall_dialects::Dialect;
use squall_profiles::facts::CanonicalUrl;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::tools::ToolNames;

use crate::config::{ConfigError, ProxyConfig, RouteEntry, WebSocketCalls};
use crate::upstream::{HostPatterns, UpstreamOrigin};

/// The purpose of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListenerRole {
    /// Forward proxy and prefix routes.
    Main,
    /// One reverse route: its index in the configuration.
    Route(usize),
}

/// A configuration in force.
pub(crate) struct CompiledConfig {
    pub(crate) config: ProxyConfig,
    /// Addresses of the proxy's listeners, as bound.
    pub(crate) listeners: Vec<(SocketAddr, ListenerRole)>,
    /// Tool names for upstreams.
    pub(crate) tools: ToolNames,
    routes: Vec<CompiledRoute>,
    intercepted: HostPatterns,
    excluded: HostPatterns,
    /// Dialect names, each with URL globs.
    llm: ToolNames,
    /// WebSockets of model calls that are not served as calls, by [`NOT_SERVED`].
    sockets: ToolNames,
}

/// A compiled reverse route.
pub(crate) struct CompiledRoute {
    prefix: Option<String>,
    pub(crate) origin: UpstreamOrigin,
    pub(crate) authority: String,
    pub(crate) host: HeaderValue,
    /// Path of the upstream's base URL, without a trailing slash.
    pub(crate) base_path: String,
    pub(crate) scope: Option<Arc<str>>,
}

impl CompiledConfig {
    /// Names of the tools behind a URL: those of the config, then those of `rules`.
    pub(crate) fn tools_at(&self, url: &CanonicalUrl, rules: &RuleSet) -> Vec<String> {
        let mut names: Vec<String> = self
            .tools
            .names(url)
            .into_iter()
            .map(str::to_owned)
            .collect();
        if !rules.own_tools().is_empty() {
            for name in rules.own_tools().names(url) {
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        names
    }

    /// Whether an agent of the config or of `rules` is behind a URL.
    pub(crate) fn is_agent(&self, url: &CanonicalUrl, rules: &RuleSet) -> bool {
        self.tools.is_agent(url) || rules.own_tools().is_agent(url)
    }

    /// The first of these names that an agent of the config or of `rules` has. They are not read if there are no
    /// agents.
    pub(crate) fn agent_named<I: Iterator<Item = String>>(
        &self,
        rules: &RuleSet,
        names: impl FnOnce() -> I,
    ) -> Option<Arc<str>> {
        let (all, own) = (&self.tools, rules.own_tools());
        if !all.has_agents() && !own.has_agents() {
            return None;
        }
        let name = names().find(|name| all.has_agent(name) || own.has_agent(name))?;
        Some(name.into())
    }

    /// Checks and compiles `config` for a proxy with these listeners.
    pub(crate) fn new(
        config: ProxyConfig,
        listeners: Vec<(SocketAddr, ListenerRole)>,
    ) -> Result<Self, ConfigError> {
        let routes = config
            .routes
            .iter()
            .map(CompiledRoute::new)
            .collect::<Result<_, _>>()?;
        let tools = config.names()?;
        let patterns = |place, list: &[String]| {
            HostPatterns::new(list).map_err(|error| ConfigError(format!("{place}: {error}")))
        };
        let intercepted = patterns("proxy.intercept.hosts", &config.intercept.hosts)?;
        let excluded = patterns("proxy.intercept.exclude", &config.intercept.exclude)?;
        let llm = llm_endpoints(&config)?;
        let sockets = sockets_not_served(&config)?;
        Ok(Self {
            config,
            listeners,
            tools,
            routes,
            intercepted,
            excluded,
            llm,
            sockets,
        })
    }

    /// The route with this index in the configuration.
    pub(crate) fn route(&self, place: usize) -> Option<&CompiledRoute> {
        self.routes.get(place)
    }

    /// Whether any route has a prefix.
    pub(crate) fn has_prefixes(&self) -> bool {
        self.routes.iter().any(|route| route.prefix.is_some())
    }

    /// The route whose prefix matches `path`, and the rest of the path; the longest prefix wins.
    pub(crate) fn prefix_route<'a>(&self, path: &'a str) -> Option<(&CompiledRoute, &'a str)> {
        let takes = |route: &CompiledRoute| {
            let rest = path.strip_prefix(route.prefix.as_deref()?)?;
            // `/openai` matches `/openai`, `/openai/v1` and `/openai?x`, not `/openainew`.
            let whole = rest.is_empty() || rest.starts_with(['/', '?']);
            whole.then_some(rest)
        };
        self.routes
            .iter()
            .filter_map(|route| Some((route, takes(route)?)))
            .min_by_key(|(_, rest)| rest.len())
    }

    /// Whether TLS to this host is intercepted rather than tunnelled.
    pub(crate) fn intercepts(&self, host: &str) -> bool {
        self.intercepted.matches(host) && !self.excluded.matches(host)
    }

    /// The dialect that `llm:` configures for a URL.
    pub(crate) fn llm_dialect(&self, url: &CanonicalUrl) -> Option<&'static dyn Dialect> {
        self.llm
            .names(url)
            .into_iter()
            .find_map(squall_dialects::of_endpoint)
    }

    /// What `llm:` configures for WebSockets of model calls at a URL.
    pub(crate) fn websocket_calls(&self, url: &CanonicalUrl) -> WebSocketCalls {
        let named = self.sockets.names(url);
        let found = NOT_SERVED
            .iter()
            .find(|(name, _)| named.iter().any(|known| known == name));
        found.map_or(WebSocketCalls::Fault, |(_, calls)| *calls)
    }
}

/// Names of what is done with other WebSockets of model calls.
const NOT_SERVED: [(&str, WebSocketCalls); 2] = [
    ("refuse", WebSocketCalls::Refuse),
    ("pass", WebSocketCalls::Pass),
];

fn sockets_not_served(config: &ProxyConfig) -> Result<ToolNames, ConfigError> {
    let globs = NOT_SERVED.map(|(name, calls)| {
        let endpoints = config
            .llm
            .iter()
            .filter(|endpoint| endpoint.websocket == calls);
        let globs: Vec<_> = endpoints
            .map(|endpoint| endpoint.match_url.clone())
            .collect();
        (name, globs)
    });
    let globs = globs.iter().map(|(name, globs)| (*name, globs.as_slice()));
    ToolNames::new(globs).map_err(|error| ConfigError(format!("llm: {error}")))
}

fn llm_endpoints(config: &ProxyConfig) -> Result<ToolNames, ConfigError> {
    let named = || {
        let named = config.llm.iter();
        named.filter_map(|endpoint| Some((endpoint.dialect.as_deref()?, &endpoint.match_url)))
    };
    for (dialect, _) in named() {
        if squall_dialects::of_endpoint(dialect).is_none() {
            return Err(ConfigError(format!(
                "llm: unknown dialect `{dialect}`; there is: {}",
                squall_dialects::endpoint_names().join(", ")
            )));
        }
    }
    let globs: Vec<_> = named()
        .map(|(dialect, match_url)| (dialect, vec![match_url.clone()]))
        .collect();
    ToolNames::new(
        globs
            .iter()
            .map(|(dialect, globs)| (*dialect, globs.as_slice())),
    )
    .map_err(|error| ConfigError(format!("tools: {error}")))
}

impl CompiledRoute {
    fn new(route: &crate::config::ProxyRoute) -> Result<Self, ConfigError> {
        let bad = || {
            ConfigError(format!(
                "routes: `{}`: upstream `{}` is not an http:// or https:// URL",
                route.name, route.upstream
            ))
        };
        let origin = UpstreamOrigin::of_uri(&route.upstream).ok_or_else(bad)?;
        let authority = origin.authority();
        let host = HeaderValue::from_str(&authority).map_err(|_| bad())?;
        Ok(Self {
            prefix: match &route.entry {
                RouteEntry::Prefix(prefix) => Some(with_slash(prefix)),
                RouteEntry::Listen(_) => None,
            },
            origin,
            authority,
            host,
            base_path: base_path(&route.upstream),
            scope: route.scope.as_deref().map(Arc::from),
        })
    }
}

/// `/prefix` with a leading slash and no trailing one; empty for `/`, which matches every path.
fn with_slash(prefix: &str) -> String {
    let name = prefix.trim_matches('/');
    if name.is_empty() {
        String::new()
    } else {
        format!("/{name}")
    }
}

fn base_path(uri: &Uri) -> String {
    uri.path().trim_end_matches('/').to_owned()
}
