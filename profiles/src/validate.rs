//! Checks for valid profiles that probably do not do what was intended.

mod shadows;

use std::collections::HashMap;
use std::sync::Arc;

use crate::dice::Dice;
use crate::facts::Kind;
use crate::family::Family;
use crate::glob::UrlGlobs;
use crate::library::Library;
use crate::matching::Touches;
use crate::plan::{Bypass, Plan};
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
        let acting = rules.iter().zip(&idle).take(number);
        let acting = acting.filter_map(|(rule, idle)| idle.is_none().then_some(&**rule));
        let doubt = (idle[number].clone())
            .or_else(|| misspelt_tool(rule, tools))
            .or_else(|| shadows::shadowed(rule, acting));
        let ignored = words(rule.ignored.iter().copied());
        let ignored = (!ignored.is_empty()).then(|| format!("ignores {ignored}"));
        findings.extend(doubt.into_iter().chain(ignored).map(|what| DocumentError {
            file: rule.origin.file.to_string(),
            position: rule.origin.position,
            pointer: rule.origin.pointer.to_string(),
            message: format!("rule `{}` {what}", rule.id),
        }));
    }
    findings.extend(does_nothing(profile, &idle));
    findings
}

/// Why no URL matches a glob; `None` if some may, or if the glob is invalid.
pub fn no_url_matches(glob: &str) -> Option<String> {
    impossible(&UrlGlobs::new([glob]).ok()?)
}

/// For each rule, why it never has an effect, if so.
fn idle(rules: &[Arc<Rule>]) -> Vec<Option<String>> {
    let never: Vec<_> = (rules.iter())
        .map(|rule| {
            let fires = never_fires(rule).map(|why| format!("can never fire: {why}"));
            fires.or_else(|| Some(format!("can never match: {}", never_matches(rule)?)))
        })
        .collect();
    let armed = armed(rules, &never);
    let because = |(number, never): (usize, Option<String>)| {
        let unarmed = (!armed[number]).then(|| {
            "can never fire: `armed_by` names a rule that never fires before this one; name another, or leave \
             `armed_by` out"
                .to_owned()
        });
        let acting = || Some(format!("can never act: {}", never_acts(&rules[number])?));
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
        idle if idle.iter().all(Option::is_some) => "none of its rules has an effect",
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

fn never_fires(rule: &Rule) -> Option<String> {
    rule.trigger.never_fires().or_else(|| {
        let Some(ArmedBy::Exchange(matching)) = rule.trigger.armed_by.as_deref() else {
            return None;
        };
        let why = impossible(&matching.urls)?;
        Some(format!("no exchange is like its `armed_by`: {why}"))
    })
}

fn never_matches(rule: &Rule) -> Option<String> {
    let matching = &rule.matching;
    if let Some(why) = impossible(&matching.urls) {
        return Some(why);
    }
    if matching.touches == Touches::Results {
        return None;
    }
    let of_models =
        matching.dialect.is_some() || matching.model.is_some() || matching.stream.is_some();
    let of_tools = rule.family() == Family::Tool && matching.urls.is_empty();
    if touches_model_calls(rule) && matching.tool.is_some() {
        Some("it covers model calls, and `tool` selects tool calls".to_owned())
    } else if of_tools && of_models {
        let why = "`dialect`, `model` and `stream` select model calls, and `tool_faults` without `match_url` cover \
                   tool calls";
        Some(why.to_owned())
    } else {
        None
    }
}

/// Why a rule's fault never has an effect on what the rule matches.
fn never_acts(rule: &Rule) -> Option<String> {
    let matching = &rule.matching;
    if rule.fault.needs_a_stream && matching.stream == Some(false) {
        let mode = rule.mode();
        return Some(format!(
            "`{mode}` only changes streams; leave out `stream: false`"
        ));
    }
    let urls = matching.urls.alternatives();
    let whole_origin = urls.is_empty() || urls.iter().any(|glob| glob.ends_with('*'));
    if rule.fault_mode.is_of_the_handshake() && (matching.asks_for_an_exchange() || !whole_origin) {
        let why = "a TLS handshake fails before there is a request to match on; write only `match_url`, with a whole \
                   origin such as `https://HOST/*`";
        return Some(why.to_owned());
    }
    if rule.fault.needs_fingerprint {
        return None;
    }
    // A fault that has nothing to do, whatever the exchange: no wait, for one.
    let bypassed = |kind| {
        let plan = &mut Plan::default();
        match rule.fault.apply(plan, 0, kind, &mut Dice::unrolled()) {
            Err(Bypass::Because(why)) => Some(why),
            Ok(()) | Err(Bypass::Taken(..)) => None,
        }
    };
    bypassed(Kind::Tool).and(bypassed(Kind::Llm))
}

/// Why no URL matches any of these globs; `None`: some may.
fn impossible(globs: &UrlGlobs) -> Option<String> {
    let globs = globs.alternatives();
    let glob = globs.first()?;
    let none = !globs.iter().any(|glob| can_be_a_url(glob));
    none.then(|| {
        format!(
            "`{glob}` matches no URL; `match_url` covers the whole URL without a fragment: begin it with `https://` \
             or `*`"
        )
    })
}

/// Whether the glob, up to its first star, matches the beginning of a URL.
fn can_be_a_url(glob: &str) -> bool {
    let head = glob.split('*').next().unwrap_or_default();
    let head = head.to_ascii_lowercase();
    let begins = |scheme: &str| {
        head.starts_with(scheme) || (head.len() < glob.len() && scheme.starts_with(&head))
    };
    !glob.contains('#') && (begins("http://") || begins("https://"))
}

/// Reports a tool name that resembles one of the config's. Any other name may be an MCP tool's.
fn misspelt_tool(rule: &Rule, tools: &ToolNames) -> Option<String> {
    let tool = rule.matching.tool.as_deref()?;
    let known = !rule.matching.urls.is_empty()
        || !tool.urls.is_empty()
        || !tools.urls_of(&tool.name).is_empty();
    if tool.is_agent && !known {
        return Some(format!(
            "is about `to: {}`, which `agents:` lacks",
            tool.name
        ));
    }
    let hint = tools.did_you_mean(tool.name.as_str());
    (!known && !hint.is_empty())
        .then(|| format!("has the tool `{}`, which `tools:` lacks{hint}", tool.name))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::CanonicalUrl;

    fn written_globs() -> impl proptest::strategy::Strategy<Value = String> {
        "(https|http|h|\\*|ftp)?(\\*|:|://|://a)?(a|/|\\*|x|b:8){0,5}"
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2048))]

        #[test]
        fn no_glob_that_matches_is_called_impossible(
            glob in written_globs(),
            scheme in "https?",
            authority in "[abx]{1,2}(:8)?",
            path in "/[abx/]{0,3}",
        ) {
            let Ok(globs) = UrlGlobs::new([&*glob]) else { return Ok(()) };
            if globs.matches(&CanonicalUrl::new(&scheme, &authority, &path)) {
                proptest::prop_assert_eq!(impossible(&globs), None);
            }
        }
    }
}
