//! `squall.yaml`, field by field: each has its type, and all complaints are collected, not only the first.
//!
//! [`super::schema`] describes the same fields for editors.

use std::path::{Path, PathBuf};
use std::time::Duration;

use squall_control_api::Kept;
use squall_control_api::access::{Role, TOKEN_NAMES, is_token_name};
use squall_control_api::store::{DEFAULT_WORKSPACE, Place as StorePlace};
use squall_harness::suite::reader::{Fields, Reader};
use squall_profiles::document::{self, Tree, expand_tree};
use squall_profiles::error::{Position, ProfileError};
use squall_profiles::variables::{Variables, is_one_variable};
use squall_proxy::config::{
    CaSource, Credentials, LlmEndpoint, Observe, ProxyConfig, Route, RouteEntry,
};

use super::{Config, ConfigErrors, Halt, Token, quantity, words};
use crate::profile_file;

/// Fewest characters of a token that the configuration names: who may guess does so slowly, but does.
const SHORTEST_TOKEN: usize = 6;

const CREDENTIALS: [(&str, Credentials); 3] = [
    ("scope", Credentials::Scope),
    ("required", Credentials::Required),
    ("none", Credentials::None),
];

const OBSERVE: [(&str, Observe); 3] = [
    ("headers", Observe::Headers),
    ("model", Observe::Model),
    ("bodies", Observe::Bodies),
];

const KEPT: [(&str, Kept); 3] = [
    ("all", Kept::All),
    ("faulted", Kept::Faulted),
    ("none", Kept::None),
];

const ROLES: [(&str, Role); 3] = [
    ("viewer", Role::Viewer),
    ("operator", Role::Operator),
    ("admin", Role::Admin),
];

/// Lays a file's fields over `config`.
pub(super) fn lay_over(
    config: &mut Config,
    file: &Path,
    text: &str,
    variables: Variables<'_>,
) -> Result<(), ConfigErrors> {
    let shown = file.display().to_string();
    let told = |mut errors: Vec<ProfileError>| {
        errors.sort_by_key(|error| error.position);
        ConfigErrors(errors.iter().map(ToString::to_string).collect())
    };
    let mut tree = document::read(&shown, text).map_err(|error| told(vec![error]))?;
    if tree.value == Tree::Null {
        return Ok(());
    }
    let mut reader = Reader::over(&shown, text, &tree);
    for (position, message) in expand_tree(&mut tree, variables)
        .err()
        .into_iter()
        .flatten()
    {
        reader.error(position, message);
    }
    file.clone_into(&mut config.places.file);
    let mut laying = Laying {
        base: file.parent().unwrap_or(Path::new("")),
        config,
    };
    reader.fields(&tree, MAP, |fields| laying.file(fields));
    match reader.errors {
        errors if errors.is_empty() => Ok(()),
        errors => Err(told(errors)),
    }
}

const MAP: &str = "a map of fields (`name: value`)";

/// The configuration that fields are laid over.
struct Laying<'c> {
    config: &'c mut Config,
    /// Relative paths are relative to this directory.
    base: &'c Path,
}

impl Laying<'_> {
    fn file(&mut self, fields: &mut Fields<'_, '_, '_>) {
        section(fields, "proxy", |fields| self.proxy(fields));
        fields.each("routes", "a list of routes", |reader, node| {
            reader.fields(node, MAP, |fields| self.route(fields))
        });
        section(fields, "api", |fields| {
            set(
                fields,
                "listen",
                &mut self.config.api.listen,
                words::address,
            );
            let variables = list(fields, "env", words::variable);
            self.config
                .trust
                .variables
                .extend(variables.into_iter().flatten());
            fields.each("tokens", "a list of tokens", |reader, node| {
                reader.fields(node, MAP, |fields| self.token(fields))
            });
        });
        let tools = fields.pairs(
            "tools",
            "a map from names to `match_url`",
            |reader, _, node| reader.fields(node, MAP, |fields| globs(fields))?,
        );
        let tools = tools.into_iter().flatten();
        let proxy = &mut self.config.proxy;
        proxy
            .tools
            .extend(tools.map(|(name, globs)| (name.value, globs)));
        fields.each("llm", "a list of endpoints", |reader, node| {
            let (match_url, dialect) = reader.fields(node, MAP, |fields| {
                let match_url = required(fields, "match_url", words::url_glob);
                (match_url, required(fields, "dialect", super::dialect_name))
            })?;
            let (match_url, dialect) = (match_url?, dialect?);
            self.config
                .proxy
                .llm
                .push(LlmEndpoint { match_url, dialect });
            Some(())
        });
        let profiles = self.path(fields, "profiles");
        self.config.places.profiles = profiles.as_ref().map(|(_, at)| *at);
        self.config.profiles = profiles.map(|(path, _)| path);
        section(fields, "chaos", |fields| self.chaos(fields));
        section(fields, "safety", |fields| self.safety(fields));
        section(fields, "store", |fields| self.store(fields));
        let approval = list(fields, "approval", words::approval);
        self.config
            .proxy
            .approval
            .extend(approval.into_iter().flatten());
        let redact = list(fields, "redact", words::secret_pattern);
        self.config.redact.extend(redact.into_iter().flatten());
    }

    fn proxy(&mut self, fields: &mut Fields<'_, '_, '_>) {
        section(fields, "ca", |fields| {
            let (cert, key) = (self.path(fields, "cert"), self.path(fields, "key"));
            for (name, path) in [("cert", &cert), ("key", &key)] {
                if path.is_none() && !fields.has(name) {
                    fields.missing(name, "the path of a PEM file");
                }
            }
            if let (Some((cert, at_cert)), Some((key, at_key))) = (cert, key) {
                self.config.proxy.ca = CaSource::Files { cert, key };
                self.config.places.ca = Some((at_cert, at_key));
            }
        });
        let base = self.base;
        let roots = fields.each("upstream_ca", "a list of paths", |reader, node| {
            let text = reader.text(node)?;
            Some((plain(&base.join(text.value)), text.position))
        });
        let (roots, places) = roots.into_iter().flat_map(|roots| roots.value).unzip();
        self.config.proxy.upstream_ca = roots;
        self.config.places.upstream_ca = places;
        let Config { proxy, open, .. } = &mut *self.config;
        set(fields, "listen", &mut proxy.listen, words::address);
        put(
            &mut proxy.credentials,
            fields.word("credentials", "meaning of credentials", &CREDENTIALS),
        );
        section(fields, "intercept", |fields| {
            put(
                &mut proxy.intercept.hosts,
                list(fields, "hosts", words::host_pattern),
            );
            put(
                &mut proxy.intercept.exclude,
                list(fields, "exclude", words::host_pattern),
            );
        });
        let connect_to = fields.pairs(
            "connect_to",
            "a map from `host:port` to `host:port`",
            |reader, from, to| {
                let from = parsed(reader, &from.value, from.position, words::host_and_port);
                let to = reader.text(to)?;
                let to = parsed(reader, &to.value, to.position, words::host_and_port);
                Some((from?, to?))
            },
        );
        proxy
            .connect_to
            .extend(connect_to.into_iter().flatten().map(|(_, pair)| pair));
        put(
            &mut proxy.upstream_proxy,
            text(fields, "upstream_proxy", words::proxy_url).map(Some),
        );
        put(&mut proxy.allow, list(fields, "allow", words::host_pattern));
        put(&mut proxy.deny, list(fields, "deny", words::host_pattern));
        put(open, fields.flag("open"));
        set(
            fields,
            "inspect_limit",
            &mut proxy.inspect_limit,
            quantity::size,
        );
        put(
            &mut proxy.observe,
            fields.word("observe", "value of `observe`", &OBSERVE),
        );
        put(&mut proxy.annotate, fields.flag("annotate"));
        bounds(fields, proxy);
    }

    fn route(&mut self, fields: &mut Fields<'_, '_, '_>) {
        let prefix = text(fields, "prefix", words::prefix_path).map(RouteEntry::Prefix);
        let listen = text(fields, "listen", words::address).map(RouteEntry::Listen);
        match (fields.has("prefix"), fields.has("listen")) {
            (true, true) => fields.error("name", "a route has a `prefix` or a `listen` address, not both"),
            (false, false) => fields.error(
                "name",
                "this route cannot be reached; give it a `prefix` such as `/openai`, or a `listen` address",
            ),
            (true, false) | (false, true) => {}
        }
        let scope = fields.text("scope").map(|scope| scope.value);
        let name = required(fields, "name", |name| Ok(name.to_owned()));
        let upstream = required(fields, "upstream", words::upstream_url);
        let (Some(name), Some(entry), Some(upstream)) = (name, prefix.or(listen), upstream) else {
            return;
        };
        let routes = &mut self.config.proxy.routes;
        for other in &*routes {
            if other.name == name {
                fields.error("name", format!("two routes are named `{name}`"));
            }
            if let (RouteEntry::Prefix(one), RouteEntry::Prefix(two)) = (&other.entry, &entry)
                && one == two
            {
                let other = &other.name;
                let message =
                    format!("the routes `{other}` and `{name}` both have the prefix `{one}`");
                fields.error("name", message);
            }
        }
        routes.push(Route {
            name,
            entry,
            upstream,
            scope,
        });
    }

    fn token(&mut self, fields: &mut Fields<'_, '_, '_>) {
        let name = required(fields, "name", |name| Ok(name.to_owned()));
        let role = fields.word("role", "role", &ROLES);
        if role.is_none() && !fields.has("role") {
            fields.missing("role", "`viewer`, `operator` or `admin`");
        }
        let secret = fields.text("token");
        let mut workspace = DEFAULT_WORKSPACE.to_owned();
        set(fields, "workspace", &mut workspace, words::workspace);
        let Some(name) = name else { return };
        if !is_token_name(&name) {
            let message = format!("`{name}` cannot be a token's name; it is {TOKEN_NAMES}");
            fields.error("name", message);
        }
        let written = secret
            .as_ref()
            .and_then(|secret| fields.reader.unexpanded(secret.position));
        if !written.is_some_and(is_one_variable) {
            let variable = words::variable_name(&name);
            let message = format!(
                "a secret does not belong in a file; write `token: ${{{variable}}}` and set that variable"
            );
            return fields.error("token", message);
        }
        let (Some(role), Some(secret)) = (role, secret) else {
            return;
        };
        let secret = secret.value;
        if secret.len() < SHORTEST_TOKEN {
            let message = format!(
                "the token of `{name}` has {} characters; give it at least {SHORTEST_TOKEN}, such as those of \
                 `openssl rand -hex 24`",
                secret.len()
            );
            fields.error("token", message);
        }
        let tokens = &mut self.config.api.tokens;
        if tokens
            .iter()
            .any(|other| other.name == name && other.workspace == workspace)
        {
            fields.error("name", format!("two tokens are named `{name}`"));
        }
        tokens.push(Token {
            name,
            role,
            workspace,
            secret,
        });
    }

    fn chaos(&mut self, fields: &mut Fields<'_, '_, '_>) {
        if let Some(profile) = fields.text("profile") {
            let file = profile_file::named(&profile.value);
            self.config.profile_file = file.map(|file| plain(&self.base.join(file)));
            self.config.chaos_place = Some(self.config.places.at(profile.position));
            self.config.chaos.profile = Some(profile.value);
        }
        self.config.chaos.seed = fields.whole("seed", 0..=u64::MAX, "");
    }

    fn safety(&mut self, fields: &mut Fields<'_, '_, '_>) {
        let safety = &mut self.config.safety;
        safety.ttl = text(fields, "ttl", words::some_time);
        section(fields, "halt", |fields| {
            safety.halt = Some(Halt {
                faults: fields.whole("faults", 0..=u64::MAX, ""),
                error_share: fields.real("error_share", 0.0..=1.0, ""),
                over: text(fields, "over", words::some_time).unwrap_or(Duration::from_mins(1)),
            });
        });
        put(&mut self.config.trust.commands, fields.flag("commands"));
    }

    fn store(&mut self, fields: &mut Fields<'_, '_, '_>) {
        let (home, store) = (&self.config.home, &mut self.config.store);
        set(fields, "url", &mut store.place, |text| {
            StorePlace::parse(text, home, self.base).map_err(|error| error.to_string())
        });
        put(
            &mut store.journal.kept,
            fields.word("exchanges", "choice of exchanges", &KEPT),
        );
        section(fields, "retain", |fields| {
            let retain = &mut store.journal.retain;
            put(
                &mut retain.exchanges,
                fields.whole("exchanges", 0..=u64::MAX, ""),
            );
            set(fields, "age", &mut retain.age, words::some_time);
            put(&mut retain.runs, fields.whole("runs", 1..=u64::MAX, ""));
        });
    }

    fn path(
        &self,
        fields: &mut Fields<'_, '_, '_>,
        name: &'static str,
    ) -> Option<(PathBuf, Position)> {
        let text = fields.text(name)?;
        Some((plain(&self.base.join(text.value)), text.position))
    }
}

fn bounds(fields: &mut Fields<'_, '_, '_>, proxy: &mut ProxyConfig) {
    section(fields, "limits", |fields| {
        let limits = &mut proxy.limits;
        put(&mut limits.connections, at_least_one(fields, "connections"));
        set(
            fields,
            "header_bytes",
            &mut limits.header_bytes,
            words::size_in_memory,
        );
        put(
            &mut limits.header_count,
            at_least_one(fields, "header_count"),
        );
        set(
            fields,
            "header_timeout",
            &mut limits.header_timeout,
            words::some_time,
        );
        set(
            fields,
            "idle_timeout",
            &mut limits.idle_timeout,
            words::some_time,
        );
        set(
            fields,
            "inspect_memory",
            &mut limits.inspect_memory,
            quantity::size,
        );
    });
    section(fields, "upstream", |fields| {
        let upstream = &mut proxy.upstream;
        set(
            fields,
            "connect_timeout",
            &mut upstream.connect,
            words::some_time,
        );
        set(
            fields,
            "response_timeout",
            &mut upstream.response,
            words::time_or_none,
        );
        set(
            fields,
            "idle_timeout",
            &mut upstream.idle,
            quantity::duration,
        );
    });
}

fn section(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    read: impl FnOnce(&mut Fields<'_, '_, '_>),
) {
    fields.read(name, |reader, node| reader.fields(node, MAP, read));
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn set<T>(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    slot: &mut T,
    parse: impl FnOnce(&str) -> Result<T, String>,
) {
    put(slot, text(fields, name, parse));
}

fn text<T>(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    let text = fields.text(name)?;
    parsed(fields.reader, &text.value, text.position, parse)
}

fn required<T>(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    if !fields.has(name) {
        fields.missing(name, "it");
    }
    text(fields, name, parse)
}

fn parsed<T>(
    reader: &mut Reader<'_>,
    text: &str,
    position: Position,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    parse(text)
        .map_err(|message| reader.error(position, message))
        .ok()
}

fn list<T>(
    fields: &mut Fields<'_, '_, '_>,
    name: &'static str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    let list = fields.each(name, "a list (`[one, two]`)", |reader, node| {
        let text = reader.text(node)?;
        parsed(reader, &text.value, text.position, &parse)
    });
    list.map(|list| list.value)
}

fn at_least_one(fields: &mut Fields<'_, '_, '_>, name: &'static str) -> Option<usize> {
    let number = fields.whole(name, 1..=u64::MAX, "")?;
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

/// `match_url`: a glob, or a list of them.
fn globs(fields: &mut Fields<'_, '_, '_>) -> Option<Vec<String>> {
    let what = "a URL, as `http://search:5001/*`";
    if !fields.has("match_url") {
        fields.missing("match_url", what);
    }
    let texts = fields.texts("match_url", what)?.into_iter();
    let globs =
        texts.filter_map(|glob| parsed(fields.reader, &glob.value, glob.position, words::url_glob));
    Some(globs.collect())
}

/// A path without its `.` parts, as one would write it.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}
