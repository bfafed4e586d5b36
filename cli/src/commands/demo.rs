//! `squall demo`: an agent at its task in six weathers at once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use squall_harness::report::Format;
use squall_journal::run::RunRecord;
use tempfile::TempDir;

use super::{chaos_path, until_interrupted};
use crate::args::{Demo, LogFormat};
use crate::client::Client;
use crate::config::{Config, StoreConfig};
use crate::daemon::signals::Signals;
use crate::daemon::{Daemon, log};
use crate::demo::trial::{self, Trial};
use crate::demo::{TASK, World, contract, report};
use crate::failure::Failure;
use crate::pointing;
use crate::render::output;
use crate::render::paint::Paint;
use crate::reports;

/// The weathers, calm first: each a built-in profile, in force for a scope of that name.
const WEATHERS: [&str; 6] = [
    "none",
    "rate_limit_storm",
    "mid_stream_failure",
    "flaky_network",
    "hostile_tools",
    "api_outage",
];

pub(super) async fn run(demo: Demo) -> Result<(), Failure> {
    log::start("warn", LogFormat::Text)?;
    reports::can_be_written(&demo.output)?;
    let stage = until_interrupted(show(&demo)).await?;
    if demo.keep {
        keep(&stage.daemon, &stage.token).await?;
    }
    stage.daemon.stop(std::time::Duration::ZERO).await;
    Ok(())
}

/// What runs as long as the demo does.
struct Stage {
    daemon: Daemon,
    token: String,
    _world: World,
    _home: Home,
}

/// Sends the agent into all weathers, and prints what became of it.
async fn show(demo: &Demo) -> Result<Stage, Failure> {
    let home = Home::new(demo.keep)?;
    let world = World::start()
        .await
        .map_err(|error| Failure::could_not("the demo's services", error))?;
    let (daemon, token) = start(&world, home.path(), demo.keep).await?;
    let client = Client::to(&daemon.api_address().to_string(), Some(token.clone()))?;
    let bundle = daemon.ca_bundle()?;
    let authority = daemon.proxy_address().to_string();
    if !demo.json {
        introduce();
    }
    let trials = WEATHERS.map(|weather| one(&client, &authority, &bundle, weather, demo.seed));
    let mut trials = try_join_all(trials).await?;
    daemon.settle().await;
    for trial in &mut trials {
        read_journal(&client, trial).await?;
    }
    let (judged, page) = judge(&daemon, &client, demo).await?;
    let written = reports::write_page(&demo.output, page);
    let file = written.is_ok().then_some(demo.output.as_path());
    if demo.json {
        let mut document = report::document(&trials, demo.seed);
        document["contract"] = json!(judged);
        document["report"] = json!(file);
        output::json(&document)?;
    } else {
        let paint = Paint::stdout();
        output::print(&report::text(&trials, demo.seed, paint))?;
        output::print(&report::held_to(&judged, file, paint))?;
    }
    written?;
    Ok(Stage {
        daemon,
        token,
        _world: world,
        _home: home,
    })
}

/// Holds the agent to its contract in the same weathers; the run, and the report of it.
async fn judge(
    daemon: &Daemon,
    client: &Client,
    demo: &Demo,
) -> Result<(RunRecord, String), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::could_not("the path of this program", error))?;
    let suite = contract::suite(&program, &WEATHERS);
    // The suite starts the agent. No other document gets to start anything.
    daemon.let_documents_start_programs(true);
    let judged = contract::run(client, &suite, demo.seed).await;
    daemon.let_documents_start_programs(false);
    let judged = judged?;
    let mut report = reports::read(client, &judged.id).await?;
    // The daemon goes with the demo, and keeps nothing.
    report.stands_alone = true;
    Ok((judged, report.render(Format::Html)))
}

/// The daemon, with the world's names. Kept running, it has the usual ports if they are free.
async fn start(world: &World, home: &Path, keep: bool) -> Result<(Daemon, String), Failure> {
    let mut config = Config::with_home(home.to_owned());
    config.proxy.connect_to = world.connect_to();
    config.proxy.tools = World::tools();
    config.store = StoreConfig::in_memory();
    let token = config.ask_for_a_token()?;
    if keep && let Ok(daemon) = Daemon::start(config.clone()).await {
        return Ok((daemon, token));
    }
    config.proxy.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.api.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Ok((Daemon::start(config).await?, token))
}

fn introduce() {
    let paint = Paint::stderr();
    output::tell(&format!(
        "{} an agent, two tools and a model on this machine; everything the agent says goes \
         through the proxy.\n        It does one task {} times at once, each in a scope with its \
         own weather.",
        paint.strong("squall:"),
        WEATHERS.len(),
    ));
}

/// Puts a weather in force for a scope of its own, and sends the agent into it.
async fn one(
    client: &Client,
    authority: &str,
    bundle: &Path,
    weather: &str,
    seed: u64,
) -> Result<Trial, Failure> {
    let wanted = json!({ "profile": weather, "seed": seed, "key": contract::key(weather) });
    let _: Value = client.put(&chaos_path(Some(weather)), &wanted).await?;
    trial::run(
        weather,
        &pointing::variables(authority, Some(weather), bundle),
    )
    .await
}

/// What the journal says about a trial.
async fn read_journal(client: &Client, trial: &mut Trial) -> Result<(), Failure> {
    let path = format!("/v1/exchanges?scope={}&limit=200", trial.profile);
    trial.exchanges = client.list(&path).await?;
    trial.exchanges.reverse();
    Ok(())
}

/// Leaves everything running until Ctrl-C, and says what to try.
async fn keep(daemon: &Daemon, token: &str) -> Result<(), Failure> {
    let paint = Paint::stdout();
    let server = if daemon.api_address().port() == 7071 {
        String::new()
    } else {
        format!("export SQUALL_SERVER=http://{}\n  ", daemon.api_address())
    };
    let commands = format!(
        "{server}export SQUALL_TOKEN={token}\n  \
         squall tail\n  \
         eval \"$(squall env --scope mine)\"\n  \
         curl 'http://flights.test/search?from=Oslo'\n  \
         squall profile use flaky_network --scope mine\n  \
         squall demo-agent '{TASK}'\n  \
         squall off"
    );
    output::print(&format!(
        "\n{} proxy on http://{}, api on http://{}. In another terminal:\n\n  {}\n\nCtrl-C ends it.\n",
        paint.strong("Still running:"),
        daemon.proxy_address(),
        daemon.api_address(),
        paint.name(commands),
    ))?;
    Signals::listen()?.next().await;
    Ok(())
}

/// Where the demo's CA lives: a directory that goes with it, or the user's own if it stays.
enum Home {
    Own(PathBuf),
    Temporary(TempDir),
}

impl Home {
    fn new(keep: bool) -> Result<Self, Failure> {
        if keep {
            return crate::home::home().map(Self::Own);
        }
        let made = tempfile::Builder::new().prefix("squall-demo-").tempdir();
        made.map(Self::Temporary)
            .map_err(|error| Failure::could_not("a temporary directory", error))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Own(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }
}
