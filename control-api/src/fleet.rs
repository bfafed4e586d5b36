//! The fleet: daemons that share a PostgreSQL.
//!
//! A switch for the fleet is a row of the store with a number. Each daemon applies the rows that it has not applied, on a
//! notice, and with each of its reports every few seconds in case a notice was lost. A daemon without the store goes on
//! with the chaos that it has.
//!
//! ```text
//! PUT ?fleet=true ─▶ store ─▶ notice ─▶ every daemon: sync ─▶ Chaos
//!                      ▲                               └─▶ report ─▶ GET /v1/fleet
//!                      └── report every 5 s: is there a newer switch?
//! ```

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use squall_profiles::glob::Glob;
use squall_profiles::profile::NONE;
use squall_proxy::chaos::{Chaos, PutError};
use squall_proxy::metrics::Metrics;
use tokio_util::sync::CancellationToken;

use crate::chaos_request;
use crate::document::RequestDocument;
use crate::outage::Outage;
use crate::store::{ALL_SCOPES, DEFAULT_WORKSPACE, FleetChaos, FleetDaemonRow, Store, StoreError};
use crate::stored_profiles::StoredProfiles;
use crate::trust::Trust;

/// Shortest time between two reports of a daemon. Up to [`JITTER`] is added.
const REPORT: Duration = Duration::from_secs(4);

/// Keeps the reports of many daemons apart.
const JITTER: u64 = 2000;

/// A daemon without a report for this time is away.
const AWAY: Duration = Duration::from_secs(15);

/// Most scopes in a report.
const SHOWN: usize = 50;

/// What a daemon reports of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct DaemonReport {
    /// Version of Squall.
    pub(crate) version: String,
    /// Name of its machine.
    pub(crate) host: String,
    /// Address of its API.
    pub(crate) address: String,
    /// Exchanges that ended, a second.
    pub(crate) exchanges_per_second: f64,
    /// Applied faults, a second.
    pub(crate) faults_per_second: f64,
    /// The chaos in force; at most 50 scopes.
    pub(crate) in_force: Vec<ScopeProfile>,
    /// Chaos of the fleet that it could not apply, with the reason.
    pub(crate) problems: Vec<String>,
    /// Globs over the suites whose scenarios it executes in spread runs.
    #[serde(default)]
    pub(crate) takes: Vec<String>,
}

impl DaemonReport {
    /// The last report of a daemon.
    pub(crate) fn of(daemon: &FleetDaemonRow) -> Self {
        serde_json::from_str(&daemon.record).unwrap_or_default()
    }
}

impl FleetDaemonRow {
    /// Whether the daemon has not reported for too long.
    pub(crate) fn is_away(&self) -> bool {
        self.silent_ms > i64::try_from(AWAY.as_millis()).unwrap_or(i64::MAX)
    }
}

/// The chaos in force for a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ScopeProfile {
    /// The scope.
    pub(crate) scope: String,
    /// Its profile.
    pub(crate) profile: String,
}

/// The parts of a daemon that its place in the fleet uses.
pub struct FleetParts {
    /// The shared store.
    pub store: Store,
    /// Chaos in force.
    pub chaos: Arc<Chaos>,
    /// Stored profiles, which receive the notices.
    pub profiles: Arc<StoredProfiles>,
    /// Variables that inline chaos may use.
    pub trust: Arc<Trust>,
    /// Source of the traffic's figures.
    pub metrics: Arc<Metrics>,
    /// Id of the daemon.
    pub daemon: String,
    /// Address of its API.
    pub address: SocketAddr,
    /// Version of Squall.
    pub version: &'static str,
    /// Suites whose scenarios it executes in spread runs.
    pub takes: Vec<Glob>,
}

/// A daemon's place in the fleet.
pub struct Fleet {
    parts: FleetParts,
    state: tokio::sync::Mutex<Applied>,
    outage: Outage,
}

/// What the daemon has applied.
#[derive(Default)]
struct Applied {
    /// The last switch; `None` before the first look.
    generation: Option<i64>,
    /// Switch and activation by scope.
    activations: BTreeMap<String, (i64, Option<String>)>,
    /// By scope.
    problems: BTreeMap<String, String>,
    /// Exchanges and faults at the last report.
    traffic: Option<(Instant, f64, f64)>,
}

impl Fleet {
    /// The place of a daemon; `None` without a shared store.
    pub fn new(parts: FleetParts) -> Option<Arc<Self>> {
        parts.store.is_shared().then(|| {
            Arc::new(Self {
                parts,
                state: tokio::sync::Mutex::default(),
                outage: Outage::of("the fleet's chaos is not received"),
            })
        })
    }

    /// Applies the switches that this daemon has not applied. Other chaos in their scopes is replaced or ended.
    pub async fn sync(&self) -> Result<(), StoreError> {
        let mut applied = self.state.lock().await;
        let (newest, rows) = self.parts.store.fleet_chaos().await?;
        let chaos = &self.parts.chaos;
        // A daemon that joins keeps its own chaos when the fleet's ended before.
        let last = applied.generation.unwrap_or(newest);
        for row in rows
            .iter()
            .filter(|row| row.body.is_none() && row.generation > last)
        {
            tracing::info!(
                scope = row.scope,
                "chaos is ended for the fleet by {}",
                row.actor
            );
            match (&*row.scope, &*row.workspace) {
                (ALL_SCOPES, DEFAULT_WORKSPACE) => drop(chaos.end_all(None)),
                (ALL_SCOPES, workspace) => drop(chaos.end_all_of(workspace)),
                (scope, _) => drop(chaos.end(scope)),
            }
        }
        let in_force = || rows.iter().filter(|row| row.body.is_some());
        applied.activations.retain(|scope, (_, activation)| {
            let stays = in_force().any(|row| row.scope == *scope);
            if let (false, Some(activation)) = (stays, activation) {
                chaos.end_activation(scope, activation);
            }
            stays
        });
        let problems = std::mem::take(&mut applied.problems);
        for row in in_force() {
            let generation = applied
                .activations
                .get(&row.scope)
                .map(|(number, _)| *number);
            if generation == Some(row.generation) && !problems.contains_key(&row.scope) {
                continue;
            }
            let activation = self.apply(row).await.map_err(|why| {
                if problems.get(&row.scope) != Some(&why) {
                    tracing::error!(scope = row.scope, "the fleet's chaos is not applied: {why}");
                }
                applied.problems.insert(row.scope.clone(), why);
            });
            let switch = (row.generation, activation.ok().flatten());
            applied.activations.insert(row.scope.clone(), switch);
        }
        applied.generation = Some(newest);
        Ok(())
    }

    /// Puts a row's chaos in force. Returns its activation, or the reason why it is impossible here.
    async fn apply(&self, row: &FleetChaos) -> Result<Option<String>, String> {
        let body = row.body.clone().unwrap_or_default();
        let document = RequestDocument::stored(body);
        let read = document.fields(|fields| chaos_request::read(fields, &self.parts.trust));
        let mut request = read.map_err(|problem| problem.to_string())?;
        request.rules = chaos_request::of_workspace(&row.workspace, request.rules);
        request.ttl = row.left;
        let put = || self.parts.chaos.put(&row.scope, request.clone());
        let mut done = put();
        if matches!(done, Err(PutError::UnknownProfile(_))) {
            let read = self.parts.profiles.refresh().await;
            read.map_err(|error| error.to_string())?;
            done = put();
        }
        let record = done.map_err(|error| error.to_string())?;
        let profile = &record.profile;
        tracing::info!(
            scope = row.scope,
            profile,
            "chaos is put for the fleet by {}",
            row.actor
        );
        Ok(record.activation)
    }

    /// Applies switches and reports, until `stopping`.
    pub async fn keep(self: Arc<Self>, stopping: CancellationToken) {
        let keeping = async {
            let mut is_joined = false;
            let mut is_noticed = true;
            loop {
                match self.step(is_joined, is_noticed).await {
                    Ok(()) => {
                        is_joined = true;
                        self.outage.end();
                    }
                    Err(error) => self.outage.begin(&error),
                }
                let pause = tokio::time::sleep(REPORT + jitter());
                is_noticed = tokio::select! {
                    () = self.parts.profiles.noticed() => true,
                    () = pause => false,
                };
            }
        };
        stopping.run_until_cancelled(Box::pin(keeping)).await;
    }

    async fn step(&self, is_joined: bool, is_noticed: bool) -> Result<(), StoreError> {
        let Self { parts, .. } = self;
        if !is_joined {
            parts.store.join_fleet(&parts.daemon).await?;
        }
        if is_noticed {
            self.sync().await?;
        }
        let mut newest = self.report().await?;
        let is_behind = {
            let applied = self.state.lock().await;
            applied.generation != Some(newest) || !applied.problems.is_empty()
        };
        if is_behind {
            self.sync().await?;
            newest = self.report().await?;
        }
        tracing::trace!(newest, "reported to the fleet");
        Ok(())
    }

    /// Writes this daemon's report. Returns the number of the last switch.
    async fn report(&self) -> Result<i64, StoreError> {
        let Self { parts, .. } = self;
        let mut applied = self.state.lock().await;
        let (exchanges, faults) = parts.metrics.traffic();
        let now = Instant::now();
        let former = applied.traffic.replace((now, exchanges, faults));
        let rate = |total: f64, before: f64, since: Instant| {
            let seconds = (now - since).as_secs_f64().max(0.001);
            ((total - before) / seconds * 10.0).round() / 10.0
        };
        let (exchanges, faults) = former.map_or((0.0, 0.0), |(since, had, had_faults)| {
            (rate(exchanges, had, since), rate(faults, had_faults, since))
        });
        let own = parts.chaos.list().into_iter();
        let own = own.filter(|one| !one.inherited && one.profile != NONE);
        let in_force = own.take(SHOWN).map(|one| ScopeProfile {
            scope: one.scope,
            profile: one.profile,
        });
        let problems = applied.problems.iter();
        let report = DaemonReport {
            version: parts.version.to_owned(),
            host: host(),
            address: parts.address.to_string(),
            exchanges_per_second: exchanges,
            faults_per_second: faults,
            in_force: in_force.collect(),
            problems: problems
                .map(|(scope, why)| format!("{scope}: {why}"))
                .collect(),
            takes: (parts.takes.iter())
                .map(|glob| glob.as_str().to_owned())
                .collect(),
        };
        let generation = applied.generation.unwrap_or(0);
        drop(applied);
        let report = json!(report).to_string();
        (parts
            .store
            .report_daemon(&parts.daemon, generation, &report))
        .await
    }

    /// The daemons, with the last switch.
    pub(crate) async fn daemons(
        &self,
    ) -> Result<(i64, Vec<FleetChaos>, Vec<FleetDaemonRow>), StoreError> {
        let (newest, rows) = self.parts.store.fleet_chaos().await?;
        Ok((newest, rows, self.parts.store.fleet_daemons().await?))
    }

    /// Whether this daemon executes scenarios of any suite.
    pub(crate) fn takes_any(&self) -> bool {
        !self.parts.takes.is_empty()
    }

    /// Whether this daemon executes scenarios of this suite.
    pub(crate) fn takes(&self, suite: &str) -> bool {
        self.parts.takes.iter().any(|glob| glob.matches(suite))
    }

    /// Whether a daemon executes scenarios of this suite, by its last report.
    pub(crate) async fn is_taken(&self, suite: &str) -> Result<bool, StoreError> {
        let daemons = self.parts.store.fleet_daemons().await?.into_iter();
        let mut present = daemons.filter(|daemon| !daemon.is_away());
        let matches = |glob: &String| Glob::new(glob).is_ok_and(|glob| glob.matches(suite));
        Ok(present.any(|daemon| DaemonReport::of(&daemon).takes.iter().any(matches)))
    }

    /// Removes this daemon from the list.
    pub async fn leave(&self) {
        if let Err(error) = self.parts.store.leave_fleet(&self.parts.daemon).await {
            tracing::warn!("the fleet lists this daemon for another day: {error}");
        }
    }
}

/// Up to [`JITTER`], so that daemons which reported at once do not do so again.
fn jitter() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "it decides nothing")]
    let random = RandomState::new().hash_one(());
    Duration::from_millis(random % JITTER)
}

/// The name of this machine.
fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

impl std::fmt::Debug for Fleet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fleet")
            .field("daemon", &self.parts.daemon)
            .finish_non_exhaustive()
    }
}
