//! `squall.yaml` as tables of fields: all errors are reported. The same tables make the JSON Schema.

use std::collections::BTreeSet;
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
    CaSource, Credentials, LlmEndpoint, Observe, ProxyRoute, RouteEntry, WebSocketCalls,
};

use super::{Config, ConfiguredToken, Halt, quantity, words};
use crate::failure::Failure;
use crate::text;

/// Fewest characters of a configured token. Guessing is rate-limited, but possible.
const SHORTEST_TOKEN: usize = 6;

/// Reads fields over values. A row is a field's name, the value that it overrides, how it is read, and its description;
/// or a section's name, its rows, and its description.
macro_rules! table {
    ($fields:expr;) => {};
    ($fields:expr; $name:literal { $($rows:tt)* } $about:literal; $($rest:tt)*) => {
        section($fields, $name, $about, |fields| { table! { fields; $($rows)* } });
        table! { $fields; $($rest)* }
    };
    ($fields:expr; $name:literal => $slot:expr, $read:expr, $about:literal; $($rest:tt)*) => {
        if let Some(value) = $fields.field($name, $about, $read) {
            $slot = value.into();
        }
        table! { $fields; $($rest)* }
    };
}

/// Reads a file's fields over `config`.
pub(super) fn read_over(
    config: &mut Config,
    file: &Path,
    text: &str,
    variables: Variables<'_>,
) -> Result<(), Failure> {
    let shown = file.display().to_string();
    let failed = |errors: Vec<DocumentError>| text::usage(&errors);
    let mut tree = squall_documents::parse(&shown, text).map_err(|error| failed(vec![error]))?;
    let mut reader = DocumentReader::new(SourceText::new(&shown, text));
    reader.expand(&mut tree, variables);
    let mut overlay = Overlay { config, file };
    let read = reader.read(&tree, |value| overlay.root(value));
    reader.finish(read).map(drop).map_err(failed)
}

/// The JSON Schema of the file, for editors.
pub(crate) fn schema() -> Value {
    let config = &mut Config::with_home(PathBuf::new());
    let file = Path::new("");
    describe("squall.yaml", "Squall's daemon configuration.", |value| {
        Overlay { config, file }.root(value)
    })
}

const MAP: &str = "a map of fields (`name: value`)";

/// A configuration that a file overrides.
struct Overlay<'c> {
    config: &'c mut Config,
    /// Relative paths are relative to its directory.
    file: &'c Path,
}

impl Overlay<'_> {
    fn root(&mut self, value: &mut ValueReader<'_, '_>) -> Option<()> {
        value.fields(MAP, |fields| {
            self.sections(fields);
            table! { fields;
                "approval" => self.config.proxy.approval, list(words::approval),
                    "Runs whose suites name these wait for approval, and no run reaches these hosts before: globs \
                     over names of suites, and hosts as in `allow`.";
                "redact" => self.config.redact, list(words::secret_pattern),
                    "Regular expressions whose whole match is a secret, beside the built-in detectors.";
            }
            Some(())
        })
    }

    fn sections(&mut self, fields: &mut Fields<'_, '_>) {
        let about = "The data plane.";
        section(fields, "proxy", about, |fields| self.proxy(fields));
        let about = "Reverse mode: paths or listeners that lead to one upstream each.";
        fields.field("routes", about, |value| {
            value.list("a list of routes", |value| {
                value.fields(MAP, |fields| self.route(fields))
            })
        });
        section(fields, "api", "The control API.", |fields| self.api(fields));
        table! { fields;
            "tools" => self.config.proxy.tools, upstreams,
                "Names for upstreams, for rules and reports: name → the URLs it stands for.";
            "agents" => self.config.proxy.agents, upstreams,
                "Names for agents that other agents call, for `to` and `from` of rules.";
            "llm" => self.config.proxy.llm, |value| value.list("a list of endpoints", |value| {
                value.fields(MAP, endpoint)
            }), "Model endpoints that Squall cannot recognise by path and body.";
            "profiles" => self.config.profiles, |value| self.path(value),
                "Directory of profile files, relative to this file; watched.";
        }
        let about = "The chaos that is active from the start in the default scope.";
        section(fields, "chaos", about, |fields| self.chaos(fields));
        let about = "What ends chaos by itself. All off by default.";
        section(fields, "safety", about, |fields| self.safety(fields));
        let about = "Where the control plane stores its data.";
        section(fields, "store", about, |fields| self.store(fields));
        let about = "What the daemon does for others on the same PostgreSQL.";
        section(fields, "fleet", about, |fields| {
            table! { fields;
                "runs" => self.config.takes, list(words::glob),
                    "Globs over names of suites: the daemon executes scenarios of their spread runs. Default: none.";
            }
        });
    }

    fn proxy(&mut self, fields: &mut Fields<'_, '_>) {
        let about = "Your own interception CA; default: created at first start in `$SQUALL_HOME`.";
        section(fields, "ca", about, |fields| {
            let mut file = |name, about| {
                fields.require(name, "the path of a PEM file");
                fields.field(name, about, |value| self.path(value))
            };
            let cert = file("cert", "Certificate, PEM, relative to this file.");
            let key = file("key", "Private key, PEM, relative to this file.");
            if let (Some(cert), Some(key)) = (cert, key) {
                self.config.proxy.ca = CaSource::Files { cert, key };
            }
        });
        table! { fields;
            "upstream_ca" => self.config.proxy.upstream_ca, |value| value.list("a list of paths", |value| self.path(value)),
                "PEM files with roots trusted upstream beside the system's, relative to this file.";
        }
        let Config { proxy, open, .. } = &mut *self.config;
        table! { fields;
            "listen" => proxy.listen, parsed(words::address),
                "Address of the proxy; port 0 selects a free one. Default `127.0.0.1:7070`.";
            "credentials" => proxy.credentials, |value| value.word("meaning of credentials", Credentials::NAMES),
                "What a user name in proxy credentials means: `scope` (default), `required` or `none`.";
            "connect_to" => proxy.connect_to, connect_to,
                "Where to connect in place of a `host:port`, as curl's `--connect-to`.";
            "upstream_proxy" => proxy.upstream_proxy, parsed(words::proxy_url),
                "A proxy that upstream connections go through: `http://[user:password@]host:port`.";
            "allow" => proxy.allow, list(words::host_pattern),
                "Destinations agents may reach: globs over host or `host:port`, or CIDR. Default `[\"*\"]`.";
            "deny" => proxy.deny, list(words::host_pattern),
                "Destinations agents may not reach; wins over `allow`. Default: cloud metadata addresses.";
            "open" => *open, flag,
                "Allows a listener outside loopback with `allow: [\"*\"]`. Default false.";
            "inspect_limit" => proxy.inspect_limit, parsed(quantity::size),
                "Largest body that a body-level rule may buffer. Default `8MiB`.";
            "observe" => proxy.observe, |value| value.word("value of `observe`", Observe::NAMES),
                "What the journal reads of traffic: `headers`, `model` (default) or `bodies`.";
            "annotate" => proxy.annotate, flag,
                "Adds a `squall-fault` header to responses that a fault changed; the agent can see it. Default false.";
            "intercept" {
                "hosts" => proxy.intercept.hosts, list(words::host_pattern), "Globs over host names. Default `[\"*\"]`.";
                "exclude" => proxy.intercept.exclude, list(words::host_pattern),
                    "Tunnelled untouched; connection faults still apply. Wins over `hosts`.";
            } "Which hosts' TLS is intercepted in forward mode.";
            "limits" {
                "connections" => proxy.limits.connections, count, "Open connections. Default 20000.";
                "header_bytes" => proxy.limits.header_bytes, parsed(words::size_in_memory),
                    "Size of a request's head. Default `256KiB`.";
                "header_count" => proxy.limits.header_count, count, "Fields in a request's head. Default 200.";
                "header_timeout" => proxy.limits.header_timeout, parsed(words::some_time),
                    "Time for a head to arrive. Default `30s`.";
                "idle_timeout" => proxy.limits.idle_timeout, parsed(words::some_time),
                    "Time without a byte after which a connection is closed, unless an exchange waits for its upstream \
                     or for a rule. Default `10m`.";
                "inspect_memory" => proxy.limits.inspect_memory, parsed(quantity::size),
                    "Bodies that rules buffer, all together. Default `256MiB`.";
            } "Limits for agents.";
            "upstream" {
                "connect_timeout" => proxy.upstream.connect, parsed(words::some_time),
                    "Resolving and connecting, TLS included. Default `10s`.";
                "response_timeout" => proxy.upstream.response, parsed(words::time_or_none),
                    "From the request's end to the response's head; default `none`: models think for minutes.";
                "idle_timeout" => proxy.upstream.idle, parsed(quantity::duration),
                    "How long an unused connection stays open. Default `10s`.";
            } "Time-outs for upstreams.";
        }
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
        let upstream = "Base URL of the upstream.";
        let upstream = required(fields, "upstream", upstream, words::upstream_url);
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
        let Config { api, trust, .. } = &mut *self.config;
        table! { fields;
            "listen" => api.listen, parsed(words::address),
                "Address of the API; port 0 selects a free one. Default `127.0.0.1:7071`.";
            "env" => trust.variables, |value| Some(list(words::variable)(value)?.into_iter().collect::<BTreeSet<_>>()),
                "Names of this process's variables that documents which arrive by API may expand. Default: none.";
        }
        fields.field(
            "tokens",
            "Who may use it; none needed on loopback.",
            |value| {
                value.list("a list of tokens", |value| {
                    value.fields(MAP, |fields| self.token(fields))
                })
            },
        );
    }

    fn token(&mut self, fields: &mut Fields<'_, '_>) -> Option<()> {
        let name = required(fields, "name", "Who it is for.", own);
        fields.require("role", "`viewer`, `operator` or `admin`");
        let about = "What it may do: `viewer`, `operator` or `admin`.";
        let role = fields.word("role", about, "role", TokenRole::NAMES);
        let about = "The secret, from a variable: `${SQUALL_CI_TOKEN}`.";
        let secret = fields.text("token", about);
        let mut workspace = DEFAULT_WORKSPACE.to_owned();
        table! { fields;
            "workspace" => workspace, parsed(words::workspace), "The workspace it belongs to. Default `default`.";
        }
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
        let is_same = |other: &ConfiguredToken| other.name == name && other.workspace == workspace;
        if tokens.iter().any(is_same) {
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
            self.config.profile_file = file.map(|file| self.beside(file));
            self.config.chaos_place = Some(self.at(profile.position));
            self.config.chaos.profile = Some(profile.value);
        }
        table! { fields;
            "seed" => self.config.chaos.seed, whole(0), "Random seed: the same seed injects the same faults. Default 42.";
        }
    }

    fn safety(&mut self, fields: &mut Fields<'_, '_>) {
        let Config { safety, trust, .. } = &mut *self.config;
        table! { fields;
            "ttl" => safety.ttl, parsed(words::some_time), "Longest time that any activation lasts.";
        }
        section(
            fields,
            "halt",
            "When all chaos is ended because too much goes wrong.",
            |fields| {
                let halt = safety.halt.insert(Halt {
                    faults: None,
                    error_share: None,
                    over: Duration::from_mins(1),
                });
                table! { fields;
                    "faults" => halt.faults, whole(0), "Most faults applied within `over`. Default: any number.";
                    "error_share" => halt.error_share, |value| value.real(0.0..=1.0, ""),
                        "Greatest share, 0 to 1, of exchanges within `over` that failed without any rule applied; checked \
                         from 20 exchanges on. Default: any share.";
                    "over" => halt.over, parsed(words::some_time), "The period to check, up to now. Default `60s`.";
                }
            },
        );
        table! { fields;
            "commands" => trust.commands, flag,
                "Whether documents that arrive by API may start programs. Default false.";
        }
    }

    fn store(&mut self, fields: &mut Fields<'_, '_>) {
        let base = folder(self.file);
        let Config { home, store, .. } = &mut *self.config;
        let place =
            |text: &str| StorePlace::parse(text, home, base).map_err(|error| error.to_string());
        table! { fields;
            "url" => store.place, parsed(place),
                "`sqlite` (a file in `$SQUALL_HOME`, the default), `sqlite:PATH`, relative to this file, or \
                 `postgres://user:password@host/database`, which several daemons may share.";
            "exchanges" => store.journal.exchanges, |value| value.word("choice of exchanges", ExchangeChoice::NAMES),
                "Which exchanges are stored: `all`, `faulted` (default: those that a rule was applied to; of the rest \
                 at most 1,000 a second) or `none`.";
            "retain" {
                "exchanges" => store.journal.retain.exchanges, whole(0), "Greatest number of exchanges. Default 100000.";
                "age" => store.journal.retain.age, parsed(words::some_time),
                    "How long ago exchanges may have begun. Default `7d`.";
                "runs" => store.journal.retain.runs, whole(1),
                    "Greatest number of finished runs of each workspace, at least 1. Default 1000.";
            } "How many exchanges are stored, and how long; and how many runs.";
        }
    }

    /// A path, whose place is noted for errors of the file.
    fn path(&mut self, value: &mut ValueReader<'_, '_>) -> Option<PathBuf> {
        let text = value.text()?;
        let (path, place) = (self.beside(Path::new(&text.value)), self.at(text.position));
        self.config.places.insert(path.clone(), place);
        Some(path)
    }

    /// `squall.yaml:7:18`.
    fn at(&self, Position { line, column }: Position) -> String {
        format!("{}:{line}:{column}", self.file.display())
    }

    /// A path relative to the file, without its `.` parts.
    fn beside(&self, path: &Path) -> PathBuf {
        folder(self.file).join(path).components().collect()
    }
}

fn folder(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
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

fn parsed<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&mut ValueReader<'_, '_>) -> Option<T> {
    move |value| value.parsed(&parse)
}

fn list<T>(
    parse: impl Fn(&str) -> Result<T, String>,
) -> impl Fn(&mut ValueReader<'_, '_>) -> Option<Vec<T>> {
    move |value| value.list("a list (`[one, two]`)", |value| value.parsed(&parse))
}

fn whole(least: u64) -> impl Fn(&mut ValueReader<'_, '_>) -> Option<u64> {
    move |value| value.whole(least..=u64::MAX, "")
}

fn flag(value: &mut ValueReader<'_, '_>) -> Option<bool> {
    value.flag()
}

/// A number of at least 1.
fn count(value: &mut ValueReader<'_, '_>) -> Option<usize> {
    let number = value.whole(1..=u64::MAX, "")?;
    Some(usize::try_from(number).unwrap_or(usize::MAX))
}

fn endpoint(fields: &mut Fields<'_, '_>) -> Option<LlmEndpoint> {
    let about = "Glob over whole URLs.";
    let match_url = required(fields, "match_url", about, words::url_glob);
    let about = "The wire format of the endpoint, such as `openai-chat`.";
    let dialect = fields.parsed("dialect", about, words::dialect_name);
    let about = "WebSockets of model calls: `fault` serves each call as an exchange.";
    let websocket = fields.field("websocket", about, |value| {
        value.word("way to serve WebSockets", WebSocketCalls::NAMES)
    });
    if !fields.require_one_of(&["dialect", "websocket"]) {
        fields.missing("dialect", "the name of a dialect, or `websocket`");
    }
    Some(LlmEndpoint {
        match_url: match_url?,
        dialect,
        websocket: websocket.unwrap_or_default(),
    })
}

/// `host:port` → `host:port`.
fn connect_to(value: &mut ValueReader<'_, '_>) -> Option<Vec<(String, String)>> {
    let pairs = value.pairs("a map from `host:port` to `host:port`", |from, value| {
        let to = value.parsed(words::host_and_port);
        let position = from.position;
        let from = words::host_and_port(&from.value)
            .map_err(|message| value.reader.error(position, message));
        Some((from.ok()?, to?))
    })?;
    Some(pairs.into_iter().map(|(_, pair)| pair).collect())
}

/// Names, each with its URLs.
fn upstreams(value: &mut ValueReader<'_, '_>) -> Option<Vec<(String, Vec<String>)>> {
    let named = value.pairs("a map from names to `match_url`", |name, value| {
        Some((name.value.clone(), value.fields(MAP, globs)?))
    })?;
    Some(named.into_iter().map(|(_, urls)| urls).collect())
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
