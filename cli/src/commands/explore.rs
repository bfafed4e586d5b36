//! `squall explore`: finds the faults on calls that break an agent ([`calls`]), or the sequences of actions that break
//! an application with state, and replays those.

mod calls;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use squall_harness::agents::pointing;
use squall_harness::count::count;
use squall_harness::dial::Dialler;
use squall_harness::explore::actions::{
    ActionChoice, Application, Episode, Exploration, ExploreError, Explorer, ExplorerOptions,
    SCOPE, shrink,
};

use crate::args::{DaemonArgs, ExploreArgs, ExploreCommand, ExploreReplayArgs, LogFormat};
use crate::client::Client;
use crate::commands::{chaos_path, until_interrupted};
use crate::daemon::setup::{Lives, Setup};
use crate::daemon::{Daemon, log};
use crate::failure::Failure;
use crate::output_file;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;
use crate::suite::LocalSuite;

pub(super) async fn run(args: ExploreArgs) -> Result<(), Failure> {
    if let Some(ExploreCommand::Replay(replay)) = &args.action {
        log::start("warn", LogFormat::Text)?;
        return Box::pin(until_interrupted(self::replay(replay))).await;
    }
    let suite = LocalSuite::read(&args.trial.suite.file)?;
    args.check(suite.suite.explore.is_some())?;
    match &suite.suite.explore {
        Some(_) => {
            log::start("warn", LogFormat::Text)?;
            Box::pin(until_interrupted(explore(&args, &suite))).await
        }
        None => Box::pin(calls::run(&args, suite)).await,
    }
}

/// The suite's exploration over actions.
fn exploration<'s>(suite: &'s LocalSuite, file: &Path) -> Result<&'s Exploration, Failure> {
    suite.suite.explore.as_ref().ok_or_else(|| {
        let message = "the suite has no `explore`, which declares an application and its actions; \
                       `squall demo --shop` prints an example";
        Failure::Usage(format!("{}: {message}", file.display()))
    })
}

/// An application behind a private proxy with the suite's chaos.
struct Environment<'s> {
    application: Application<'s>,
    suite: &'s LocalSuite,
    daemon: Daemon,
    client: Client,
}

impl<'s> Environment<'s> {
    async fn open(suite: &'s LocalSuite, settings: &'s Exploration) -> Result<Self, Failure> {
        output::report_findings(&[], &crate::text::lines(&suite.suite.notes));
        let mut config = Setup::new(DaemonArgs::default(), Lives::ForProgram)?.read()?;
        // Only the suite's chaos is in force.
        (config.chaos.profile, config.profile_file) = (None, None);
        let token = config.require_token()?;
        let daemon = Daemon::start(config).await?;
        let client = Client::to(&daemon.api_address().to_string(), Some(token))?;
        let authority = daemon.proxy_address().to_string();
        let variables = pointing::at(&authority, &daemon.ca_bundle()?);
        let opened = Application::open(settings, variables, &Dialler::default()).await;
        Ok(Self {
            application: opened.map_err(failure)?,
            suite,
            daemon,
            client,
        })
    }

    /// Puts the suite's chaos in force, its counters at zero.
    async fn begin(&self, seed: u64, episode: u64) -> Result<(), Failure> {
        let mut body = match &self.suite.document["chaos"] {
            Value::Null => json!({ "profile": "none" }),
            chaos => json!({ "chaos": chaos, "secrets": self.suite.secrets }),
        };
        body["seed"] = seed.into();
        body["key"] = format!("episode {episode}").into();
        let path = chaos_path(Some(SCOPE));
        self.client.put::<Value>(&path, &body).await.map(drop)
    }

    async fn close(self) {
        self.application.close().await;
        self.daemon.stop(Duration::ZERO).await;
    }
}

fn failure(error: ExploreError) -> Failure {
    match error {
        ExploreError::Undeclared(_) => Failure::Usage(error.to_string()),
        error => Failure::CouldNotRun(error.to_string()),
    }
}

async fn explore(args: &ExploreArgs, suite: &LocalSuite) -> Result<(), Failure> {
    let file = &args.trial.suite.file;
    let settings = exploration(suite, file)?;
    let output = args.episodes_directory();
    std::fs::create_dir_all(output).map_err(|error| {
        Failure::Usage(format!("{} cannot be created: {error}", output.display()))
    })?;
    let options = ExplorerOptions {
        suite: file.display().to_string(),
        seed: args.seed(),
        epsilon: args.epsilon.unwrap_or(0.2),
        steps: args.steps.unwrap_or(15),
    };
    let mut explorer = Explorer::new(options, settings.choices());
    let mut environment = Environment::open(suite, settings).await?;
    let (mut episodes, mut broken_off) = (Vec::new(), None);
    for number in 1..=args.episodes.unwrap_or(5) {
        environment.begin(args.seed(), number).await?;
        let episode = match explorer.episode(&mut environment.application, number).await {
            Ok(episode) => episode.without_secrets(&suite.suite.redactor),
            Err(error) => {
                broken_off = Some(failure(error));
                break;
            }
        };
        let name = format!("episode_seed{}_{number:03}.json", args.seed());
        let written = write(&episode, output.join(name))?;
        episodes.push((episode, written));
    }
    environment.close().await;
    let found = episodes.iter().any(|(_, file)| file.is_some());
    match broken_off {
        Some(failure) if !found => return Err(failure),
        Some(failure) => output::report_line(&format!(
            "the exploration ended in episode {}: {failure}",
            episodes.len() + 1
        )),
        None => {}
    }
    report(args, &episodes)?;
    if found {
        Err(Failure::NotPassed)
    } else if !episodes.iter().any(|(episode, _)| episode.has_success()) {
        output::report_line(
            "no action got a response below status 400, so nothing was explored; check `explore.actions`",
        );
        Err(Failure::Inconclusive)
    } else {
        Ok(())
    }
}

/// Writes an episode with an anomaly.
fn write(episode: &Episode, file: PathBuf) -> Result<Option<PathBuf>, Failure> {
    if episode.anomalies().is_empty() {
        return Ok(None);
    }
    output_file::write_private(&file, &episode.to_json())?;
    Ok(Some(file))
}

/// Prints the episodes, and how each anomaly was found first.
fn report(args: &ExploreArgs, episodes: &[(Episode, Option<PathBuf>)]) -> Result<(), Failure> {
    if args.trial.json {
        let items = episodes.iter().map(|(episode, file)| {
            json!({
                "episode": episode.episode, "steps": episode.steps.len(), "new_states": episode.new_states,
                "anomalies": names(episode), "file": file,
            })
        });
        return output::json(&json!({ "seed": args.seed(), "items": items.collect::<Vec<_>>() }));
    }
    let paint = Paint::stdout();
    let mut table = Table::new(["EPISODE", "STEPS", "NEW STATES", "ANOMALIES", "FILE"]);
    let mut known = Vec::new();
    let mut found = Vec::new();
    for (episode, file) in episodes {
        let names = names(episode);
        let file = file.as_ref().map(|file| file.display().to_string());
        table.row([
            episode.episode.to_string(),
            episode.steps.len().to_string(),
            episode.new_states.to_string(),
            if names.is_empty() {
                "none".to_owned()
            } else {
                paint.bad(names.join(", "))
            },
            file.unwrap_or_default(),
        ]);
        for (step, name) in episode.anomalies() {
            if !known.contains(&name) {
                known.push(name);
                found.push(format!(
                    "{} {}\n",
                    paint.bad(name),
                    first(episode, step, name)
                ));
            }
        }
    }
    output::print(&format!("{}\n{}", table.render(), found.concat()))?;
    let states: u64 = episodes.iter().map(|(episode, _)| episode.new_states).sum();
    let replay = episodes.iter().find_map(|(_, file)| file.as_ref());
    let replay = replay.map(|file| format!("replay: squall explore replay {}\n", file.display()));
    output::print(&format!(
        "\n{}squall explore: {} in {}, {} seed={}\n",
        replay.unwrap_or_default(),
        count(known.len(), "anomaly"),
        count(episodes.len() as u64, "episode"),
        count(states, "state"),
        args.seed()
    ))
}

/// The names of an episode's anomalies.
fn names(episode: &Episode) -> Vec<&str> {
    let all = episode.anomalies().into_iter();
    all.map(|(_, name)| name).collect()
}

/// Where an anomaly was observed first, and its value.
fn first(episode: &Episode, step: usize, name: &str) -> String {
    let (place, seen) = match step
        .checked_sub(1)
        .and_then(|index| episode.steps.get(index))
    {
        Some(at) => (format!("after step {step}, {}", at.choice), &at.seen),
        None => ("after the reset".to_owned(), &episode.initial),
    };
    let found = seen.anomalies.iter().find(|found| found.anomaly == name);
    let value = found.map(|found| found.found.as_str()).unwrap_or_default();
    format!("in episode {} {place}: {value}", episode.episode)
}

async fn replay(args: &ExploreReplayArgs) -> Result<(), Failure> {
    let text = crate::text::read(&args.file).map_err(Failure::Usage)?;
    let recorded = Episode::parse(&text).map_err(|error| {
        Failure::Usage(format!(
            "{}: is no episode of `squall explore`: {error}",
            args.file.display()
        ))
    })?;
    let file = args
        .suite
        .clone()
        .unwrap_or_else(|| PathBuf::from(&recorded.suite));
    let suite = LocalSuite::read(&file)?;
    let settings = exploration(&suite, &file)?;
    let choices = recorded.choices();
    if let Some(unknown) = choices
        .iter()
        .find(|choice| settings.request(choice).is_none())
    {
        return Err(failure(ExploreError::Undeclared(unknown.clone())));
    }
    let mut environment = Environment::open(&suite, settings).await?;
    let replayed = again(&mut environment, &recorded, &choices).await?;
    let now = replayed.anomalies();
    let mut shrunk = Vec::new();
    for (number, (_, anomaly)) in now.iter().enumerate().filter(|_| args.shrink) {
        let smallest = shrink(choices.clone(), async |part: &[ActionChoice]| {
            let episode = again(&mut environment, &recorded, part).await?;
            Ok::<_, Failure>(names(&episode).contains(anomaly))
        });
        let smallest = smallest.await?;
        let episode = again(&mut environment, &recorded, &smallest).await?;
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
        let file = args
            .file
            .with_file_name(format!("{stem}_shrunk_{}.json", number + 1));
        let written = write(&episode, file)?;
        shrunk.push(json!({ "anomaly": anomaly, "actions": smallest, "file": written }));
    }
    environment.close().await;
    print_replay(args, &recorded, &replayed, &shrunk)?;
    if now.is_empty() {
        Ok(())
    } else {
        Err(Failure::NotPassed)
    }
}

/// Sends these actions of an episode again, under the same chaos.
async fn again(
    environment: &mut Environment<'_>,
    recorded: &Episode,
    choices: &[ActionChoice],
) -> Result<Episode, Failure> {
    environment.begin(recorded.seed, recorded.episode).await?;
    let replayed = recorded.replay(&mut environment.application, choices).await;
    let replayed = replayed.map_err(failure)?;
    Ok(replayed.without_secrets(&environment.suite.suite.redactor))
}

fn print_replay(
    args: &ExploreReplayArgs,
    recorded: &Episode,
    replayed: &Episode,
    shrunk: &[Value],
) -> Result<(), Failure> {
    let (before, now) = (names(recorded), names(replayed));
    let (persisting, new): (Vec<&str>, Vec<&str>) =
        now.iter().partition(|name| before.contains(name));
    let gone: Vec<_> = before.iter().filter(|name| !now.contains(name)).collect();
    let parting = recorded.parting(replayed);
    if args.json {
        return output::json(&json!({
            "persisting": persisting, "new": new, "gone": gone, "states_part_after_step": parting, "shrunk": shrunk,
        }));
    }
    let paint = Paint::stdout();
    let mut lines = Vec::new();
    for (step, name) in replayed.anomalies() {
        let word = if before.contains(&name) {
            "persists"
        } else {
            "is new"
        };
        lines.push(format!(
            "{} {word} {}",
            paint.bad(name),
            first(replayed, step, name)
        ));
    }
    lines.extend(
        gone.into_iter()
            .map(|name| format!("{} is gone", paint.good(name))),
    );
    lines.push(match parting {
        None => "the states are the same after every step".to_owned(),
        Some(0) => "the states part after the reset".to_owned(),
        Some(step) => {
            let at = step - 1;
            let state = |episode: &Episode| match episode.steps.get(at) {
                Some(step) => step.seen.state.to_string(),
                None => "none".to_owned(),
            };
            let action = recorded.steps.get(at).map(|step| step.choice.to_string());
            format!(
                "the states part after step {step}, {}: recorded {}, now {}",
                action.unwrap_or_default(),
                state(recorded),
                state(replayed)
            )
        }
    });
    for one in shrunk {
        let actions = one["actions"].as_array().into_iter().flatten();
        let actions: Vec<_> = actions
            .filter_map(|action| serde_json::from_value::<ActionChoice>(action.clone()).ok())
            .map(|action| action.to_string())
            .collect();
        let anomaly = one["anomaly"].as_str().unwrap_or_default();
        let file = one["file"].as_str().unwrap_or_default();
        lines.push(format!(
            "{anomaly} needs only: {} ({file})",
            actions.join(", then ")
        ));
    }
    lines.push(String::new());
    output::print(&lines.join("\n"))
}
