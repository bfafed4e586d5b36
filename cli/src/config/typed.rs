//! Raw structs → what the daemon runs with: variables expanded, every scalar given its type, and
//! all complaints collected, not only the first.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use squall_proxy::config::{
    CaSource, Credentials, LlmEndpoint, Observe, ProxyConfig, Route, RouteEntry,
};

use super::position::{ConfigError, Position, Scalar};
use super::raw::{
    RawApi, RawConfig, RawLimits, RawProxy, RawRoute, RawSafety, RawToken, RawUpstream,
};
use super::read::unknown;
use super::shapes::NotYet;
use super::variables::{Variables, expand, mentions_variable};
use super::{Config, Halt, Role, Safety, Token, quantity};

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
    typing.refuse("store", "exchanges are kept in memory", raw.store.as_ref());
    typing.refuse("approval", "it comes with runs", raw.approval.as_ref());
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
        let globs = typing.texts(&tool.match_url.0);
        if globs.is_empty() {
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
        typing.optional(&mut config.chaos.seed, chaos.seed.as_ref(), whole_number);
    }
    if let Some(safety) = &raw.safety {
        typing.safety(&mut config.safety, safety);
    }
    for pattern in raw.redact.iter().flatten() {
        config.redact.extend(typing.parsed(pattern, secret_pattern));
    }
    if typing.errors.is_empty() {
        Ok(())
    } else {
        Err(typing.errors)
    }
}

impl Typing<'_> {
    fn proxy(&mut self, proxy: &mut ProxyConfig, open: &mut bool, raw: &RawProxy) {
        self.set(&mut proxy.listen, raw.listen.as_ref(), address);
        self.set(
            &mut proxy.credentials,
            raw.credentials.as_ref(),
            credentials,
        );
        if let Some(ca) = &raw.ca
            && let (Some(cert), Some(key)) = (self.path(&ca.cert), self.path(&ca.key))
        {
            proxy.ca = CaSource::Files { cert, key };
        }
        if let Some(intercept) = &raw.intercept {
            self.list(&mut proxy.intercept.hosts, intercept.hosts.as_deref());
            self.list(&mut proxy.intercept.exclude, intercept.exclude.as_deref());
        }
        for (from, to) in raw.connect_to.iter().flat_map(|pairs| &pairs.0) {
            if let (Some(from), Some(to)) = (
                self.parsed(from, host_and_port),
                self.parsed(to, host_and_port),
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
            proxy_url,
        );
        self.list(&mut proxy.allow, raw.allow.as_deref());
        self.list(&mut proxy.deny, raw.deny.as_deref());
        self.set(open, raw.open.as_ref(), quantity::boolean);
        self.set(
            &mut proxy.inspect_limit,
            raw.inspect_limit.as_ref(),
            quantity::size,
        );
        self.set(&mut proxy.observe, raw.observe.as_ref(), observe);
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
            at_least_one,
        );
        self.set(
            &mut limits.header_bytes,
            raw.header_bytes.as_ref(),
            size_in_memory,
        );
        self.set(
            &mut limits.header_count,
            raw.header_count.as_ref(),
            at_least_one,
        );
        self.set(
            &mut limits.header_timeout,
            raw.header_timeout.as_ref(),
            some_time,
        );
        self.set(
            &mut limits.idle_timeout,
            raw.idle_timeout.as_ref(),
            some_time,
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
            some_time,
        );
        self.set(
            &mut upstream.response,
            raw.response_timeout.as_ref(),
            time_or_none,
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
            (Some(prefix), None) => self.parsed(prefix, prefix_path).map(RouteEntry::Prefix),
            (None, Some(listen)) => self.parsed(listen, address).map(RouteEntry::Listen),
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
        let upstream = self.parsed(&raw.upstream, upstream_url);
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
        self.set(&mut config.api.listen, raw.listen.as_ref(), address);
        self.refuse(
            "api.env",
            "documents that arrive by API expand no variable",
            raw.env.as_ref(),
        );
        for token in raw.tokens.iter().flatten() {
            self.token(&mut config.api.tokens, token);
        }
    }

    fn token(&mut self, tokens: &mut Vec<Token>, raw: &RawToken) {
        if !mentions_variable(&raw.token.text) {
            let variable = variable_name(&raw.name.text);
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
        let role = self.parsed(&raw.role, role);
        let secret = self.text(&raw.token);
        let (Some(name), Some(role), Some(secret)) = (name, role, secret) else {
            return;
        };
        if secret.is_empty() {
            self.complain(raw.token.at, format!("the token of `{name}` is empty"));
        }
        if tokens.iter().any(|other| other.name == name) {
            self.complain(raw.name.at, format!("two tokens are named `{name}`"));
        }
        tokens.push(Token { name, role, secret });
    }

    fn llm(&mut self, proxy: &mut ProxyConfig, match_url: &Scalar, dialect: &Scalar) {
        let dialect = self.parsed(dialect, super::dialect_name);
        if let (Some(match_url), Some(dialect)) = (self.text(match_url), dialect) {
            proxy.llm.push(LlmEndpoint { match_url, dialect });
        }
    }

    fn safety(&mut self, safety: &mut Safety, raw: &RawSafety) {
        self.optional(&mut safety.ttl, raw.ttl.as_ref(), some_time);
        let mut commands = false;
        self.set(&mut commands, raw.commands.as_ref(), quantity::boolean);
        if let (true, Some(scalar)) = (commands, &raw.commands) {
            self.complain(
                scalar.at,
                "`safety.commands: true` is not available in this version (no document that \
                 arrives by API can start a program); remove it",
            );
        }
        if let Some(raw) = &raw.halt {
            let mut halt = Halt {
                faults: None,
                error_share: None,
                over: Duration::from_mins(1),
            };
            self.optional(&mut halt.faults, raw.faults.as_ref(), whole_number);
            self.optional(&mut halt.error_share, raw.error_share.as_ref(), share);
            self.set(&mut halt.over, raw.over.as_ref(), some_time);
            safety.halt = Some(halt);
        }
    }

    /// Says that a field's feature is not there, and what holds instead.
    fn refuse(&mut self, field: &str, instead: &str, found: Option<&NotYet>) {
        if let Some(NotYet(at)) = found {
            self.complain(
                *at,
                format!("`{field}` is not available in this version ({instead}); remove it"),
            );
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

    fn texts(&mut self, scalars: &[Scalar]) -> Vec<String> {
        scalars
            .iter()
            .filter_map(|scalar| self.text(scalar))
            .collect()
    }

    fn path(&mut self, scalar: &Scalar) -> Option<PathBuf> {
        self.text(scalar).map(|text| self.base.join(text))
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

    fn list(&mut self, slot: &mut Vec<String>, scalars: Option<&[Scalar]>) {
        if let Some(scalars) = scalars {
            *slot = self.texts(scalars);
        }
    }
}

/// Reads `host:port` with a literal address: a listener never waits for DNS.
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

fn credentials(text: &str) -> Result<Credentials, String> {
    match text {
        "scope" => Ok(Credentials::Scope),
        "required" => Ok(Credentials::Required),
        "none" => Ok(Credentials::None),
        other => Err(unknown(
            "meaning of credentials",
            other,
            &["scope", "required", "none"],
        )),
    }
}

fn observe(text: &str) -> Result<Observe, String> {
    match text {
        "headers" => Ok(Observe::Headers),
        "model" => Ok(Observe::Model),
        "bodies" => Ok(Observe::Bodies),
        other => Err(unknown(
            "value of `observe`",
            other,
            &["headers", "model", "bodies"],
        )),
    }
}

fn role(text: &str) -> Result<Role, String> {
    match text {
        "viewer" => Ok(Role::Viewer),
        "operator" => Ok(Role::Operator),
        "admin" => Ok(Role::Admin),
        other => Err(unknown("role", other, &["viewer", "operator", "admin"])),
    }
}

fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number in range"))
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "`{text}` is not a share between 0 and 1; write `0.9` for nine in ten"
        )),
    }
}

/// The redactor compiles patterns once more when the daemon starts; here the place is still known.
fn secret_pattern(text: &str) -> Result<String, String> {
    match squall_journal::redact::Redactor::with_patterns([text]) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            // The regex crate draws a picture over several lines; the last one says what is wrong.
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

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("`0` would let nothing through; write 1 or more".to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("`{text}` is not a whole number; write 1 or more")),
    }
}

fn size_in_memory(text: &str) -> Result<usize, String> {
    usize::try_from(quantity::size(text)?)
        .map_err(|_| format!("`{text}` is more than fits in memory"))
}

fn some_time(text: &str) -> Result<Duration, String> {
    match quantity::duration(text)? {
        Duration::ZERO => Err(format!("`{text}` would let nothing through; write `10s`")),
        time => Ok(time),
    }
}

fn time_or_none(text: &str) -> Result<Option<Duration>, String> {
    if text == "none" {
        return Ok(None);
    }
    some_time(text)
        .map(Some)
        .map_err(|message| format!("{message}, or `none`"))
}

fn host_and_port(text: &str) -> Result<String, String> {
    match text.parse::<http::uri::Authority>() {
        Ok(authority) if authority.port_u16().is_some() && !text.contains('@') => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(format!(
            "`{text}` is not a host and a port; write `api.openai.com:443`"
        )),
    }
}

fn prefix_path(text: &str) -> Result<String, String> {
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

fn upstream_url(text: &str) -> Result<http::Uri, String> {
    let complaint = || format!("`{text}` is not an upstream; write `https://api.openai.com`");
    let uri: http::Uri = text.parse().map_err(|_| complaint())?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some() && uri.query().is_none() => Ok(uri),
        _ => Err(complaint()),
    }
}

/// The value is not repeated: it may hold a password.
fn proxy_url(text: &str) -> Result<String, String> {
    let complaint = || "this is not a proxy; write `http://[user:password@]host:port`".to_owned();
    let uri: http::Uri = text.parse().map_err(|_| complaint())?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) if !host.is_empty() => Ok(text.to_owned()),
        _ => Err(complaint()),
    }
}

/// A variable's name for a token: `ci` → `SQUALL_CI_TOKEN`.
fn variable_name(token: &str) -> String {
    let word: String = token
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    format!("SQUALL_{word}_TOKEN")
}
