//! A recorded exchange as rules see it: why a rule in force did not match, and what other rules would do.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{HeaderMap, HeaderValue, UPGRADE};
use squall_journal::record::{NearMissRecord, Outcome};
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::dry_run::{DryRun, PastExchange, RuleTally};
use squall_profiles::explain::NearMiss;
use squall_profiles::facts::{CanonicalUrl, Facts, Kind};
use squall_profiles::rule::Rule;
use squall_profiles::ruleset::RuleSet;

use super::ExchangeNote;

impl ExchangeNote {
    /// Rules that failed to match on exactly one condition. `None` if the rules are no longer in
    /// force; empty if there were none, or none was near.
    ///
    /// It checks every rule. Data that the journal does not store (headers, body) counts as absent.
    pub fn near_misses(&self) -> Option<Vec<NearMissRecord>> {
        Some(self.misses()?.into_iter().map(record).collect())
    }

    /// The nearest rule of an exchange without a matching rule, and its nearness, 0 to 1000.
    pub fn nearest_miss(&self) -> Option<(u16, NearMissRecord)> {
        if !self.verdicts.is_empty() {
            return None;
        }
        let miss = self.misses()?.into_iter().next()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and 1000"
        )]
        let closeness = (1000.0 * (1.0 - miss.distance)) as u16;
        Some((closeness, record(miss)))
    }

    fn misses(&self) -> Option<Vec<NearMiss>> {
        if self.activation.is_none() {
            return Some(Vec::new());
        }
        let rules = self.rules.upgrade()?;
        let spec = ActivationSpec {
            profile: String::new(),
            seed: self.seed,
            key: None,
            observe: Observe::default(),
        };
        // Near misses need no counters, so the activation's own are not used.
        let snapshot = Activation::new(String::new(), String::new(), spec, rules).snapshot();
        // Without the data that the journal does not store, a rule that matched may appear as
        // missed.
        let matched = |rule: &Arc<Rule>| {
            let mut verdicts = self.verdicts.iter();
            verdicts.any(|verdict| Arc::ptr_eq(&verdict.rule, rule))
        };
        let mut misses = self.with_facts(|facts| snapshot.nearest_misses(facts));
        misses.retain(|miss| !matched(&miss.rule));
        for miss in &mut misses {
            self.redactor.text(&mut miss.why, usize::MAX);
        }
        Some(misses)
    }

    /// Calls `act` with the exchange as rules see it. Data that the journal does not store (headers, body) is absent.
    fn with_facts<T>(&self, act: impl FnOnce(&Facts<'_>) -> T) -> T {
        // A CONNECT names a host and a port.
        let bare = if self.method == Method::CONNECT {
            "https"
        } else {
            "http"
        };
        let (scheme, rest) = self.url.split_once("://").unwrap_or((bare, &self.url));
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let tools = self.tool.iter().chain(&self.more_tools);
        let tools: Vec<String> = tools.map(ToString::to_string).collect();
        let results = self.results.iter().flatten().map(ToString::to_string);
        let results = self.results.is_some().then(|| results.collect::<Vec<_>>());
        let mut headers = HeaderMap::new();
        if self.messages.is_some() {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        act(&Facts {
            kind: self.kind,
            dialect: self.dialect,
            tools: &tools,
            rpc_tool_call: self.kind == Kind::Agent
                || (self.kind == Kind::Mcp && self.tool.is_some()),
            mcp_tool_list: false,
            from: self.agent.as_ref().and_then(|agent| agent.from.as_deref()),
            may_be_rpc: false,
            method: &self.method,
            url: &CanonicalUrl::new(scheme, authority, path),
            headers: &headers,
            model: self.llm.as_ref().and_then(|llm| llm.model.as_deref()),
            stream: self.llm.as_ref().map(|llm| llm.stream),
            results: results.as_deref(),
            body: None,
        })
    }
}

fn record(miss: NearMiss) -> NearMissRecord {
    NearMissRecord {
        profile: miss.rule.profile.clone(),
        rule: miss.rule.id.clone(),
        family: miss.rule.family().as_str().to_owned(),
        mode: miss.rule.mode().to_owned(),
        why: miss.why,
    }
}

/// What `rules` would have done to `notes`, which are listed newest first. Exchanges that Squall rejected are left out:
/// no rule decides them.
pub fn dry_run(rules: Arc<RuleSet>, seed: u64, notes: &[Arc<ExchangeNote>]) -> Vec<RuleTally> {
    let mut run = DryRun::new(rules, seed);
    let first = notes.last().map(|note| note.started);
    for note in notes.iter().rev() {
        if note.outcome == Outcome::Denied {
            continue;
        }
        let elapsed = first.map_or(Duration::ZERO, |first| {
            note.started.saturating_duration_since(first)
        });
        note.with_facts(|facts| {
            run.add(&PastExchange {
                scope: &note.scope,
                facts,
                status: note.upstream_status.map(|status| status.as_u16()),
                draw: note.fingerprint.zip(note.attempt),
                elapsed,
            });
        });
    }
    run.finish()
}
