//! The activations in force, by scope.
//!
//! One table holds an activation per scope and is replaced as a whole ([`ArcSwap`]). An exchange
//! finds its scope with one atomic load and one map lookup, and keeps the result. Every change of
//! the table is published to event streams.
//!
//! Rules are compiled under the lock of the profiles. The table's lock is held only briefly,
//! because the first exchange of a scope takes it too.
//!
//! ```text
//! PUT ─▶ profiles, compile ─┐
//! DELETE, off, ttl, halt ───┴─▶ new table ──▶ swap ──▶ chaos event
//! edit of a profile ─▶ profiles, compile ─▶ new rules into the activations that use it
//! exchange ── scope(name) ──▶ table ──▶ ScopeChaos (own, or a fork of the default's)
//! ```
//!
//! A named scope without its own activation uses a fork of the default one: the same rules and seed,
//! separate counters. In a workspace `w`, a scope `w.NAME` uses the activation of `w` before the
//! default one. A fork is created at a scope's first exchange; the number of forks is bounded.

mod aliases;
mod closed;
mod edit;
mod halt;
mod in_force;
mod planted;
mod profiles;
mod request;
mod safety;
mod table;
mod tapes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use squall_journal::activation::{ActivationRecord, Change, ChaosEvent};
use squall_journal::scopes::workspace_of;
use squall_journal::timestamp;
use squall_profiles::activation::{Activation, ActivationSpec};
use squall_profiles::library::Library;
use squall_profiles::ruleset::RuleSet;
use squall_profiles::spending::Spent;
use squall_profiles::tools::ToolNames;
use tokio::sync::Notify;

pub use self::aliases::Aliases;
pub use self::edit::EditError;
pub use self::halt::Halt;
pub(crate) use self::in_force::ActivationEnd;
pub use self::in_force::ScopeChaos;
use self::in_force::Ttl;
pub use self::planted::Planted;
use self::profiles::Profiles;
pub use self::request::{ChaosRequest, Defaults, PutError, RuleSource};
use self::table::ScopeTable;
use crate::lock::lock;
use crate::metrics::{ActiveChaos, Metrics};
use crate::recorder::{self, Recorder};
pub use crate::run_mark::RunMark;
use crate::tape::Tapes;

/// Name of the scope for traffic without another scope.
pub const DEFAULT_SCOPE: &str = "default";

/// Name of the profile without rules, which keeps a scope clean.
pub const NO_CHAOS: &str = "none";

/// Profile name of inline chaos.
pub const INLINE: &str = "inline";

/// The activations in force, by scope.
#[derive(Debug)]
pub struct Chaos {
    table: ArcSwap<ScopeTable>,
    aliases: Aliases,
    tapes: Tapes,
    /// Lock order: before `keeping`.
    profiles: Mutex<Profiles>,
    keeping: Mutex<ScopeDefaults>,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    ids: AtomicU64,
    /// Notified when a time to live was set or removed.
    deadlines: Notify,
    /// Notified of chaos that ends without a request.
    witness: OnceLock<Witness>,
}

/// Receives the event, and the activation in force before it.
type ChaosListener = dyn Fn(&ChaosEvent, &ActivationRecord) + Send + Sync;

/// Called after chaos has ended without a request.
struct Witness(Box<ChaosListener>);

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Witness(..)")
    }
}

/// State of everything that replaces the table; locked only briefly.
#[derive(Debug)]
struct ScopeDefaults {
    defaults: Defaults,
    /// Forks in order of creation. The oldest unused one is evicted first.
    forks: VecDeque<Arc<str>>,
}

impl Chaos {
    /// Starts without activations.
    pub fn new(
        library: Library,
        tools: ToolNames,
        defaults: Defaults,
        recorder: Recorder,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let nothing = ScopeChaos::nothing(&defaults);
        let chaos = Arc::new(Self {
            table: ArcSwap::from_pointee(ScopeTable::new(Arc::new(nothing))),
            aliases: Aliases::default(),
            tapes: Tapes::default(),
            profiles: Mutex::new(Profiles { library, tools }),
            keeping: Mutex::new(ScopeDefaults {
                defaults,
                forks: VecDeque::new(),
            }),
            recorder,
            metrics,
            ids: AtomicU64::new(0),
            deadlines: Notify::new(),
            witness: OnceLock::new(),
        });
        halt::install(&chaos);
        chaos
    }

    /// The chaos in force for a scope; `None` is the default scope. It takes one atomic load and
    /// one map lookup, except for a scope's first exchange. An expired activation is ended here, if
    /// it was not ended before.
    pub fn scope(&self, name: Option<&str>) -> Arc<ScopeChaos> {
        let found = self.found(name);
        let expired = |at: Instant| Some(Instant::now()).filter(|now| at <= *now);
        let Some(now) = found.expires().and_then(expired) else {
            return found;
        };
        self.end_expired(now);
        self.found(name)
    }

    fn found(&self, name: Option<&str>) -> Arc<ScopeChaos> {
        let table = self.table.load();
        match name {
            None | Some(DEFAULT_SCOPE) => table.default.clone(),
            Some(name) => match table.named.get(name) {
                Some(found) => {
                    found.touch();
                    found.clone()
                }
                None => self.fork(name),
            },
        }
    }

    /// Aliases of scopes.
    pub fn aliases(&self) -> &Aliases {
        &self.aliases
    }

    /// The chaos in force for a scope or a run's slot, for callers that only have a name. Later
    /// requests on the connection may select another scope.
    pub(crate) fn scope_or_slot(&self, name: Option<&str>) -> Arc<ScopeChaos> {
        let of_slot = name.and_then(|name| self.aliases.of_slot(name));
        self.scope(of_slot.as_deref().or(name))
    }

    /// The chaos in force for a scope; it does not create a fork.
    pub fn look(&self, scope: &str) -> ActivationRecord {
        let table = self.table.load();
        match table.find(scope) {
            Some(found) => self.record(found),
            None => ActivationRecord {
                scope: scope.to_owned(),
                inherited: true,
                key: scope.to_owned(),
                suspended: None,
                spent: recorder::spent(&Spent::default()),
                ..self.record(table.above(scope))
            },
        }
    }

    /// The chaos in force for every known scope, the default scope first, then by name. Scopes with
    /// a closed activation of a run are excluded.
    pub fn list(&self) -> Vec<ActivationRecord> {
        let table = self.table.load();
        let named = table.named.values().filter(|scope| !scope.is_named_rest());
        let mut named: Vec<_> = named.map(|scope| self.record(scope)).collect();
        named.sort_unstable_by(|a, b| a.scope.cmp(&b.scope));
        named.insert(0, self.record(&table.default));
        named
    }

    /// Activates chaos for a scope and replaces its previous activation. Counters, windows and
    /// attempts restart. For a named scope, connections with its traffic are asked to close
    /// ([`ScopeChaos::ended`]). The number of activations per workspace is limited, except for
    /// those of runs.
    pub fn put(&self, scope: &str, request: ChaosRequest) -> Result<ActivationRecord, PutError> {
        let (_, record) = self.put_counted(scope, request, None)?;
        Ok(record)
    }

    /// Activates chaos for a run like [`Self::put`]. Its exchanges carry the run's id and are
    /// counted. If others replace or end it (not [`Self::end_for_run`]), the run is cut short.
    pub fn put_for_run(
        &self,
        scope: &str,
        request: ChaosRequest,
        run: &Arc<RunMark>,
    ) -> Result<(Arc<ScopeChaos>, ActivationRecord), PutError> {
        self.put_counted(scope, request, Some(run))
    }

    /// The error that [`Self::put`] would return now.
    pub fn check(&self, scope: &str, request: &ChaosRequest) -> Result<(), PutError> {
        lock(&self.profiles).compile(&request.rules, &request.tools)?;
        Ok(self.table.load().check_room(scope)?)
    }

    fn put_counted(
        &self,
        scope: &str,
        request: ChaosRequest,
        run: Option<&Arc<RunMark>>,
    ) -> Result<(Arc<ScopeChaos>, ActivationRecord), PutError> {
        // Held to the end, so that the profile cannot change between compiling and replacing.
        let profiles = lock(&self.profiles);
        let rules = profiles.compile(&request.rules, &request.tools)?;
        let mut keeping = lock(&self.keeping);
        if run.is_none() {
            self.table.load().check_room(scope)?;
        }
        let fresh = self.activate(scope, request, rules, &keeping.defaults);
        Ok(self.put_in(fresh.counted_for(run), &mut keeping))
    }

    /// Replaces the activation of a scope.
    fn put_in(
        &self,
        fresh: ScopeChaos,
        keeping: &mut ScopeDefaults,
    ) -> (Arc<ScopeChaos>, ActivationRecord) {
        let table = self.table.load();
        let former = table.find(fresh.scope());
        let fresh = Arc::new(fresh.suspending(former));
        let scope = fresh.scope();
        let record = self.record(&fresh);
        let is_its = |run: &&Arc<RunMark>| fresh.run().is_some_and(|own| Arc::ptr_eq(own, run));
        let former_run = former.and_then(|former| former.run());
        if let Some(run) = former_run.filter(|run| !is_its(run)) {
            run.cut_short("other chaos was put in force for its scope");
        }
        if fresh.is_named() {
            keeping.forks.retain(|fork| **fork != **scope);
        }
        self.swap(table.with(Arc::clone(&fresh)), keeping);
        if let Some(former) = former.filter(|former| former.is_named()) {
            former.ended().cancel();
        }
        self.deadlines.notify_one();
        self.publish(Change::Started, None, None, record.clone());
        (fresh, record)
    }

    fn activate(
        &self,
        scope: &str,
        request: ChaosRequest,
        rules: Arc<RuleSet>,
        defaults: &Defaults,
    ) -> ScopeChaos {
        let now = Instant::now();
        let ttl = Ttl::of(request.ttl, defaults.ttl, now);
        let spec = ActivationSpec {
            profile: request.rules.name().to_owned(),
            seed: request.seed.unwrap_or(defaults.seed),
            key: request.key,
            observe: request.observe.unwrap_or(defaults.observe),
        };
        let id = self.next_id(now);
        self.metrics.faults_possible(rules.rules(), scope);
        let activation = Activation::new(id, scope.to_owned(), spec, rules);
        ScopeChaos::own(scope, activation, request.rules, now, ttl)
    }

    /// Ends a scope's own activation. A named scope then follows the default scope, and the default
    /// scope has no chaos. Returns whether there was one.
    pub fn end(&self, scope: &str) -> bool {
        self.end_because(scope, None, |_| true)
    }

    /// Ends an activation of a scope, if it is still in force.
    pub fn end_activation(&self, scope: &str, activation: &str) -> bool {
        self.end_because(scope, None, |found| {
            found.id().is_some_and(|id| **id == *activation)
        })
    }

    /// Default seed of draws.
    pub fn seed(&self) -> u64 {
        lock(&self.keeping).defaults.seed
    }

    /// Longest time to live of an activation; `None`: no limit.
    pub fn longest(&self) -> Option<Duration> {
        lock(&self.keeping).defaults.ttl
    }

    /// Ends all activations at once; `reason` is set if this was not requested. Returns their
    /// number.
    pub fn end_all(&self, reason: Option<&str>) -> usize {
        self.end_those(|_| true, reason)
    }

    /// Ends all activations of a workspace at once. Returns their number.
    pub fn end_all_of(&self, workspace: &str) -> usize {
        self.end_those(|scope| workspace_of(scope) == workspace, None)
    }

    fn end_those(&self, ends: impl Fn(&str) -> bool, reason: Option<&str>) -> usize {
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        // A run between two invocations is in progress without an activation.
        let all = table.all().filter(|scope| ends(scope.scope()));
        for run in all.filter_map(|scope| scope.run()) {
            run.cut_short(reason.unwrap_or("all chaos was ended"));
        }
        self.end_in(&table, ends, reason, &mut keeping)
    }

    /// Ends the own activations in `table` that `ends` selects. Returns their number.
    fn end_in(
        &self,
        table: &ScopeTable,
        ends: impl Fn(&str) -> bool,
        reason: Option<&str>,
        keeping: &mut ScopeDefaults,
    ) -> usize {
        let mut after = table.without_own(&ends);
        if ends(DEFAULT_SCOPE) {
            let nothing = ScopeChaos::nothing(&keeping.defaults).after(&table.default);
            after = after.with(Arc::new(nothing));
        }
        let ended: Vec<_> = table.own().filter(|own| ends(own.scope())).collect();
        let named = ended.iter().filter(|own| own.is_named());
        keeping.forks.extend(named.map(|own| own.scope().clone()));
        let changes = ended.iter().map(|own| {
            let now = after.find(own.scope()).unwrap_or(&after.default);
            (self.record(own), self.record(now))
        });
        let changes: Vec<_> = changes.collect();
        self.swap(after, keeping);
        for (was, now) in changes {
            self.publish(Change::Ended, reason, Some(&was), now);
        }
        ended.len()
    }

    /// Sets the callback for chaos that ends without a request, with the reason and the previous
    /// activation. Only the first call counts. The callback must not block.
    pub fn witness(
        &self,
        witness: impl Fn(&ChaosEvent, &ActivationRecord) + Send + Sync + 'static,
    ) {
        let _ = self.witness.set(Witness(Box::new(witness)));
    }

    /// Sets the existing workspaces: a scope `w.NAME` first follows the activation of `w`.
    pub fn set_workspaces(&self, workspaces: Arc<BTreeSet<String>>) {
        let mut keeping = lock(&self.keeping);
        self.metrics.workspaces().set(Arc::clone(&workspaces));
        let after = self.table.load().with_workspaces(workspaces);
        self.swap(after, &mut keeping);
    }

    fn end_because(
        &self,
        scope: &str,
        reason: Option<&str>,
        condition: impl FnOnce(&ScopeChaos) -> bool,
    ) -> bool {
        let mut run = None;
        let ended = self.end_quietly(scope, reason, |found| {
            run = found.run().cloned();
            condition(found)
        });
        if let Some(run) = run.filter(|_| ended) {
            run.cut_short(reason.unwrap_or("its chaos was ended"));
        }
        ended
    }

    /// Ends an activation without notifying its run.
    fn end_quietly(
        &self,
        scope: &str,
        reason: Option<&str>,
        condition: impl FnOnce(&ScopeChaos) -> bool,
    ) -> bool {
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        let found = table.find(scope).filter(|found| found.is_own());
        let ends = found.is_some_and(|found| condition(found));
        ends && self.end_in(&table, |own| own == scope, reason, &mut keeping) > 0
    }

    /// Creates the fork for the first exchange of a scope without its own activation.
    fn fork(&self, scope: &str) -> Arc<ScopeChaos> {
        let mut keeping = lock(&self.keeping);
        let table = self.table.load();
        if let Some(made_meanwhile) = table.named.get(scope) {
            return made_meanwhile.clone();
        }
        let fork = table.fork(scope);
        keeping.forks.push_back(fork.scope().clone());
        fork.mark(self.tapes.concern(fork.scope()));
        let mut after = table.with(fork.clone());
        after.make_room(&mut keeping.forks);
        self.table.store(Arc::new(after));
        fork
    }

    /// Replaces the table and updates the metrics.
    fn swap(&self, mut table: ScopeTable, keeping: &mut ScopeDefaults) {
        table.make_room(&mut keeping.forks);
        self.mark(&table);
        let own = table.own();
        // A scope that is kept clean has an activation without chaos.
        let own = own.filter(|own| own.activation().profile != NO_CHAOS);
        let seconds = |instant| (self.recorder.unix_ms(instant) / 1000).cast_signed();
        self.metrics.chaos_active(own.map(|own| ActiveChaos {
            scope: own.scope(),
            profile: &own.activation().profile,
            started: seconds(own.since()),
            expires: own.expires().map(seconds),
        }));
        self.table.store(Arc::new(table));
    }

    fn publish(
        &self,
        change: Change,
        reason: Option<&str>,
        was: Option<&ActivationRecord>,
        now: ActivationRecord,
    ) {
        let at = timestamp::rfc3339(self.recorder.unix_ms(Instant::now()));
        let event = ChaosEvent {
            at,
            change,
            reason: reason.map(str::to_owned),
            now,
        };
        if let (Some(witness), Some(_), Some(was)) = (self.witness.get(), reason, was) {
            (witness.0)(&event, was);
        }
        self.recorder.publish(event);
    }

    fn record(&self, scope: &ScopeChaos) -> ActivationRecord {
        scope.to_record(|instant| timestamp::rfc3339(self.recorder.unix_ms(instant)))
    }

    /// Unique in the daemon and, by the clock, across daemons.
    fn next_id(&self, now: Instant) -> String {
        let number = self.ids.fetch_add(1, Ordering::Relaxed) + 1;
        format!("a{:x}-{number}", self.recorder.unix_ms(now))
    }
}
