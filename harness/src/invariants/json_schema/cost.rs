//! What validating against a schema costs: how many parts it has with what it refers to, and how often it
//! comes back to itself.

use std::collections::{HashMap, HashSet};

use percent_encoding::percent_decode_str;
use serde_json::Value;
use squall_documents::{Limited, Limits};
use squall_profiles::pattern::{self, Searched};

/// How deep references may lead from one to the next.
const DEEPEST: usize = 100;
/// How deep a schema is nested as it is written.
const NESTED: u32 = 64;
/// Most parts that are visited for one answer.
const MOST: u64 = 1_000_000_000;
/// Most bytes of compiled patterns times those of an answer.
const MOST_SEARCHED: u64 = crate::pattern::MOST as u64;

/// About how many parts a schema of JSON Schema itself has.
const META_SCHEMA: u64 = 500;

/// What one schema costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cost {
    /// Its parts, those it refers to counted for each reference.
    parts: u64,
    /// What its patterns compile to, counted likewise, bytes.
    patterns: u64,
    /// By how many references one value is validated against a schema that it stands in already.
    again: u64,
    /// How many references lead on from one to the next.
    steps: usize,
}

impl Cost {
    fn of_one(again: u64) -> Self {
        Self {
            parts: 1,
            patterns: 0,
            again,
            steps: 0,
        }
    }

    /// Whether a document of so many bytes may be validated.
    pub(super) fn allows(self, document: &Value, length: usize) -> bool {
        let (values, depth) = size(document);
        let times = self.again.max(1).saturating_pow(depth);
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        self.parts.saturating_mul(times).saturating_mul(values) <= MOST
            && self.patterns.saturating_mul(times).saturating_mul(length) <= MOST_SEARCHED
    }
}

/// How many values there are in one, and how deep.
fn size(value: &Value) -> (u64, u32) {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return (1, 0),
    };
    inner
        .map(size)
        .fold((1, 1), |(values, depth), (more, deep)| {
            (values + more, depth.max(deep + 1))
        })
}

/// The cost of a schema, taken from the limits of its document.
pub(super) fn of(schema: &Value, limits: &Limits) -> Result<Cost, String> {
    if size(schema).1 > NESTED {
        return Err(format!("it is nested deeper than {NESTED} levels"));
    }
    let mut walk = Walk {
        root: schema,
        anchors: HashMap::new(),
        known: HashMap::from([(std::ptr::from_ref(schema), None)]),
        targets: vec![schema],
        patterns: HashMap::new(),
        open: 0,
    };
    let written = walk.look_over(schema, limits)?;
    let cost = walk.cost(schema)?;
    let mut circle = Circle::default();
    for target in &walk.targets {
        let place = std::ptr::from_ref(*target);
        if circle.done.insert(place) {
            circle.open.push(place);
            walk.check_circle(target, &mut circle)?;
            circle.open.pop();
        }
    }
    let parts = usize::try_from(cost.parts).unwrap_or(usize::MAX);
    let all = parts.saturating_add(written);
    let taken = limits.take(Limited::SchemaParts, all);
    taken.map_err(|over| over.to_string())?;
    Ok(cost)
}

struct Walk<'s> {
    root: &'s Value,
    /// What `#name` refers to.
    anchors: HashMap<&'s str, &'s Value>,
    /// What each schema that is referred to costs, by its address; `None` while that is counted.
    known: HashMap<*const Value, Option<Cost>>,
    /// All of them.
    targets: Vec<&'s Value>,
    /// What patterns compile to, bytes.
    patterns: HashMap<&'s str, u64>,
    /// How many are counted now.
    open: usize,
}

impl<'s> Walk<'s> {
    /// Counts the parts as they are written and the patterns among them, and notes the anchors.
    fn look_over(&mut self, schema: &'s Value, limits: &Limits) -> Result<usize, String> {
        let mut parts = 1;
        match schema {
            Value::Array(items) => {
                for item in items {
                    parts += self.look_over(item, limits)?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        ("$anchor" | "$dynamicAnchor", Value::String(anchor)) => {
                            self.anchors.insert(anchor, schema);
                        }
                        ("$id", Value::String(_)) if !std::ptr::eq(schema, self.root) => {
                            return Err("a schema within it has an `$id`".to_owned());
                        }
                        ("id", Value::String(_)) if self.is_draft_4() => {
                            return Err("it is of draft 4 and has an `id`".to_owned());
                        }
                        ("pattern", Value::String(pattern)) => self.count(pattern, limits)?,
                        ("patternProperties", Value::Object(patterns)) => {
                            for pattern in patterns.keys() {
                                self.count(pattern, limits)?;
                            }
                        }
                        _ => {}
                    }
                    parts += self.look_over(member, limits)?;
                }
            }
            _ => {}
        }
        Ok(parts)
    }

    fn is_draft_4(&self) -> bool {
        let draft = self.root.get("$schema").and_then(Value::as_str);
        draft.is_some_and(|draft| draft.contains("draft-04"))
    }

    fn cost(&mut self, schema: &'s Value) -> Result<Cost, String> {
        let mut cost = Cost::of_one(0);
        let mut add = |more: Cost| {
            cost.parts = cost.parts.saturating_add(more.parts);
            cost.patterns = cost.patterns.saturating_add(more.patterns);
            cost.again = cost.again.saturating_add(more.again);
            cost.steps = cost.steps.max(more.steps);
        };
        match schema {
            Value::Array(items) => {
                for item in items {
                    add(self.cost(item)?);
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    match (name.as_str(), member) {
                        // What is only referred to.
                        ("$defs" | "definitions", _) => {}
                        ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                            add(self.referred_to(reference)?);
                        }
                        // Each is about another value.
                        ("properties", Value::Object(properties)) => {
                            let mut again = 0;
                            for property in properties.values() {
                                let one = self.cost(property)?;
                                again = again.max(one.again);
                                add(Cost { again: 0, ..one });
                            }
                            add(Cost::of_one(again));
                        }
                        ("pattern", Value::String(pattern)) => add(self.pattern(pattern)),
                        ("patternProperties", Value::Object(patterns)) => {
                            for pattern in patterns.keys() {
                                add(self.pattern(pattern));
                            }
                            add(self.cost(member)?);
                        }
                        _ => add(self.cost(member)?),
                    }
                }
            }
            _ => {}
        }
        Ok(cost)
    }

    fn pattern(&self, pattern: &str) -> Cost {
        Cost {
            patterns: self.patterns.get(pattern).copied().unwrap_or_default(),
            ..Cost::of_one(0)
        }
    }

    /// Compiles a pattern, for what it takes.
    fn count(&mut self, pattern: &'s str, limits: &Limits) -> Result<(), String> {
        let compiled = pattern::compile(pattern, Searched::Text, limits)
            .map_err(|why| format!("the pattern `{pattern:.40}`: {why}"))?;
        let bytes = u64::try_from(compiled.memory_usage()).unwrap_or(u64::MAX);
        self.patterns.insert(pattern, bytes);
        Ok(())
    }

    fn referred_to(&mut self, reference: &str) -> Result<Cost, String> {
        let Some(target) = self.target(reference)? else {
            return Ok(Cost {
                parts: META_SCHEMA,
                ..Cost::of_one(1)
            });
        };
        let place = std::ptr::from_ref(target);
        let cost = match self.known.get(&place) {
            Some(Some(cost)) => *cost,
            Some(None) => return Ok(Cost::of_one(1)),
            None => {
                self.open += 1;
                if self.open > DEEPEST {
                    return Err(too_far());
                }
                self.known.insert(place, None);
                self.targets.push(target);
                let cost = self.cost(target)?;
                self.known.insert(place, Some(cost));
                self.open -= 1;
                cost
            }
        };
        if cost.steps == DEEPEST {
            return Err(too_far());
        }
        let steps = cost.steps + 1;
        Ok(Cost { steps, ..cost })
    }

    /// What is referred to; `None`: a schema of JSON Schema itself, which the validator knows.
    fn target(&self, reference: &str) -> Result<Option<&'s Value>, String> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let nothing = || format!("`{reference}` refers to nothing in it");
        let id = self.root.get("$id").and_then(Value::as_str);
        match id {
            _ if document.is_empty() => {}
            Some(id) if is_of_json_schema(id) => {}
            Some(_) | None if is_of_json_schema(document) => return Ok(None),
            Some(_) => {}
            None => return Err(nothing()),
        }
        let fragment = percent_decode_str(fragment).decode_utf8_lossy();
        let target = match self.anchors.get(&*fragment) {
            Some(target) => Some(*target),
            None => self.root.pointer(&fragment),
        };
        target.map(Some).ok_or_else(nothing)
    }

    /// Rejects what is validated against itself without end: a reference that leads back to what it stands in
    /// by schemas of one and the same value.
    fn check_circle(&self, schema: &'s Value, circle: &mut Circle) -> Result<(), String> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        for (name, member) in members {
            match (name.as_str(), member) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let Some(target) = self.target(reference)? else {
                        continue;
                    };
                    let place = std::ptr::from_ref(target);
                    if circle.open.contains(&place) {
                        return Err(format!("`{reference}` refers to itself"));
                    }
                    if circle.done.insert(place) {
                        circle.open.push(place);
                        self.check_circle(target, circle)?;
                        circle.open.pop();
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                    for schema in schemas {
                        self.check_circle(schema, circle)?;
                    }
                }
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                    for schema in schemas.values() {
                        self.check_circle(schema, circle)?;
                    }
                }
                ("not" | "if" | "then" | "else", schema) => self.check_circle(schema, circle)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// What was looked at for circles, by address.
#[derive(Default)]
struct Circle {
    open: Vec<*const Value>,
    done: HashSet<*const Value>,
}

fn is_of_json_schema(uri: &str) -> bool {
    let prefixes = ["http://json-schema.org/", "https://json-schema.org/"];
    prefixes.iter().any(|prefix| uri.starts_with(prefix))
}

fn too_far() -> String {
    format!("its references lead on for more than {DEEPEST} steps")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use squall_documents::OverLimit;

    use super::*;

    fn cost(schema: &Value) -> Result<Cost, String> {
        of(schema, &Limits::default())
    }

    #[test]
    fn references_count_as_what_they_refer_to() {
        let twice = |name: &str| json!({"allOf": [{"$ref": name}, {"$ref": name}]});
        let mut schema = json!({"$defs": {"end": {"$anchor": "end"}}, "$ref": "#/$defs/d0"});
        for level in 0..40 {
            schema["$defs"][format!("d{level}")] = twice(&format!("#/$defs/d{}", level + 1));
        }
        schema["$defs"]["d40"] = twice("#end");
        let over = OverLimit(Limited::SchemaParts).to_string();
        assert_eq!(cost(&schema), Err(over));
        schema["$defs"]["d3"] = json!({});
        assert!(cost(&schema).is_ok());
        let elsewhere = json!({"$ref": "#/$defs/none"});
        assert!(cost(&elsewhere).is_err());
    }

    #[test]
    fn a_schema_comes_back_to_itself_for_answers_that_are_not_too_deep() {
        let deep = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({"a": inner}));
        let again = json!({"$ref": "#"});
        let tree = json!({"properties": {"a": again, "b": again}});
        assert!(cost(&tree).expect("a schema").allows(&deep(100), 0));
        let twice = json!({"anyOf": [{"properties": {"a": again}}, {"properties": {"a": again}}]});
        let twice = cost(&twice).expect("a schema");
        assert!(twice.allows(&deep(10), 0) && !twice.allows(&deep(100), 0));
    }

    #[test]
    fn patterns_are_searched_in_so_much_and_no_more() {
        let many = json!({"$defs": {"a": {"pattern": "[ab]*a[ab]{2000}c"}}, "allOf": [
            {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"},
        ]});
        let many = cost(&many).expect("a schema");
        assert!(many.allows(&json!(""), 100_000) && !many.allows(&json!(""), 1_000_000));
    }

    #[test]
    fn patterns_count_among_those_of_the_document() {
        let many: serde_json::Map<_, _> = (0..2_000)
            .map(|number| (format!("{number}"), json!({"pattern": "a"})))
            .collect();
        let error = cost(&json!({"properties": many})).expect_err("too many");
        assert!(error.contains("regular expressions"), "{error}");
    }
}
