//! `squall demo`: runs a contract against a small agent under five built-in profiles, or the shop.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;
use squall_harness::report::ReportFormat;
use squall_harness::run::RunRecord;
use tempfile::TempDir;

use super::until_interrupted;
use crate::args::{DemoArgs, LogFormat, ShopArgs};
use crate::client::Client;
use crate::config::{Config, StoreConfig};
use crate::daemon::signals::Signals;
use crate::daemon::{Daemon, log};
use crate::demo::{TASK, World, contract, shop};
use crate::failure::Failure;
use crate::home::home;
use crate::output_file;
use crate::render::paint::Paint;
use crate::render::{output, run as render};
use crate::reports;

pub(super) async fn run(demo: DemoArgs) -> Result<(), Failure> {
    log::start("warn", LogFormat::Text)?;
    if demo.shop.open {
        return until_interrupted(open_shop(&demo.shop)).await;
    }
    output_file::check(&demo.output)?;
    let demo_run = until_interrupted(show(&demo)).await?;
    if demo.keep {
        keep(&demo_run.daemon, &demo_run.token).await?;
    }
    demo_run.daemon.stop(std::time::Duration::ZERO).await;
    Ok(())
}

/// Runs the shop, and prints its suite.
async fn open_shop(args: &ShopArgs) -> Result<(), Failure> {
    let failed = |error| Failure::could_not(format!("the shop on port {}", args.port), error);
    let (listener, address) = shop::listen(args.port).await.map_err(failed)?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::could_not("the path of this program", error))?;
    let suite = shop::suite(address.port(), &program.display().to_string());
    output::report_line(&format!(
        "shop on http://{address}/, with a page; Ctrl-C ends it"
    ));
    output::document(&suite)?;
    output::report_line(
        "save the suite above as shop.yaml; in another terminal: squall explore -c shop.yaml",
    );
    shop::serve(listener, args.repaired).await.map_err(failed)
}

/// Everything that runs during the demo.
struct RunningDemo {
    daemon: Daemon,
    token: String,
    _world: World,
    _home: TempDir,
}

/// Runs the contract, prints its result and writes its report.
async fn show(demo: &DemoArgs) -> Result<RunningDemo, Failure> {
    let created = tempfile::Builder::new()
        .prefix("squall-demo-")
        .permissions(Permissions::from_mode(0o700))
        .tempdir();
    let temporary = created.map_err(|error| Failure::could_not("a temporary directory", error))?;
    // With `--keep`, programs need a permanent CA.
    let home = if demo.keep {
        home()?
    } else {
        temporary.path().to_owned()
    };
    let world = World::start()
        .await
        .map_err(|error| Failure::could_not("the demo's services", error))?;
    let (daemon, token) = start(&world, &home, demo.keep).await?;
    if !demo.json {
        introduce();
    }
    let client = Client::to(&daemon.api_address().to_string(), Some(token.clone()))?;
    let (run, page) = judge(&daemon, &client, demo).await?;
    let written = output_file::write(&demo.output, page);
    let file = written.is_ok().then_some(demo.output.as_path());
    if demo.json {
        output::json(&json!({ "task": TASK, "contract": run, "report": file }))?;
    } else {
        let shown = if demo.keep {
            run.clone()
        } else {
            without_exchanges(run.clone())
        };
        output::print(&render::whole(&shown, Paint::stdout()))?;
        let report = file.map(|file| format!("report: {}\n", file.display()));
        let report = report.unwrap_or_default();
        output::print(&format!("\n{report}{}\n", render::closing(&run)))?;
    }
    written?;
    Ok(RunningDemo {
        daemon,
        token,
        _world: world,
        _home: temporary,
    })
}

/// Runs the contract; returns the run and its report.
async fn judge(
    daemon: &Daemon,
    client: &Client,
    demo: &DemoArgs,
) -> Result<(RunRecord, String), Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::could_not("the path of this program", error))?;
    // The suite starts the agent; no other document may start a program.
    daemon.let_documents_start_programs(true);
    let run = contract::run(client, &contract::suite(&program), demo.seed).await;
    daemon.let_documents_start_programs(false);
    let run = run?;
    let mut report = reports::read(client, &run.id).await?;
    // The daemon ends with the demo and stores nothing.
    report.stands_alone = true;
    Ok((run, report.render(ReportFormat::Html)))
}

/// The run without its exchanges: `squall explain` cannot show them after the demo.
fn without_exchanges(mut run: RunRecord) -> RunRecord {
    for evidence in run.cells.iter_mut().flat_map(|cell| &mut cell.evidence) {
        evidence.telling = None;
        evidence.exchanges.clear();
    }
    run
}

/// Starts the daemon, with `--keep` on the default ports if they are free.
async fn start(world: &World, home: &Path, keep: bool) -> Result<(Daemon, String), Failure> {
    let mut config = Config::with_home(home.to_owned());
    config.proxy.connect_to = world.connect_to();
    config.proxy.tools = World::tools();
    config.store = StoreConfig::in_memory();
    let token = config.require_token()?;
    if keep && let Ok(daemon) = Daemon::start(config.clone()).await {
        return Ok((daemon, token));
    }
    config.proxy.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    config.api.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    Ok((Daemon::start(config).await?, token))
}

fn introduce() {
    let paint = Paint::stderr();
    output::report(&format!(
        "{} an agent, two tools and a simulated model on this machine. All calls of the agent go through the proxy.\n\
         task: {TASK}\n\
         The agent does the task once without chaos and once under each of {} scenarios.",
        paint.strong("squall:"),
        contract::SCENARIOS.len() + 1,
    ));
}

/// Keeps everything running until Ctrl-C, and prints commands to try.
async fn keep(daemon: &Daemon, token: &str) -> Result<(), Failure> {
    let paint = Paint::stdout();
    let server = if daemon.api_address().port() == 7071 {
        String::new()
    } else {
        format!("export SQUALL_SERVER=http://{}\n  ", daemon.api_address())
    };
    let commands = format!(
        "{server}export SQUALL_TOKEN={token}\n  \
         squall tail &\n  \
         eval \"$(squall env --scope mine)\"\n  \
         curl 'http://flights.test/search?from=Oslo'\n  \
         squall profile use flaky_network --scope mine\n  \
         squall demo-agent '{TASK}'\n  \
         squall off"
    );
    output::print(&format!(
        "\n{} proxy on http://{}, api on http://{}. The api's address in a browser is the dashboard; it asks for \
         the token below.\nIn another terminal:\n\n  {}\n\nCtrl-C ends it.\n",
        paint.strong("Still running:"),
        daemon.proxy_address(),
        daemon.api_address(),
        paint.name(commands),
    ))?;
    Signals::listen()?.next().await;
    Ok(())
}
