//! Activations: rules in force for a scope, with their counters.
//!
//! An [`Activation`] holds the rules and their counters; an exchange keeps the [`Snapshot`] of its
//! start. A decision has two steps, so that a body is read only if a rule needs it.
//! [`Snapshot::shortlist`] uses the head. [`Snapshot::decide`] uses all facts, draws, counts and
//! writes the plan.

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

squall_documents::named! {
    /// The journal's capture level for an activation.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Observe {
        /// Heads only.
        Headers = "headers",
        /// Heads, and the metadata in model and MCP bodies. The default.
        #[default]
        Model = "model",
        /// Whole bodies, bounded and redacted.
        Bodies = "bodies",
    }
}

/// The properties of an activation, except its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivationSpec {
    /// Name of the profile, for lists and metrics; `inline` for inline chaos.
    pub profile: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Replaces the scope's name in draws; `None`: the scope's name.
    pub key: Option<String>,
    /// Capture level of the journal.
    pub observe: Observe,
}

/// Rules in force for one scope, with their counters.
#[derive(Debug)]
pub struct Activation {
    /// Unique in the daemon.
    pub id: String,
    /// Name of the profile.
    pub profile: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Replaces the scope's name in draws.
    pub key: String,
    /// Capture level of the journal.
    pub observe: Observe,
    /// Usage of the scope's model calls, as far as the journal has read them.
    pub spending: Arc<Spending>,
    live: ArcSwap<Live>,
}

/// State that a snapshot shares with its activation.
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

/// Counters of one rule in one scope. Each number is independent and exact in order of arrival. No
/// other memory depends on it, so relaxed operations suffice.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    calls: AtomicU64,
    fired: AtomicU64,
    armed: AtomicBool,
    /// For a rule with an allowance: what remains of it.
    buckets: Mutex<Buckets>,
    /// For a rule with a budget: the usage of the calls that it matches.
    pub(crate) spending: Arc<Spending>,
}

impl Counter {
    /// Counts a matching call; returns its number from 1.
    pub(crate) fn call(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a firing; false if the limit is reached.
    pub(crate) fn fire(&self, limit: Option<u64>) -> bool {
        let room = |fired| (limit.is_none_or(|limit| fired < limit)).then_some(fired + 1);
        self.fired
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .is_ok()
    }

    /// Takes a request with this many tokens from the rule's allowance, if it fits.
    pub(crate) fn take(
        &self,
        allowance: Allowance,
        tokens: u64,
        elapsed: Duration,
    ) -> Result<(), OverAllowance> {
        // No code panics while holding it.
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
    /// Activates rules; `scope_key` is the scope's name, used if the spec has no key.
    pub fn new(id: String, scope_key: String, spec: ActivationSpec, rules: Arc<RuleSet>) -> Self {
        let key = spec.key.unwrap_or(scope_key);
        let live = Live {
            counters: rules.rules().iter().map(|_| Arc::default()).collect(),
            rules,
            attempts: Arc::default(),
            observe: spec.observe,
            seed: spec.seed,
            key: key.as_str().into(),
        };
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

    /// The same rules and seed for a named scope without its own activation, with separate counters
    /// and another key.
    #[must_use]
    pub fn fork(&self, scope: &str) -> Self {
        let spec = ActivationSpec {
            profile: self.profile.clone(),
            seed: self.seed,
            key: None,
            observe: self.observe,
        };
        Self::new(self.id.clone(), scope.to_owned(), spec, self.rules())
    }

    /// Replaces the rules after an edit of the profile. Rules with equal id and text keep their
    /// counters; exchanges in progress keep their rules.
    pub fn replace_rules(&self, rules: Arc<RuleSet>) {
        // No compare-and-swap is needed: the last edit takes effect in any case.
        let live = self.live.load().with_rules(rules);
        self.live.store(Arc::new(live));
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.live.load().rules.clone()
    }

    /// The rules and counters of one exchange, from start to end. Cheap.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            live: self.live.load_full(),
        }
    }
}

impl Live {
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

/// The rules and counters at the start of an exchange.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) live: Arc<Live>,
}

impl Snapshot {
    /// True if no rule is in force.
    pub fn is_empty(&self) -> bool {
        self.live.rules.rules().is_empty()
    }

    /// The rules in force for this exchange.
    pub fn rules(&self) -> &Arc<RuleSet> {
        &self.live.rules
    }
}
