//! What is allowed in a profile and still surely not meant.

use crate::error::ProfileError;
use crate::faults::llm_stream::gaps;
use crate::library::Library;
use crate::matching::{Match, Touches};
use crate::plan::{Plan, Substitute};
use crate::profile::Profile;
use crate::rule::{Family, Rule};
use crate::tools::ToolNames;

/// Rules that shadow each other, rules that can never match, fire or act, and a profile that would do
/// nothing, each with its line. Empty: nothing to report. `tools` are the names the config gives.
///
/// What is wrong between profiles (`extends`, `armed_by`) is reported too, and then nothing else.
pub fn validate(profile: &Profile, library: &Library, tools: &ToolNames) -> Vec<ProfileError> {
    let rules = match library.rule_set_of(profile, tools) {
        Ok(rules) => rules,
        Err(error) => return vec![error],
    };
    let rules = rules.rules();
    let mut findings = Vec::new();
    let mut idle = 0;
    for (number, rule) in rules.iter().enumerate() {
        let never = never_fires(rule)
            .or_else(|| never_matches(rule))
            .or_else(|| never_acts(rule));
        idle += usize::from(never.is_some());
        let doubt = never.or_else(|| unknown_tool(rule, tools));
        let doubt = doubt.or_else(|| shadowed(rule, rules[..number].iter().map(AsRef::as_ref)));
        findings.extend(doubt.map(|message| ProfileError {
            file: rule.origin.file.to_string(),
            position: rule.origin.position,
            pointer: rule.origin.pointer.to_string(),
            message,
        }));
    }
    if idle == rules.len() {
        let why = if rules.is_empty() {
            "it has no rules"
        } else {
            "none of its rules can fire"
        };
        findings.push(ProfileError {
            position: crate::error::Position { line: 1, column: 1 },
            ..ProfileError::whole(
                &profile.file,
                format!("this profile would do nothing: {why}"),
            )
        });
    }
    findings
}

fn never_fires(rule: &Rule) -> Option<String> {
    let why = rule.trigger.never_fires()?;
    Some(format!("rule `{}` can never fire: {why}", rule.id))
}

fn never_matches(rule: &Rule) -> Option<String> {
    let matching = &rule.matching;
    let of_models = matching.more.as_ref().is_some_and(|more| {
        more.dialect.is_some() || more.model.is_some() || more.stream.is_some()
    });
    let urls = matching.urls.alternatives();
    let why = if !urls.is_empty() && !urls.iter().any(|glob| can_be_a_url(glob)) {
        format!(
            "`match_url` is matched against the whole URL, and none begins like `{}`; \
             write `{}`",
            urls[0],
            with_scheme(&urls[0])
        )
    } else if touches_model_calls(rule)
        && matching.tool.is_some()
        && matching.touches != Touches::Results
    {
        let touching = match rule.family {
            Family::Context => format!("`{}` touches", rule.mode),
            Family::Network | Family::Tool | Family::Llm => "`llm_faults` touch".to_owned(),
        };
        let which = match rule.family {
            Family::Llm => {
                "; it chooses a call in the model's answer for `malformed_tool_call`, \
                 `unknown_tool_call` and `wrong_tool_arguments`"
            }
            Family::Context | Family::Network | Family::Tool => "",
        };
        format!("`tool` names tools, and {touching} model calls{which}")
    } else if rule.family == Family::Tool
        && of_models
        && urls.is_empty()
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

/// A model fault about calls whose answers it has no form in.
fn never_acts(rule: &Rule) -> Option<String> {
    if rule.family != Family::Llm {
        return None;
    }
    let more = rule.matching.more.as_ref()?;
    let stream = more.stream?;
    let gap = gaps::gap(rule.mode, stream, more.dialect.as_deref())?;
    let form = if stream { "streams" } else { "whole answers" };
    let of = gap
        .dialect
        .map_or_else(String::new, |name| format!(" of `{name}`"));
    Some(format!(
        "rule `{}` can never act: `{}` has no form in {form}{of} ({}); leave out `stream: {stream}` \
         or write `stream: {}`",
        rule.id, rule.mode, gap.why, !stream
    ))
}

/// A glob that begins like no URL, with what is missing at its beginning.
fn with_scheme(glob: &str) -> String {
    if let Some(rest) = glob.strip_prefix("//") {
        format!("*://{rest}")
    } else if glob.starts_with('/') {
        // A path: on any host.
        format!("*://*{glob}")
    } else {
        format!("*://{glob}")
    }
}

/// Whether some URL begins as the glob does.
fn can_be_a_url(glob: &str) -> bool {
    let begin = glob
        .split('*')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    ["http://", "https://"].iter().any(|scheme| {
        begin.starts_with(scheme) || (begin.len() < glob.len() && scheme.starts_with(&begin))
    })
}

/// A tool's name that neither the config nor the file gives to a URL.
fn unknown_tool(rule: &Rule, tools: &ToolNames) -> Option<String> {
    let tool = rule.matching.tool.as_deref()?;
    // Tools inside the agent go by the name that the model calls them.
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

/// An earlier rule that always decides the answer of every exchange this one matches.
fn shadowed<'a>(rule: &Rule, earlier: impl Iterator<Item = &'a Rule>) -> Option<String> {
    let wants = rule.fault.alone();
    let mut earlier =
        earlier.filter(|other| other.trigger.is_unconditional() && !other.fault.waits_for_use());
    let by = earlier.find(|other| {
        leaves_nothing_for(&other.fault.alone(), &wants)
            && families_cover(other, rule)
            && covers(&other.matching, &rule.matching)
    })?;
    let (at, from) = (&by.origin, &rule.origin);
    let place = if at.file == from.file {
        format!("on line {}", at.position.line)
    } else {
        format!("in {}:{}", at.file, at.position.line)
    };
    Some(format!(
        "rule `{}` never has its way: rule `{}` {place} always decides the answer first",
        rule.id, by.id
    ))
}

/// Whether a rule that has decided the answer leaves the other nothing to do.
fn leaves_nothing_for(decided: &Plan, wants: &Plan) -> bool {
    let needs_the_answer =
        wants.instead.is_some() || wants.afterwards.is_some() || !wants.edits.is_empty();
    match (&decided.instead, &decided.afterwards) {
        (Some(_), _) => {
            needs_the_answer || !wants.wait_after.is_empty() || !wants.request_edits.is_empty()
        }
        (None, Some((_, Substitute::Answer(_) | Substitute::Reset))) => needs_the_answer,
        // With nothing to reuse these two give way.
        (None, Some((_, Substitute::Stale | Substitute::Swapped)) | None) => false,
    }
}

/// Whether the kinds of exchange that `rule` touches are among those of `by`.
fn families_cover(by: &Rule, rule: &Rule) -> bool {
    match by.family {
        Family::Network => true,
        Family::Tool if !by.matching.urls.is_empty() => true,
        // Without a URL a tool's rule touches tools only; so does one of the same form.
        Family::Tool => {
            rule.family == Family::Tool
                && rule.matching.urls.is_empty()
                && !rule.matching.touches.in_results()
        }
        Family::Llm => touches_model_calls(rule),
        Family::Context => rule.family == by.family,
    }
}

/// Whether a rule touches nothing but model calls.
fn touches_model_calls(rule: &Rule) -> bool {
    match rule.family {
        Family::Network => false,
        Family::Tool => rule.matching.touches == Touches::Results,
        Family::Llm => true,
        Family::Context => rule.matching.touches != Touches::Either,
    }
}

/// Whether every exchange that meets `narrow` meets `wide` too, as far as that can be told from the
/// conditions alone.
fn covers(wide: &Match, narrow: &Match) -> bool {
    // A glob that matches another one's text, its stars taken for letters, matches all it matches.
    let urls = wide.urls.is_empty()
        || (!narrow.urls.is_empty()
            && narrow.urls.alternatives().iter().all(|narrow| {
                wide.urls
                    .alternatives()
                    .iter()
                    .any(|wide| crate::glob::matches(wide, narrow, 0))
            }));
    let tool = match (&wide.tool, &narrow.tool) {
        (None, _) => true,
        (Some(wide), Some(narrow)) => wide.name == narrow.name || wide.name.is_everything(),
        (Some(wide), None) => wide.name.is_everything() && narrow.urls.is_empty(),
    };
    let methods = wide.methods.as_ref().is_none_or(|wide| {
        narrow
            .methods
            .as_ref()
            .is_some_and(|narrow| narrow.iter().all(|one| wide.contains(one)))
    });
    urls && tool && methods && wide.status.is_none() && wide.more.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_a_glob_without_a_scheme_can_match() {
        for (glob, advised, url) in [
            ("/api/*", "*://*/api/*", "https://a.example/api/x"),
            ("//a.example/*", "*://a.example/*", "https://a.example/x"),
            ("a.example/*", "*://a.example/*", "http://a.example/x"),
        ] {
            assert!(!can_be_a_url(glob), "{glob}");
            assert_eq!(with_scheme(glob), advised);
            assert!(can_be_a_url(advised), "{advised}");
            assert!(crate::glob::matches(advised, url, 0), "{advised} at {url}");
        }
    }
}
