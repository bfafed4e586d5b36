//! An API with nothing behind it but a recorder and chaos.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use squall_control_api::access::{Access, Token};
use squall_control_api::audit::AuditLog;
use squall_control_api::store::Store;
use squall_control_api::{
    ApiState, Clients, JournalOptions, ListenerAddress, Readiness, RecordingBounds, Recordings,
    Runs, RunsParts, StoredJournal, StoredProfiles, StoredTokens, Trust, TrustConfig, prune,
    router,
};
use squall_harness::dial::Dialler;
use squall_harness::runner::{Execute, Executor};
use squall_journal::record::Outcome;
use squall_profiles::facts::Kind;
use squall_profiles::library::Library;
use squall_profiles::tools::ToolNames;
use squall_proxy::chaos::{Chaos, Defaults};
use squall_proxy::metrics::Metrics;
use squall_proxy::peer::Peer;
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

    /// A member of everything on a page.
    #[track_caller]
    pub(crate) fn items(&self, member: &str) -> Vec<String> {
        assert_eq!(self.status, 200, "{self:?}");
        let page = self.json();
        let items = page["items"].as_array().expect("a list").iter();
        let text = |item: &Value| item[member].as_str().expect("a text").to_owned();
        items.map(text).collect()
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
        for member in ["title", "detail"] {
            let text = problem[member].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{member}: {problem}");
        }
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
            clients: Clients::observing(&recorder, &access),
            recordings,
            traces: Arc::default(),
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
            fleet: None,
            tokens: StoredTokens::over(store.clone(), access.clone()),
            profiles: StoredProfiles::over(store.clone(), chaos.clone(), trust),
            store,
            recorder,
            journal: None,
            metrics,
            switchers: Arc::default(),
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
        self.ask("POST", path, &[JSON], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask("PUT", path, &[JSON], body.to_string()).await
    }

    pub(crate) async fn put_yaml(&self, path: &str, body: &str) -> Answer {
        let yaml = [("content-type", "application/yaml")];
        self.ask("PUT", path, &yaml, body.to_owned()).await
    }

    /// The document at a path as it was written.
    pub(crate) async fn get_yaml(&self, path: &str) -> Answer {
        let yaml = [("accept", "application/yaml")];
        self.ask("GET", path, &yaml, Body::empty()).await
    }

    /// A member of everything in a list, in pages of `limit`; `between` runs after each page.
    pub(crate) async fn pages(
        &self,
        list: &str,
        limit: usize,
        member: &str,
        mut between: impl AsyncFnMut(),
    ) -> Vec<String> {
        let (mut all, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("{list}?limit={limit}{cursor}")).await;
            let items = page.items(member);
            assert!(items.len() <= limit, "{page:?}");
            all.extend(items);
            between().await;
            match page.json()["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return all,
            }
        }
    }

    /// A stream of events.
    pub(crate) async fn stream(&self, path: &str, headers: &[(&str, &str)]) -> EventStream {
        let mut request = Request::builder().uri(path).header("host", "localhost");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let response = self.send(request).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        EventStream {
            body: response.into_body().into_data_stream(),
            text: String::new(),
        }
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
        note.peer = Some(Arc::new(Peer::new([127, 0, 0, 1].into())));
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

/// What a client of a stream has read of it.
pub(crate) struct EventStream {
    body: BodyDataStream,
    text: String,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Event {
    fn parse(text: &str) -> Self {
        let mut event = Self::default();
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.trim_start();
            match field {
                "id" => event.id = Some(value.to_owned()),
                "event" => value.clone_into(&mut event.name),
                "data" => event.data.push_str(value),
                _ => {}
            }
        }
        event
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).expect("JSON")
    }
}

impl EventStream {
    /// The next event, comments included; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = Event::parse(event);
                let rest = rest.to_owned();
                self.text = rest;
                return Some(event);
            }
            let chunk = self.body.next().await?.expect("a chunk");
            let text = std::str::from_utf8(&chunk).expect("UTF-8");
            self.text.push_str(text);
        }
    }

    /// The next event that has a name.
    pub(crate) async fn next_named(&mut self) -> Option<Event> {
        loop {
            let event = self.next().await?;
            if !event.name.is_empty() {
                return Some(event);
            }
        }
    }

    /// All events with a name, until the stream ends.
    pub(crate) async fn rest(mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next_named().await {
            all.push(event);
        }
        all
    }

    /// The named events up to one whose data contain `text`.
    pub(crate) async fn until(&mut self, text: &str) -> Vec<Event> {
        let mut all = Vec::new();
        loop {
            let event = self.next_named().await.expect("more events");
            let is_last = event.data.contains(text);
            all.push(event);
            if is_last {
                return all;
            }
        }
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// Asks with a token.
pub(crate) async fn ask(api: &Api, secret: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {secret}");
    let headers = [("authorization", bearer.as_str()), JSON];
    api.ask(method, path, &headers, body.to_string()).await
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
