//! An API with nothing behind it but a recorder and chaos.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use squall_control_api::access::{Access, Token};
use squall_control_api::audit::AuditLog;
use squall_control_api::store::Store;
use squall_control_api::{
    ApiState, JournalOptions, ListenerAddress, Readiness, RecordingBounds, Recordings, Runs,
    RunsParts, StoredJournal, StoredProfiles, StoredTokens, Trust, TrustConfig, prune, router,
};
use squall_harness::dial::Dialler;
use squall_harness::runner::{Execute, Executor};
use squall_journal::record::Outcome;
use squall_profiles::facts::Kind;
use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;
use squall_proxy::chaos::{Chaos, Defaults};
use squall_proxy::metrics::Metrics;
use squall_proxy::recorder::{ExchangeNote, Recorder, RecorderOptions};
use squall_proxy::upstream::HostPatterns;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) struct Api {
    pub(crate) state: ApiState,
    router: Router,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }

    /// The members that every problem has.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, slug: &str) -> Value {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let problem = self.json();
        assert_eq!(
            problem["type"],
            format!("urn:squall:problem:{slug}"),
            "{problem}"
        );
        assert_eq!(problem["status"], status, "{problem}");
        assert!(
            problem["title"]
                .as_str()
                .is_some_and(|title| !title.is_empty()),
            "{problem}"
        );
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|detail| !detail.is_empty()),
            "{problem}"
        );
        problem
    }

    /// Where the problem says that things are wrong.
    #[track_caller]
    pub(crate) fn pointers(&self, status: u16, slug: &str) -> Vec<String> {
        let problem = self.problem(status, slug);
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        errors
            .iter()
            .map(|error| error["pointer"].as_str().unwrap_or("-").to_owned())
            .collect()
    }
}

impl Api {
    pub(crate) fn new() -> Self {
        Self::with(Vec::new(), RecorderOptions::default(), Defaults::default())
    }

    pub(crate) fn with_tokens(tokens: Vec<Token>) -> Self {
        Self::with(tokens, RecorderOptions::default(), Defaults::default())
    }

    /// Over a store, as a daemon starts.
    pub(crate) async fn with_store(store: Store) -> Self {
        Self::with_trust(store, TrustConfig::default()).await
    }

    /// Over a store, as a daemon starts whose documents may do this.
    pub(crate) async fn with_trust(store: Store, trust: TrustConfig) -> Self {
        let (options, defaults) = (RecorderOptions::default(), Defaults::default());
        let api = Self::over(store, trust, Vec::new(), options, defaults);
        api.state.profiles.refresh().await.expect("a store");
        api.state.tokens.refresh().await.expect("a store");
        api
    }

    /// Over a store that keeps the journal too; `ring` is how many exchanges are held in memory.
    pub(crate) async fn with_journal(store: Store, ring: usize, options: JournalOptions) -> Self {
        let mut recorder = RecorderOptions::default();
        recorder.ring.entries = ring;
        let trust = TrustConfig::default();
        let mut api = Self::over(
            store.clone(),
            trust,
            Vec::new(),
            recorder,
            Defaults::default(),
        );
        api.state.profiles.refresh().await.expect("a store");
        let state = &mut api.state;
        state.journal = StoredJournal::start(&store, options, &state.recorder, &state.metrics);
        let (recorder, stopping) = (state.recorder.clone(), state.stopping.clone());
        tokio::spawn(prune(store, options.retain, recorder, stopping));
        api.router = router(api.state.clone());
        api
    }

    pub(crate) fn with_options(options: RecorderOptions) -> Self {
        Self::with(Vec::new(), options, Defaults::default())
    }

    /// With a longest time to live.
    pub(crate) fn with_ttl(ttl: Option<Duration>) -> Self {
        let defaults = Defaults {
            ttl,
            ..Defaults::default()
        };
        Self::with(Vec::new(), RecorderOptions::default(), defaults)
    }

    fn with(tokens: Vec<Token>, options: RecorderOptions, defaults: Defaults) -> Self {
        let trust = TrustConfig::default();
        Self::over(Store::in_memory(), trust, tokens, options, defaults)
    }

    fn over(
        store: Store,
        trust: TrustConfig,
        tokens: Vec<Token>,
        options: RecorderOptions,
        defaults: Defaults,
    ) -> Self {
        let metrics = Arc::new(Metrics::new("1.2.3"));
        let recorder = Recorder::start(options, metrics.clone()).expect("a thread");
        let tools = ToolNames::default();
        let library = Library::builtin();
        let trust = Arc::new(Trust::new(trust));
        let chaos = Chaos::new(library, tools, defaults, recorder.clone(), metrics.clone());
        let access = Arc::new(Access::new(tokens));
        let recordings = Recordings::over(
            store.clone(),
            recorder.clone(),
            chaos.clone(),
            RecordingBounds::default(),
            "bench".to_owned(),
        );
        let audit = AuditLog::new(store.clone(), recorder.clone());
        let state = ApiState {
            chaos: chaos.clone(),
            recordings,
            trust: trust.clone(),
            audit: audit.clone(),
            runs: Runs::new(RunsParts {
                store: store.clone(),
                chaos: chaos.clone(),
                recorder: recorder.clone(),
                journal: None,
                metrics: metrics.clone(),
                audit: audit.clone(),
                daemon: "test".to_owned(),
                executor: Arc::new(executor()),
                modules: PathBuf::new(),
                approval: ArcSwap::default(),
            }),
            tokens: StoredTokens::over(store.clone(), access.clone()),
            profiles: StoredProfiles::over(store.clone(), chaos.clone(), trust),
            store,
            recorder,
            journal: None,
            metrics,
            access,
            ca_pem: Arc::new(|| Bytes::from_static(b"-----BEGIN CERTIFICATE-----\n")),
            readiness: Arc::new(|| Readiness {
                ready: true,
                listeners: vec![ListenerAddress {
                    name: "proxy".to_owned(),
                    address: SocketAddr::from(([127, 0, 0, 1], 7070)),
                }],
                broken: Vec::new(),
            }),
            proxy: SocketAddr::from(([127, 0, 0, 1], 7070)),
            work: tokio::runtime::Handle::current(),
            stopping: CancellationToken::new(),
        };
        Self {
            router: router(state.clone()),
            state,
        }
    }

    /// Over a store, with runs that this carries out.
    pub(crate) async fn with_runs(
        store: Store,
        defaults: Defaults,
        executor: Arc<dyn Execute>,
        approval: HostPatterns,
    ) -> Self {
        let (trust, options) = (TrustConfig::default(), RecorderOptions::default());
        let mut api = Self::over(store.clone(), trust, Vec::new(), options, defaults);
        api.state.profiles.refresh().await.expect("a store");
        let state = &mut api.state;
        state.runs = Runs::new(RunsParts {
            store,
            chaos: state.chaos.clone(),
            recorder: state.recorder.clone(),
            journal: None,
            metrics: state.metrics.clone(),
            audit: state.audit.clone(),
            daemon: "test".to_owned(),
            executor,
            modules: PathBuf::new(),
            approval: ArcSwap::from_pointee(approval),
        });
        api.router = router(api.state.clone());
        api
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request<Body>) -> http::Response<Body> {
        self.router
            .clone()
            .oneshot(request)
            .await
            .expect("the router always answers")
    }

    /// Asks from this machine.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Body>,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "127.0.0.1:7071");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = self
            .send(request.body(body.into()).expect("a request"))
            .await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], Body::empty()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.ask("DELETE", path, &[], Body::empty()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        let json = [("content-type", "application/json")];
        self.ask("POST", path, &json, body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask(
            "PUT",
            path,
            &[("content-type", "application/json")],
            body.to_string(),
        )
        .await
    }

    pub(crate) async fn put_yaml(&self, path: &str, body: &str) -> Answer {
        self.ask(
            "PUT",
            path,
            &[("content-type", "application/yaml")],
            body.to_owned(),
        )
        .await
    }

    /// An exchange of a scope, as a worker would begin its note.
    pub(crate) fn note(&self, scope: Option<&str>, url: &str) -> ExchangeNote {
        let started = Instant::now();
        let id = self.state.recorder.begin(started);
        let chaos = self.state.chaos.scope(scope);
        let url = url.to_owned();
        let mut note = chaos.note(id, started, Kind::Tool, Method::GET, url);
        note.outcome = Outcome::Ok;
        note.status = Some(StatusCode::OK);
        note.duration = Duration::from_millis(5);
        note
    }

    /// Takes exchanges down and waits until they can be read.
    pub(crate) fn record(&self, notes: impl IntoIterator<Item = ExchangeNote>) {
        for note in notes {
            self.state.recorder.record(note);
        }
        self.state.recorder.flush();
    }
}

/// Asks agents that are reached without a proxy.
pub(crate) fn executor() -> Executor {
    Executor {
        variables: Arc::new(|_| Vec::new()),
        dialler: Dialler::default(),
        folder: PathBuf::new(),
    }
}

/// Asks again and again; a store's own thread decides when it is so.
pub(crate) async fn eventually<T>(what: &str, found: impl AsyncFn() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + squall_tests::PATIENCE;
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "never saw {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
