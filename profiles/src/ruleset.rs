//! Rules compiled once per activation: immutable, and indexed by their URL globs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::facts::{Facts, Kind};
use crate::glob::UrlGlobs;
use crate::index::{Candidates, Index, Indexed, MAX_GLOBS, TooMany};
use crate::matching::Match;
use crate::profile::unknown_rule;
use crate::rule::Rule;
use crate::tools::ToolNames;
use crate::trigger::ArmedBy;
use squall_documents::DocumentError;
use squall_journal::redact::Redactor;

/// An immutable set of rules in order of precedence, with its index.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Arc<Rule>>,
    compiled: Vec<Compiled>,
    watches: Vec<Watch>,
    index: Index,
    redactor: Redactor,
    /// Some rule needs the tool results in model calls.
    reads_results: bool,
    /// The effect of some rule depends on a token count.
    counts_tokens: bool,
    /// Additional tool names while these rules are in force.
    own_tools: ToolNames,
}

/// Derived data of a rule that depends on other rules and the config's tools.
#[derive(Debug, Default)]
pub(crate) struct Compiled {
    /// The config's globs for its tool.
    pub(crate) tool_urls: Box<[UrlGlobs]>,
    /// Rules that it arms when it fires.
    pub(crate) arms: Box<[u32]>,
    /// Whether a draw decides its effect.
    pub(crate) draws: bool,
}

/// A watch for exchanges that arm a rule.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The rule to arm.
    pub(crate) arms: u32,
    tool_urls: Box<[UrlGlobs]>,
}

/// A rule or a watch, as found by the index.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Candidate {
    Rule(usize),
    Watch(usize),
}

impl RuleSet {
    /// Compiles rules in order of precedence.
    pub(crate) fn compile(rules: Vec<Arc<Rule>>, tools: &ToolNames) -> Result<Self, DocumentError> {
        let numbers: HashMap<&str, u32> = (0u32..)
            .zip(&rules)
            .map(|(number, rule)| (rule.id.as_str(), number))
            .collect();
        let mut arms: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut watches = Vec::new();
        for (number, rule) in (0u32..).zip(&rules) {
            match rule.trigger.armed_by.as_deref() {
                Some(ArmedBy::Rule { id, position }) => {
                    let by = numbers.get(id.as_str()).ok_or_else(|| DocumentError {
                        file: rule.origin.file.to_string(),
                        position: *position,
                        pointer: format!("{}/armed_by/rule", rule.origin.pointer),
                        message: unknown_rule(id, &rules),
                    })?;
                    arms.entry(*by).or_default().push(number);
                }
                Some(ArmedBy::Exchange(matching)) => {
                    watches.push(Watch {
                        arms: number,
                        tool_urls: tool_urls(matching, tools),
                    });
                }
                None => {}
            }
        }
        let compiled: Vec<_> = (0u32..)
            .zip(&rules)
            .map(|(number, rule)| Compiled {
                tool_urls: tool_urls(&rule.matching, tools),
                arms: arms.remove(&number).unwrap_or_default().into(),
                draws: rule.draws(),
            })
            .collect();
        let mut set = Self {
            redactor: rules
                .iter()
                .fold(Redactor::default(), |all, rule| all.and(&rule.redactor)),
            reads_results: (rules.iter()).any(|rule| rule.matching.touches.in_results()),
            counts_tokens: (rules.iter()).any(|rule| rule.fault.counts_tokens),
            rules,
            compiled,
            watches,
            index: Index::default(),
            own_tools: ToolNames::default(),
        };
        set.index = Index::build(&set.indexed()).map_err(|TooMany| {
            let message = format!(
                "{} rules with more than {MAX_GLOBS} URL globs (braces spelled out, those of tools \
                 counted for each rule) are too many to compile; \
                 write globs that cover more, or put fewer rules in force at a time",
                set.rules.len(),
            );
            let file = set.rules.first().map_or("", |rule| &rule.origin.file);
            DocumentError::whole(file, message)
        })?;
        Ok(set)
    }

    /// These rules limited to some firings: each a rule's id and the number of one of its matching calls. Other
    /// conditions of triggers are removed, and so are other rules.
    pub fn limited(
        &self,
        firings: &[(String, u64)],
        tools: &ToolNames,
    ) -> Result<Self, DocumentError> {
        let calls_of = |rule: &Rule| -> Box<[u64]> {
            let own = firings.iter().filter(|(id, _)| *id == rule.id);
            own.map(|(_, call)| *call).collect()
        };
        let rules = self.rules.iter().map(|rule| (rule, calls_of(rule)));
        let rules = rules.filter(|(_, calls)| !calls.is_empty());
        let rules = rules.map(|(rule, calls)| Arc::new(rule.limited(calls)));
        Self::compile(rules.collect(), tools)
    }

    /// The same rules with additional tool names. The rules were compiled with these names among
    /// the others.
    #[must_use]
    pub fn with_own_tools(self, own_tools: ToolNames) -> Self {
        Self { own_tools, ..self }
    }

    /// Additional tool names while these rules are in force.
    pub fn own_tools(&self) -> &ToolNames {
        &self.own_tools
    }

    /// The rules, in order of precedence.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// Removes variable values of these rules' profiles from reports.
    pub fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Whether some rule needs the tool results in model calls ([`Facts::results`]).
    pub fn reads_results(&self) -> bool {
        self.reads_results
    }

    /// Whether the effect or a reported number of some rule depends on a token count.
    pub fn counts_tokens(&self) -> bool {
        self.counts_tokens
    }

    pub(crate) fn compiled(&self, rule: usize) -> &Compiled {
        &self.compiled[rule]
    }

    pub(crate) fn watch(&self, watch: usize) -> &Watch {
        &self.watches[watch]
    }

    /// The conditions of a candidate and the config's globs for its tool.
    pub(crate) fn conditions(&self, candidate: Candidate) -> (&Match, &[UrlGlobs]) {
        match candidate {
            Candidate::Rule(rule) => (&self.rules[rule].matching, &self.compiled[rule].tool_urls),
            Candidate::Watch(watch) => {
                let watch = &self.watches[watch];
                match self.rules[watch.arms as usize].trigger.armed_by.as_deref() {
                    Some(ArmedBy::Exchange(matching)) => (matching, &watch.tool_urls),
                    Some(ArmedBy::Rule { .. }) | None => unreachable!("a watch arms by exchange"),
                }
            }
        }
    }

    /// The rule or watch with a number found by the index.
    pub(crate) fn candidate(&self, number: u32) -> Candidate {
        let number = number as usize;
        match number.checked_sub(self.rules.len()) {
            None => Candidate::Rule(number),
            Some(watch) => Candidate::Watch(watch),
        }
    }

    /// The candidates for an exchange's URL and tools; rules precede watches.
    pub(crate) fn find(&self, facts: &Facts<'_>) -> Candidates {
        let tool_is_open = facts.kind == Kind::Mcp && facts.body.is_none();
        self.index.find(facts, tool_is_open, |number, alternative| {
            let (matching, _) = self.conditions(self.candidate(number));
            matching.urls.alternative_matches(alternative, facts.url)
        })
    }

    /// Whether the classification by the body may add rules that the head does not show: those with
    /// only a tool name.
    pub(crate) fn may_find_more(&self, facts: &Facts<'_>) -> bool {
        facts.kind != Kind::Mcp && facts.mcp_is_open() && self.index.asks_for_names()
    }

    fn indexed(&self) -> Vec<Indexed<'_>> {
        let rules = (0..self.rules.len()).map(Candidate::Rule);
        let watches = (0..self.watches.len()).map(Candidate::Watch);
        rules
            .chain(watches)
            .map(|candidate| self.conditions(candidate))
            .collect()
    }
}

fn tool_urls(matching: &Match, tools: &ToolNames) -> Box<[UrlGlobs]> {
    let tool = matching.tool.as_deref();
    tool.map_or_else(Vec::new, |tool| tools.urls_of(&tool.name))
        .into()
}
