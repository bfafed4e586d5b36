//! Sources of replay sessions: what imports need of the configuration, and `replays.sources` of suites.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Value, json};
use squall_harness::count::count;
use squall_harness::dial::Dialler;
use squall_harness::import::{FetchError, Fetching, ImportOptions, Imported, Service};
use squall_harness::run::RunKind;
use squall_harness::runner::fetched_sources;
use squall_harness::suite::{SessionSource, SuiteSession, escape_variables};
use squall_journal::redact::Redactor;
use squall_proxy::upstream::Shared;

use crate::config::{Config, DEFAULT_FILE};
use crate::daemon::dialler;
use crate::failure::Failure;
use crate::render::output;
use crate::suite::LocalSuite;

/// Most traces of a source.
const MOST: usize = 100;

/// What imports need of the configuration: patterns of secrets, destinations, and names of tools.
pub(crate) struct ImportSetup {
    redactor: Redactor,
    dialler: Dialler,
    tools: Option<BTreeSet<String>>,
}

impl ImportSetup {
    /// Reads the configuration of `--config`, else of `squall.yaml`. An unreadable one is an error, because it may have
    /// patterns of secrets.
    pub(crate) fn new(file: Option<&Path>, suite: Option<&LocalSuite>) -> Result<Self, Failure> {
        let home = crate::home::home()?;
        let file = file.unwrap_or(Path::new(DEFAULT_FILE));
        let config = if file == Path::new(DEFAULT_FILE) && !file.exists() {
            Config::with_home(home)
        } else {
            Config::from_file(home, file)?
        };
        let redactor = Redactor::with_patterns(&config.redact)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let shared =
            Shared::new(&config.proxy).map_err(|error| Failure::Usage(error.to_string()))?;
        let tools = suite.map(|suite| {
            let of_suite = suite.suite.tools.written.iter().map(|(name, _)| name);
            let of_config = config.proxy.tools.iter().map(|(name, _)| name);
            of_suite.chain(of_config).cloned().collect()
        });
        Ok(Self {
            redactor,
            dialler: dialler(shared),
            tools,
        })
    }

    /// The options of an import from a source of this name.
    pub(crate) fn options<'a>(&'a self, name: &'a str) -> ImportOptions<'a> {
        ImportOptions {
            name,
            redactor: &self.redactor,
            tools: self.tools.as_ref(),
        }
    }

    /// Fetches traces, with the keys in the environment.
    pub(crate) async fn fetch(&self, fetching: &Fetching) -> Result<Imported, FetchError> {
        let variable = |name: &str| std::env::var(name).ok();
        let options = self.options(&fetching.source);
        fetching.run(&self.dialler, &variable, options).await
    }
}

/// The time, milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "ranges of time end now, by the clock of the service"
    )]
    let now = SystemTime::now();
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Replaces the sources that a run of this kind replays by their sessions. Returns what is missing in them.
pub(crate) async fn fetch(
    kind: RunKind,
    config: Option<&Path>,
    suite: &mut LocalSuite,
) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    let wanted: Vec<_> = fetched_sources(kind, &suite.suite).collect();
    if wanted.is_empty() {
        return Ok(warnings);
    }
    let setup = ImportSetup::new(config, Some(suite))?;
    let own = suite.suite.replays.sessions.iter();
    let mut ids: BTreeSet<_> = own
        .filter_map(|session| match session {
            SuiteSession::Inline(replay) => Some(replay.session.id.clone()),
            SuiteSession::File => None,
        })
        .collect();
    let mut sessions: Vec<Value> = Vec::new();
    for (number, source) in &wanted {
        let place = suite.place(&format!("/replays/sources/{number}"));
        let fetched = setup.fetch(&fetching(source)).await;
        let fetched = fetched.map_err(|error| Failure::CouldNotRun(format!("{place}: {error}")))?;
        let name = format!("replays.sources: {}", source.source);
        let found = count(fetched.sessions.len() as u64, "session");
        output::report_line(&format!("{name}: {found}"));
        if fetched.sessions.is_empty() {
            warnings.push(format!("{name}: no trace matches"));
        }
        let unmapped = fetched.unmapped.iter();
        warnings.extend(unmapped.map(|one| format!("{name}: {}: {}", one.what, one.why)));
        for session in fetched.sessions {
            let id = &session.id;
            if session.input.is_empty() {
                warnings.push(format!("{name}: session {id} has no input and is left out"));
            } else if ids.insert(id.clone()) {
                let mut document = session.to_value();
                escape_variables(&mut document);
                sessions.push(document);
            } else {
                warnings.push(format!(
                    "{name}: there is already a session {id}, which is replayed"
                ));
            }
        }
    }
    let fetched: BTreeSet<_> = wanted.iter().map(|(number, _)| *number).collect();
    let replays = &mut suite.document["replays"];
    if let Some(sources) = replays["sources"].as_array_mut() {
        let mut numbers = 0..;
        sources.retain(|_| {
            numbers
                .next()
                .is_none_or(|number| !fetched.contains(&number))
        });
    }
    match replays["sessions"].as_array_mut() {
        Some(own) => own.append(&mut sessions),
        None => replays["sessions"] = json!(sessions),
    }
    Ok(warnings)
}

fn fetching(source: &SessionSource) -> Fetching {
    Fetching {
        service: Service::Langsmith,
        source: source.source.clone(),
        status: source.status.to_owned(),
        range: source.range,
        min_latency_ms: source.min_latency_ms,
        limit: MOST,
        endpoint: None,
        now_ms: now_ms(),
    }
}
