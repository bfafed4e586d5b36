//! The cost of validating against a schema: its parts and patterns, including referenced ones for each reference.

use std::collections::HashMap;

use serde_json::Value;
use squall_documents::{DocumentLimits, Limited, OverLimit};
use squall_profiles::pattern::{self, Searched};

/// Deepest nesting of a schema, including references.
const DEEPEST: usize = 100;
/// Most parts that are visited for one answer.
const MOST: u64 = 1_000_000_000;
/// Most of them for which violations are collected, because each may be kept in memory.
const MOST_KEPT: u64 = 200_000;
/// Maximum product of compiled patterns and answer, in bytes.
const MOST_SEARCHED: u64 = crate::pattern::MOST as u64;

/// What one schema costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    parts: usize,
    /// Size of its compiled patterns, in bytes.
    patterns: u64,
}

impl Cost {
    /// Whether a document of this many bytes may be validated.
    pub(super) fn allows(self, document: &Value, length: usize) -> bool {
        let length = length as u64;
        self.visits(document) <= MOST && self.patterns.saturating_mul(length) <= MOST_SEARCHED
    }

    /// Whether all violations of a document may be collected.
    pub(super) fn allows_violations(self, document: &Value) -> bool {
        self.visits(document) <= MOST_KEPT
    }

    fn visits(self, document: &Value) -> u64 {
        (self.parts as u64).saturating_mul(values(document))
    }
}

/// The number of values in a document.
fn values(value: &Value) -> u64 {
    1 + match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(members) => members.values().map(values).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The cost of a schema, taken from the limits of its document.
pub(super) fn of(schema: &Value, limits: &DocumentLimits) -> Result<Cost, String> {
    let mut walk = Walk {
        root: schema,
        limits,
        known: HashMap::new(),
        open: Vec::new(),
        cost: Cost::default(),
    };
    walk.visit(schema, 0)?;
    let taken = limits.take(Limited::SchemaParts, walk.cost.parts);
    taken.map_err(|over| over.to_string())?;
    Ok(walk.cost)
}

/// Visits a schema like a validator: referenced parts at each reference.
struct Walk<'s> {
    root: &'s Value,
    limits: &'s DocumentLimits,
    /// Size of each compiled pattern, in bytes.
    known: HashMap<&'s str, u64>,
    /// References that are currently being followed.
    open: Vec<&'s str>,
    cost: Cost,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, schema: &'s Value, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST} levels"));
        }
        self.cost.parts += 1;
        if self.cost.parts > self.limits.left(Limited::SchemaParts) {
            return Err(OverLimit(Limited::SchemaParts).to_string());
        }
        match schema {
            Value::Array(items) => {
                for item in items {
                    self.visit(item, depth + 1)?;
                }
            }
            Value::Object(members) => {
                for (name, member) in members {
                    self.member(schema, name, member, depth + 1)?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn member(
        &mut self,
        schema: &Value,
        name: &str,
        member: &'s Value,
        depth: usize,
    ) -> Result<(), String> {
        match (name, member) {
            // Definitions count only where they are referenced.
            ("$defs" | "definitions", _) => Ok(()),
            ("$id" | "id", Value::String(_)) if !std::ptr::eq(schema, self.root) => {
                Err(format!("a schema within it has an `{name}`"))
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                self.follow(reference, depth)
            }
            ("pattern", Value::String(pattern)) => self.pattern(pattern),
            ("patternProperties", Value::Object(patterns)) => {
                for pattern in patterns.keys() {
                    self.pattern(pattern)?;
                }
                self.visit(member, depth)
            }
            _ => self.visit(member, depth),
        }
    }

    fn follow(&mut self, reference: &'s str, depth: usize) -> Result<(), String> {
        let pointer = reference.strip_prefix('#');
        let target = pointer.and_then(|pointer| self.root.pointer(pointer));
        let target = target.ok_or_else(|| {
            format!(
                "`{reference}` refers to nothing in it; write a JSON pointer, as `#/$defs/name`"
            )
        })?;
        if self.open.contains(&reference) || std::ptr::eq(target, self.root) {
            return Err(format!("`{reference}` refers to what it stands in"));
        }
        self.open.push(reference);
        self.visit(target, depth)?;
        self.open.pop();
        Ok(())
    }

    fn pattern(&mut self, pattern: &'s str) -> Result<(), String> {
        let bytes = if let Some(bytes) = self.known.get(pattern) {
            *bytes
        } else {
            let compiled = pattern::compile(pattern, Searched::Text, self.limits)
                .map_err(|why| format!("the pattern `{pattern:.40}`: {why}"))?;
            let bytes = compiled.memory_usage() as u64;
            self.known.insert(pattern, bytes);
            bytes
        };
        self.cost.patterns = self.cost.patterns.saturating_add(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cost(schema: &Value) -> Result<Cost, String> {
        of(schema, &DocumentLimits::default())
    }

    #[test]
    fn references_count_as_what_they_refer_to() {
        let twice = |name: &str| json!({"allOf": [{"$ref": name}, {"$ref": name}]});
        let mut schema = json!({"$defs": {"d20": {}}, "$ref": "#/$defs/d0"});
        for level in 0..20 {
            schema["$defs"][format!("d{level}")] = twice(&format!("#/$defs/d{}", level + 1));
        }
        let over = OverLimit(Limited::SchemaParts).to_string();
        assert_eq!(cost(&schema), Err(over));
        schema["$defs"]["d3"] = json!({});
        assert!(cost(&schema).is_ok());
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
        let many = (0..400).map(|number| json!({"pattern": format!("a{number}")}));
        let many: Vec<_> = many.collect();
        let error = cost(&json!({"allOf": many})).expect_err("too many");
        assert!(error.contains("regular expressions"), "{error}");
    }
}
