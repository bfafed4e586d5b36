//! From raw rules to typed ones.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::ids::Ids;
use super::modes::{self, Mode};
use super::raw::RawRule;
use super::reader::Reader;
use super::{conditions, triggers};
use crate::error::{self, Position, did_you_mean, words};
use crate::fault::Fault;
use crate::faults::context;
use crate::faults::tool::ON_THE_WIRE;
use crate::glob::{Glob, GlobError, UrlGlobs};
use crate::limits::Limited;
use crate::rule::{Family, Origin, Rule};

/// A rule as it was written.
pub(crate) struct Written<'a> {
    /// Whose it is.
    pub(crate) family: Family,
    /// Its place under the family's name: a number, or an attack's type.
    pub(crate) place: String,
    /// Its mode, where that is known without looking at `mode`.
    pub(crate) mode: Option<&'static Mode>,
    pub(crate) raw: &'a RawRule,
    pub(crate) position: Position,
}

/// Reads the rules of a profile, noting what is wrong with them.
pub(crate) fn read(owner: &str, written: &[Written<'_>], reader: &mut Reader) -> Vec<Arc<Rule>> {
    let mut ids = Ids::default();
    let mut rules = Vec::with_capacity(written.len());
    for written in written {
        if error::is_full(&reader.errors) {
            break;
        }
        if let Err(over) = reader.limits.take(Limited::Rules, 1) {
            reader.below(written.family.as_str(), |reader| {
                reader.error(&written.place, written.position, over.to_string());
            });
            break;
        }
        let rule = reader.below(written.family.as_str(), |reader| {
            reader.below(&written.place, |reader| {
                read_rule(owner, written, &mut ids, reader)
            })
        });
        rules.extend(rule);
    }
    name_tools(&mut rules, written, reader);
    rules.into_iter().map(Arc::new).collect()
}

fn read_rule(
    owner: &str,
    written: &Written<'_>,
    ids: &mut Ids,
    reader: &mut Reader,
) -> Option<Rule> {
    let (family, raw) = (written.family, written.raw);
    let known = written.mode.or_else(|| read_mode(written, reader));
    let trigger = triggers::read(raw, reader);
    // One that stands there is told of whatever else is wrong.
    let given = raw.id.as_ref().map(|id| ids.given(id, reader));
    let matching = conditions::read(raw, known, reader);
    let mode = known?;
    refuse_foreign_parameters(mode, raw, reader);
    let eclipsed = context::eclipsed(mode, raw);
    let fault = Fault::read(mode, raw, reader)?;
    let without_effect = without_effect(mode, raw, &fault);
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
    let id = given.unwrap_or_else(|| ids.made(mode.name, &conditions, &parameters));
    Some(Rule {
        id,
        profile: owner.to_owned(),
        family,
        mode: mode.name,
        origin: Origin {
            file: reader.file.clone(),
            position: reader.place(written.position),
            pointer: reader.pointer.as_str().into(),
        },
        matching,
        trigger,
        fault,
        without_effect,
        eclipsed,
        redactor: reader.redactor.clone(),
        text: xxh3_64(text.to_string().as_bytes()),
    })
}

/// Notes what is wrong with a rule whose mode is not known: all that does not hang on it.
pub(crate) fn look_over(raw: &RawRule, reader: &mut Reader) {
    triggers::read(raw, reader);
    conditions::read(raw, None, reader);
}

/// The mode of a rule.
fn read_mode(written: &Written<'_>, reader: &mut Reader) -> Option<&'static Mode> {
    let family = written.family;
    let can = modes::of_family(family).map(|mode| mode.name);
    let here = family.as_str();
    let Some(found) = &written.raw.mode else {
        let message = format!(
            "a rule needs `mode`; allowed in `{here}` are {}",
            words(can)
        );
        reader.error("", written.position, message);
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
    Some(mode)
}

/// Parameters that the mode does not use, and those that are only words so far.
fn refuse_foreign_parameters(mode: &Mode, raw: &RawRule, reader: &mut Reader) {
    for (field, position) in raw.written() {
        if mode.family == Family::Tool && conditions::in_model_input(raw) {
            refuse_outside_of_messages(mode, field, position, reader);
        } else if modes::is_of_attacks(field) && mode.family != Family::Context {
            let message = format!(
                "`{field}` belongs to `context_attacks`{}",
                match field {
                    "type" => "; other rules have a `mode`",
                    "trigger_probability" => "; other rules have a `probability`",
                    _ => "; take the rule out to switch it off",
                }
            );
            reader.error(field, position, message);
        } else if field == "at" && mode.family == Family::Tool && mode.can_be_told {
            let found = raw.at.as_ref().map_or("", |at| &at.value);
            let hint = did_you_mean(found, [conditions::MODEL_INPUT]);
            let message = format!(
                "`at: {found}`: with mode `{}` only `model_input` is allowed{hint}",
                mode.name
            );
            reader.error(field, position, message);
        } else if !mode.takes(field) && !modes::stands_beside_any(mode, field) {
            reader.error(field, position, foreign(mode, field));
        }
    }
}

/// Fields that flakestorm lets stand beside any of its modes, and that this one does not use.
fn without_effect(mode: &Mode, raw: &RawRule, fault: &Fault) -> Vec<&'static str> {
    let used = fault.parameters();
    let is_idle = |field: &str| {
        let foreign = !mode.takes(field) && modes::stands_beside_any(mode, field);
        foreign || (modes::is_of_some_forms(mode, field) && !used.contains_key(field))
    };
    let written = raw.written().into_iter().map(|(field, _)| field);
    written.filter(|field| is_idle(field)).collect()
}

/// The sentence for a parameter that the mode does not use.
fn foreign(mode: &Mode, field: &str) -> String {
    let users = words(modes::Mode::users_of(mode.family, field));
    let plural = if users.contains(", ") { "s" } else { "" };
    format!(
        "`{field}` belongs to mode{plural} {users}; mode `{}` does not use it",
        mode.name
    )
}

/// What a tool's fault may not have where it changes what the model is told.
fn refuse_outside_of_messages(mode: &Mode, field: &str, position: Position, reader: &mut Reader) {
    let message = match field {
        "at" if mode.can_be_told => return,
        "at" => format!(
            "`at: model_input` changes what the model is told of a tool's result, and mode `{}` is \
             about the wire; the modes that can are {}",
            mode.name,
            words(modes::that_can_be_told())
        ),
        _ if ON_THE_WIRE.contains(&field) => format!(
            "`{field}` belongs to answers on the wire; with `at: model_input` there is none"
        ),
        _ if mode.takes(field) => return,
        _ => foreign(mode, field),
    };
    reader.error(field, position, message);
}

/// A `status` to match on is only there once the upstream has answered; then it is too late for
/// what happens before.
fn refuse_status_too_late(mode: &Mode, raw: &RawRule, fault: &Fault, reader: &mut Reader) {
    let Some(status) = &raw.status else { return };
    let alone = fault.alone();
    let too_late = alone.instead.is_some()
        || !alone.wait_before.is_empty()
        || !alone.request_edits.is_empty()
        || alone.shape.up.is_some();
    if too_late {
        let message = format!(
            "`status` is the upstream's answer, and mode `{}` acts before there is one; \
             leave it out, or choose a mode that changes the answer",
            mode.name
        );
        reader.error("status", status.position, message);
    }
}

/// Whether `match_url` says where the model is, and not the tool.
fn url_is_of_the_model(written: &Written<'_>) -> bool {
    let named = written.raw.mode.as_ref();
    let mode = named.and_then(|mode| modes::find(written.family, &mode.value));
    conditions::in_model_input(written.raw) || mode.is_some_and(|mode| mode.of_calls)
}

/// A rule that has both `tool` and `match_url` gives the URL that name for the whole of its file.
fn name_tools(rules: &mut [Rule], written: &[Written<'_>], reader: &mut Reader) {
    let mut named: HashMap<&str, Vec<&str>> = HashMap::new();
    for written in written {
        let raw = written.raw;
        if let (Some(tool), Some(urls)) = (&raw.tool, &raw.match_url)
            && !tool.value.contains(['*', '{'])
            && !url_is_of_the_model(written)
        {
            let urls = urls.value.0.iter().map(|url| url.value.as_str());
            named.entry(&tool.value).or_default().extend(urls);
        }
    }
    if named.is_empty() {
        return;
    }
    let mut known: HashMap<Glob, UrlGlobs> = HashMap::new();
    for rule in rules {
        let place = rule.origin.position;
        let armed_by = match rule.trigger.armed_by.as_deref_mut() {
            Some(crate::trigger::ArmedBy::Exchange(matching)) => matching.tool.as_deref_mut(),
            Some(crate::trigger::ArmedBy::Rule { .. }) | None => None,
        };
        let matching = rule.matching.tool.as_deref_mut();
        for tool in matching.into_iter().chain(armed_by) {
            if let Some(urls) = known.get(&tool.name) {
                tool.urls = urls.clone();
                continue;
            }
            tool.urls = match UrlGlobs::within(urls_of(&tool.name, &named), &reader.limits) {
                Ok(urls) => urls,
                Err((_, error @ GlobError::OverLimit(_))) => {
                    reader.placed_error("tool", place, error.to_string());
                    return;
                }
                // Globs that do not compile were reported with the rule they stand in.
                Err(_) => UrlGlobs::default(),
            };
            known.insert(tool.name.clone(), tool.urls.clone());
        }
    }
}

/// The globs of every tool that a name or glob stands for.
fn urls_of<'r>(tool: &Glob, named: &HashMap<&str, Vec<&'r str>>) -> Vec<&'r str> {
    let urls: Vec<_> = if let Some(literals) = tool.literals() {
        literals.filter_map(|name| named.get(name)).collect()
    } else {
        let matching = named.iter().filter(|(name, _)| tool.matches(name));
        matching.map(|(_, urls)| urls).collect()
    };
    urls.into_iter().flatten().copied().collect()
}
