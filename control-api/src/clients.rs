//! The programs that have sent requests to the proxy.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Serialize;
use squall_harness::agents::pointing;
use squall_journal::record::Outcome;
use squall_journal::scopes::{Workspaces, workspace_of};
use squall_journal::timestamp;
use squall_proxy::recorder::{ExchangeNote, ExchangeObserver, Recorder};

use crate::access::Access;
use crate::lock;
use crate::store::DEFAULT_WORKSPACE;

/// Most programs of all workspaces; the one that was idle longest is dropped.
const MOST: usize = 256;

/// Most hosts listed for a program that rejected the CA, the latest ones.
const HOSTS: usize = 8;

/// HTTP clients: a part of their `User-Agent` in lower case, their name, and the variable that names their CA bundle
/// (none: they have a trust store of their own). The first match counts.
const KNOWN: [(&str, &str, Option<&str>); 25] = [
    ("deno/", "Deno", Some("DENO_CERT")),
    (
        "openai/js",
        "OpenAI for Node.js",
        Some("NODE_EXTRA_CA_CERTS"),
    ),
    (
        "anthropic/js",
        "Anthropic for Node.js",
        Some("NODE_EXTRA_CA_CERTS"),
    ),
    ("openai/python", "OpenAI for Python", Some("SSL_CERT_FILE")),
    (
        "anthropic/python",
        "Anthropic for Python",
        Some("SSL_CERT_FILE"),
    ),
    (
        "python-requests/",
        "Requests (Python)",
        Some("REQUESTS_CA_BUNDLE"),
    ),
    ("python-httpx/", "HTTPX (Python)", Some("SSL_CERT_FILE")),
    ("aiohttp/", "aiohttp (Python)", Some("SSL_CERT_FILE")),
    ("boto3/", "AWS SDK for Python", Some("AWS_CA_BUNDLE")),
    ("botocore/", "AWS SDK for Python", Some("AWS_CA_BUNDLE")),
    ("aws-cli/", "AWS CLI", Some("AWS_CA_BUNDLE")),
    ("pip/", "pip", Some("PIP_CERT")),
    ("git/", "Git", Some("GIT_SSL_CAINFO")),
    ("curl/", "curl", Some("CURL_CA_BUNDLE")),
    ("grpc", "gRPC", Some("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")),
    ("axios/", "Axios (Node.js)", Some("NODE_EXTRA_CA_CERTS")),
    ("undici", "Node.js", Some("NODE_EXTRA_CA_CERTS")),
    ("node", "Node.js", Some("NODE_EXTRA_CA_CERTS")),
    ("bun/", "Bun", Some("NODE_EXTRA_CA_CERTS")),
    ("go-http-client/", "Go", Some("SSL_CERT_FILE")),
    ("python", "Python", Some("SSL_CERT_FILE")),
    ("ruby", "Ruby", Some("SSL_CERT_FILE")),
    ("okhttp/", "OkHttp (Java)", None),
    ("apache-httpclient/", "Apache HttpClient (Java)", None),
    ("java", "Java", None),
];

/// A program that has sent requests to the proxy.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ClientLine {
    /// Its IP address.
    address: String,
    /// Its `User-Agent`; `null` if it sent none, as in handshakes that failed.
    user_agent: Option<String>,
    /// The name of its HTTP client; `null` if it is not recognised.
    client: Option<&'static str>,
    /// Start of its first exchange, RFC 3339.
    first_seen: String,
    /// Start of its latest exchange, RFC 3339.
    last_seen: String,
    /// Exchanges, TLS handshakes that it refused included.
    exchanges: u64,
    /// TLS handshakes that it refused, because it does not trust the CA.
    handshakes_refused: u64,
    /// Start of the latest one, RFC 3339; `null` if there was none.
    last_refused: Option<String>,
    /// The hosts and ports of the latest ones, at most 8.
    refused_hosts: Vec<String>,
    /// The environment variables that name its CA bundle: the one of its HTTP client, or all that Squall knows. Empty
    /// for a client with a trust store of its own.
    ca_variables: Vec<&'static str>,
}

/// A program, with times in milliseconds since 1970.
#[derive(Debug)]
struct SeenClient {
    workspace: String,
    address: IpAddr,
    /// As sent.
    user_agent: Option<String>,
    /// Without secrets.
    shown: Option<String>,
    first_ms: u64,
    last_ms: u64,
    exchanges: u64,
    refused: u64,
    last_refused_ms: Option<u64>,
    hosts: Vec<String>,
}

/// The programs that have sent requests to this daemon's proxy.
#[derive(Debug)]
pub struct Clients {
    seen: Mutex<Vec<SeenClient>>,
    workspaces: Arc<Workspaces>,
}

impl Clients {
    /// Counts the exchanges that `recorder` records from now on.
    pub fn observing(recorder: &Recorder, access: &Access) -> Arc<Self> {
        let clients = Arc::new(Self {
            seen: Mutex::default(),
            workspaces: access.workspaces(),
        });
        recorder.observe(Box::new(ClientCounter(Arc::clone(&clients))));
        clients
    }

    /// The programs of a workspace, the latest first.
    pub(crate) fn list(&self, workspace: &str) -> Vec<ClientLine> {
        let seen = lock(&self.seen);
        let mut seen: Vec<_> = seen
            .iter()
            .filter(|one| one.workspace == workspace)
            .collect();
        seen.sort_by_key(|one| std::cmp::Reverse(one.last_ms));
        seen.into_iter().map(SeenClient::line).collect()
    }

    fn count(&self, note: &ExchangeNote) {
        let Some(peer) = note.peer.as_deref() else {
            return;
        };
        let workspace = if self.workspaces.hold(&note.scope) {
            workspace_of(&note.scope)
        } else {
            DEFAULT_WORKSPACE
        };
        let (at, user_agent) = (note.id.started_ms(), peer.user_agent());
        let mut seen = lock(&self.seen);
        let found = seen.iter().position(|one| {
            one.address == peer.address
                && one.user_agent.as_deref() == user_agent
                && one.workspace == workspace
        });
        let index = found.unwrap_or_else(|| {
            if seen.len() == MOST {
                let idle = (0..MOST).min_by_key(|index| seen[*index].last_ms);
                seen.swap_remove(idle.unwrap_or_default());
            }
            let shown = user_agent.map(|name| {
                let mut name = name.to_owned();
                note.redactor.text(&mut name, usize::MAX);
                name
            });
            seen.push(SeenClient {
                workspace: workspace.to_owned(),
                address: peer.address,
                user_agent: user_agent.map(str::to_owned),
                shown,
                first_ms: at,
                last_ms: at,
                exchanges: 0,
                refused: 0,
                last_refused_ms: None,
                hosts: Vec::new(),
            });
            seen.len() - 1
        });
        let one = &mut seen[index];
        one.exchanges += 1;
        one.first_ms = one.first_ms.min(at);
        one.last_ms = one.last_ms.max(at);
        if note.outcome == Outcome::ClientRejectedCa {
            one.refused += 1;
            one.last_refused_ms = Some(at);
            one.hosts.retain(|host| *host != note.url);
            one.hosts.insert(0, note.url.clone());
            one.hosts.truncate(HOSTS);
        }
    }
}

/// Counts exchanges on the collector's thread.
struct ClientCounter(Arc<Clients>);

impl ExchangeObserver for ClientCounter {
    fn ended(&self, note: &Arc<ExchangeNote>) {
        self.0.count(note);
    }
}

impl SeenClient {
    fn line(&self) -> ClientLine {
        let name = self.shown.as_ref().map(|name| name.to_ascii_lowercase());
        let known = name.and_then(|name| KNOWN.iter().find(|(part, ..)| name.contains(part)));
        ClientLine {
            address: self.address.to_string(),
            user_agent: self.shown.clone(),
            client: known.map(|(_, client, _)| *client),
            first_seen: timestamp::rfc3339(self.first_ms),
            last_seen: timestamp::rfc3339(self.last_ms),
            exchanges: self.exchanges,
            handshakes_refused: self.refused,
            last_refused: self.last_refused_ms.map(timestamp::rfc3339),
            refused_hosts: self.hosts.clone(),
            ca_variables: match known {
                Some((_, _, variable)) => variable.iter().copied().collect(),
                None => pointing::BUNDLE.to_vec(),
            },
        }
    }
}
