//! Why a rule in force did not match, to explain an exchange.

use std::sync::Arc;

use http::header::{HeaderMap, HeaderValue, UPGRADE};
use squall_journal::record::NearMissRecord;
use squall_profiles::activation::{Activation, ActivationSpec, Observe};
use squall_profiles::explain::NearMiss;
use squall_profiles::facts::{CanonicalUrl, Facts, Kind};
use squall_profiles::rule::Rule;

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
        let (scheme, rest) = self.url.split_once("://").unwrap_or(("http", &self.url));
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let tools = self.tool.iter().chain(&self.more_tools);
        let tools: Vec<String> = tools.map(ToString::to_string).collect();
        let results = self.results.iter().flatten().map(ToString::to_string);
        let results = self.results.is_some().then(|| results.collect::<Vec<_>>());
        let mut headers = HeaderMap::new();
        if self.messages.is_some() {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        }
        let facts = Facts {
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
        };
        // Without the data that the journal does not store, a rule that matched may appear as
        // missed.
        let matched = |rule: &Arc<Rule>| {
            let mut verdicts = self.verdicts.iter();
            verdicts.any(|verdict| Arc::ptr_eq(&verdict.rule, rule))
        };
        let mut misses = snapshot.nearest_misses(&facts);
        misses.retain(|miss| !matched(&miss.rule));
        for miss in &mut misses {
            self.redactor.text(&mut miss.why, usize::MAX);
        }
        Some(misses)
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
