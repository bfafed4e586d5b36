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
pub(crate) mod profiles;
mod recording;
mod reload;
pub(crate) mod setup;
pub(crate) mod signals;
pub(crate) mod watch;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use squall_control_api::access::Access;
use squall_control_api::audit::{AuditLog, Digests, Outcome};
use squall_control_api::{
    ApiState, DaemonId, RecordingBounds, Recordings, Runs, RunsParts, StoredDocuments,
    StoredJournal, StoredProfiles, StoredTokens, Terms, Trust,
};
use squall_profiles::library::Library;
use squall_proxy::chaos::Chaos;
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::Recorder;
use squall_proxy::tls::CertificateAuthority;
use squall_proxy::{Proxy, ProxyParts};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::health::Health;
use self::profiles::{ProfileFiles, Sources};
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

/// A running daemon.
pub(crate) struct Daemon {
    id: DaemonId,
    config: Config,
    profiles: ProfileFiles,
    stored: Arc<StoredProfiles>,
    journal: Option<Arc<StoredJournal>>,
    runs: Arc<Runs>,
    proxy: Proxy,
    chaos: Arc<Chaos>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    ca: Arc<CertificateAuthority>,
    api_address: SocketAddr,
    api: Option<JoinHandle<()>>,
    access: Arc<Access>,
    trust: Arc<Trust>,
    audit: Arc<AuditLog>,
    tokens: Arc<StoredTokens>,
    recordings: Arc<Recordings>,
    health: Health,
    ending: CancellationToken,
}

impl Daemon {
    /// Binds every listener and starts everything. Requires the runtime that will accept the API's connections.
    pub(crate) async fn start(config: Config) -> Result<Self, Failure> {
        let work = work()?;
        let begun = work.spawn(Self::begin(config));
        let (daemon, listener) = begun
            .await
            .map_err(|error| Failure::could_not("the daemon", error))??;
        let listener = TcpListener::from_std(listener)
            .map_err(|error| Failure::could_not("the control API's address", error))?;
        Ok(daemon.serve_api(listener, work))
    }

    async fn begin(config: Config) -> Result<(Self, std::net::TcpListener), Failure> {
        let mut profiles = ProfileFiles::default();
        let reading = profiles.read(&Sources::of(&config), &Library::builtin());
        if !reading.problems.is_empty() {
            // Nothing valid was read before.
            let problems: Vec<_> = reading.problems.iter().map(health::sentence).collect();
            return Err(Failure::Usage(problems.join("\n")));
        }
        // A first start creates keys and tables. Both are slow and independent.
        let authority = {
            let config = config.clone();
            tokio::task::spawn_blocking(move || config.authority())
        };
        let store = parts::store(&config).await;
        let authority = authority
            .await
            .map_err(|error| Failure::could_not("the CA", error))?;
        let (store, ca) = (store?, Arc::new(authority?));
        let access = Arc::new(Access::new(parts::tokens(&config)));
        let tokens = StoredTokens::load(store.clone(), Arc::clone(&access)).await?;
        config.check_api(&access)?;
        let trust = Arc::new(Trust::new(config.trust.clone()));
        let loading = StoredProfiles::load(store, reading.library, Arc::clone(&trust));
        let (stored, library) = loading.await?;
        let metrics = Arc::new(Metrics::new(env!("CARGO_PKG_VERSION")));
        let recorder = parts::recorder(&config, &metrics)?;
        let chaos = Chaos::new(
            library,
            parts::tool_names(&config)?,
            parts::defaults(&config),
            recorder.clone(),
            Arc::clone(&metrics),
        );
        let audit = AuditLog::new(stored.store().clone(), recorder.clone());
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
        let options = config.store.journal;
        let journal = StoredJournal::start(stored.store(), options, &recorder, &metrics);
        let runs = Runs::new(RunsParts {
            store: stored.store().clone(),
            chaos: Arc::clone(&chaos),
            recorder: recorder.clone(),
            journal: journal.clone(),
            metrics: Arc::clone(&metrics),
            audit: Arc::clone(&audit),
            daemon: id.as_str().to_owned(),
            executor: Arc::new(parts::executor(&ca, &config, &proxy)),
            modules: config.modules.clone(),
            approval: parts::approval(&config)?,
        });
        runs.recover().await?;
        let recordings = Recordings::over(
            stored.store().clone(),
            recorder.clone(),
            Arc::clone(&chaos),
            RecordingBounds::default(),
            id.as_str().to_owned(),
        );
        if !config.passing {
            // Recordings of the store's own daemon continue.
            recordings.look_back().await?;
        }
        let daemon = Self {
            id,
            runs,
            recordings,
            health: Health::new(&proxy, api_address),
            access,
            trust,
            audit,
            tokens,
            ending: CancellationToken::new(),
            api: None,
            api_address,
            config,
            profiles,
            stored,
            journal,
            proxy,
            chaos,
            recorder,
            metrics,
            ca,
        };
        Ok((daemon, listener))
    }

    /// Accepts the API's connections on this runtime and answers on the other, until the daemon stops.
    fn serve_api(mut self, listener: TcpListener, work: &Handle) -> Self {
        let ca_pem = Bytes::copy_from_slice(self.ca.pem().as_bytes());
        let (health, stored) = (self.health.clone(), Arc::clone(&self.stored));
        let journal = self.journal.clone();
        let recordings = Arc::clone(&self.recordings);
        let readiness = move || {
            let mut broken = stored.broken();
            broken.extend(journal.as_ref().and_then(|journal| journal.broken()));
            broken.extend(recordings.broken());
            health.readiness(&broken)
        };
        let state = ApiState {
            chaos: Arc::clone(&self.chaos),
            profiles: Arc::clone(&self.stored),
            runs: Arc::clone(&self.runs),
            recordings: Arc::clone(&self.recordings),
            documents: StoredDocuments::over(self.stored.store().clone()),
            recorder: self.recorder.clone(),
            journal: self.journal.clone(),
            metrics: Arc::clone(&self.metrics),
            access: Arc::clone(&self.access),
            tokens: Arc::clone(&self.tokens),
            trust: Arc::clone(&self.trust),
            audit: Arc::clone(&self.audit),
            ca_pem: Arc::new(move || ca_pem.clone()),
            readiness: Arc::new(readiness),
            proxy: self.proxy.address(),
            work: work.clone(),
            stopping: self.ending.clone(),
        };
        // Times to live must end without any API call.
        tokio::spawn(Arc::clone(&self.chaos).keep_time(self.ending.clone()));
        work.spawn(Arc::clone(&self.audit).keep_writing(self.ending.clone()));
        let in_force = format!("squall {}, {}", env!("CARGO_PKG_VERSION"), self.in_force());
        let api = self.api_address.to_string();
        let digests = Digests {
            before: None,
            after: self.config.digest.clone(),
        };
        self.audit
            .changed("start", &api, Outcome::Done, &in_force, digests);
        let (stored, chaos) = (Arc::clone(&self.stored), Arc::clone(&self.chaos));
        let tokens = Arc::clone(&self.tokens);
        work.spawn(stored.follow(chaos, tokens, self.ending.clone()));
        work.spawn(Arc::clone(&self.runs).keep_leases(self.ending.clone()));
        work.spawn(squall_control_api::prune(
            self.stored.store().clone(),
            self.config.store.journal.retain,
            self.recorder.clone(),
            self.ending.clone(),
        ));
        let serving = squall_control_api::serve(listener, state, self.ending.clone());
        self.api = Some(tokio::spawn(async move {
            if let Err(error) = serving.await {
                tracing::error!(%error, "the control API has ended");
            }
        }));
        self
    }

    /// The place of the store.
    pub(crate) fn store_place(&self) -> &impl std::fmt::Display {
        &self.config.store.place
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
        self.trust.configure(Terms {
            commands: may,
            ..self.config.trust.clone()
        });
    }

    /// The profile files of the configuration.
    pub(crate) fn profile_sources(&self) -> Sources {
        Sources::of(&self.config)
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
        let (wanted, most) = (
            self.config.proxy.limits.connections,
            self.proxy.connections(),
        );
        if most < wanted {
            tracing::debug!(
                wanted,
                most,
                "the open-files limit (ulimit -n) allows fewer connections than proxy.limits.connections"
            );
        }
        for broken in self.stored.broken() {
            tracing::error!("{}", health::sentence(&broken));
        }
        for (route, address) in self.proxy.routes() {
            tracing::info!(route, %address, "route listens");
        }
    }

    /// Ends chaos, stops accepting, gives open exchanges `grace` to finish, then closes the rest.
    pub(crate) async fn stop(self, grace: Duration) {
        self.chaos.end_all(Some("the daemon is stopping"));
        self.runs.stop_all().await;
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
        self.ending.cancel();
        if let Some(api) = self.api {
            // A client that does not read its response must not delay the exit.
            let _ = tokio::time::timeout(API_GRACE, api).await;
        }
        self.recordings.stop_all().await;
        self.recorder.stop();
        if let Some(journal) = &self.journal {
            journal.stop().await;
        }
        let api = self.api_address.to_string();
        self.audit.happened("stop", &api, Outcome::Done, "");
        self.audit.stop().await;
        self.stored.store().close().await;
    }
}
