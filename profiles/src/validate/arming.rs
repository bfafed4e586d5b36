//! Rules that wait for what never happens.
//!
//! A rule that fires arms others, whatever becomes of its fault then: what counts here is whether it can
//! match and fire, not whether it can act.

use std::collections::HashMap;
use std::sync::Arc;

use super::{place, urls};
use crate::rule::Rule;
use crate::trigger::ArmedBy;

/// Who arms whom, among the rules of a set.
pub(super) struct Arming<'a> {
    rules: &'a [Arc<Rule>],
    /// Of each rule the one that arms it.
    by: Vec<Option<usize>>,
}

impl<'a> Arming<'a> {
    pub(super) fn among(rules: &'a [Arc<Rule>]) -> Self {
        let numbers: HashMap<&str, usize> = (rules.iter().enumerate())
            .map(|(number, rule)| (&*rule.id, number))
            .collect();
        let by = rules
            .iter()
            .map(|rule| match rule.trigger.armed_by.as_deref()? {
                ArmedBy::Rule { id, .. } => numbers.get(&**id).copied(),
                ArmedBy::Exchange(_) => None,
            });
        Self {
            by: by.collect(),
            rules,
        }
    }

    /// Why a rule is never armed by others, if it is not. `is_never` says of each rule whether it can never
    /// fire for reasons of its own.
    pub(super) fn never_arms(&self, rule: usize, is_never: &[bool]) -> Option<String> {
        let mut chain = vec![rule];
        let armed_by = self.by[rule]?;
        let mut next = armed_by;
        while next != rule {
            // A ring that the rule is no part of is walked until the chain is longer than the set.
            if is_never[next] || chain.len() > self.rules.len() {
                return Some(format!(
                    "it is armed by rule `{}` {}, which can never fire",
                    self.rules[armed_by].id,
                    place(&self.rules[armed_by], &self.rules[rule])
                ));
            }
            chain.push(next);
            next = self.by[next]?;
        }
        Some(self.ring(&chain))
    }

    /// Rules each of which is armed by the next, and the last by the first.
    fn ring(&self, chain: &[usize]) -> String {
        let first = &self.rules[chain[0]];
        let others: Vec<String> = chain[1..]
            .iter()
            .map(|rule| {
                let rule = &self.rules[*rule];
                format!("rule `{}` {}", rule.id, place(rule, first))
            })
            .collect();
        if others.is_empty() {
            return "`armed_by` names the rule itself, so it would have to fire before it first fires; \
                    name another rule, or leave `armed_by` out"
                .to_owned();
        }
        format!(
            "it is armed by {}, and that by this rule, so none of them is the first to fire; leave \
             `armed_by` out of one",
            others.join(", that by ")
        )
    }
}

/// Why the exchange that arms a rule never takes place, if it does not.
pub(super) fn never_takes_place(rule: &Rule) -> Option<String> {
    match rule.trigger.armed_by.as_deref()? {
        ArmedBy::Exchange(matching) => {
            let why = urls::impossible(&matching.urls)?;
            Some(format!("no exchange is like its `armed_by`: {why}"))
        }
        ArmedBy::Rule { .. } => None,
    }
}
