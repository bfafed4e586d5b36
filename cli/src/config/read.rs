//! `squall.yaml`, field by field: all errors are reported. The same fields make the JSON Schema.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use squall_control_api::ExchangeChoice;
use squall_control_api::access::{TOKEN_NAMES, TokenRole, is_token_name};
use squall_control_api::store::{DEFAULT_WORKSPACE, StorePlace};
use squall_documents::variables::is_one_variable;
use squall_documents::{
    DocumentError, DocumentReader, Fields, Position, SourceText, ValueReader, Variables, describe,
};
use squall_proxy::config::{
    CaSource, Credentials, LlmEndpoint, Observe, ProxyConfig, ProxyRoute, RouteEntry,
};

use super::{Config, ConfigErrors, ConfiguredToken, Halt, quantity, words};
use crate::text;

/// Fewest characters of a configured token. Guessing is rate-limited, but possible.
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

const KEPT: [(&str, ExchangeChoice); 3] = [
    ("all", ExchangeChoice::All),
    ("faulted", ExchangeChoice::Faulted),
    ("none", ExchangeChoice::None),
];

const ROLES: [(&str, TokenRole); 3] = [
    ("viewer", TokenRole::Viewer),
    ("operator", TokenRole::Operator),
    ("admin", TokenRole::Admin),
];

/// Reads a file's fields over `config`.
pub(super) fn read_over(
    config: &mut Config,
    file: &Path,
    text: &str,
    variables: Variables<'_>,
) -> Result<(), ConfigErrors> {
    let shown = file.display().to_string();
    let failed =
        |errors: Vec<DocumentError>| ConfigErrors(errors.iter().map(ToString::to_string).collect());
    let mut tree = squall_documents::parse(&shown, text).map_err(|error| failed(vec![error]))?;
    let mut reader = DocumentReader::new(SourceText::new(&shown, text));
    reader.expand(&mut tree, variables);
    file.clone_into(&mut config.places.file);
    let mut overlay = Overlay {
        base: file.parent().unwrap_or(Path::new("")),
        config,
    };
    let read = reader.read(&tree, |value| overlay.root(value));
    reader.finish(read).map(drop).map_err(failed)
}

/// The JSON Schema of the file, for editors.
pub(crate) fn schema() -> Value {
    let mut config = Config::with_home(PathBuf::new());
    let mut overlay = Overlay {
        base: Path::new(""),
        config: &mut config,
    };
    describe("squall.yaml", "Squall's daemon configuration.", |value| {
        overlay.root(value)
    })
}

const MAP: &str = "a map of fields (`name: value`)";

/// A configuration that a file overrides.
struct Overlay<'c> {
    config: &'c mut Config,
    /// Relative paths are relative to this directory.
    base: &'c Path,
}

impl Overlay<'_> {
    fn root(&mut self, value: &mut ValueReader<'_, '_>) -> Option<()> {
        value.fields(MAP, |fields| {
            self.file(fields);
            Some(())
        })
    }

    fn file(&mut self, fields: &mut Fields<'_, '_>) {
        section(fields, "proxy", "The data plane.", |fields| {
            self.proxy(fields);
        });
        let about = "Reverse mode: paths or listeners that lead to one upstream each.";
        list(fields, "routes", about, "a list of routes", |value| {
            value.fields(MAP, |fields| self.route(fields))
        });
        section(fields, "api", "The control API.", |fields| self.api(fields));
        let about = "Names for upstreams, for rules and reports: name → the URLs it stands for.";
        let tools = fields.field("tools", about, |value| {
            value.pairs("a map from names to `match_url`", |name, value| {
                let globs = value.fields(MAP, globs)?;
                Some((name.value.clone(), globs))
            })
        });
        let tools = tools.into_iter().flatten().map(|(_, tool)| tool);
        self.config.proxy.tools.extend(tools);
        let about = "Model endpoints that Squall cannot recognise by path and body.";
        let llm = list(fields, "llm", about, "a list of endpoints", |value| {
            value.fields(MAP, |fields| {
                let about = "Glob over whole URLs.";
                let match_url = required(fields, "match_url", about, words::url_glob);
                let about = "The wire format spoken there, such as `openai-chat`.";
                let dialect = required(fields, "dialect", about, super::dialect_name);
                let (match_url, dialect) = (match_url?, dialect?);
                Some(LlmEndpoint { match_url, dialect })
            })
        });
        self.config.proxy.llm.extend(llm.into_iter().flatten());
        let about = "Directory of profile files, relative to this file; watched.";
        let profiles = self.path(fields, "profiles", about);
        self.config.places.profiles = profiles.as_ref().map(|(_, at)| *at);
        self.config.profiles = profiles.map(|(path, _)| path);
        let about = "Chaos in force from the start, for the default scope.";
        section(fields, "chaos", about, |fields| self.chaos(fields));
        let about = "What ends chaos by itself. All off by default.";
        section(fields, "safety", about, |fields| self.safety(fields));
        let about = "Where the control plane keeps what must outlive the daemon.";
        section(fields, "store", about, |fields| self.store(fields));
        let about = "Runs whose suites name these wait for somebody to approve them, and no run reaches these hosts \
                     before: globs over names of suites, and hosts as in `allow`.";
        let approval = texts(fields, "approval", about, words::approval);
        self.config
            .proxy
            .approval
            .extend(approval.into_iter().flatten());
        let about =
            "Regular expressions whose whole match is a secret, beside the built-in detectors.";
        let redact = texts(fields, "redact", about, words::secret_pattern);
        self.config.redact.extend(redact.into_iter().flatten());
    }

    fn proxy(&mut self, fields: &mut Fields<'_, '_>) {
        let about = "Your own interception CA; default: made at first start in `$SQUALL_HOME`.";
        section(fields, "ca", about, |fields| {
            for name in ["cert", "key"] {
                fields.require(name, "the path of a PEM file");
            }
            let cert = self.path(fields, "cert", "Certificate, PEM, relative to this file.");
            let key = self.path(fields, "key", "Private key, PEM, relative to this file.");
            if let (Some((cert, at_cert)), Some((key, at_key))) = (cert, key) {
                self.config.proxy.ca = CaSource::Files { cert, key };
                self.config.places.ca = Some((at_cert, at_key));
            }
        });
        let base = self.base;
        let about =
            "PEM files with roots trusted upstream beside the system's, relative to this file.";
        let roots = list(fields, "upstream_ca", about, "a list of paths", |value| {
            let text = value.text()?;
            Some((plain(&base.join(text.value)), text.position))
        });
        let (roots, places) = roots.into_iter().flatten().unzip();
        self.config.proxy.upstream_ca = roots;
        self.config.places.upstream_ca = places;
        let Config { proxy, open, .. } = &mut *self.config;
        let about = "Address of the proxy; port 0 takes a free one. Default `127.0.0.1:7070`.";
        set(fields, "listen", about, &mut proxy.listen, words::address);
        let about =
            "What a user name in proxy credentials means: `scope` (default), `required` or `none`.";
        let credentials = fields.word("credentials", about, "meaning of credentials", &CREDENTIALS);
        put(&mut proxy.credentials, credentials);
        let about = "Which hosts' TLS is intercepted in forward mode.";
        section(fields, "intercept", about, |fields| {
            let about = "Globs over host names. Default `[\"*\"]`.";
            let hosts = texts(fields, "hosts", about, words::host_pattern);
            put(&mut proxy.intercept.hosts, hosts);
            let about = "Tunnelled untouched; connection faults still apply. Wins over `hosts`.";
            let exclude = texts(fields, "exclude", about, words::host_pattern);
            put(&mut proxy.intercept.exclude, exclude);
        });
        let about = "Where to connect in place of a `host:port`, as curl's `--connect-to`.";
        let connect_to = fields.field("connect_to", about, |value| {
            value.pairs("a map from `host:port` to `host:port`", |from, value| {
                let to = value.parsed(words::host_and_port);
                let position = from.position;
                let from = words::host_and_port(&from.value)
                    .map_err(|message| value.reader.error(position, message));
                Some((from.ok()?, to?))
            })
        });
        let connect_to = connect_to.into_iter().flatten();
        proxy.connect_to.extend(connect_to.map(|(_, pair)| pair));
        let about =
            "A proxy that upstream connections go through: `http://[user:password@]host:port`.";
        let upstream_proxy = fields.parsed("upstream_proxy", about, words::proxy_url);
        put(&mut proxy.upstream_proxy, upstream_proxy.map(Some));
        let about = "Destinations agents may reach: globs over host or `host:port`, or CIDR. Default `[\"*\"]`.";
        put(
            &mut proxy.allow,
            texts(fields, "allow", about, words::host_pattern),
        );
        let about = "Destinations agents may not reach; wins over `allow`. Default: cloud metadata addresses.";
        put(
            &mut proxy.deny,
            texts(fields, "deny", about, words::host_pattern),
        );
        let about = "Allows a listener outside loopback with `allow: [\"*\"]`. Default false.";
        put(open, fields.flag("open", about));
        let about = "Largest body that a body-level rule may hold back. Default `8MiB`.";
        set(
            fields,
            "inspect_limit",
            about,
            &mut proxy.inspect_limit,
            quantity::size,
        );
        let about = "What the journal reads of traffic: `headers`, `model` (default) or `bodies`.";
        let observe = fields.word("observe", about, "value of `observe`", &OBSERVE);
        put(&mut proxy.observe, observe);
        let about = "Adds a `squall-fault` header to answers a fault touched; the agent can see it. Default false.";
        put(&mut proxy.annotate, fields.flag("annotate", about));
        bounds(fields, proxy);
    }

    fn route(&mut self, fields: &mut Fields<'_, '_>) -> Option<()> {
        let about = "A path prefix on the proxy's listener, stripped before forwarding.";
        let prefix = fields.parsed("prefix", about, words::prefix_path);
        let listen = fields.parsed("listen", "A listener of its own.", words::address);
        match (fields.has("prefix"), fields.has("listen")) {
            (true, true) => fields.error("name", "a route has a `prefix` or a `listen` address, not both"),
            (false, false) => fields.error(
                "name",
                "this route cannot be reached; give it a `prefix` such as `/openai`, or a `listen` address",
            ),
            (true, false) | (false, true) => {}
        }
        let about = "Scope of the route's traffic when a request names none.";
        let scope = fields.text("scope", about).map(|scope| scope.value);
        let name = required(fields, "name", "Name for log and messages.", own);
        let upstream = required(
            fields,
            "upstream",
            "Base URL of the upstream.",
            words::upstream_url,
        );
        let prefix = prefix.map(RouteEntry::Prefix);
        let (name, entry) = (name?, prefix.or(listen.map(RouteEntry::Listen))?);
        let upstream = upstream?;
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
        routes.push(ProxyRoute {
            name,
            entry,
            upstream,
            scope,
        });
        Some(())
    }

    fn api(&mut self, fields: &mut Fields<'_, '_>) {
        let about = "Address of the API; port 0 takes a free one. Default `127.0.0.1:7071`.";
        set(
            fields,
            "listen",
            about,
            &mut self.config.api.listen,
            words::address,
        );
        let about = "Names of this process's variables that documents which arrive by API may expand. Default: none.";
        let variables = texts(fields, "env", about, words::variable);
        self.config
            .trust
            .variables
            .extend(variables.into_iter().flatten());
        let about = "Who may use it; none needed on loopback.";
        list(fields, "tokens", about, "a list of tokens", |value| {
            value.fields(MAP, |fields| self.token(fields))
        });
    }

    fn token(&mut self, fields: &mut Fields<'_, '_>) -> Option<()> {
        let name = required(fields, "name", "Who it is for.", own);
        fields.require("role", "`viewer`, `operator` or `admin`");
        let about = "What it may do: `viewer`, `operator` or `admin`.";
        let role = fields.word("role", about, "role", &ROLES);
        let secret = fields.text(
            "token",
            "The secret, from a variable: `${SQUALL_CI_TOKEN}`.",
        );
        let mut workspace = DEFAULT_WORKSPACE.to_owned();
        let about = "The workspace it belongs to. Default `default`.";
        set(fields, "workspace", about, &mut workspace, words::workspace);
        let name = name?;
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
            fields.error("token", message);
            return None;
        }
        let (role, secret) = (role?, secret?.value);
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
        tokens.push(ConfiguredToken {
            name,
            role,
            workspace,
            secret,
        });
        Some(())
    }

    fn chaos(&mut self, fields: &mut Fields<'_, '_>) {
        let about = "A profile's name, its file relative to this one, or `none`. Default `none`.";
        if let Some(profile) = fields.text("profile", about) {
            let file = text::as_file(&profile.value);
            self.config.profile_file = file.map(|file| plain(&self.base.join(file)));
            self.config.chaos_place = Some(self.config.places.at(profile.position));
            self.config.chaos.profile = Some(profile.value);
        }
        let about = "Random seed: the same seed injects the same faults. Default 42.";
        self.config.chaos.seed = fields.whole("seed", about, 0..=u64::MAX, "");
    }

    fn safety(&mut self, fields: &mut Fields<'_, '_>) {
        let safety = &mut self.config.safety;
        safety.ttl = fields.parsed(
            "ttl",
            "Longest time that any activation holds.",
            words::some_time,
        );
        let about = "When all chaos is ended because too much goes wrong.";
        section(fields, "halt", about, |fields| {
            let about = "Most faults applied within `over`. Default: any number.";
            let faults = fields.whole("faults", about, 0..=u64::MAX, "");
            let about = "Greatest share, 0 to 1, of exchanges within `over` that failed without any rule applied; \
                         judged from 20 exchanges on. Default: any share.";
            let error_share = fields.real("error_share", about, 0.0..=1.0, "");
            let about = "The time looked at, up to now. Default `60s`.";
            let over = fields.parsed("over", about, words::some_time);
            safety.halt = Some(Halt {
                faults,
                error_share,
                over: over.unwrap_or(Duration::from_mins(1)),
            });
        });
        let about = "Whether documents that arrive by API may start programs. Default false.";
        put(
            &mut self.config.trust.commands,
            fields.flag("commands", about),
        );
    }

    fn store(&mut self, fields: &mut Fields<'_, '_>) {
        let (home, store) = (&self.config.home, &mut self.config.store);
        let about = "`sqlite` (a file in `$SQUALL_HOME`, the default), `sqlite:PATH`, relative to this file, or \
                     `postgres://user:password@host/database`, which several daemons may share.";
        set(fields, "url", about, &mut store.place, |text| {
            StorePlace::parse(text, home, self.base).map_err(|error| error.to_string())
        });
        let about = "Which exchanges are kept there: `all`, `faulted` (default: those that a rule was applied to; of \
                     the rest at most 1,000 a second) or `none`.";
        let kept = fields.word("exchanges", about, "choice of exchanges", &KEPT);
        put(&mut store.journal.kept, kept);
        let about = "How many exchanges are kept, and how long; and how many runs.";
        section(fields, "retain", about, |fields| {
            let retain = &mut store.journal.retain;
            let about = "Greatest number of exchanges. Default 100000.";
            let exchanges = fields.whole("exchanges", about, 0..=u64::MAX, "");
            put(&mut retain.exchanges, exchanges);
            let about = "How long ago exchanges may have begun. Default `7d`.";
            set(fields, "age", about, &mut retain.age, words::some_time);
            let about = "Greatest number of runs of each workspace that are over, at least 1. Default 1000.";
            put(
                &mut retain.runs,
                fields.whole("runs", about, 1..=u64::MAX, ""),
            );
        });
    }

    fn path(
        &self,
        fields: &mut Fields<'_, '_>,
        name: &'static str,
        about: &str,
    ) -> Option<(PathBuf, Position)> {
        let text = fields.text(name, about)?;
        Some((plain(&self.base.join(text.value)), text.position))
    }
}

fn bounds(fields: &mut Fields<'_, '_>, proxy: &mut ProxyConfig) {
    section(
        fields,
        "limits",
        "Bounds on what agents may take.",
        |fields| {
            let limits = &mut proxy.limits;
            let connections =
                at_least_one(fields, "connections", "Open connections. Default 20000.");
            put(&mut limits.connections, connections);
            let about = "Size of a request's head. Default `256KiB`.";
            set(
                fields,
                "header_bytes",
                about,
                &mut limits.header_bytes,
                words::size_in_memory,
            );
            let about = "Fields in a request's head. Default 200.";
            put(
                &mut limits.header_count,
                at_least_one(fields, "header_count", about),
            );
            let about = "Time for a head to arrive. Default `30s`.";
            set(
                fields,
                "header_timeout",
                about,
                &mut limits.header_timeout,
                words::some_time,
            );
            let about = "Time without a byte after which a connection is closed, unless an exchange waits for its \
                     upstream or for a rule. Default `10m`.";
            set(
                fields,
                "idle_timeout",
                about,
                &mut limits.idle_timeout,
                words::some_time,
            );
            let about = "Bodies held back by rules, all together. Default `256MiB`.";
            set(
                fields,
                "inspect_memory",
                about,
                &mut limits.inspect_memory,
                quantity::size,
            );
        },
    );
    section(
        fields,
        "upstream",
        "Bounds on what upstreams may take.",
        |fields| {
            let upstream = &mut proxy.upstream;
            let about = "Resolving and connecting, TLS included. Default `10s`.";
            set(
                fields,
                "connect_timeout",
                about,
                &mut upstream.connect,
                words::some_time,
            );
            let about = "From the request's end to the answer's head; default `none`: models think for minutes.";
            set(
                fields,
                "response_timeout",
                about,
                &mut upstream.response,
                words::time_or_none,
            );
            let about = "How long an unused connection is kept. Default `10s`.";
            set(
                fields,
                "idle_timeout",
                about,
                &mut upstream.idle,
                quantity::duration,
            );
        },
    );
}

fn section(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    read: impl FnOnce(&mut Fields<'_, '_>),
) {
    fields.block(name, about, MAP, |fields| {
        read(fields);
        Some(())
    });
}

fn put<T>(slot: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *slot = value;
    }
}

fn set<T>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    slot: &mut T,
    parse: impl FnOnce(&str) -> Result<T, String>,
) {
    put(slot, fields.parsed(name, about, parse));
}

fn required<T>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Option<T> {
    fields.require(name, "it");
    fields.parsed(name, about, parse)
}

#[expect(clippy::unnecessary_wraps, reason = "one of several parsers")]
fn own(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn list<'d, T>(
    fields: &mut Fields<'_, 'd>,
    name: &'static str,
    about: &str,
    what: &str,
    read: impl FnMut(&mut ValueReader<'_, 'd>) -> Option<T>,
) -> Option<Vec<T>> {
    fields.field(name, about, |value| value.list(what, read))
}

fn texts<T>(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    list(fields, name, about, "a list (`[one, two]`)", |value| {
        value.parsed(&parse)
    })
}

fn at_least_one(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> Option<usize> {
    let number = fields.whole(name, about, 1..=u64::MAX, "")?;
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

/// `match_url`: a glob, or a list of them.
fn globs(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    let what = "a URL, as `http://search:5001/*`";
    fields.require("match_url", what);
    let about = "One glob over whole URLs, or a list.";
    let texts = fields.texts("match_url", about, what)?.into_iter();
    let globs = texts.filter_map(|glob| {
        let parsed = words::url_glob(&glob.value);
        parsed
            .map_err(|message| fields.reader.error(glob.position, message))
            .ok()
    });
    Some(globs.collect())
}

/// A path without its `.` parts, for display.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}
