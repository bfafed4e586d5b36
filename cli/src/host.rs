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

use crate::args::{DEFAULT_SERVER, DaemonArgs, LogFormat, SiteArgs, StoreArgs};
use crate::client::{Client, proxy_of};
use crate::config::Config;
use crate::daemon::setup::{Lives, Setup};
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::render::output;

/// The daemon of a command.
pub(crate) struct Host {
    client: Client,
    private: Option<Box<Daemon>>,
}

/// What `request` reads from the daemon of `--server`, else from the one at the default address, else from this
/// machine's configuration and store. If the object of this kind and id was not found, the error names the place that
/// was searched.
pub(crate) async fn read<T>(
    args: &StoreArgs,
    object: Option<(&str, &str)>,
    request: impl AsyncFnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let host = Box::pin(Host::for_reading(args)).await?;
    let read = request(&host.client).await;
    let read = read.map_err(|failure| match (failure, object) {
        (Failure::Refused(problem), Some((kind, id))) if problem.status == 404 => {
            let list = match kind {
                "run" => "`squall runs list` lists what exists",
                _ => "`squall tail` prints exchanges and their ids as they end",
            };
            let place = match &host.private {
                Some(daemon) => format!("this machine's store ({})", daemon.config().store.place),
                None => format!("the daemon at {}", host.client.server()),
            };
            Failure::Usage(format!("there is no {kind} `{id}` in {place}; {list}"))
        }
        (failure, _) => failure,
    });
    host.close().await;
    read
}

impl Host {
    /// The daemon of `--server`, else a running one that the agent uses, else a private one.
    pub(crate) async fn for_run(args: &SiteArgs, suite: &Suite) -> Result<Self, Failure> {
        if let Some(server) = &args.server {
            return Self::running(server, args.token.as_deref());
        }
        let fixed = !is_started(suite);
        let flags = DaemonArgs {
            config: args.config.clone(),
            proxy: args.proxy,
            api: args.api,
            ..DaemonArgs::default()
        };
        let mut config = configuration(flags, !fixed)?;
        let folder = Path::new(&*suite.file).parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        folder
            .unwrap_or(Path::new("."))
            .clone_into(&mut config.modules);
        let running = if fixed { running(&config).await? } else { None };
        let (host, proxy) = if let Some((api, proxy)) = running {
            let host = Self::running(&api.to_string(), args.token.as_deref())?;
            let server = host.client.server();
            output::report_line(&format!("using the running daemon at {server}"));
            (host, proxy)
        } else {
            let started = Self::start(config).await;
            started.map_err(|failure| if fixed { taken(failure) } else { failure })?
        };
        output::report_line(&format!("proxy on http://{proxy}"));
        Ok(host)
    }

    async fn for_reading(args: &StoreArgs) -> Result<Self, Failure> {
        if let Some(server) = &args.server {
            return Self::running(server, args.token.as_deref());
        }
        let default = Self::running(DEFAULT_SERVER, args.token.as_deref())?;
        match default.client.get::<Value>("/healthz").await {
            Err(Failure::Unreachable { .. }) => output::report_line(&format!(
                "no daemon answers at {DEFAULT_SERVER}: reading this machine's configuration and store"
            )),
            answers => return answers.map(|_| default),
        }
        let flags = DaemonArgs {
            config: args.config.clone(),
            ..DaemonArgs::default()
        };
        Ok(Self::start(configuration(flags, true)?).await?.0)
    }

    fn running(server: &str, token: Option<&str>) -> Result<Self, Failure> {
        Ok(Self {
            client: Client::with_token(server, token)?,
            private: None,
        })
    }

    /// A private daemon, and the address of its proxy.
    async fn start(mut config: Config) -> Result<(Self, SocketAddr), Failure> {
        let token = config.require_token()?;
        let daemon = Daemon::start(config).await?;
        let proxy = daemon.proxy_address();
        let host = Self {
            client: Client::to(&daemon.api_address().to_string(), Some(token))?,
            private: Some(Box::new(daemon)),
        };
        Ok((host, proxy))
    }

    /// Its control API.
    pub(crate) fn client(&self) -> &Client {
        &self.client
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

/// The configuration of a private daemon.
fn configuration(flags: DaemonArgs, free_ports: bool) -> Result<Config, Failure> {
    log::start("warn", LogFormat::Text)?;
    Setup::new(flags, Lives::ForCommand { free_ports })?.read()
}

/// The addresses of API and proxy of this home's running daemon, if it has a port that the private one would have: the
/// agent uses it. A daemon of another home is never used, because it would get the suite's secrets.
async fn running(config: &Config) -> Result<Option<(SocketAddr, SocketAddr)>, Failure> {
    let Some(api) = DaemonId::last_address(&config.home) else {
        return Ok(None);
    };
    // The token is sent only to the daemon of this home.
    let probe = Client::to(&api.to_string(), None)?;
    let has_a_port_of = |proxy: &SocketAddr| {
        config.proxy.listen.port() == proxy.port() || config.api.listen.port() == api.port()
    };
    let ready = probe.get_any::<Value>("/readyz").await.ok();
    let Some(proxy) = ready.as_ref().and_then(proxy_of).filter(has_a_port_of) else {
        return Ok(None);
    };
    let is_taken = DaemonId::is_taken(&config.home)
        .map_err(|error| Failure::could_not("the daemon's id", error))?;
    Ok(is_taken.then_some((api, proxy)))
}

/// Adds what to do if the ports of the running agent are in use.
fn taken(failure: Failure) -> Failure {
    let error = failure.to_string();
    if !error.contains("cannot listen") {
        return failure;
    }
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
