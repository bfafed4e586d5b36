//! The daemon of a command: a running one, or a private one that ends with the command.
//!
//! A private daemon keeps its runs in the configuration's store, for later reports and comparisons. Its API requires a
//! token that only this command has, because it may start programs and every local program can reach loopback.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use squall_control_api::DaemonId;
use squall_harness::agents::settings::Way;
use squall_harness::suite::Suite;

use crate::args::{DEFAULT_SERVER, DaemonArgs, LogFormat, ReadArgs, SiteArgs, StoreArgs};
use crate::client::Client;
use crate::config::Config;
use crate::daemon::setup::{Ports, Setup};
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::render::output;

/// The daemon of a command.
pub(crate) struct Host {
    client: Client,
    private: Option<Box<Daemon>>,
}

impl Host {
    /// The daemon of `--server`, else a private one, for a run of `suite`.
    pub(crate) async fn open(args: &SiteArgs, suite: Option<&Suite>) -> Result<Self, Failure> {
        if let Some(server) = &args.server {
            return Ok(Self {
                client: Client::to(server, args.token.clone())?,
                private: None,
            });
        }
        let fixed = suite.is_some_and(|suite| !is_started(suite));
        let config = configuration(args, fixed, suite)?;
        if fixed && let Some((client, proxy)) = running(&config, args).await? {
            let server = client.server();
            output::tell_line(&format!("using the running daemon at {server}"));
            output::tell_line(&format!("proxy on http://{proxy}"));
            return Ok(Self {
                client,
                private: None,
            });
        }
        let daemon = start(config, fixed).await?;
        if suite.is_some() {
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

    /// The daemon of `--server`, else a private one on this machine's store.
    pub(crate) async fn store(args: &StoreArgs) -> Result<Self, Failure> {
        let site = SiteArgs {
            server: args.server.clone(),
            token: args.token.clone(),
            config: args.config.clone(),
            ..SiteArgs::default()
        };
        Self::open(&site, None).await
    }

    /// The same, but it prefers a daemon at the default address to this machine's store.
    pub(crate) async fn read(args: &ReadArgs) -> Result<Self, Failure> {
        let mut store = StoreArgs {
            server: args.server.clone(),
            token: args.token.clone(),
            config: args.config.clone(),
        };
        if store.server.is_none() {
            let client = Client::to(DEFAULT_SERVER, args.token.clone())?;
            match client.get::<Value>("/healthz").await {
                Err(Failure::Unreachable { .. }) => output::tell_line(&format!(
                    "no daemon answers at {DEFAULT_SERVER}: reading this machine's configuration and store"
                )),
                other => {
                    other?;
                    store.server = Some(DEFAULT_SERVER.to_owned());
                }
            }
        }
        Self::store(&store).await
    }

    /// Its control API.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The daemon's response; if `what` was not found, the error names the place that was searched.
    pub(crate) fn in_store<T>(
        &self,
        result: Result<T, Failure>,
        what: &str,
        list: &str,
    ) -> Result<T, Failure> {
        result.map_err(|failure| match failure {
            Failure::Refused(problem) if problem.status == 404 => {
                let place = match &self.private {
                    Some(daemon) => format!("this machine's store ({})", daemon.store_place()),
                    None => format!("the daemon at {}", self.client.server()),
                };
                Failure::Usage(format!(
                    "there is no {what} in {place}; `{list}` lists what exists"
                ))
            }
            failure => failure,
        })
    }

    /// Whether it ends with the command.
    pub(crate) fn is_private(&self) -> bool {
        self.private.is_some()
    }

    /// Stops it, if it is private.
    pub(crate) async fn close(self) {
        if let Some(daemon) = self.private {
            daemon.stop(Duration::ZERO).await;
        }
    }
}

/// Whether the run starts the agent and passes it the proxy's address. An agent that runs already uses the address that
/// it was started with: the default one.
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
fn configuration(args: &SiteArgs, fixed: bool, suite: Option<&Suite>) -> Result<Config, Failure> {
    log::start("warn", LogFormat::Text)?;
    let flags = DaemonArgs {
        config: args.config.clone(),
        proxy: args.proxy,
        api: args.api,
        ..DaemonArgs::default()
    };
    let ports = if fixed { Ports::Written } else { Ports::Free };
    let mut config = Setup::for_one_command(flags, ports)?.read()?;
    if let Some(suite) = suite {
        let folder = Path::new(&*suite.file).parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        folder
            .unwrap_or(Path::new("."))
            .clone_into(&mut config.modules);
    }
    Ok(config)
}

/// The running daemon of this home and the address of its proxy, if it has a port that the private one would take: the
/// agent uses it. A daemon of another home is never used, because it would get the suite's secrets.
async fn running(
    config: &Config,
    args: &SiteArgs,
) -> Result<Option<(Client, SocketAddr)>, Failure> {
    let Some(api) = DaemonId::last_address(&config.home) else {
        return Ok(None);
    };
    // The token is sent only to the daemon of this home.
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
    let client = Client::to(&api.to_string(), args.token.clone())?;
    Ok(is_taken.then_some((client, proxy)))
}

async fn start(mut config: Config, fixed: bool) -> Result<Private, Failure> {
    let token = config.require_token()?;
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

/// The default ports are in use.
fn taken(error: &str) -> Failure {
    Failure::CouldNotRun(format!(
        "{error}\nthe suite does not start its agent, so the private daemon needs the ports that the running agent uses; \
         if a daemon of another SQUALL_HOME has them, pass `--server {DEFAULT_SERVER}`; otherwise pass other ports with \
         `--proxy` and `--api`, or let `agent.start` start the agent"
    ))
}

#[cfg(test)]
mod tests {
    use squall_documents::Variables;

    use super::*;

    #[test]
    fn an_agent_that_is_not_started_by_the_run_needs_the_default_ports() {
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
