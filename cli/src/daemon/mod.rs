//! The daemon in this process: proxy, control API, and their supervision.
//!
//! ```text
//! Config ──▶ metrics, recorder, chaos, CA ──▶ proxy (threads of its own)
//!                                        └──▶ control API: accepting, `/healthz`, ending chaos, times to live
//!                                             (this thread's runtime), all else (the worker runtime)
//! ```

pub(crate) mod child;
mod health;
mod journal;
pub(crate) mod log;
mod parts;
pub(crate) use self::parts::dialler;
pub(crate) mod profiles;
mod reload;
pub(crate) mod setup;
pub(crate) mod signals;
pub(crate) mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use squall_control_api::access::Access;
use squall_control_api::audit::{AuditEntry, AuditLog};
use squall_control_api::{
    ApiState, Clients, DaemonId, Fleet, FleetParts, RecordingBounds, Recordings, Runs, RunsParts,
    StoredJournal, StoredProfiles, StoredTokens, Trust, TrustConfig,
};
use squall_profiles::library::Library;
use squall_proxy::chaos::Chaos;
use squall_proxy::metrics::Metrics;
use squall_proxy::tls::CertificateAuthority;
use squall_proxy::{Proxy, ProxyParts};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::health::Listening;
use self::profiles::ProfileFiles;
use crate::config::Config;
use crate::failure::Failure;

/// How long the API's last responses may take after everything else has ended.
const API_GRACE: Duration = Duration::from_millis(200);

/// Executes runs, store queries and all but urgent requests, so that the thread that accepts connections never
/// blocks. It is never dropped, because a drop would wait for its tasks at exit.
static WORK: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("squall-work")
        // Documents and JSON Schemas may be nested 64 levels deep.
        .thread_stack_size(8 << 20)
        .enable_all()
        .build()
});

/// The worker runtime.
fn work() -> Result<&'static Handle, Failure> {
    let work = WORK.as_ref().map(Runtime::handle);
    work.map_err(|error| Failure::could_not("the runtime", error))
}

/// The state with the daemon's place in the fleet, once the fleet's chaos is in force. A daemon for one command has only its
/// own chaos.
async fn in_fleet(
    state: ApiState,
    config: &Config,
    address: SocketAddr,
) -> Result<ApiState, Failure> {
    let fleet = (!config.passing).then(|| FleetParts {
        store: state.store.clone(),
        chaos: Arc::clone(&state.chaos),
        profiles: Arc::clone(&state.profiles),
        trust: Arc::clone(&state.trust),
        metrics: Arc::clone(&state.metrics),
        daemon: state.runs.daemon().to_owned(),
        address,
        version: env!("CARGO_PKG_VERSION"),
        takes: config.takes.clone(),
    });
    let fleet = fleet.and_then(Fleet::new);
    if let Some(fleet) = &fleet {
        fleet.sync().await?;
    }
    Ok(ApiState { fleet, ..state })
}

/// A running daemon.
pub(crate) struct Daemon {
    id: DaemonId,
    config: Config,
    profiles: ProfileFiles,
    proxy: Proxy,
    ca: Arc<CertificateAuthority>,
    api_address: SocketAddr,
    api: Option<JoinHandle<()>>,
    listening: Listening,
    state: ApiState,
}

impl Daemon {
    /// Binds every listener and starts everything. Requires the runtime that will accept the API's connections.
    pub(crate) async fn start(config: Config) -> Result<Self, Failure> {
        let work = work()?;
        let begun = work.spawn(Self::begin(config, work));
        let (daemon, listener) = begun
            .await
            .map_err(|error| Failure::could_not("the daemon", error))??;
        let listener = TcpListener::from_std(listener)
            .map_err(|error| Failure::could_not("the control API's address", error))?;
        Ok(daemon.serve_api(listener, work))
    }

    #[expect(clippy::too_many_lines, reason = "a flat list of parts")]
    async fn begin(
        config: Config,
        work: &'static Handle,
    ) -> Result<(Self, std::net::TcpListener), Failure> {
        let mut profiles = ProfileFiles::default();
        let files = profiles.read(&config, &Library::builtin());
        if !files.problems.is_empty() {
            // Nothing valid was read before.
            let problems: Vec<_> = files.problems.iter().map(health::sentence).collect();
            return Err(Failure::Usage(problems.join("\n")));
        }
        let store = parts::store(&config).await?;
        let ca = Arc::new(config.authority()?);
        let access = Arc::new(Access::new(parts::tokens(&config)));
        let tokens = StoredTokens::load(store.clone(), Arc::clone(&access)).await?;
        config.check_api(&access)?;
        let trust = Arc::new(Trust::new(config.trust.clone()));
        let metrics = Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")));
        let recorder = parts::recorder(&config, &metrics)?;
        let chaos = Chaos::new(
            files.library,
            parts::tool_names(&config)?,
            parts::defaults(&config),
            recorder.clone(),
            Arc::clone(&metrics),
        );
        let stored = StoredProfiles::over(store.clone(), Arc::clone(&chaos), Arc::clone(&trust));
        stored.refresh().await?;
        let audit = AuditLog::new(store.clone(), recorder.clone());
        audit.witness(&chaos);
        parts::put_in_force(&chaos, &config)?;
        let (listener, api_address) = parts::listen(config.api.listen).await?;
        let proxy = Proxy::start(
            config.proxy.clone(),
            ProxyParts {
                chaos: Arc::clone(&chaos),
                recorder: recorder.clone(),
                metrics: Arc::clone(&metrics),
                ca: Arc::clone(&ca),
            },
        )?;
        proxy.refuse_loops([api_address]);
        let id = parts::daemon_id(&config, api_address)?;
        let journal = StoredJournal::start(&store, config.store.journal, &recorder, &metrics);
        let runs = Runs::new(RunsParts {
            store: store.clone(),
            chaos: Arc::clone(&chaos),
            recorder: recorder.clone(),
            journal: journal.clone(),
            metrics: Arc::clone(&metrics),
            audit: Arc::clone(&audit),
            daemon: id.as_str().to_owned(),
            executor: Arc::new(parts::executor(&ca, &config, &proxy)),
            modules: config.modules.clone(),
            approval: ArcSwap::from_pointee(parts::approval(&config)?),
        });
        runs.recover().await?;
        let recordings = Recordings::over(
            store.clone(),
            recorder.clone(),
            Arc::clone(&chaos),
            RecordingBounds::default(),
            id.as_str().to_owned(),
        );
        if !config.passing {
            // Recordings of the store's own daemon continue.
            recordings.look_back().await?;
        }
        let listening = Listening::new(&proxy, api_address);
        let state = ApiState {
            readiness: listening.readiness(&stored, journal.as_ref(), &recordings),
            chaos,
            fleet: None,
            profiles: stored,
            runs,
            recordings,
            clients: Clients::observing(&recorder, &access),
            recorder,
            journal,
            metrics,
            switchers: Arc::default(),
            access,
            tokens,
            traces: Arc::default(),
            trust,
            audit,
            ca_pem: parts::ca_pem(&ca),
            proxy: proxy.address(),
            work: work.clone(),
            stopping: CancellationToken::new(),
            store,
        };
        let state = in_fleet(state, &config, api_address).await?;
        let daemon = Self {
            id,
            listening,
            api: None,
            api_address,
            config,
            profiles,
            proxy,
            ca,
            state,
        };
        Ok((daemon, listener))
    }

    /// Accepts the API's connections on this runtime and answers on the other, until the daemon stops.
    fn serve_api(mut self, listener: TcpListener, work: &Handle) -> Self {
        let state = self.state.clone();
        let stopping = || state.stopping.clone();
        // Times to live must end without any API call.
        tokio::spawn(Arc::clone(&state.chaos).keep_time(stopping()));
        work.spawn(Arc::clone(&state.audit).keep_writing(stopping()));
        state.audit.record(AuditEntry {
            action: "start".to_owned(),
            target: self.api_address.to_string(),
            detail: format!("squall {}, {}", env!("CARGO_PKG_VERSION"), self.in_force()),
            after: self.config.digest.clone(),
            ..AuditEntry::default()
        });
        let tokens = Arc::clone(&state.tokens);
        work.spawn(Arc::clone(&state.profiles).follow(tokens, stopping()));
        if let Some(fleet) = &state.fleet {
            work.spawn(Arc::clone(fleet).keep(stopping()));
        }
        work.spawn(Arc::clone(&state.runs).keep_leases(stopping()));
        work.spawn(squall_control_api::execute_scenarios(
            state.clone(),
            stopping(),
        ));
        work.spawn(squall_control_api::prune(
            state.store.clone(),
            self.config.store.journal.retain,
            state.recorder.clone(),
            stopping(),
        ));
        let serving = squall_control_api::serve(
            listener,
            state.clone(),
            {
                let work = work.clone();
                move |api| squall_dashboard::router(api, work.clone())
            },
            stopping(),
        );
        self.api = Some(tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the control API has ended");
            }
        }));
        self
    }

    /// The proxy's address.
    pub(crate) fn proxy_address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// Names and addresses of routes with a listener of their own.
    pub(crate) fn routes(&self) -> &[(String, SocketAddr)] {
        self.proxy.routes()
    }

    /// The control API's address.
    pub(crate) fn api_address(&self) -> SocketAddr {
        self.api_address
    }

    /// The file of roots that programs must trust: the system's and Squall's.
    pub(crate) fn ca_bundle(&self) -> Result<PathBuf, Failure> {
        Ok(self.ca.bundle(&self.config.home)?.path)
    }

    /// Overrides the configuration: whether documents that arrive by API may start programs.
    pub(crate) fn let_documents_start_programs(&self, may: bool) {
        self.state.trust.configure(TrustConfig {
            commands: may,
            ..self.config.trust.clone()
        });
    }

    /// Its configuration.
    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Logs the configuration at start.
    pub(crate) fn log_start(&self, file: Option<&Path>) {
        let file = file.map_or_else(|| "none".to_owned(), |file| file.display().to_string());
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            config = file,
            chaos = self.in_force(),
            store = %self.config.store.place,
            daemon = self.id.as_str(),
            "started"
        );
        let (configured, most) = (
            self.config.proxy.limits.connections,
            self.proxy.connections(),
        );
        if most < configured {
            tracing::debug!(
                configured,
                most,
                "the open-files limit (ulimit -n) allows fewer connections than proxy.limits.connections"
            );
        }
        for (route, address) in self.proxy.routes() {
            tracing::info!(route, %address, "route listens");
        }
    }

    /// Ends chaos, stops accepting, gives open exchanges `grace` to finish, then closes the rest.
    pub(crate) async fn stop(self, grace: Duration) {
        let state = self.state;
        state.chaos.end_all(Some("the daemon is stopping"));
        state.runs.stop_all().await;
        let proxy = self.proxy;
        // Draining blocks its thread and must not delay the exit after a second signal. So it has a thread that
        // is not joined, while the API still answers.
        let (done, drained) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            proxy.drain(grace);
            // The receiver is gone if the process is about to exit.
            let _ = done.send(());
        });
        if drained.await.is_err() {
            tracing::error!("the proxy did not end in good order");
        }
        state.stopping.cancel();
        if let Some(api) = self.api {
            // A client that does not read its response must not delay the exit.
            let _ = tokio::time::timeout(API_GRACE, api).await;
        }
        state.recordings.stop_all().await;
        state.recorder.stop();
        if let Some(journal) = &state.journal {
            journal.stop().await;
        }
        state.audit.record(AuditEntry {
            action: "stop".to_owned(),
            target: self.api_address.to_string(),
            ..AuditEntry::default()
        });
        state.audit.stop().await;
        if let Some(fleet) = &state.fleet {
            fleet.leave().await;
        }
        state.store.close().await;
    }
}
