//! The activation in force for one scope.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use http::Method;
use squall_documents::duration;
use squall_journal::activation::{ActivationRecord, Suspended, TtlFrom};
use squall_journal::id::ExchangeId;
use squall_journal::record::Outcome;
use squall_journal::scopes::is_of_run;
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::facts::Kind;
use squall_profiles::faults::model_input::{Called, ChangedResults};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::planted::Planted;
use super::{DEFAULT_SCOPE, Defaults, NO_CHAOS, RuleSource};
use crate::recorder::{self, ExchangeNote};
use crate::run_mark::{Counted, RunMark};

/// The activation in force for one scope. An exchange looks it up once and keeps it.
#[derive(Debug)]
pub struct ScopeChaos {
    scope: Arc<str>,
    id: Option<Arc<str>>,
    activation: Arc<Activation>,
    /// Source of the rules, to compile them again after an edit; `None` in forks.
    source: Option<RuleSource>,
    since: Instant,
    ttl: Option<Ttl>,
    ended: CancellationToken,
    planted: Arc<Planted>,
    changed_results: Arc<ChangedResults>,
    called: Arc<Called>,
    /// Whether a recording or a tape concerns the scope.
    is_taped: AtomicBool,
    /// Whether it was looked up since the last check of forks.
    used: AtomicBool,
    /// The run's counters, if it belongs to a run.
    counted: Option<Counted>,
    /// It receives late exchanges: the run's own activation here was closed.
    is_rest: bool,
    /// The activation that a run suspended here.
    suspended: Option<Arc<Self>>,
}

/// Waits for the end of a named scope's activation.
pub(crate) type ActivationEnd = Pin<Box<WaitForCancellationFutureOwned>>;

/// A time to live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ttl {
    time: Duration,
    from: TtlFrom,
    /// When it expires; `None` if the time is beyond the clock's range.
    expires: Option<Instant>,
}

impl Ttl {
    /// The effective time to live from `now` on: the requested one, limited by the config.
    pub(super) fn of(
        requested: Option<Duration>,
        allowed: Option<Duration>,
        now: Instant,
    ) -> Option<Self> {
        let (time, from) = match (requested, allowed) {
            (Some(requested), allowed) if allowed.is_none_or(|most| requested <= most) => {
                (requested, TtlFrom::Request)
            }
            (_, Some(most)) => (most, TtlFrom::Config),
            (_, None) => return None,
        };
        Some(Self {
            time,
            from,
            expires: now.checked_add(time),
        })
    }
}

impl ScopeChaos {
    /// An activation in a scope, without additional state.
    fn of(
        scope: Arc<str>,
        id: Option<Arc<str>>,
        activation: Arc<Activation>,
        since: Instant,
    ) -> Self {
        Self {
            scope,
            id,
            source: None,
            since,
            ttl: None,
            ended: CancellationToken::new(),
            planted: Arc::default(),
            changed_results: Arc::default(),
            called: Arc::default(),
            is_taped: AtomicBool::new(false),
            used: AtomicBool::new(false),
            counted: None,
            is_rest: false,
            suspended: None,
            activation,
        }
    }

    /// The default scope without chaos.
    pub(super) fn nothing(defaults: &Defaults) -> Self {
        let spec = ActivationSpec {
            profile: NO_CHAOS.to_owned(),
            seed: defaults.seed,
            key: None,
            observe: defaults.observe,
        };
        let (id, scope) = (String::new(), DEFAULT_SCOPE.to_owned());
        let activation = Arc::new(Activation::new(id, scope, spec, Arc::default()));
        Self::of(DEFAULT_SCOPE.into(), None, activation, Instant::now())
    }

    /// This, after chaos has ended: its planted canaries may still appear in requests.
    pub(super) fn after(mut self, former: &Self) -> Self {
        self.planted = Arc::clone(&former.planted);
        self
    }

    /// A scope's own activation.
    pub(super) fn own(
        scope: &str,
        activation: Activation,
        source: RuleSource,
        since: Instant,
        ttl: Option<Ttl>,
    ) -> Self {
        let id = activation.id.as_str().into();
        Self {
            source: Some(source),
            ttl,
            ..Self::of(scope.into(), Some(id), Arc::new(activation), since)
        }
    }

    /// An activation that continues another one, with the same rules, counters, windows and
    /// attempts.
    pub(super) fn going_on(former: &Self, scope: &str, id: &str) -> Self {
        let activation = Arc::clone(&former.activation);
        Self {
            source: former.source.clone(),
            ttl: former.ttl,
            planted: Arc::clone(&former.planted),
            changed_results: Arc::clone(&former.changed_results),
            called: Arc::clone(&former.called),
            ..Self::of(scope.into(), Some(id.into()), activation, former.since)
        }
    }

    /// A suspended activation, resumed under its own id.
    pub(super) fn resumed(suspended: &Self) -> Self {
        let id = suspended.id.as_deref().unwrap_or_default();
        Self::going_on(suspended, &suspended.scope, id)
    }

    /// The remainder of a run's closed activation: no rules.
    pub(super) fn rest(former: &Self, id: &str) -> Self {
        let spec = ActivationSpec {
            profile: NO_CHAOS.to_owned(),
            seed: former.activation.seed,
            key: Some(former.activation.key.clone()),
            observe: former.activation.observe,
        };
        let scope = &*former.scope;
        let activation = Activation::new(id.to_owned(), scope.to_owned(), spec, Arc::default());
        let source = RuleSource::Profile(NO_CHAOS.to_owned());
        let rest = Self::own(scope, activation, source, Instant::now(), None);
        Self {
            counted: former.counted.as_ref().map(|it| Counted::new(&it.mark)),
            is_rest: true,
            suspended: former.suspended.clone(),
            ..rest.after(former)
        }
    }

    /// This, for a run.
    pub(super) fn counted_for(self, run: Option<&Arc<RunMark>>) -> Self {
        let counted = run.map(Counted::new);
        Self { counted, ..self }
    }

    /// This as the replacement of `former`. A run suspends an activation that belongs to no run,
    /// and keeps the one it suspended.
    pub(super) fn suspending(self, former: Option<&Arc<Self>>) -> Self {
        let suspended = self
            .run()
            .and(former)
            .and_then(|former| match former.run() {
                Some(_) => former.suspended.clone(),
                None => former.is_own().then(|| Arc::clone(former)),
            });
        Self { suspended, ..self }
    }

    /// The activation that a run suspended here.
    pub(super) fn suspended(&self) -> Option<&Arc<Self>> {
        self.suspended.as_ref()
    }

    /// The run that it belongs to.
    pub fn run(&self) -> Option<&Arc<RunMark>> {
        Some(&self.counted.as_ref()?.mark)
    }

    /// Whether its exchanges must not reach hosts that need approval: its run was not approved, or
    /// is over.
    pub(crate) fn is_unapproved(&self) -> bool {
        self.run()
            .map_or_else(|| is_of_run(&self.scope), |run| !run.is_approved())
    }

    /// Number of exchanges started under it; counted for runs only.
    pub fn exchanges_begun(&self) -> u64 {
        self.counted.as_ref().map_or(0, Counted::begun)
    }

    /// Waits until none of its exchanges is open; for runs only.
    pub async fn idle(&self) {
        if let Some(counted) = &self.counted {
            counted.idle().await;
        }
    }

    /// Counts the start of an exchange.
    pub(crate) fn exchange_begins(&self) {
        if let Some(counted) = &self.counted {
            counted.begin();
        }
    }

    /// Counts the end of an exchange; `is_written` is false if others are recorded instead.
    pub(crate) fn exchange_ends(&self, is_written: bool) {
        if let Some(counted) = &self.counted {
            counted.end(is_written);
        }
    }

    /// A fork of the default activation for a named scope, with separate counters. `ended` belongs
    /// to the scope, because its connections outlive an activation.
    pub(super) fn fork(&self, scope: Arc<str>, ended: CancellationToken) -> Self {
        let activation = Arc::new(self.activation.fork(&scope));
        Self {
            ttl: self.ttl,
            ended,
            ..Self::of(scope, self.id.clone(), activation, self.since)
        }
    }

    /// A note of an exchange that started here at `started`, with the values of an open exchange.
    pub fn note(
        &self,
        id: ExchangeId,
        started: Instant,
        kind: Kind,
        method: Method,
        url: String,
    ) -> ExchangeNote {
        let rules = self.activation().rules();
        ExchangeNote {
            id,
            scope: self.scope().clone(),
            kind,
            dialect: None,
            tool: None,
            more_tools: Box::default(),
            results: None,
            method,
            url,
            status: None,
            upstream_status: None,
            outcome: Outcome::Open,
            error: None,
            started,
            duration: Duration::ZERO,
            injected: Duration::ZERO,
            overhead: Duration::ZERO,
            request_bytes: 0,
            response_bytes: 0,
            fingerprint: None,
            attempt: None,
            seed: self.activation().seed,
            verdicts: Vec::new(),
            verdicts_more: 0,
            peer: None,
            activation: self.id().cloned(),
            run: self.run().cloned(),
            websocket: None,
            messages: None,
            rules: match self.id() {
                Some(_) => Arc::downgrade(&rules),
                None => Weak::new(),
            },
            redactor: rules.redactor().clone(),
            canaries: Vec::new(),
            llm: None,
            agent: None,
            recorded: None,
            spending: (kind == Kind::Llm).then(|| self.activation().spending.clone()),
        }
    }

    /// The scope's name.
    pub fn scope(&self) -> &Arc<str> {
        &self.scope
    }

    /// Id of the activation; `None` if there was none.
    pub fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// The rules with their counters; no rules without chaos.
    pub fn activation(&self) -> &Activation {
        &self.activation
    }

    /// Whether exchanges capture bodies, or check recordings and tapes: one relaxed load per exchange.
    pub(crate) fn captures(&self) -> bool {
        self.activation.observe == Observe::Bodies || self.is_taped.load(Ordering::Relaxed)
    }

    /// Sets whether exchanges check recordings and tapes.
    pub(super) fn mark(&self, is_taped: bool) {
        self.is_taped.store(is_taped, Ordering::Relaxed);
    }

    /// The journal's capture level for the scope's exchanges.
    pub fn observe(&self) -> Observe {
        self.activation.observe
    }

    /// Time since the activation, for windows and ramps.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Cancelled when a new activation replaces this one on its named scope. Open exchanges end,
    /// and outside of runs connections with its traffic close. Never cancelled for the default
    /// scope, whose connections use a new activation at their next exchange.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether it is for a named scope.
    pub fn is_named(&self) -> bool {
        *self.scope != *DEFAULT_SCOPE
    }

    /// Resolves when a new activation replaces it, or when it is closed and its exchanges are no
    /// longer awaited. `None` for the default scope and for late exchanges, which are not ended.
    pub(crate) fn over(&self) -> Option<ActivationEnd> {
        let ends = self.is_named() && !self.is_rest;
        ends.then(|| -> ActivationEnd { Box::pin(self.ended.clone().cancelled_owned()) })
    }

    /// Cancelled when connections with its traffic must close. For a run, the run decides. `None`
    /// for the default scope outside of runs.
    pub(crate) fn connections_over(&self) -> Option<&CancellationToken> {
        match self.run() {
            Some(run) => Some(run.connections_over(!self.is_named())),
            None => self.is_named().then_some(&self.ended),
        }
    }

    /// Cancelled when a tunnel without an exchange must close. If connections serve one exchange
    /// each, the tunnel still waits for its own.
    pub(crate) fn tunnel_over(&self) -> Option<&CancellationToken> {
        let over = self.connections_over()?;
        let is_to_come = self.run().is_some() && over.is_cancelled();
        Some(if is_to_come { &self.ended } else { over })
    }

    /// The canaries planted under it. After chaos has ended they stay until the next activation.
    pub fn planted(&self) -> &Planted {
        &self.planted
    }

    /// Changed tool results in models' input under it.
    pub fn changed_results(&self) -> &ChangedResults {
        &self.changed_results
    }

    /// The tools that models called under it, if rules need them.
    pub fn called(&self) -> &Called {
        &self.called
    }

    /// Whether the scope has its own activation. False for forks, for the default scope without
    /// one, and for a named scope whose activation was closed.
    pub(super) fn is_own(&self) -> bool {
        self.source.is_some() && !self.is_named_rest()
    }

    /// Whether its activation was closed, so that it only receives late exchanges.
    pub(super) fn is_named_rest(&self) -> bool {
        self.is_rest && self.is_named() && self.suspended.is_none()
    }

    /// Whether it follows its parent's activation.
    pub(super) fn is_fork(&self) -> bool {
        self.is_named() && self.source.is_none()
    }

    pub(super) fn source(&self) -> Option<&RuleSource> {
        self.source.as_ref()
    }

    pub(super) fn since(&self) -> Instant {
        self.since
    }

    pub(super) fn expires(&self) -> Option<Instant> {
        self.ttl?.expires
    }

    pub(super) fn touch(&self) {
        // A store by every exchange would move the cache line between cores.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was looked up since the last call.
    pub(super) fn take_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    pub(super) fn to_record(&self, date: impl Fn(Instant) -> String) -> ActivationRecord {
        ActivationRecord {
            scope: self.scope.to_string(),
            activation: self.id.as_deref().map(str::to_owned),
            inherited: self.is_fork(),
            profile: self.activation.profile.clone(),
            seed: self.activation.seed,
            key: self.activation.key.clone(),
            observe: match self.activation.observe {
                Observe::Headers => "headers",
                Observe::Model => "model",
                Observe::Bodies => "bodies",
            }
            .to_owned(),
            rules: self.activation.rules().rules().len(),
            started_at: self.id.is_some().then(|| date(self.since)),
            expires_at: self.expires().map(date),
            ttl: self.ttl.map(|ttl| duration::format(ttl.time)),
            ttl_from: self.ttl.map(|ttl| ttl.from),
            suspended: self
                .suspended
                .as_ref()
                .zip(self.run())
                .map(|(own, run)| Suspended {
                    profile: own.activation.profile.clone(),
                    run: run.id().to_string(),
                }),
            spent: recorder::spent(&self.activation.spending.now()),
        }
    }
}
