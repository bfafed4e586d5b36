//! Rules that fire and are always bypassed.

use super::urls;
use crate::dice::Dice;
use crate::facts::Kind;
use crate::family::Family;
use crate::fault::Fault;
use crate::faults::llm_stream::gaps;
use crate::plan::{Bypass, Plan};
use crate::rule::Rule;

/// Why a rule's fault never has an effect on what the rule matches, and what to write instead.
pub(super) fn never_acts(rule: &Rule) -> Option<String> {
    no_form(rule)
        .or_else(|| no_handshake(rule))
        .or_else(|| nothing_to_do(&*rule.fault))
}

/// A model fault that is not supported for the answers that the rule matches.
fn no_form(rule: &Rule) -> Option<String> {
    if rule.family() != Family::Llm {
        return None;
    }
    let more = rule.matching.more.as_ref()?;
    let stream = more.stream?;
    let gap = gaps::gap(rule.mode(), stream, more.dialect.as_deref())?;
    let form = if stream { "streams" } else { "whole answers" };
    let of = gap
        .dialect
        .map_or_else(String::new, |name| format!(" of `{name}`"));
    let advice = match gaps::gap(rule.mode(), !stream, more.dialect.as_deref()) {
        Some(_) => "match another `dialect`".to_owned(),
        None => format!(
            "leave out `stream: {stream}` or write `stream: {}`",
            !stream
        ),
    };
    Some(format!(
        "`{}` is not supported in {form}{of} ({}); {advice}",
        rule.mode(),
        gap.why
    ))
}

/// A failing handshake is decided at the CONNECT to an `https` origin; later it is too late.
fn no_handshake(rule: &Rule) -> Option<String> {
    let globs = rule.matching.urls.alternatives();
    let can_act = !rule.matching.asks_for_an_exchange()
        && (globs.is_empty() || globs.iter().any(|glob| urls::is_of_an_https_origin(glob)));
    (rule.fault_mode.is_of_the_handshake() && !can_act).then(|| {
        "a TLS handshake fails before there is a request to match on; write only `match_url`, \
         with a whole origin such as `https://HOST/*`"
            .to_owned()
    })
}

/// A fault that has nothing to do, whatever the exchange: no wait, for one.
fn nothing_to_do(fault: &dyn Fault) -> Option<String> {
    if fault.needs_fingerprint() {
        return None;
    }
    let bypassed = |kind| {
        let written = fault.apply(&mut Plan::default(), 0, kind, &mut Dice::unrolled());
        match written {
            Err(Bypass::Because(why)) => Some(why),
            Ok(()) | Err(Bypass::Taken(..)) => None,
        }
    };
    bypassed(Kind::Tool).and(bypassed(Kind::Llm))
}
