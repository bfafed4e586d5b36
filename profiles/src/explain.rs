//! Why a rule did not match: the nearest misses of an exchange.

use std::sync::Arc;

use crate::activation::Snapshot;
use crate::facts::Facts;
use crate::family::Family;
use crate::matching::{Condition, Holds, Touches};
use crate::rule::Rule;
use crate::ruleset::Candidate;

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
    let more = matching.more.as_deref();
    match failed {
        Condition::Kind => {
            let touched = match rule.family() {
                _ if matching.touches == Touches::Results => "model calls with `at: model_input`",
                Family::Context if matching.touches.in_results() => "tool calls and model calls",
                Family::Network => "any exchange",
                Family::Tool if matching.touches == Touches::Lists => "lists of MCP tools",
                Family::Tool if matching.touches == Touches::Sessions => {
                    "requests of MCP sessions and tool calls"
                }
                Family::Tool => "tool calls",
                Family::Llm | Family::Context => "model calls",
            };
            let family = rule.family().as_str();
            format!(
                "`{family}` touch {touched}; this is of kind `{}`",
                facts.kind.as_str()
            )
        }
        Condition::Url => {
            let globs = matching.urls.alternatives();
            let shown: Vec<_> = globs
                .iter()
                .take(GLOBS)
                .map(|glob| format!("`{glob}`"))
                .collect();
            let rest = globs.len().saturating_sub(GLOBS);
            let rest = if rest > 0 {
                format!(" and {rest} more")
            } else {
                String::new()
            };
            format!(
                "its `match_url` is {}{rest}; the URL is {}",
                shown.join(", "),
                facts.url.as_str()
            )
        }
        Condition::Tool => {
            let name = matching
                .tool
                .as_ref()
                .map_or("*", |tool| tool.name.as_str());
            format!("its `tool` is `{name}`; {}", tools_found(rule, facts))
        }
        Condition::Methods => {
            let methods = matching.methods.iter().flatten().map(http::Method::as_str);
            format!(
                "its `methods` are {}; the method is {}",
                quoted(methods),
                facts.method
            )
        }
        Condition::Headers => {
            let wanted = more.map(|more| &more.headers).into_iter().flatten();
            let wanted = wanted.map(|(name, glob)| format!("{name}: {glob}"));
            let wanted: Vec<_> = wanted.map(|header| format!("`{header}`")).collect();
            format!(
                "its `headers` are {}, and the request's differ",
                wanted.join(", ")
            )
        }
        Condition::Dialect => {
            let wanted = more
                .and_then(|more| more.dialect.as_deref())
                .unwrap_or_default();
            match facts.dialect {
                Some(found) => format!("its `dialect` is `{wanted}`; the request's is `{found}`"),
                None => format!("its `dialect` is `{wanted}`; this is no known model call"),
            }
        }
        Condition::Model => {
            let wanted = more
                .and_then(|more| more.model.as_ref())
                .map_or("", |glob| glob.as_str());
            match facts.model {
                Some(found) => format!("its `model` is `{wanted}`; `{found}` was asked for"),
                None => format!("its `model` is `{wanted}`; the request names none"),
            }
        }
        Condition::Stream => {
            let wanted = more.and_then(|more| more.stream).unwrap_or_default();
            format!("its `stream` is {wanted}; the request says otherwise")
        }
        Condition::Status => {
            let wanted = matching
                .status
                .as_ref()
                .map_or_else(String::new, ToString::to_string);
            format!("its `status` is {wanted}; the response's is another")
        }
        Condition::Json => "the request's body does not hold what its `json` asks for".to_owned(),
        Condition::Body => "the request's body does not match its regular expression".to_owned(),
    }
}

/// The tool names found instead.
fn tools_found(rule: &Rule, facts: &Facts<'_>) -> String {
    let names = |names: &[String]| quoted(names.iter().map(String::as_str));
    let in_results = rule.matching.touches.in_results();
    match (facts.results.filter(|_| in_results), facts.tools) {
        (Some([]), _) => "the request brings no new result of a tool".to_owned(),
        (Some(brought), _) => format!("the request brings new results of {}", names(brought)),
        (None, []) => "the exchange has no tool's name".to_owned(),
        (None, tools) => format!("the tool is {}", names(tools)),
    }
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
