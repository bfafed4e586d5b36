//! `squall.yaml` as it is written: every field optional, every scalar still text with its place.
//!
//! The doc comments become the descriptions of the JSON Schema, so they are written for the person
//! who fills in the file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::position::Scalar;
use super::shapes::{Amount, CredentialsWord, KeptWord, ObserveWord, OneOrMany, Pairs, RoleWord};

/// Squall's daemon configuration.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "squall.yaml", rename = "Config")]
pub(crate) struct RawConfig {
    /// The data plane.
    pub(crate) proxy: Option<RawProxy>,
    /// Reverse mode: paths or listeners that lead to one upstream each.
    pub(crate) routes: Option<Vec<RawRoute>>,
    /// The control API.
    pub(crate) api: Option<RawApi>,
    /// Names for upstreams, for rules and reports: name → the URLs it stands for.
    #[schemars(with = "Option<std::collections::BTreeMap<String, RawTool>>")]
    pub(crate) tools: Option<Pairs<RawTool>>,
    /// Model endpoints that Squall cannot recognise by path and body.
    pub(crate) llm: Option<Vec<RawLlm>>,
    /// Directory of profile files, relative to this file; watched.
    pub(crate) profiles: Option<Scalar>,
    /// Chaos in force from the start, for the default scope.
    pub(crate) chaos: Option<RawChaos>,
    /// What ends chaos by itself. All off by default.
    pub(crate) safety: Option<RawSafety>,
    /// Where the control plane keeps what must outlive the daemon.
    pub(crate) store: Option<RawStore>,
    /// Regular expressions whose whole match is a secret, beside the built-in detectors.
    pub(crate) redact: Option<Vec<Scalar>>,
    /// Runs whose suites name these wait for somebody to approve them, and no run reaches these hosts before: globs over
    /// names of suites, and hosts as in `allow`.
    pub(crate) approval: Option<Vec<Scalar>>,
}

/// The data plane.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Proxy")]
pub(crate) struct RawProxy {
    /// Address of the proxy; port 0 takes a free one. Default `127.0.0.1:7070`.
    pub(crate) listen: Option<Scalar>,
    /// What a user name in proxy credentials means: `scope` (default), `required` or `none`.
    #[schemars(with = "Option<CredentialsWord>")]
    pub(crate) credentials: Option<Scalar>,
    /// Your own interception CA; default: made at first start in `$SQUALL_HOME`.
    pub(crate) ca: Option<RawCa>,
    /// Which hosts' TLS is intercepted in forward mode.
    pub(crate) intercept: Option<RawIntercept>,
    /// Where to connect in place of a `host:port`, as curl's `--connect-to`.
    #[schemars(with = "Option<std::collections::BTreeMap<String, String>>")]
    pub(crate) connect_to: Option<Pairs<Scalar>>,
    /// PEM files with roots trusted upstream beside the system's, relative to this file.
    pub(crate) upstream_ca: Option<Vec<Scalar>>,
    /// A proxy that upstream connections go through: `http://[user:password@]host:port`.
    pub(crate) upstream_proxy: Option<Scalar>,
    /// Destinations agents may reach: globs over host or `host:port`, or CIDR. Default `["*"]`.
    pub(crate) allow: Option<Vec<Scalar>>,
    /// Destinations agents may not reach; wins over `allow`. Default: cloud metadata addresses.
    pub(crate) deny: Option<Vec<Scalar>>,
    /// Allows a listener outside loopback with `allow: ["*"]`. Default false.
    #[schemars(with = "Option<bool>")]
    pub(crate) open: Option<Scalar>,
    /// Largest body that a body-level rule may hold back. Default `8MiB`.
    #[schemars(with = "Option<Amount>")]
    pub(crate) inspect_limit: Option<Scalar>,
    /// What the journal reads of traffic: `headers`, `model` (default) or `bodies`.
    #[schemars(with = "Option<ObserveWord>")]
    pub(crate) observe: Option<Scalar>,
    /// Bounds on what agents may take.
    pub(crate) limits: Option<RawLimits>,
    /// Bounds on what upstreams may take.
    pub(crate) upstream: Option<RawUpstream>,
    /// Adds a `squall-fault` header to answers a fault touched; the agent can see it. Default
    /// false.
    #[schemars(with = "Option<bool>")]
    pub(crate) annotate: Option<Scalar>,
}

/// Your own CA, both files PEM and relative to this file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Ca")]
pub(crate) struct RawCa {
    /// Certificate.
    pub(crate) cert: Scalar,
    /// Private key.
    pub(crate) key: Scalar,
}

/// Which hosts' TLS is intercepted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Intercept")]
pub(crate) struct RawIntercept {
    /// Globs over host names. Default `["*"]`.
    pub(crate) hosts: Option<Vec<Scalar>>,
    /// Tunnelled untouched; connection faults still apply. Wins over `hosts`.
    pub(crate) exclude: Option<Vec<Scalar>>,
}

/// Bounds on what agents may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limits")]
pub(crate) struct RawLimits {
    /// Open connections. Default 20000.
    #[schemars(with = "Option<Amount>")]
    pub(crate) connections: Option<Scalar>,
    /// Size of a request's head. Default `256KiB`.
    #[schemars(with = "Option<Amount>")]
    pub(crate) header_bytes: Option<Scalar>,
    /// Fields in a request's head. Default 200.
    #[schemars(with = "Option<Amount>")]
    pub(crate) header_count: Option<Scalar>,
    /// Time for a head to arrive. Default `30s`.
    pub(crate) header_timeout: Option<Scalar>,
    /// Time without a byte after which a connection is closed, unless an exchange
    /// waits for its upstream or for a rule. Default `10m`.
    pub(crate) idle_timeout: Option<Scalar>,
    /// Bodies held back by rules, all together. Default `256MiB`.
    #[schemars(with = "Option<Amount>")]
    pub(crate) inspect_memory: Option<Scalar>,
}

/// Bounds on what upstreams may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Upstream")]
#[expect(clippy::struct_field_names, reason = "they are named as in the file")]
pub(crate) struct RawUpstream {
    /// Resolving and connecting, TLS included. Default `10s`.
    pub(crate) connect_timeout: Option<Scalar>,
    /// From the request's end to the answer's head; default `none`: models think for minutes.
    pub(crate) response_timeout: Option<Scalar>,
    /// How long an unused connection is kept. Default `10s`.
    pub(crate) idle_timeout: Option<Scalar>,
}

/// A reverse route: `prefix` or `listen`, and where it leads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Route")]
pub(crate) struct RawRoute {
    /// Name for log and messages.
    pub(crate) name: Scalar,
    /// A path prefix on the proxy's listener, stripped before forwarding.
    pub(crate) prefix: Option<Scalar>,
    /// A listener of its own.
    pub(crate) listen: Option<Scalar>,
    /// Base URL of the upstream.
    pub(crate) upstream: Scalar,
    /// Scope of the route's traffic when a request names none.
    pub(crate) scope: Option<Scalar>,
}

/// The control API.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Api")]
pub(crate) struct RawApi {
    /// Address of the API; port 0 takes a free one. Default `127.0.0.1:7071`.
    pub(crate) listen: Option<Scalar>,
    /// Who may use it; none needed on loopback.
    pub(crate) tokens: Option<Vec<RawToken>>,
    /// Names of this process's variables that documents which arrive by API may expand. Default: none.
    pub(crate) env: Option<Vec<Scalar>>,
}

/// A bearer token of the control API.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Token")]
pub(crate) struct RawToken {
    /// Who it is for.
    pub(crate) name: Scalar,
    /// What it may do: `viewer`, `operator` or `admin`.
    #[schemars(with = "RoleWord")]
    pub(crate) role: Scalar,
    /// The secret, from a variable: `${SQUALL_CI_TOKEN}`.
    pub(crate) token: Scalar,
    /// The workspace it belongs to. Default `default`.
    pub(crate) workspace: Option<Scalar>,
}

/// Where the control plane keeps what must outlive the daemon.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Store")]
pub(crate) struct RawStore {
    /// `sqlite` (a file in `$SQUALL_HOME`, the default), `sqlite:PATH`, relative to this file, or
    /// `postgres://user:password@host/database`, which several daemons may share.
    pub(crate) url: Option<Scalar>,
    /// Which exchanges are kept there: `all`, `faulted` (default: those that a rule was applied to; of
    /// the rest at most 1,000 a second) or `none`.
    #[schemars(with = "Option<KeptWord>")]
    pub(crate) exchanges: Option<Scalar>,
    /// How many exchanges are kept, and how long; and how many runs.
    pub(crate) retain: Option<RawRetain>,
}

/// How much of the journal is kept in the store, and how many runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Retain")]
pub(crate) struct RawRetain {
    /// Greatest number of exchanges. Default 100000.
    #[schemars(with = "Option<Amount>")]
    pub(crate) exchanges: Option<Scalar>,
    /// How long ago exchanges may have begun. Default `7d`.
    pub(crate) age: Option<Scalar>,
    /// Greatest number of runs of each workspace that are over, at least 1. Default 1000.
    #[schemars(with = "Option<Amount>")]
    pub(crate) runs: Option<Scalar>,
}

/// What a tool's name stands for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tool")]
pub(crate) struct RawTool {
    /// One glob over whole URLs, or a list.
    pub(crate) match_url: OneOrMany,
}

/// A model endpoint.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Llm")]
pub(crate) struct RawLlm {
    /// Glob over whole URLs.
    pub(crate) match_url: Scalar,
    /// The wire format spoken there, such as `openai-chat`.
    pub(crate) dialect: Scalar,
}

/// Chaos in force from the start.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Chaos")]
pub(crate) struct RawChaos {
    /// A profile's name, its file relative to this one, or `none`. Default `none`.
    pub(crate) profile: Option<Scalar>,
    /// What every draw hangs on. Default 42.
    #[schemars(with = "Option<Amount>")]
    pub(crate) seed: Option<Scalar>,
}

/// What ends chaos by itself.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Safety")]
pub(crate) struct RawSafety {
    /// Longest time that any activation holds.
    pub(crate) ttl: Option<Scalar>,
    /// When all chaos is ended because too much goes wrong.
    pub(crate) halt: Option<RawHalt>,
    /// Whether documents that arrive by API may start programs. Default false.
    #[schemars(with = "Option<bool>")]
    pub(crate) commands: Option<Scalar>,
}

/// When all chaos is ended because too much goes wrong.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Halt")]
pub(crate) struct RawHalt {
    /// Most faults applied within `over`. Default: any number.
    #[schemars(with = "Option<Amount>")]
    pub(crate) faults: Option<Scalar>,
    /// Greatest share, 0 to 1, of exchanges within `over` that failed without any rule applied;
    /// judged from 20 exchanges on. Default: any share.
    #[schemars(with = "Option<f64>")]
    pub(crate) error_share: Option<Scalar>,
    /// The time looked at, up to now. Default `60s`.
    pub(crate) over: Option<Scalar>,
}
