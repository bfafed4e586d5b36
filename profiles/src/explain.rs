//! Why a rule did not match: the nearest misses of an exchange.

use std::sync::Arc;

use crate::activation::Snapshot;
use crate::facts::{Facts, Kind};
use crate::family::Family;
use crate::glob::Glob;
use crate::matching::{Condition, Holds, Touches};
use crate::rule::Rule;
use crate::ruleset::Candidate;
use squall_documents::words;

/// Most misses listed for one exchange.
const LISTED: usize = 16;
/// Most globs in one sentence.
const GLOBS: usize = 3;

/// A rule that failed on exactly one condition.
#[derive(Debug, Clone)]
pub struct NearMiss {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The failed condition and the value found, in a sentence.
    pub why: String,
    /// Distance from a match: 0 to 1.
    pub distance: f64,
}

impl Snapshot {
    /// The rules that failed on exactly one condition, the nearest first, at most 16. It checks every
    /// rule, so use it for explanations only. If only the body or the response's status is unknown,
    /// that counts as the failed condition. The caller removes rules that matched.
    pub fn nearest_misses(&self, facts: &Facts<'_>) -> Vec<NearMiss> {
        let mut misses: Vec<_> = (0..self.rules().rules().len())
            .filter_map(|number| {
                let failed = self.only_failure(number, facts)?;
                let rule = &self.rules().rules()[number];
                Some((distance(rule, failed, facts), number, failed))
            })
            .collect();
        misses.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        misses.truncate(LISTED);
        misses
            .into_iter()
            .map(|(distance, number, failed)| {
                let rule = self.rules().rules()[number].clone();
                let mut why = sentence(&rule, failed, facts);
                rule.redactor.text(&mut why, usize::MAX);
                NearMiss {
                    rule,
                    why,
                    distance,
                }
            })
            .collect()
    }

    /// The failed condition of a rule, if there is exactly one. If none failed, a single unknown one.
    fn only_failure(&self, number: usize, facts: &Facts<'_>) -> Option<Condition> {
        let family = self.rules().rules()[number].family();
        let (matching, tool_urls) = self.rules().conditions(Candidate::Rule(number));
        let (mut failed, mut unknown) = (Vec::new(), Vec::new());
        for condition in Condition::ALL {
            match matching.holds(condition, Some(family), facts, tool_urls) {
                Holds::No => failed.push(condition),
                Holds::Unknown => unknown.push(condition),
                Holds::Yes => {}
            }
        }
        if matching.status.is_some() {
            unknown.push(Condition::Status);
        }
        match (&failed[..], &unknown[..]) {
            ([only], _)
            | ([], [only @ (Condition::Body | Condition::Json | Condition::Status)]) => Some(*only),
            _ => None,
        }
    }
}

/// Distance of a rule from a match: 0 to 1. Kind is listed last, because every model rule fails on
/// it for every tool call. Conditions except kind and URL are listed first.
fn distance(rule: &Rule, failed: Condition, facts: &Facts<'_>) -> f64 {
    match failed {
        Condition::Url => {}
        Condition::Kind => return 1.0,
        _ => return 0.0,
    }
    let globs = rule.matching.urls.alternatives().iter();
    let distances =
        globs.map(|glob| 1.0 - strsim::normalized_levenshtein(glob, facts.url.as_str()));
    distances.fold(1.0, f64::min)
}

fn sentence(rule: &Rule, failed: Condition, facts: &Facts<'_>) -> String {
    let matching = &rule.matching;
    let is_named = !facts.tools.is_empty() || matching.touches.in_results();
    let (expected, found) = match failed {
        Condition::Kind => return of_another_kind(rule, facts),
        Condition::Tool if !is_named && facts.kind == Kind::Llm => {
            return of_another_kind(rule, facts);
        }
        Condition::Url => {
            let globs = matching.urls.alternatives();
            let rest = if globs.len() > GLOBS { ", …" } else { "" };
            let expected = globs[..globs.len().min(GLOBS)].join(", ");
            (
                format!("match_url: {expected}{rest}"),
                facts.url.as_str().to_owned(),
            )
        }
        Condition::Tool => {
            let name = matching
                .tool
                .as_ref()
                .map_or("*", |tool| tool.name.as_str());
            let to = matching.tool.as_ref().is_some_and(|tool| tool.is_agent);
            let field = if to { "to" } else { "tool" };
            (format!("{field}: {name}"), tools_found(rule, facts))
        }
        Condition::From => {
            let expected = matching.from.as_deref().map_or("", Glob::as_str);
            let found = facts.from.unwrap_or("an unknown agent");
            (format!("from: {expected}"), found.to_owned())
        }
        Condition::Methods => {
            let methods = matching.methods.iter().flatten();
            let methods: Vec<_> = methods.map(http::Method::as_str).collect();
            (
                format!("methods: {}", methods.join(", ")),
                facts.method.to_string(),
            )
        }
        Condition::Dialect => {
            let found = facts.dialect.unwrap_or("a request of no known dialect");
            (
                format!("dialect: {}", matching.dialect.unwrap_or_default()),
                found.to_owned(),
            )
        }
        Condition::Model => {
            let expected = matching.model.as_ref();
            let found = facts.model.unwrap_or("a request without a model");
            (
                format!("model: {}", expected.map_or("", Glob::as_str)),
                found.to_owned(),
            )
        }
        Condition::Stream => {
            let expected = matching.stream.unwrap_or_default();
            (format!("stream: {expected}"), "the request".to_owned())
        }
        Condition::Status => {
            let expected = matching.status.clone().unwrap_or_default();
            (
                format!("status: {expected}"),
                "the response's status".to_owned(),
            )
        }
        Condition::Headers => ("headers".to_owned(), "the request's headers".to_owned()),
        Condition::Json => ("json".to_owned(), "the request's body".to_owned()),
        Condition::Body => ("match_body".to_owned(), "the request's body".to_owned()),
    };
    format!("`{expected}` does not match {found}")
}

fn of_another_kind(rule: &Rule, facts: &Facts<'_>) -> String {
    if rule.matching.websocket.is_some() && !facts.opens_a_websocket() {
        return "it opens no WebSocket, which `websocket` selects".to_owned();
    }
    let found = match facts.kind {
        Kind::Llm => "a model call",
        Kind::Mcp => "an MCP request",
        Kind::Agent => "a request to an agent that sends no message",
        Kind::Tool => "a tool call",
        Kind::Other => "a tunnel or an upgrade",
    };
    let covered = match (rule.family(), rule.matching.touches) {
        (Family::Network, _) => "any exchange",
        (Family::Context, Touches::Either) => "tool calls and model calls",
        (Family::Tool, Touches::Results) => "model calls with `at: model_input`",
        (Family::Tool, Touches::Lists) => "lists of MCP tools",
        (Family::Tool, Touches::Sessions) => "requests of MCP sessions and tool calls",
        (Family::Tool, Touches::Calls | Touches::Either | Touches::Upgrades) => "tool calls",
        (Family::Llm, Touches::Upgrades) => {
            "upgrades to WebSockets of model calls with `at: connect`"
        }
        (Family::Llm | Family::Context, _) => "model calls",
    };
    let family = rule.family().as_str();
    format!("it is {found}; `{family}` cover {covered}")
}

/// The tool names found instead.
fn tools_found(rule: &Rule, facts: &Facts<'_>) -> String {
    let in_results = rule.matching.touches.in_results();
    match (facts.results.filter(|_| in_results), facts.tools) {
        (Some([]), _) => "a request without new tool results".to_owned(),
        (Some(tools), _) => format!("new results of {}", words(tools.iter().map(String::as_str))),
        (None, []) => "an exchange without a tool's name".to_owned(),
        (None, tools) => words(tools.iter().map(String::as_str)),
    }
}
