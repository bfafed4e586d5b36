//! Raw structs → what the daemon runs with: variables expanded, every scalar given its type, and
//! all complaints collected, not only the first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_control_api::access::{TOKEN_NAMES, is_token_name};
use squall_control_api::store::{DEFAULT_WORKSPACE, Place};
use squall_profiles::variables::{Variables, expand, is_one_variable};
use squall_proxy::config::{CaSource, LlmEndpoint, ProxyConfig, Route, RouteEntry};

use super::position::{ConfigError, Position, Scalar};
use super::raw::{
    RawApi, RawConfig, RawLimits, RawProxy, RawRoute, RawSafety, RawStore, RawToken, RawUpstream,
};
use super::{Config, Halt, Safety, Token, quantity, words};
use crate::profile_file;

/// Fewest characters of a token that the configuration names: who may guess does so slowly, but does.
const SHORTEST_TOKEN: usize = 6;

/// Turns scalars into values and keeps what it could not turn.
pub(crate) struct Typing<'a> {
    variables: Variables<'a>,
    /// Relative paths are relative to this directory.
    base: &'a Path,
    errors: Vec<ConfigError>,
}

/// Lays a file's fields over `config`. `base` is the file's directory.
pub(crate) fn lay_over(
    config: &mut Config,
    raw: &RawConfig,
    base: &Path,
    variables: Variables<'_>,
) -> Result<(), Vec<ConfigError>> {
    let mut typing = Typing {
        variables,
        base,
        errors: Vec::new(),
    };
    if let Some(proxy) = &raw.proxy {
        typing.proxy(&mut config.proxy, &mut config.open, proxy);
    }
    for route in raw.routes.iter().flatten() {
        typing.route(&mut config.proxy.routes, route);
    }
    if let Some(api) = &raw.api {
        typing.api(config, api);
    }
    for (name, tool) in raw.tools.iter().flat_map(|tools| &tools.0) {
        let globs: Vec<_> = tool
            .match_url
            .0
            .iter()
            .filter_map(|glob| typing.parsed(glob, words::url_glob))
            .collect();
        if tool.match_url.0.is_empty() {
            typing.complain(name.at, format!("the tool `{}` names no URL", name.text));
        }
        config.proxy.tools.push((name.text.clone(), globs));
    }
    for endpoint in raw.llm.iter().flatten() {
        typing.llm(&mut config.proxy, &endpoint.match_url, &endpoint.dialect);
    }
    if let Some(profiles) = &raw.profiles {
        config.profiles = typing.path(profiles);
    }
    if let Some(chaos) = &raw.chaos {
        typing.optional(&mut config.chaos.profile, chaos.profile.as_ref(), |text| {
            Ok(text.to_owned())
        });
        let file = config
            .chaos
            .profile
            .as_deref()
            .and_then(profile_file::named);
        config.profile_file = file.map(|file| plain(&base.join(file)));
        typing.optional(
            &mut config.chaos.seed,
            chaos.seed.as_ref(),
            words::whole_number,
        );
    }
    if let Some(safety) = &raw.safety {
        typing.safety(&mut config.safety, safety);
        let commands = &mut config.trust.commands;
        typing.set(commands, safety.commands.as_ref(), quantity::boolean);
    }
    if let Some(store) = &raw.store {
        typing.store(config, store);
    }
    for glob in raw.approval.iter().flatten() {
        let glob = typing.parsed(glob, words::approval);
        config.proxy.approval.extend(glob);
    }
    for pattern in raw.redact.iter().flatten() {
        config
            .redact
            .extend(typing.parsed(pattern, words::secret_pattern));
    }
    if typing.errors.is_empty() {
        Ok(())
    } else {
        Err(typing.errors)
    }
}

impl Typing<'_> {
    fn proxy(&mut self, proxy: &mut ProxyConfig, open: &mut bool, raw: &RawProxy) {
        self.set(&mut proxy.listen, raw.listen.as_ref(), words::address);
        self.set(
            &mut proxy.credentials,
            raw.credentials.as_ref(),
            words::credentials,
        );
        if let Some(ca) = &raw.ca
            && let (Some(cert), Some(key)) = (self.path(&ca.cert), self.path(&ca.key))
        {
            proxy.ca = CaSource::Files { cert, key };
        }
        if let Some(intercept) = &raw.intercept {
            self.host_patterns(&mut proxy.intercept.hosts, intercept.hosts.as_deref());
            self.host_patterns(&mut proxy.intercept.exclude, intercept.exclude.as_deref());
        }
        for (from, to) in raw.connect_to.iter().flat_map(|pairs| &pairs.0) {
            if let (Some(from), Some(to)) = (
                self.parsed(from, words::host_and_port),
                self.parsed(to, words::host_and_port),
            ) {
                proxy.connect_to.push((from, to));
            }
        }
        for file in raw.upstream_ca.iter().flatten() {
            proxy.upstream_ca.extend(self.path(file));
        }
        self.optional(
            &mut proxy.upstream_proxy,
            raw.upstream_proxy.as_ref(),
            words::proxy_url,
        );
        self.host_patterns(&mut proxy.allow, raw.allow.as_deref());
        self.host_patterns(&mut proxy.deny, raw.deny.as_deref());
        self.set(open, raw.open.as_ref(), quantity::boolean);
        self.set(
            &mut proxy.inspect_limit,
            raw.inspect_limit.as_ref(),
            quantity::size,
        );
        self.set(&mut proxy.observe, raw.observe.as_ref(), words::observe);
        if let Some(limits) = &raw.limits {
            self.limits(&mut proxy.limits, limits);
        }
        if let Some(upstream) = &raw.upstream {
            self.upstream(&mut proxy.upstream, upstream);
        }
        self.set(
            &mut proxy.annotate,
            raw.annotate.as_ref(),
            quantity::boolean,
        );
    }

    fn limits(&mut self, limits: &mut squall_proxy::config::Limits, raw: &RawLimits) {
        self.set(
            &mut limits.connections,
            raw.connections.as_ref(),
            words::at_least_one,
        );
        self.set(
            &mut limits.header_bytes,
            raw.header_bytes.as_ref(),
            words::size_in_memory,
        );
        self.set(
            &mut limits.header_count,
            raw.header_count.as_ref(),
            words::at_least_one,
        );
        self.set(
            &mut limits.header_timeout,
            raw.header_timeout.as_ref(),
            words::some_time,
        );
        self.set(
            &mut limits.idle_timeout,
            raw.idle_timeout.as_ref(),
            words::some_time,
        );
        self.set(
            &mut limits.inspect_memory,
            raw.inspect_memory.as_ref(),
            quantity::size,
        );
    }

    fn upstream(
        &mut self,
        upstream: &mut squall_proxy::config::UpstreamTimeouts,
        raw: &RawUpstream,
    ) {
        self.set(
            &mut upstream.connect,
            raw.connect_timeout.as_ref(),
            words::some_time,
        );
        self.set(
            &mut upstream.response,
            raw.response_timeout.as_ref(),
            words::time_or_none,
        );
        self.set(
            &mut upstream.idle,
            raw.idle_timeout.as_ref(),
            quantity::duration,
        );
    }

    fn route(&mut self, routes: &mut Vec<Route>, raw: &RawRoute) {
        let at = raw.name.at;
        let entry = match (&raw.prefix, &raw.listen) {
            (Some(prefix), None) => self
                .parsed(prefix, words::prefix_path)
                .map(RouteEntry::Prefix),
            (None, Some(listen)) => self.parsed(listen, words::address).map(RouteEntry::Listen),
            (Some(_), Some(_)) => {
                self.complain(at, "a route has a `prefix` or a `listen` address, not both");
                None
            }
            (None, None) => {
                self.complain(
                    at,
                    "this route cannot be reached; give it a `prefix` such as `/openai`, or a \
                     `listen` address",
                );
                None
            }
        };
        let mut scope = None;
        self.optional(&mut scope, raw.scope.as_ref(), |text| Ok(text.to_owned()));
        let name = self.text(&raw.name);
        let upstream = self.parsed(&raw.upstream, words::upstream_url);
        let (Some(name), Some(entry), Some(upstream)) = (name, entry, upstream) else {
            return;
        };
        for other in routes.iter() {
            if other.name == name {
                self.complain(at, format!("two routes are named `{name}`"));
            }
            if let (RouteEntry::Prefix(one), RouteEntry::Prefix(two)) = (&other.entry, &entry)
                && one == two
            {
                self.complain(
                    at,
                    format!(
                        "the routes `{}` and `{name}` both have the prefix `{one}`",
                        other.name
                    ),
                );
            }
        }
        routes.push(Route {
            name,
            entry,
            upstream,
            scope,
        });
    }

    fn api(&mut self, config: &mut Config, raw: &RawApi) {
        self.set(&mut config.api.listen, raw.listen.as_ref(), words::address);
        for name in raw.env.iter().flatten() {
            let name = self.parsed(name, words::variable);
            config.trust.variables.extend(name);
        }
        for token in raw.tokens.iter().flatten() {
            self.token(&mut config.api.tokens, token);
        }
    }

    fn token(&mut self, tokens: &mut Vec<Token>, raw: &RawToken) {
        if !is_one_variable(&raw.token.text) {
            let variable = words::variable_name(&raw.name.text);
            self.complain(
                raw.token.at,
                format!(
                    "a secret does not belong in a file; write `token: ${{{variable}}}` and set \
                     that variable"
                ),
            );
            return;
        }
        let name = self.text(&raw.name);
        let role = self.parsed(&raw.role, words::role);
        let secret = self.text(&raw.token);
        let (Some(name), Some(role), Some(secret)) = (name, role, secret) else {
            return;
        };
        if secret.len() < SHORTEST_TOKEN {
            self.complain(
                raw.token.at,
                format!(
                    "the token of `{name}` has {} characters; give it at least {SHORTEST_TOKEN}, such as those of \
                     `openssl rand -hex 24`",
                    secret.len()
                ),
            );
        }
        let mut workspace = DEFAULT_WORKSPACE.to_owned();
        self.set(&mut workspace, raw.workspace.as_ref(), words::workspace);
        if !is_token_name(&name) {
            let message = format!("`{name}` cannot be a token's name; it is {TOKEN_NAMES}");
            self.complain(raw.name.at, message);
        }
        let is_twin = |other: &Token| other.name == name && other.workspace == workspace;
        if tokens.iter().any(is_twin) {
            self.complain(raw.name.at, format!("two tokens are named `{name}`"));
        }
        tokens.push(Token {
            name,
            role,
            workspace,
            secret,
        });
    }

    fn llm(&mut self, proxy: &mut ProxyConfig, match_url: &Scalar, dialect: &Scalar) {
        let dialect = self.parsed(dialect, super::dialect_name);
        if let (Some(match_url), Some(dialect)) = (self.parsed(match_url, words::url_glob), dialect)
        {
            proxy.llm.push(LlmEndpoint { match_url, dialect });
        }
    }

    fn safety(&mut self, safety: &mut Safety, raw: &RawSafety) {
        self.optional(&mut safety.ttl, raw.ttl.as_ref(), words::some_time);
        if let Some(raw) = &raw.halt {
            let mut halt = Halt {
                faults: None,
                error_share: None,
                over: Duration::from_mins(1),
            };
            self.optional(&mut halt.faults, raw.faults.as_ref(), words::whole_number);
            self.optional(
                &mut halt.error_share,
                raw.error_share.as_ref(),
                words::share,
            );
            self.set(&mut halt.over, raw.over.as_ref(), words::some_time);
            safety.halt = Some(halt);
        }
    }

    fn store(&mut self, config: &mut Config, raw: &RawStore) {
        let (home, base) = (config.home.clone(), self.base.to_owned());
        self.set(&mut config.store.place, raw.url.as_ref(), |text| {
            Place::parse(text, &home, &base).map_err(|error| error.to_string())
        });
        let journal = &mut config.store.journal;
        self.set(&mut journal.kept, raw.exchanges.as_ref(), words::kept);
        if let Some(raw) = &raw.retain {
            let retain = &mut journal.retain;
            self.set(
                &mut retain.exchanges,
                raw.exchanges.as_ref(),
                words::whole_number,
            );
            self.set(&mut retain.age, raw.age.as_ref(), words::some_time);
            self.set(&mut retain.runs, raw.runs.as_ref(), words::from_one);
        }
    }

    fn complain(&mut self, at: Position, message: impl Into<String>) {
        self.errors.push(ConfigError::at(at, message));
    }

    /// A scalar with its variables expanded.
    fn text(&mut self, scalar: &Scalar) -> Option<String> {
        match expand(&scalar.text, self.variables) {
            Ok(text) => Some(text),
            Err(message) => {
                self.complain(scalar.at, message);
                None
            }
        }
    }

    fn path(&mut self, scalar: &Scalar) -> Option<PathBuf> {
        let text = self.text(scalar)?;
        Some(plain(&self.base.join(text)))
    }

    fn parsed<T>(
        &mut self,
        scalar: &Scalar,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(scalar)?;
        match parse(&text) {
            Ok(value) => Some(value),
            Err(message) => {
                self.complain(scalar.at, message);
                None
            }
        }
    }

    fn set<T>(
        &mut self,
        slot: &mut T,
        scalar: Option<&Scalar>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) {
        if let Some(value) = scalar.and_then(|scalar| self.parsed(scalar, parse)) {
            *slot = value;
        }
    }

    fn optional<T>(
        &mut self,
        slot: &mut Option<T>,
        scalar: Option<&Scalar>,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) {
        if let Some(value) = scalar.and_then(|scalar| self.parsed(scalar, parse)) {
            *slot = Some(value);
        }
    }

    fn host_patterns(&mut self, slot: &mut Vec<String>, scalars: Option<&[Scalar]>) {
        if let Some(scalars) = scalars {
            *slot = scalars
                .iter()
                .filter_map(|scalar| self.parsed(scalar, words::host_pattern))
                .collect();
        }
    }
}

/// A path without its `.` parts, as one would write it.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}
