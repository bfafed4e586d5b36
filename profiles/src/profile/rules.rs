//! From raw rules to typed ones.

use std::sync::Arc;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::ids::Ids;
use super::located::At;
use super::modes::{self, Mode};
use super::raw::RawRule;
use super::reader::Reader;
use super::{conditions, triggers};
use crate::error::{did_you_mean, words};
use crate::fault::Fault;
use crate::faults::llm::LlmFault;
use crate::faults::network::NetworkFault;
use crate::faults::tool::ToolFault;
use crate::glob::UrlGlobs;
use crate::rule::{Family, Origin, Rule};

/// A rule with its family and its place in that family's list.
type Written<'a> = (Family, usize, &'a At<Box<RawRule>>);

/// Reads the rules of a profile, noting what is wrong with them.
pub(crate) fn read(owner: &str, written: &[Written<'_>], reader: &mut Reader) -> Vec<Arc<Rule>> {
    let mut ids = Ids::default();
    let mut rules = Vec::with_capacity(written.len());
    for (family, index, raw) in written {
        let place = format!("{}/{index}", family.as_str());
        let rule = reader.below(&place, |reader| {
            read_rule(owner, *family, raw, &mut ids, reader)
        });
        rules.extend(rule);
    }
    name_tools(&mut rules, written);
    rules.into_iter().map(Arc::new).collect()
}

fn read_rule(
    owner: &str,
    family: Family,
    at: &At<Box<RawRule>>,
    ids: &mut Ids,
    reader: &mut Reader,
) -> Option<Rule> {
    let raw = &at.value;
    let mode = read_mode(family, at, reader)?;
    refuse_foreign_parameters(mode, raw, reader);
    let matching = conditions::read(raw, mode, reader);
    let trigger = triggers::read(raw, reader);
    let fault = match family {
        Family::Network => NetworkFault::read(mode.name, raw, reader).map(Fault::Network),
        Family::Tool => ToolFault::read(mode.name, raw, reader).map(Fault::Tool),
        Family::Llm => LlmFault::read(mode.name, raw, reader).map(Fault::Llm),
        Family::Context => None,
    };
    let fault = fault?;
    refuse_status_too_late(mode, raw, &fault, reader);
    let parameters = Value::Object(fault.parameters());
    let conditions = Value::Object(conditions::written(raw, mode));
    let text = json!([
        family.as_str(),
        mode.name,
        conditions,
        parameters,
        Value::Object(triggers::written(raw))
    ]);
    let id = match &raw.id {
        Some(id) => ids.given(id, reader),
        None => ids.made(mode.name, &conditions, &parameters),
    };
    Some(Rule {
        id,
        profile: owner.to_owned(),
        family,
        mode: mode.name,
        origin: Origin {
            file: reader.file.clone(),
            position: at.position,
            pointer: reader.pointer.as_str().into(),
        },
        matching,
        trigger,
        fault,
        secrets: reader.secrets.clone(),
        text: xxh3_64(text.to_string().as_bytes()),
    })
}

/// The mode of a rule; what this version knows but cannot do is refused here.
fn read_mode(family: Family, at: &At<Box<RawRule>>, reader: &mut Reader) -> Option<&'static Mode> {
    let can = modes::of_family(family)
        .filter(|mode| mode.available)
        .map(|mode| mode.name);
    let here = family.as_str();
    let Some(found) = &at.value.mode else {
        let message = format!(
            "a rule needs `mode`; allowed in `{here}` are {}",
            words(can)
        );
        reader.error("", at.position, message);
        return None;
    };
    let Some(mode) = modes::find(family, &found.value) else {
        let hint = match modes::families_of(&found.value).first() {
            Some(other) => format!(", a mode of `{}`.", other.as_str()),
            None => did_you_mean(&found.value, modes::of_family(family).map(|mode| mode.name)),
        };
        let (hint, lead) = if hint.is_empty() {
            (";", "allowed")
        } else {
            (&*hint, "Allowed")
        };
        let message = format!(
            "unknown fault mode `{}`{hint} {lead} in `{here}` are {}",
            found.value,
            words(can)
        );
        reader.error("mode", found.position, message);
        return None;
    };
    if !mode.available {
        let message = not_yet(&format!("fault mode `{}`", mode.name));
        reader.error("mode", found.position, message);
        return None;
    }
    Some(mode)
}

fn not_yet(what: &str) -> String {
    format!("{what}: this version of Squall cannot inject it yet; take it out")
}

/// Parameters that the mode does not use, and those that are only words so far.
fn refuse_foreign_parameters(mode: &Mode, raw: &RawRule, reader: &mut Reader) {
    for (field, position) in raw.written() {
        let later = match field {
            "at" if mode.family == Family::Tool => {
                raw.at.as_ref().is_some_and(|at| at.value == "model_input")
            }
            _ => false,
        };
        if later {
            reader.error(field, position, not_yet("`at: model_input`"));
        } else if !mode.takes(field) {
            let users = words(modes::Mode::users_of(mode.family, field));
            let plural = if users.contains(", ") { "s" } else { "" };
            let message = format!(
                "`{field}` belongs to mode{plural} {users}; mode `{}` does not use it",
                mode.name
            );
            reader.error(field, position, message);
        }
    }
}

/// A `status` to match on is only there once the upstream has answered; then it is too late for
/// what happens before.
fn refuse_status_too_late(mode: &Mode, raw: &RawRule, fault: &Fault, reader: &mut Reader) {
    let Some(status) = &raw.status else { return };
    let alone = fault.alone();
    let too_late =
        alone.instead.is_some() || !alone.wait_before.is_empty() || alone.shape.up.is_some();
    if too_late {
        let message = format!(
            "`status` is the upstream's answer, and mode `{}` acts before there is one; \
             leave it out, or choose a mode that changes the answer",
            mode.name
        );
        reader.error("status", status.position, message);
    }
}

/// A rule that has both `tool` and `match_url` gives the URL that name for the whole of its file.
fn name_tools(rules: &mut [Rule], written: &[Written<'_>]) {
    let named: Vec<(&str, Vec<&str>)> = written
        .iter()
        .filter_map(|(_, _, raw)| {
            let tool = raw.value.tool.as_ref()?.value.as_str();
            let urls = raw.value.match_url.as_ref()?;
            let urls = urls.value.0.iter().map(|url| url.value.as_str()).collect();
            (!tool.contains(['*', '{'])).then_some((tool, urls))
        })
        .collect();
    if named.is_empty() {
        return;
    }
    for rule in rules {
        let armed_by = match rule.trigger.armed_by.as_deref_mut() {
            Some(crate::trigger::ArmedBy::Exchange(matching)) => matching.tool.as_deref_mut(),
            Some(crate::trigger::ArmedBy::Rule { .. }) | None => None,
        };
        for tool in rule
            .matching
            .tool
            .as_deref_mut()
            .into_iter()
            .chain(armed_by)
        {
            let urls = named.iter().filter(|(name, _)| tool.name.matches(name));
            // Globs that do not compile were reported with the rule they stand in.
            tool.urls =
                UrlGlobs::new(urls.flat_map(|(_, urls)| urls.iter().copied())).unwrap_or_default();
        }
    }
}
