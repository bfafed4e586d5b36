//! Checks for valid profiles that probably do not do what was intended.

mod acting;
mod shadows;
mod urls;

use std::collections::HashMap;
use std::sync::Arc;

use crate::family::Family;
use crate::glob::UrlGlobs;
use crate::library::Library;
use crate::matching::Touches;
use crate::profile::Profile;
use crate::rule::Rule;
use crate::tools::ToolNames;
use crate::trigger::ArmedBy;
use squall_documents::{DocumentError, Position, words};

/// Reports rules that shadow each other, rules that can never match, fire or act, and a profile
/// without any effect, each with its line. Empty: nothing to report. `tools` are the config's
/// names.
///
/// Errors between profiles (`extends`, `armed_by`) are also reported; then the other checks are
/// skipped.
pub fn validate(profile: &Profile, library: &Library, tools: &ToolNames) -> Vec<DocumentError> {
    let rules = match library.rule_set_of(profile, tools) {
        Ok(rules) => rules,
        Err(error) => return vec![error],
    };
    let rules = rules.rules();
    let idle = idle(rules);
    let mut findings = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        let doubt = idle[number].clone().or_else(|| unknown_tool(rule, tools));
        let acting = rules.iter().zip(&idle).take(number);
        let acting = acting.filter_map(|(rule, idle)| idle.is_none().then_some(&**rule));
        let doubt = doubt.or_else(|| shadows::shadowed(rule, acting));
        findings.extend(doubt.map(|message| DocumentError {
            file: rule.origin.file.to_string(),
            position: rule.origin.position,
            pointer: rule.origin.pointer.to_string(),
            message,
        }));
    }
    findings.extend(rules.iter().filter_map(|rule| ignored(rule)));
    findings.extend(rules.iter().filter_map(|rule| overridden(rule)));
    findings.extend(does_nothing(profile, &idle));
    findings
}

/// Why no URL matches a glob, and a suggestion; `None` if some may, or if the glob is invalid.
pub fn no_url_matches(glob: &str) -> Option<String> {
    urls::impossible(&UrlGlobs::new([glob]).ok()?)
}

/// Reports ignored parameters of a rule.
fn ignored(rule: &Rule) -> Option<DocumentError> {
    let fields = words(rule.ignored.iter().copied());
    let verb = if rule.ignored.len() == 1 { "is" } else { "are" };
    let parameters = rule.fault.parameters();
    let drift_type = parameters.get("drift_type").and_then(|it| it.as_str());
    let form = drift_type.map_or_else(String::new, |drift| format!(" with `drift_type: {drift}`"));
    let mode = rule.mode();
    let message = format!("{fields} {verb} ignored by mode `{mode}`{form}");
    (!rule.ignored.is_empty()).then(|| finding(rule, &message))
}

/// Reports a parameter that another one overrides.
fn overridden(rule: &Rule) -> Option<DocumentError> {
    let (field, by) = rule.overridden?;
    Some(finding(
        rule,
        &format!("`{by}` is used, and `{field}` is ignored"),
    ))
}

fn finding(rule: &Rule, what: &str) -> DocumentError {
    DocumentError {
        file: rule.origin.file.to_string(),
        position: rule.origin.position,
        pointer: rule.origin.pointer.to_string(),
        message: format!("rule `{}`: {what}", rule.id),
    }
}

/// For each rule, why it never has an effect, if so.
fn idle(rules: &[Arc<Rule>]) -> Vec<Option<String>> {
    let never: Vec<_> = (rules.iter())
        .map(|rule| never_fires(rule).or_else(|| never_matches(rule)))
        .collect();
    let armed = armed(rules, &never);
    let because = |(number, never): (usize, Option<String>)| {
        let rule = &rules[number];
        let unarmed = (!armed[number]).then(|| {
            "`armed_by` names a rule that never fires before this one; name another, or leave `armed_by` out"
                .to_owned()
        });
        let unarmed = unarmed.map(|why| format!("rule `{}` can never fire: {why}", rule.id));
        let acting = || {
            let why = acting::never_acts(rule)?;
            Some(format!("rule `{}` can never act: {why}", rule.id))
        };
        never.or(unarmed).or_else(acting)
    };
    never.into_iter().enumerate().map(because).collect()
}

/// Whether each rule can be armed. A rule that fires arms others, even if its fault has no effect.
fn armed(rules: &[Arc<Rule>], never: &[Option<String>]) -> Vec<bool> {
    let numbers = rules.iter().enumerate();
    let numbers: HashMap<&str, usize> = numbers.map(|(at, rule)| (&*rule.id, at)).collect();
    let by: Vec<_> = (rules.iter())
        .map(|rule| match rule.trigger.armed_by.as_deref() {
            Some(ArmedBy::Rule { id, .. }) => numbers.get(&**id).copied(),
            Some(ArmedBy::Exchange(_)) | None => None,
        })
        .collect();
    let mut armed: Vec<bool> = by.iter().map(Option::is_none).collect();
    // A chain of rules is at most as long as the list.
    for _ in rules {
        for (rule, by) in by.iter().enumerate() {
            armed[rule] |= by.is_some_and(|by| armed[by] && never[by].is_none());
        }
    }
    armed
}

/// Reports a profile in which no rule has an effect.
fn does_nothing(profile: &Profile, idle: &[Option<String>]) -> Option<DocumentError> {
    let why = match idle {
        [] => "it has no rules",
        idle if idle.iter().all(Option::is_some) => "none of its rules can do anything",
        _ => return None,
    };
    Some(DocumentError {
        position: Position { line: 1, column: 1 },
        ..DocumentError::whole(
            &profile.file,
            format!("this profile would do nothing: {why}"),
        )
    })
}

/// The place of one rule, relative to another.
fn place(of: &Rule, seen_from: &Rule) -> String {
    let (of, from) = (&of.origin, &seen_from.origin);
    if of.file == from.file {
        format!("on line {}", of.position.line)
    } else {
        format!("in {}:{}", of.file, of.position.line)
    }
}

fn never_fires(rule: &Rule) -> Option<String> {
    let why = (rule.trigger.never_fires()).or_else(|| never_takes_place(rule))?;
    Some(format!("rule `{}` can never fire: {why}", rule.id))
}

/// Why the exchange that arms a rule never takes place, if so.
fn never_takes_place(rule: &Rule) -> Option<String> {
    match rule.trigger.armed_by.as_deref()? {
        ArmedBy::Exchange(matching) => {
            let why = urls::impossible(&matching.urls)?;
            Some(format!("no exchange is like its `armed_by`: {why}"))
        }
        ArmedBy::Rule { .. } => None,
    }
}

fn never_matches(rule: &Rule) -> Option<String> {
    let matching = &rule.matching;
    let of_models = matching.more.as_ref().is_some_and(|more| {
        more.dialect.is_some() || more.model.is_some() || more.stream.is_some()
    });
    let why = if let Some(why) = urls::impossible(&matching.urls) {
        why
    } else if touches_model_calls(rule)
        && matching.tool.is_some()
        && matching.touches != Touches::Results
    {
        let touching = match rule.family() {
            Family::Context => format!("`{}` touches", rule.mode()),
            Family::Network | Family::Tool | Family::Llm => "`llm_faults` touch".to_owned(),
        };
        let which = match rule.family() {
            Family::Llm => {
                "; it chooses a call in the model's answer for `malformed_tool_call`, \
                 `unknown_tool_call` and `wrong_tool_arguments`"
            }
            Family::Context | Family::Network | Family::Tool => "",
        };
        format!("`tool` names tools, and {touching} model calls{which}")
    } else if rule.family() == Family::Tool
        && of_models
        && matching.urls.is_empty()
        && matching.touches != Touches::Results
    {
        "`dialect`, `model` and `stream` belong to model calls, and without `match_url` \
         `tool_faults` touch tools"
            .to_owned()
    } else {
        return None;
    };
    Some(format!("rule `{}` can never match: {why}", rule.id))
}

/// Reports a tool name without a URL in the config and in the file.
fn unknown_tool(rule: &Rule, tools: &ToolNames) -> Option<String> {
    let tool = rule.matching.tool.as_deref()?;
    // Models call tools inside the agent by name, so they need no URL.
    let known = rule.matching.touches.in_results()
        || !rule.matching.urls.is_empty()
        || !tool.urls.is_empty()
        || tool.name.is_everything()
        || !tools.urls_of(&tool.name).is_empty();
    (!known).then(|| {
        format!(
            "rule `{}` matches nothing but MCP tools called `{}`: no `tools:` entry and no rule \
             with `match_url` gives a URL that name",
            rule.id, tool.name
        )
    })
}

/// Whether a rule only affects model calls.
fn touches_model_calls(rule: &Rule) -> bool {
    match rule.family() {
        Family::Network => false,
        Family::Tool => rule.matching.touches == Touches::Results,
        Family::Llm => true,
        Family::Context => rule.matching.touches != Touches::Either,
    }
}
