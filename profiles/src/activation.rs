//! A set of rules in force for a scope: what counts, what draws, what decides.
//!
//! An [`Activation`] holds the rules and their counters; an exchange takes a [`Snapshot`] when it
//! begins and keeps it. Deciding has two steps, so that a body is only read when a rule needs it:
//! [`Snapshot::shortlist`] looks at what the head tells, [`Snapshot::decide`] at the rest, draws,
//! counts and writes the plan.

use std::sync::Arc;
use std::time::Duration;

use crate::facts::{Facts, Stage};
use crate::plan::Plan;
use crate::ruleset::RuleSet;

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
    rules: Arc<RuleSet>,
}

impl Activation {
    /// Puts rules in force; `scope_key` is the scope's name, used where the spec has no key.
    pub fn new(id: String, scope_key: String, spec: ActivationSpec, rules: Arc<RuleSet>) -> Self {
        Self {
            id,
            profile: spec.profile,
            seed: spec.seed,
            key: spec.key.unwrap_or(scope_key),
            observe: spec.observe,
            rules,
        }
    }

    /// The same rules and seed for a named scope that has no activation of its own, with counters
    /// and a key of its own.
    #[must_use]
    pub fn fork(&self, scope: &str) -> Self {
        Self {
            id: self.id.clone(),
            profile: self.profile.clone(),
            seed: self.seed,
            key: scope.to_owned(),
            observe: self.observe,
            rules: self.rules.clone(),
        }
    }

    /// Swaps the rules: an edit of the profile in force. Rules with the same id and text keep their
    /// counters; exchanges that have begun keep the rules they began with.
    pub fn replace_rules(&self, rules: Arc<RuleSet>) {
        let _ = rules;
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RuleSet> {
        self.rules.clone()
    }

    /// How many fingerprints the bounded table of attempts has forgotten.
    pub fn forgotten_attempts(&self) -> u64 {
        0
    }

    /// What one exchange decides by, from its beginning to its end. Cheap.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            rules: self.rules.clone(),
        }
    }
}

/// The rules and counters an exchange began with.
#[derive(Debug, Clone)]
pub struct Snapshot {
    rules: Arc<RuleSet>,
}

/// The rules that may match, as far as the request's head tells.
#[derive(Debug)]
pub struct Shortlist {
    /// A rule on it wants the request's body before [`Snapshot::decide`]: to match on it, or for
    /// the fingerprint its draw hangs on.
    pub needs_body: bool,
    rules: Vec<u32>,
}

impl Shortlist {
    /// True when no rule can match: there is nothing to decide.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// A request without what is volatile, as 64 bits. `Display` and `{:016x}` give 16 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u64);

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What was decided for one exchange.
#[derive(Debug, Default)]
pub struct Decision {
    /// What will be done.
    pub plan: Plan,
    /// The request's fingerprint; `None` where no draw needed it.
    pub fingerprint: Option<Fingerprint>,
    /// Which request with this fingerprint it is in its scope, from 1.
    pub attempt: Option<u64>,
    /// Eligible rules that did not fire and are not listed in the plan's verdicts (it lists at most
    /// 64 of those).
    pub more: u64,
}

impl Decision {
    /// True when [`Snapshot::on_response`] has something to do once the upstream's head is there.
    pub fn awaits_response(&self) -> bool {
        false
    }
}

impl Snapshot {
    /// True when no rule is in force: nothing need be asked.
    pub fn is_empty(&self) -> bool {
        self.rules.rules().is_empty()
    }

    /// The rules that may match, by what the request's head tells.
    pub fn shortlist(&self, facts: &Facts<'_>, stage: Stage) -> Shortlist {
        let _ = (facts, stage);
        Shortlist {
            needs_body: false,
            rules: Vec::new(),
        }
    }

    /// Draws, counts and writes the plan. `elapsed` is the time since activation. Pure but for the
    /// counters.
    ///
    /// `facts` may know more than the shortlist did: the body, and with it model, stream, MCP tool
    /// and a corrected kind. A request without a body has `Some(b"")` once that is known.
    pub fn decide(
        &self,
        shortlist: &Shortlist,
        facts: &Facts<'_>,
        stage: Stage,
        elapsed: Duration,
    ) -> Decision {
        let _ = (shortlist, facts, stage, elapsed);
        Decision::default()
    }

    /// Decides the rules that ask for a `status`, and lets the answer arm others: to be called when
    /// the upstream's head has come, before anything of it is passed on.
    pub fn on_response(
        &self,
        decision: &mut Decision,
        facts: &Facts<'_>,
        status: u16,
        elapsed: Duration,
    ) {
        let _ = (decision, facts, status, elapsed);
    }
}
