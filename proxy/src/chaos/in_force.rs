//! What is in force for one scope.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
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
use squall_profiles::faults::model_input::{Called, Told};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::planted::Planted;
use super::{DEFAULT_SCOPE, Defaults, NO_CHAOS, RuleSource};
use crate::recorder::{self, ExchangeNote};
use crate::run_mark::{Counted, RunMark};

/// What is in force for one scope: an exchange finds it once and keeps it.
#[derive(Debug)]
pub struct ScopeChaos {
    scope: Arc<str>,
    id: Option<Arc<str>>,
    activation: Arc<Activation>,
    /// Where the rules came from, to compile them again after an edit; `None` in forks.
    wanted: Option<RuleSource>,
    since: Instant,
    ttl: Option<Ttl>,
    ended: CancellationToken,
    planted: Arc<Planted>,
    told: Arc<Told>,
    called: Arc<Called>,
    /// What exchanges are to look at, a number of [`ReadDepth`].
    reads: AtomicU8,
    /// Somebody asked for it since forks were last looked through.
    used: AtomicBool,
    /// Whose it is, if it is a run's.
    counted: Option<Counted>,
    /// It takes what comes late: the run's own activation here was closed.
    is_rest: bool,
    /// What was in force here before a run had the scope for itself.
    suspended: Option<Arc<Self>>,
}

/// Waits for the end of a named scope's activation.
pub(crate) type ActivationEnd = Pin<Box<WaitForCancellationFutureOwned>>;

/// What exchanges of a scope are to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadDepth {
    /// What model calls and MCP say about themselves.
    Model,
    /// Heads only.
    Headers,
    /// Bodies, a recording, a tape, or several of them.
    More,
}

impl ReadDepth {
    fn of(observe: Observe) -> Self {
        match observe {
            Observe::Headers => Self::Headers,
            Observe::Model => Self::Model,
            Observe::Bodies => Self::More,
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Model => 0,
            Self::Headers => 1,
            Self::More => 2,
        }
    }
}

/// A time to live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ttl {
    time: Duration,
    from: TtlFrom,
    /// When it is over; `None` when no clock goes that far.
    expires: Option<Instant>,
}

impl Ttl {
    /// What holds from `now` on: what was asked for, but no more than the config allows.
    pub(super) fn of(
        asked: Option<Duration>,
        allowed: Option<Duration>,
        now: Instant,
    ) -> Option<Self> {
        let (time, from) = match (asked, allowed) {
            (Some(asked), allowed) if allowed.is_none_or(|most| asked <= most) => {
                (asked, TtlFrom::Request)
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
    /// An activation in a scope, and nothing besides.
    fn of(
        scope: Arc<str>,
        id: Option<Arc<str>>,
        activation: Arc<Activation>,
        since: Instant,
    ) -> Self {
        Self {
            scope,
            id,
            wanted: None,
            since,
            ttl: None,
            ended: CancellationToken::new(),
            planted: Arc::default(),
            told: Arc::default(),
            called: Arc::default(),
            reads: AtomicU8::new(ReadDepth::of(activation.observe).number()),
            used: AtomicBool::new(false),
            counted: None,
            is_rest: false,
            suspended: None,
            activation,
        }
    }

    /// No chaos, in the default scope.
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

    /// This, where chaos has ended: canaries that were planted before may still leave.
    pub(super) fn after(mut self, former: &Self) -> Self {
        self.planted = Arc::clone(&former.planted);
        self
    }

    /// An activation of the scope's own.
    pub(super) fn own(
        scope: &str,
        activation: Activation,
        wanted: RuleSource,
        since: Instant,
        ttl: Option<Ttl>,
    ) -> Self {
        let id = activation.id.as_str().into();
        Self {
            wanted: Some(wanted),
            ttl,
            ..Self::of(scope.into(), Some(id), Arc::new(activation), since)
        }
    }

    /// An activation in which another goes on: rules, counters, windows and attempts are the same ones.
    pub(super) fn going_on(former: &Self, scope: &str, id: &str) -> Self {
        let activation = Arc::clone(&former.activation);
        Self {
            wanted: former.wanted.clone(),
            ttl: former.ttl,
            planted: Arc::clone(&former.planted),
            told: Arc::clone(&former.told),
            called: Arc::clone(&former.called),
            ..Self::of(scope.into(), Some(id.into()), activation, former.since)
        }
    }

    /// What a run had suspended, in force again under its own id.
    pub(super) fn resumed(suspended: &Self) -> Self {
        let id = suspended.id.as_deref().unwrap_or_default();
        Self::going_on(suspended, &suspended.scope, id)
    }

    /// What is left where a run's activation was closed: no rules.
    pub(super) fn rest(former: &Self, id: &str) -> Self {
        let spec = ActivationSpec {
            profile: NO_CHAOS.to_owned(),
            seed: former.activation.seed,
            key: Some(former.activation.key.clone()),
            observe: former.activation.observe,
        };
        let scope = &*former.scope;
        let activation = Activation::new(id.to_owned(), scope.to_owned(), spec, Arc::default());
        let wanted = RuleSource::Profile(NO_CHAOS.to_owned());
        let rest = Self::own(scope, activation, wanted, Instant::now(), None);
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

    /// This in the place of `former`. A run suspends chaos of no run, and keeps what it suspended.
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

    /// What was in force here before a run had the scope for itself.
    pub(super) fn suspended(&self) -> Option<&Arc<Self>> {
        self.suspended.as_ref()
    }

    /// The run that it was put in force for.
    pub fn run(&self) -> Option<&Arc<RunMark>> {
        Some(&self.counted.as_ref()?.mark)
    }

    /// Whether its exchanges may not reach hosts that need approval: nobody has approved the run, or it is not under way
    /// any more.
    pub(crate) fn is_unapproved(&self) -> bool {
        self.run()
            .map_or_else(|| is_of_run(&self.scope), |run| !run.is_approved())
    }

    /// Exchanges that have begun under it; counted for runs only.
    pub fn exchanges_begun(&self) -> u64 {
        self.counted.as_ref().map_or(0, Counted::begun)
    }

    /// Waits until none of the exchanges under it is open; known of runs only.
    pub async fn idle(&self) {
        if let Some(counted) = &self.counted {
            counted.idle().await;
        }
    }

    /// An exchange begins under it.
    pub(crate) fn exchange_begins(&self) {
        if let Some(counted) = &self.counted {
            counted.begin();
        }
    }

    /// An exchange under it is over, and written down unless others are in its place.
    pub(crate) fn exchange_ends(&self, is_written: bool) {
        if let Some(counted) = &self.counted {
            counted.end(is_written);
        }
    }

    /// This, the default scope's, for a named scope, with counters of its own. `ended` goes with
    /// the scope: its connections outlive what is in force.
    pub(super) fn fork(&self, scope: Arc<str>, ended: CancellationToken) -> Self {
        let activation = Arc::new(self.activation.fork(&scope));
        Self {
            ttl: self.ttl,
            ended,
            ..Self::of(scope, self.id.clone(), activation, self.since)
        }
    }

    /// A note of an exchange that began at `started` here; everything else is as for an open exchange of which
    /// nothing is known yet.
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
            activation: self.id().cloned(),
            run: self.run().cloned(),
            rules: match self.id() {
                Some(_) => Arc::downgrade(&rules),
                None => Weak::new(),
            },
            redactor: rules.redactor().clone(),
            canaries: Vec::new(),
            llm: None,
            recorded: None,
            spending: (kind == Kind::Llm).then(|| self.activation().spending.clone()),
        }
    }

    /// The scope's name.
    pub fn scope(&self) -> &Arc<str> {
        &self.scope
    }

    /// Id of the activation; `None` when nothing was ever put in force.
    pub fn id(&self) -> Option<&Arc<str>> {
        self.id.as_ref()
    }

    /// The rules with their counters; no rules when there is no chaos.
    pub fn activation(&self) -> &Activation {
        &self.activation
    }

    /// What the scope's exchanges are to look at: one relaxed load, for every one of them.
    pub(crate) fn reads(&self) -> ReadDepth {
        match self.reads.load(Ordering::Relaxed) {
            0 => ReadDepth::Model,
            1 => ReadDepth::Headers,
            _ => ReadDepth::More,
        }
    }

    /// Makes exchanges look at recordings and tapes, or no longer.
    pub(super) fn mark(&self, concerned: bool) {
        let reads = if concerned {
            ReadDepth::More
        } else {
            ReadDepth::of(self.activation.observe)
        };
        self.reads.store(reads.number(), Ordering::Relaxed);
    }

    /// What the journal reads of the scope's exchanges.
    pub fn observe(&self) -> Observe {
        self.activation.observe
    }

    /// Time since it was put in force: what windows and ramps go by.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Cancelled when a new activation is put on this named scope: its open exchanges end, and outside of runs
    /// connections that carry its traffic close. Never cancelled for the default scope, whose connections see
    /// a new activation at their next exchange.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether it is for a named scope.
    pub fn is_named(&self) -> bool {
        *self.scope != *DEFAULT_SCOPE
    }

    /// Resolves when a new activation is put on its scope, or it was closed and nobody waits for its exchanges any
    /// more; `None` for the default scope, where nothing ends, and for what comes late, which goes on.
    pub(crate) fn over(&self) -> Option<ActivationEnd> {
        let ends = self.is_named() && !self.is_rest;
        ends.then(|| -> ActivationEnd { Box::pin(self.ended.clone().cancelled_owned()) })
    }

    /// Cancelled when the connections that carry its traffic are to close: what a run has put in force goes by the
    /// run. `None` for the default scope outside of runs.
    pub(crate) fn connections_over(&self) -> Option<&CancellationToken> {
        match self.run() {
            Some(run) => Some(run.connections_over(!self.is_named())),
            None => self.is_named().then_some(&self.ended),
        }
    }

    /// Cancelled when a tunnel of its own is to close that no exchange came through: where connections take one
    /// exchange each, it has still to take its own.
    pub(crate) fn tunnel_over(&self) -> Option<&CancellationToken> {
        let over = self.connections_over()?;
        let is_to_come = self.run().is_some() && over.is_cancelled();
        Some(if is_to_come { &self.ended } else { over })
    }

    /// The canaries that were planted under it; those of a scope whose chaos has ended stay until new
    /// chaos is put in force.
    pub fn planted(&self) -> &Planted {
        &self.planted
    }

    /// What models were told of tools' results under it.
    pub fn told(&self) -> &Told {
        &self.told
    }

    /// What models have called under it, where rules ask for it.
    pub fn called(&self) -> &Called {
        &self.called
    }

    /// Whether the scope has this activation for itself; forks have not, nor has the default scope
    /// before anything is put in force, nor a named one whose activation was closed.
    pub(super) fn is_own(&self) -> bool {
        self.wanted.is_some() && !self.is_named_rest()
    }

    /// Whether nobody has anything in force here any more, and what comes is late.
    pub(super) fn is_named_rest(&self) -> bool {
        self.is_rest && self.is_named() && self.suspended.is_none()
    }

    /// Whether its scope goes with what is in force above it.
    pub(super) fn is_fork(&self) -> bool {
        self.is_named() && self.wanted.is_none()
    }

    pub(super) fn wanted(&self) -> Option<&RuleSource> {
        self.wanted.as_ref()
    }

    pub(super) fn expires(&self) -> Option<Instant> {
        self.ttl?.expires
    }

    pub(super) fn touch(&self) {
        // A store by every exchange would make the cores pass the line around.
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was asked for since the last call.
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
