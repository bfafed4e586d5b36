//! A set of rules in force for a scope: what counts, what draws, what decides.
//!
//! An [`Activation`] holds the rules and their counters; an exchange takes a [`Snapshot`] when it
//! begins and keeps it. Deciding has two steps, so that a body is only read when a rule needs it:
//! [`Snapshot::shortlist`] looks at what the head tells, [`Snapshot::decide`] at the rest, draws,
//! counts and writes the plan.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::allowance::{Allowance, Buckets, OverAllowance};
use crate::attempts::Attempts;
use crate::dice::{Dice, RuleKey};
pub use crate::fingerprint::Fingerprint;
use crate::rule::Rule;
use crate::ruleset::RuleSet;
use crate::spending::Spending;

/// What an activation asks the journal to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Observe {
    /// Heads only.
    Headers,
    /// Heads, and of model and MCP exchanges what they say about themselves. The default.
    #[default]
    Model,
    /// Whole bodies, bounded and redacted.
    Bodies,
}

/// What is put in force, beside the rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationSpec {
    /// Name of the profile, for lists and metrics; `inline` for inline chaos.
    pub profile: String,
    /// Seed of every draw.
    pub seed: u64,
    /// Stands for the scope in the draws; absent: the scope's name.
    pub key: Option<String>,
    /// What the journal reads.
    pub observe: Observe,
}

/// Rules in force for one scope, with counters of their own.
#[derive(Debug)]
pub struct Activation {
    /// Unique in the daemon.
    pub id: String,
    /// Name of the profile.
    pub profile: String,
    /// Seed of every draw.
    pub seed: u64,
    /// Stands for the scope in the draws.
    pub key: String,
    /// What the journal reads.
    pub observe: Observe,
    /// What the model calls of the scope have used up, as far as the journal has read them.
    pub spending: Arc<Spending>,
    live: ArcSwap<Live>,
}

/// What a snapshot shares with the activation it was taken of.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) rules: Arc<RuleSet>,
    /// One per rule.
    pub(crate) counters: Box<[Arc<Counter>]>,
    pub(crate) attempts: Arc<Attempts>,
    pub(crate) observe: Observe,
    seed: u64,
    key: Arc<str>,
}

/// What one rule has seen in one scope. Every number moves by itself and is exact in the order of
/// arrival; no other memory hangs on it, so the operations may be relaxed.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    calls: AtomicU64,
    fired: AtomicU64,
    armed: AtomicBool,
    /// Of a rule with an allowance: what is left of it.
    buckets: Mutex<Buckets>,
    /// Of a rule with a budget: what the calls that it matches have used up.
    pub(crate) spending: Arc<Spending>,
}

impl Counter {
    /// Counts a matching call, from 1.
    pub(crate) fn call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a firing, unless the limit is used up.
    pub(crate) fn fire(&self, limit: Option<u64>) -> bool {
        let room = |fired| (limit.is_none_or(|limit| fired < limit)).then_some(fired + 1);
        self.fired
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok()
    }

    /// Takes a request of so many tokens out of the rule's allowance, if it fits.
    pub(crate) fn take(
        &self,
        allowance: Allowance,
        tokens: u64,
        elapsed: Duration,
    ) -> Result<(), OverAllowance> {
        // Nothing panics while it is held.
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.take(allowance, tokens, elapsed)
    }

    pub(crate) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }
}

impl Activation {
    /// Puts rules in force; `scope_key` is the scope's name, used where the spec has no key.
    pub fn new(id: String, scope_key: String, spec: ActivationSpec, rules: Arc<RuleSet>) -> Self {
        let key = spec.key.unwrap_or(scope_key);
        let live = Live::new(rules, spec.seed, &key, spec.observe);
        Self {
            id,
            profile: spec.profile,
            seed: spec.seed,
            observe: spec.observe,
            spending: Arc::default(),
            live: ArcSwap::from_pointee(live),
            key,
        }
    }

    /// The same rules and seed for a named scope that has no activation of its own, with counters
    /// and a key of its own.
    #[must_use]
    pub fn fork(&self, scope: &str) -> Self {
        let live = Live::new(self.rules(), self.seed, scope, self.observe);
        Self {
            id: self.id.clone(),
            profile: self.profile.clone(),
            seed: self.seed,
            key: scope.to_owned(),
            observe: self.observe,
            spending: Arc::default(),
            live: ArcSwap::from_pointee(live),
        }
    }

    /// Swaps the rules: an edit of the profile in force. Rules with the same id and text keep their
    /// counters; exchanges that have begun keep the rules they began with.
    pub fn replace_rules(&self, rules: Arc<RuleSet>) {
        // Not a compare-and-swap loop over a borrowed set: the last edit wins either way.
        let live = self.live.load().with_rules(rules);
        self.live.store(Arc::new(live));
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.live.load().rules.clone()
    }

    /// How many fingerprints the bounded table of attempts has forgotten.
    pub fn forgotten_attempts(&self) -> u64 {
        self.live.load().attempts.forgotten()
    }

    /// What one exchange decides by, from its beginning to its end. Cheap.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            live: self.live.load_full(),
        }
    }
}

impl Live {
    fn new(rules: Arc<RuleSet>, seed: u64, key: &str, observe: Observe) -> Self {
        let counters = rules.rules().iter().map(|_| Arc::default()).collect();
        Self {
            rules,
            counters,
            attempts: Arc::default(),
            observe,
            seed,
            key: key.into(),
        }
    }

    fn with_rules(&self, rules: Arc<RuleSet>) -> Self {
        let kept: HashMap<(&str, u64), &Arc<Counter>> = self
            .rules
            .rules()
            .iter()
            .zip(&self.counters)
            .map(|(rule, counter)| ((rule.id.as_str(), rule.text), counter))
            .collect();
        let counter = |rule: &Arc<Rule>| {
            kept.get(&(rule.id.as_str(), rule.text))
                .map_or_else(Arc::default, |kept| Arc::clone(kept))
        };
        let counters = rules.rules().iter().map(counter).collect();
        Self {
            counters,
            attempts: self.attempts.clone(),
            observe: self.observe,
            seed: self.seed,
            key: self.key.clone(),
            rules,
        }
    }

    /// The dice of a rule for one request.
    pub(crate) fn dice(&self, rule: &Rule, fingerprint: Fingerprint, attempt: u64) -> Dice {
        Dice::new(
            RuleKey::new(self.seed, &self.key, &rule.id),
            fingerprint,
            attempt,
        )
    }
}

/// The rules and counters an exchange began with.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) live: Arc<Live>,
}

impl Snapshot {
    /// True when no rule is in force: nothing need be asked.
    pub fn is_empty(&self) -> bool {
        self.live.rules.rules().is_empty()
    }

    /// The rules in force for this exchange.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.live.rules
    }
}
