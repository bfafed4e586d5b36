//! The daemon that a command asks: a running one, or a private one that goes with the command.
//!
//! A private daemon keeps its runs in the store of the configuration, so that they can be reported and
//! compared with later. Its API asks for a token that only this command knows: it may start programs, and
//! every program of this machine reaches loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use squall_control_api::DaemonId;
use squall_harness::suite::Suite;
use squall_harness::suite::agent::Way;

use crate::args::{Daemon as Flags, LogFormat, Site, USUAL_SERVER};
use crate::client::Client;
use crate::config::Config;
use crate::daemon::setup::{Ports, Setup};
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::render::output;

/// The daemon that a command asks.
pub(crate) struct Host {
    client: Client,
    private: Option<Box<Daemon>>,
}

impl Host {
    /// The daemon that is named, else a private one. `tried`: the suite that will be.
    pub(crate) async fn open(site: &Site, tried: Option<&Suite>) -> Result<Self, Failure> {
        if let Some(server) = &site.server {
            return Ok(Self {
                client: Client::to(server, site.token.clone())?,
                private: None,
            });
        }
        let fixed = tried.is_some_and(|suite| !is_started(suite));
        let config = configuration(site, fixed, tried)?;
        if fixed && let Some((client, proxy)) = running(&config, site).await? {
            let server = client.server();
            output::tell_line(&format!("the daemon at {server} runs already and is used"));
            output::tell_line(&format!("proxy on http://{proxy}"));
            return Ok(Self {
                client,
                private: None,
            });
        }
        let daemon = start(config, fixed).await?;
        if tried.is_some() {
            output::tell_line(&format!(
                "proxy on http://{}",
                daemon.daemon.proxy_address()
            ));
        }
        let address = daemon.daemon.api_address().to_string();
        Ok(Self {
            client: Client::to(&address, Some(daemon.token))?,
            private: Some(Box::new(daemon.daemon)),
        })
    }

    /// What has profiles and runs to show: the daemon that is named, else the one at the usual address, else a
    /// private one over this machine's configuration and store.
    pub(crate) async fn reading(site: &Site) -> Result<Self, Failure> {
        if site.server.is_none() {
            let client = Client::to(USUAL_SERVER, site.token.clone())?;
            match client.get::<Value>("/healthz").await {
                Err(Failure::Unreachable { .. }) => output::tell_line(&format!(
                    "no daemon answers at {USUAL_SERVER}: reading this machine's configuration and store"
                )),
                answered => {
                    return answered.map(|_| Self {
                        client,
                        private: None,
                    });
                }
            }
        }
        Self::open(site, None).await
    }

    /// Its control API.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Whether it goes with the command.
    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// Ends it, if it is private.
    pub(crate) async fn close(self) {
        if let Some(daemon) = self.private {
            daemon.stop(Duration::ZERO).await;
        }
    }
}

/// Whether the agent is started by the run, with the proxy it is to use. One that runs already was told
/// where the proxy is before there was one: at its usual address.
fn is_started(suite: &Suite) -> bool {
    match &suite.agent.way {
        Way::Command(_) | Way::Python { .. } => true,
        Way::Http(_) | Way::OpenAi(_) => suite.agent.start.is_some(),
    }
}

struct Private {
    daemon: Daemon,
    token: String,
}

/// The configuration of the private daemon.
fn configuration(site: &Site, fixed: bool, tried: Option<&Suite>) -> Result<Config, Failure> {
    log::start("warn", LogFormat::Text)?;
    let flags = Flags {
        config: site.config.clone(),
        proxy: site.proxy,
        api: site.api,
        ..Flags::default()
    };
    let ports = if fixed { Ports::Written } else { Ports::Free };
    let mut config = Setup::for_one_command(flags, ports)?.read()?;
    if let Some(suite) = tried {
        let folder = Path::new(&*suite.file).parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        folder
            .unwrap_or(Path::new("."))
            .clone_into(&mut config.modules);
    }
    Ok(config)
}

/// The daemon of this home, if it has a port that the private one would take: the agent was pointed at it. Also where its
/// proxy listens. A daemon of another home is not found: a stranger's would get the suite's secrets.
async fn running(config: &Config, site: &Site) -> Result<Option<(Client, SocketAddr)>, Failure> {
    let Some(api) = DaemonId::last_address(&config.home) else {
        return Ok(None);
    };
    // Without the token, until it is known who answers.
    let probe = Client::to(&api.to_string(), None)?;
    let Ok(ready) = probe.get_any::<Value>("/readyz").await else {
        return Ok(None);
    };
    let listeners = ready["listeners"].as_array().into_iter().flatten();
    let mut of_proxy = listeners.filter(|one| one["name"] == "proxy");
    let proxy = of_proxy.find_map(|one| one["address"].as_str()?.parse::<SocketAddr>().ok());
    let has_a_port_of = |proxy: &SocketAddr| {
        config.proxy.listen.port() == proxy.port() || config.api.listen.port() == api.port()
    };
    let Some(proxy) = proxy.filter(has_a_port_of) else {
        return Ok(None);
    };
    let is_taken = DaemonId::is_taken(&config.home)
        .map_err(|error| Failure::could_not("the daemon's id", error))?;
    let client = Client::to(&api.to_string(), site.token.clone())?;
    Ok(is_taken.then_some((client, proxy)))
}

async fn start(mut config: Config, fixed: bool) -> Result<Private, Failure> {
    let token = config.ask_for_a_token()?;
    let started = Daemon::start(config).await;
    let daemon = started.map_err(|failure| match failure {
        Failure::Proxy(error @ squall_proxy::StartError::Listen { .. }) if fixed => {
            taken(&error.to_string())
        }
        Failure::CouldNotRun(error) if fixed && error.contains("cannot listen") => taken(&error),
        failure => failure,
    })?;
    Ok(Private { daemon, token })
}

/// The usual ports are somebody's.
fn taken(error: &str) -> Failure {
    Failure::CouldNotRun(format!(
        "{error}\nthe suite does not start its agent, so the private daemon wants the ports that the agent \
         was pointed at; if a daemon of another SQUALL_HOME has them, name it with `--server http://127.0.0.1:7071`; \
         else say where with `--proxy` and `--api`, or let `agent.start` start the agent"
    ))
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;

    #[test]
    fn an_agent_that_runs_already_was_pointed_at_the_usual_ports() {
        for (agent, started) in [
            ("{endpoint: 'http://a.test/'}", false),
            (
                "{type: openai, endpoint: 'http://a.test/v1', model: m}",
                false,
            ),
            (
                "{endpoint: 'http://a.test/', start: {command: [x], ready_url: 'http://a.test/'}}",
                true,
            ),
            ("{type: command, command: [x]}", true),
            ("{type: python, endpoint: 'a:b'}", true),
        ] {
            let text =
                format!("agent: {agent}\ngolden_prompts: [x]\ninvariants: [{{type: completes}}]");
            let suite = squall_harness::suite::parse("s.yaml", &text, Variables::Refused);
            assert_eq!(is_started(&suite.expect("valid")), started, "{agent}");
        }
    }
}
