//! Connect: what a program needs to call through the proxy, who has, and what is wrong.

use axum::response::IntoResponse as _;
use http::header::HOST;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use squall_harness::agents::pointing::{self, ShellLanguage};

use crate::api::{ApiClient, ApiError, List, with_query};
use crate::text;
use crate::visit::{PageContent, PageResult, Visit, fragment};

/// Name in the query, language, and name on the page of each shell.
const SHELLS: [(&str, ShellLanguage, &str); 4] = [
    ("bash", ShellLanguage::Bash, "bash, zsh"),
    ("fish", ShellLanguage::Fish, "fish"),
    ("powershell", ShellLanguage::Powershell, "PowerShell"),
    ("dotenv", ShellLanguage::Dotenv, ".env file"),
];

/// Where the commands of this page save the CA.
const CA: &str = "/tmp/squall-ca.pem";

/// Programs, what they read of the variables, and what else they need.
const STACKS: [(&str, &str, &str); 8] = [
    ("curl, git", "proxy and CA", ""),
    (
        "Python: requests, httpx, openai, anthropic",
        "proxy and CA",
        "not with trust_env=False or a custom transport: pass proxy=",
    ),
    (
        "Python: aiohttp",
        "CA",
        "ClientSession(trust_env=True), or proxy= for each call",
    ),
    (
        "Node.js: fetch, openai, anthropic",
        "CA",
        "proxy from versions 22.21 and 24; before, setGlobalDispatcher(new EnvHttpProxyAgent()) of undici",
    ),
    ("Node.js: axios", "CA", "has its own proxy settings"),
    (
        "Go: net/http",
        "proxy and CA",
        "never for loopback: use a route of the proxy",
    ),
    ("gRPC (C++, Python, Ruby)", "https_proxy and CA", ""),
    (
        "Java",
        "nothing",
        "-Dhttps.proxyHost, -Dhttps.proxyPort, -Dhttp.nonProxyHosts=, and keytool -importcert -file squall-ca.pem",
    ),
];

/// A program that has called, as the API describes it.
#[derive(Debug, Deserialize)]
struct ConnectedClient {
    address: String,
    user_agent: Option<String>,
    client: Option<String>,
    last_seen: String,
    exchanges: u64,
    handshakes_refused: u64,
    refused_hosts: Vec<String>,
    ca_variables: Vec<String>,
}

pub(crate) async fn show(visit: Visit) -> PageResult {
    let scope = visit.param("scope");
    let ca = visit.param("ca").unwrap_or(CA);
    let shell = visit.param("shell").unwrap_or_default();
    let shell = SHELLS.iter().find(|(name, ..)| *name == shell);
    let (shell, language, _) = *shell.unwrap_or(&SHELLS[0]);
    let host = visit.parts.headers.get(HOST);
    let host = host
        .and_then(|host| host.to_str().ok())
        .unwrap_or("127.0.0.1:7071");
    let proxy = proxy(&visit.api, host).await?;
    let variables = pointing::variables(&proxy, scope, ca.as_ref());
    let script = pointing::script(language, &variables);
    let scope_flag = scope.map(|scope| format!(" --scope {}", pointing::quoted(scope, "'\\''")));
    let scope_flag = scope_flag.unwrap_or_default();
    let server = format!("--server http://{host}{scope_flag}");
    let ca_command = format!("curl --noproxy '*' -o {ca} http://{host}/ca.pem");
    let body = html! {
        div #clients hx-get="/connect/clients" hx-trigger="every 5s" hx-swap="morph:innerHTML" aria-live="polite" {
            (connected(&clients(&visit.api).await?))
        }
        h2 { "On this machine" }
        p { "One program, or the whole shell:" }
        (copied("one", &format!("squall run{scope_flag} -- python agent.py")))
        (copied("shell", &format!("eval \"$(squall env {server})\"")))
        h2 { "Anywhere" }
        p {
            "The proxy listens on " code { (proxy) } ". Save its " a href="/ca.pem" download="squall-ca.pem" { "CA" }
            ", then set these variables in the program's environment."
        }
        (copied("ca-command", &ca_command))
        form.fields method="get" {
            label { span { "Shell" }
                select name="shell" {
                    @for (name, _, title) in SHELLS { option value=(name) selected[name == shell] { (title) } }
                }
            }
            label { span { "Scope" } input name="scope" value=[scope] placeholder="default"; }
            label { span { "CA file" } input name="ca" value=(ca); }
            button.quiet { "Show" }
        }
        (copied("variables", &script))
        p.soft {
            "This file holds Squall's CA alone. A program that also calls hosts without interception needs the system's \
             roots in it: " code { "squall env" } " writes a file with both."
        }
        h2 { "By program" }
        div.scroll role="region" aria-label="By program" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Program" } th scope="col" { "Reads" } th scope="col" { "It also needs" } } }
                tbody {
                    @for (program, reads, needs) in STACKS { tr { td { (program) } td { (reads) } td { (needs) } } }
                }
            }
        }
        p.soft { "A program with a base URL needs neither proxy nor CA if the configuration has a route for it." }
    };
    Ok(PageContent {
        title: "Connect".to_owned(),
        nav: "/connect",
        assets: &[],
        body,
    }
    .into_response())
}

/// The table of programs alone.
pub(crate) async fn list(visit: Visit) -> PageResult {
    Ok(fragment(connected(&clients(&visit.api).await?)))
}

/// The address of the proxy for programs that reach the API at `host`.
async fn proxy(api: &ApiClient, host: &str) -> Result<String, ApiError> {
    let ready: Value = api.get("/readyz").await?;
    let listeners = ready["listeners"].as_array().into_iter().flatten();
    let mut proxies = listeners.filter(|one| one["name"] == "proxy");
    let proxy = proxies.next().and_then(|one| one["address"].as_str());
    let proxy = proxy.unwrap_or("127.0.0.1:7070");
    let port = proxy.rsplit(':').next().unwrap_or_default();
    let is_everywhere = proxy.starts_with("0.0.0.0:") || proxy.starts_with("[::]:");
    let host = match host.rsplit_once(':') {
        Some((name, _)) if !host.ends_with(']') => name,
        _ => host,
    };
    Ok(if is_everywhere {
        format!("{host}:{port}")
    } else {
        proxy.to_owned()
    })
}

async fn clients(api: &ApiClient) -> Result<Vec<ConnectedClient>, ApiError> {
    let list: List<ConnectedClient> = api.get("/v1/clients").await?;
    Ok(list.items)
}

/// A text with a button that copies it.
fn copied(id: &str, text: &str) -> Markup {
    html! {
        div.copied {
            pre id=(id) tabindex="0" { (text) }
            button.quiet type="button" data-copy=(id) { "Copy" }
        }
    }
}

fn connected(clients: &[ConnectedClient]) -> Markup {
    html! {
        @for client in clients.iter().filter(|client| client.handshakes_refused > 0) { (advice(client)) }
        h2 { "Who has connected" }
        @if clients.is_empty() {
            p.soft { "No program has called through the proxy since the daemon started." }
        } @else {
            div.scroll role="region" aria-label="Who has connected" tabindex="0" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Address" } th scope="col" { "Program" } th.number scope="col" { "Exchanges" }
                            th scope="col" { "Last seen (UTC)" } th scope="col" { "TLS" }
                        }
                    }
                    tbody {
                        @for client in clients {
                            tr {
                                td { (client.address) }
                                td {
                                    @if let Some(name) = &client.client { b { (name) } " " }
                                    @match &client.user_agent {
                                        Some(name) => span.soft { (name) },
                                        None => span.soft { "without a User-Agent" },
                                    }
                                }
                                td.number { (text::number(client.exchanges)) }
                                td.time { (text::time_of_day(&client.last_seen)) }
                                td {
                                    @if client.handshakes_refused > 0 {
                                        span.tag.bad { (text::counted(client.handshakes_refused, "handshake")) " refused" }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is wrong with a program that does not trust the CA, and what to set.
fn advice(client: &ConnectedClient) -> Markup {
    let live = with_query("/live", &[("status", "none")]);
    html! {
        p.note {
            (text::counted(client.handshakes_refused, "TLS handshake")) " refused by "
            @if let Some(name) = &client.client { (name) " at " } (client.address)
            ", to " (client.refused_hosts.join(", ")) ": it does not trust the CA; "
            @match client.ca_variables.as_slice() {
                [] => { "import " a href="/ca.pem" { "the CA" } " into its trust store (keytool -importcert)." }
                [only] => { "set " code { (only) } "." }
                several => {
                    "set the variable that its TLS library reads: "
                    @for (index, name) in several.iter().enumerate() {
                        @if index > 0 { ", " } code { (name) }
                    }
                    "."
                }
            }
            " " a href=(live) { "Show them" }
        }
    }
}
