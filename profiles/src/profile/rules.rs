//! The rules of a profile, by family.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value, json};
use squall_documents::{Fields, Kind, Limited, Position, ValueReader, nearest, words};
use squall_journal::redact::Redactor;
use xxhash_rust::xxh3::xxh3_64;

use super::ids::Ids;
use super::modes::{self, Mode};
use super::{conditions, triggers};
use crate::fault::Fault;
use crate::faults::context;
use crate::faults::tool::ON_THE_WIRE;
use crate::glob::{Glob, GlobError, UrlGlobs};
use crate::rule::{Family, Origin, Rule};
use crate::trigger::ArmedBy;

/// What the rules of one profile share while they are read.
#[derive(Default)]
pub(super) struct Reading<'p> {
    owner: &'p str,
    /// Length of the JSON pointer to the profile.
    base: usize,
    pub(super) ids: Ids,
    /// Globs over words that were read, by what is written.
    pub(super) globs: HashMap<String, Glob>,
    /// URLs by the names of tools that rules give them.
    named: HashMap<String, Vec<String>>,
    is_over_limit: bool,
}

impl Reading<'_> {
    /// JSON pointer from the profile to what is being read.
    pub(super) fn pointer(&self, fields: &Fields<'_, '_>) -> String {
        fields.reader.pointer()[self.base..].to_owned()
    }
}

/// Reads the families of rules of a profile. `base` is the length of the JSON pointer to it; `is_whole`: it extends no
/// other, whose rules its own may refer to.
pub(super) fn read(
    fields: &mut Fields<'_, '_>,
    owner: &str,
    base: usize,
    is_whole: bool,
) -> Vec<Arc<Rule>> {
    let mut reading = Reading {
        owner,
        base,
        ..Reading::default()
    };
    let mut rules = Vec::new();
    for family in Family::ALL {
        let read = fields.field(family.as_str(), family.about(), |value| match family {
            Family::Context => attacks(value, &mut reading),
            Family::Network | Family::Tool | Family::Llm => {
                value.list("a list", |value| rule(value, family, None, &mut reading))
            }
        });
        rules.extend(read.unwrap_or_default());
    }
    name_tools(&mut rules, &reading, fields);
    if is_whole {
        reading.ids.check_references(fields.reader);
    }
    rules.into_iter().map(|(rule, _)| Arc::new(rule)).collect()
}

/// A list of attacks that name their `type`, or a map from type to what else is written of it.
fn attacks(
    value: &mut ValueReader<'_, '_>,
    reading: &mut Reading<'_>,
) -> Option<Vec<(Rule, Position)>> {
    let what = "a list of attacks, or a map from type to parameters";
    let types: Vec<_> = modes::of_family(Family::Context)
        .map(|mode| (mode.name, mode))
        .collect();
    value
        .either()
        .when(Kind::List, |value| {
            value.list(what, |value| rule(value, Family::Context, None, reading))
        })
        .when(Kind::Map, |value| {
            value.pairs_of(what, "context attack", &types, |mode, value| {
                rule(value, Family::Context, Some(mode), reading)
            })
        })
        .or(what)
}

/// `key`: of an attack in a map, which one its name says that it is.
fn rule(
    value: &mut ValueReader<'_, '_>,
    family: Family,
    key: Option<&'static Mode>,
    reading: &mut Reading<'_>,
) -> Option<(Rule, Position)> {
    if reading.is_over_limit || value.reader.is_full() {
        return None;
    }
    if let Err(over) = value.reader.limits.take(Limited::Rules, 1) {
        reading.is_over_limit = true;
        value.error(over.to_string());
        return None;
    }
    let position = value.position();
    let rule = value.named(family.rule(), |value| {
        value.fields("a map of fields", |fields| {
            read_rule(fields, family, key, reading)
        })
    });
    Some((rule?, position))
}

fn read_rule(
    fields: &mut Fields<'_, '_>,
    family: Family,
    key: Option<&'static Mode>,
    reading: &mut Reading<'_>,
) -> Option<Rule> {
    let mode = match family {
        Family::Context => modes::read_attack(fields, key),
        Family::Network | Family::Tool | Family::Llm => modes::read(fields, family),
    };
    if family == Family::Context
        && fields.flag("enabled", "`false` switches it off.") == Some(false)
    {
        fields.leave_others();
        return None;
    }
    let id = reading.ids.read(fields);
    let trigger = triggers::read(fields, family, reading);
    let (matching, tools) = conditions::read(fields, mode, reading);
    for mode in modes::of_family(family) {
        let (word, beside) = (family.word(), modes::that_stand_beside(mode));
        fields.describe_case(word, mode.name, beside, |fields| {
            Fault::read(mode, fields, &tools);
        });
    }
    let Some(mode) = mode else {
        refuse_unknown(fields);
        return None;
    };
    let fault = Fault::read(mode, fields, &tools);
    let mut without_effect = refuse_foreign(fields, mode);
    let fault = fault?;
    let parameters = fault.parameters();
    let idle = |field: &&str| fields.has(field) && !parameters.contains_key(*field);
    without_effect.extend(
        modes::of_some_forms(mode)
            .iter()
            .filter(|field| idle(field)),
    );
    refuse_status_too_late(fields, mode, &fault);
    let mut written = fields.to_json();
    reading.name_urls(fields, mode);
    let id = id.unwrap_or_else(|| {
        let conditions = conditions::written(&written, &matching, mode);
        reading
            .ids
            .made(mode.name, &conditions, &Value::Object(parameters))
    });
    written.shift_remove("id");
    written.sort_keys();
    let (file, position) = fields.reader.source().place(fields.position);
    Some(Rule {
        id,
        profile: reading.owner.to_owned(),
        family,
        mode: mode.name,
        origin: Origin {
            file: file.clone(),
            position,
            pointer: reading.pointer(fields).into(),
        },
        matching,
        trigger,
        fault,
        without_effect,
        eclipsed: context::eclipsed(mode, fields),
        redactor: Redactor::default(),
        text: hash(family, mode, written),
    })
}

fn hash(family: Family, mode: &Mode, written: Map<String, Value>) -> u64 {
    let text = json!([family.as_str(), mode.name, Value::Object(written)]);
    xxh3_64(text.to_string().as_bytes())
}

/// Fields of a rule whose mode is not known.
fn refuse_unknown(fields: &mut Fields<'_, '_>) {
    for name in fields.others() {
        if !is_field(&name.value) {
            fields.error_at_name(name, unknown_field(&name.value));
        }
    }
    fields.leave_others();
}

/// Fields that the mode does not use. Given back are those that flakestorm lets stand beside any of its modes.
fn refuse_foreign(fields: &mut Fields<'_, '_>, mode: &Mode) -> Vec<&'static str> {
    let mut without_effect = Vec::new();
    for name in fields.others() {
        let field = name.value.as_str();
        let Some(known) = KNOWN.iter().find(|known| **known == field) else {
            fields.error_at_name(name, unknown_field(field));
            continue;
        };
        if fields.is_null(field) {
            continue;
        }
        match modes::foreign(mode, field) {
            None => without_effect.push(*known),
            Some(message) => fields.error(known, message),
        }
    }
    if mode.is_told(fields) {
        for field in ON_THE_WIRE {
            if fields.has(field) {
                let message = format!(
                    "`{field}` belongs to answers on the wire; with `at: model_input` there is none"
                );
                fields.error(field, message);
            }
        }
    }
    fields.leave_others();
    without_effect
}

/// Whether a rule of some family and mode has that field.
pub(super) fn is_field(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// Every field that a rule of some family and mode has.
static KNOWN: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let asked = Family::ALL.map(|family| {
        Fields::asked(|fields| {
            read_rule(fields, family, None, &mut Reading::default());
        })
    });
    let mut all = asked.concat();
    all.sort_unstable();
    all.dedup();
    all
});

/// The nearest fields, and where all of them are listed.
fn unknown_field(found: &str) -> String {
    let near = nearest(found, KNOWN.iter().copied());
    let hint = match near.split_last() {
        None => ";".to_owned(),
        Some((last, [])) => format!(", did you mean `{last}`?"),
        Some((last, others)) => {
            let others = words(others.iter().copied());
            format!(", did you mean {others} or `{last}`?")
        }
    };
    format!("unknown field `{found}`{hint} `squall schema profile` lists the fields of a rule")
}

/// A `status` to match on is only there once the upstream has answered; then it is too late for
/// what happens before.
fn refuse_status_too_late(fields: &mut Fields<'_, '_>, mode: &Mode, fault: &Fault) {
    if !fields.has("status") {
        return;
    }
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
        fields.error("status", message);
    }
}

impl Reading<'_> {
    /// A rule that has both `tool` and `match_url` gives the URL that name for the whole of its file, unless the URL
    /// is the model's.
    fn name_urls(&mut self, fields: &Fields<'_, '_>, mode: &Mode) {
        let tool = fields.glance("tool");
        let tool = tool.filter(|tool| !tool.contains(['*', '{']));
        if let (Some(tool), Some(urls)) = (tool, fields.node("match_url"))
            && !mode.is_told(fields)
            && !mode.of_calls
        {
            let named = self.named.entry(tool.to_owned()).or_default();
            named.extend(urls.texts().map(str::to_owned));
        }
    }
}

fn name_tools(rules: &mut [(Rule, Position)], reading: &Reading<'_>, fields: &mut Fields<'_, '_>) {
    if reading.named.is_empty() {
        return;
    }
    let mut known: HashMap<Glob, UrlGlobs> = HashMap::new();
    for (rule, position) in rules {
        let armed_by = match rule.trigger.armed_by.as_deref_mut() {
            Some(ArmedBy::Exchange(matching)) => matching.tool.as_deref_mut(),
            Some(ArmedBy::Rule { .. }) | None => None,
        };
        let matching = rule.matching.tool.as_deref_mut();
        for tool in matching.into_iter().chain(armed_by) {
            if let Some(urls) = known.get(&tool.name) {
                tool.urls = urls.clone();
                continue;
            }
            let urls = urls_of(&tool.name, &reading.named);
            tool.urls = match UrlGlobs::within(urls, &fields.reader.limits) {
                Ok(urls) => urls,
                Err((_, error @ GlobError::OverLimit(_))) => {
                    let pointer = format!("{}/tool", rule.origin.pointer);
                    fields.reader.below_pointer(&pointer, |reader| {
                        reader.error(*position, error.to_string());
                    });
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
fn urls_of<'r>(tool: &Glob, named: &'r HashMap<String, Vec<String>>) -> Vec<&'r str> {
    let urls: Vec<_> = if let Some(literals) = tool.literals() {
        literals.filter_map(|name| named.get(name)).collect()
    } else {
        let matching = named.iter().filter(|(name, _)| tool.matches(name));
        matching.map(|(_, urls)| urls).collect()
    };
    urls.into_iter().flatten().map(String::as_str).collect()
}
