//! Reads a map field by field.

use std::ops::RangeInclusive;

use serde_json::{Map, Value, json};

use super::ValueReader;
use crate::error::{self, Position};
use crate::reader::DocumentReader;
use crate::schema;
use crate::tree::{At, Tree};

/// Longest list of allowed fields in a message.
const LISTED: usize = 24;

/// Reads a map. Each field is read by its name, with a description for the schema.
#[derive(Debug)]
pub struct Fields<'r, 'd> {
    /// Collects the errors.
    pub reader: &'r mut DocumentReader,
    /// The position where the map begins.
    pub position: Position,
    members: &'d [(At<String>, At<Tree>)],
    names: Vec<&'static str>,
    leaves_others: bool,
    described: Option<MapDescription>,
}

/// The schema of a map.
#[derive(Debug, Default)]
struct MapDescription {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
    /// At least one of these fields is required.
    one_of: &'static [&'static str],
    /// Schemas that depend on the word in another field, and the number of fields read before the cases.
    cases: Vec<Value>,
    common: Option<usize>,
    /// Additional schema keywords.
    more: Map<String, Value>,
}

impl<'r, 'd> Fields<'r, 'd> {
    pub(crate) fn of(
        reader: &'r mut DocumentReader,
        position: Position,
        members: &'d [(At<String>, At<Tree>)],
    ) -> Self {
        Self {
            reader,
            position,
            members,
            names: Vec::with_capacity(16),
            leaves_others: false,
            described: None,
        }
    }

    pub(crate) fn described(reader: &'r mut DocumentReader) -> Self {
        Self {
            described: Some(MapDescription::default()),
            ..Self::of(reader, Position::default(), &[])
        }
    }

    /// The names of the fields that `read` reads.
    pub fn names_read(read: impl FnOnce(&mut Fields<'_, 'd>)) -> Vec<&'static str> {
        let mut reader = DocumentReader::describing();
        let mut fields = Fields::described(&mut reader);
        read(&mut fields);
        fields.names
    }

    pub(crate) fn schema(self) -> Value {
        let described = self.described.unwrap_or_default();
        let mut schema = json!({
            "type": "object",
            "properties": described.properties,
            "required": described.required,
            "additionalProperties": false,
        });
        if !described.cases.is_empty() {
            schema["allOf"] = Value::Array(described.cases);
        }
        for (keyword, value) in described.more {
            schema[keyword] = value;
        }
        schema
    }

    /// In a description: records the case that `field` is `word`. The fields that `read` reads, and those in
    /// `others`, are allowed in addition to the fields before any case. Fields that `read` requires are required in
    /// this case only.
    pub fn describe_case(
        &mut self,
        field: &str,
        word: &str,
        others: &[&str],
        read: impl FnOnce(&mut Self),
    ) {
        let Some(described) = &mut self.described else {
            return;
        };
        let (named, required) = (self.names.len(), described.required.len());
        let common = *described.common.get_or_insert(named);
        read(self);
        let common = self.names[..common].iter();
        let allowed = common.chain(&self.names[named..]).chain(others);
        let allowed: Vec<_> = allowed.copied().collect();
        if let Some(described) = &mut self.described {
            let required = described.required.split_off(required);
            let mut case = json!({
                "if": { "properties": { field: { "const": word } }, "required": [field] },
                "then": { "propertyNames": { "enum": allowed }, "required": required },
            });
            let one_of = std::mem::take(&mut described.one_of);
            if !one_of.is_empty() {
                let one_of = one_of.iter().map(|name| json!({ "required": [name] }));
                case["then"]["anyOf"] = one_of.collect();
            }
            described.cases.push(case);
        }
    }

    /// Adds keywords to the schema of the map.
    pub fn add_to_schema(&mut self, keywords: impl FnOnce() -> Map<String, Value>) {
        if let Some(described) = &mut self.described {
            described.more.extend(keywords());
        }
    }

    fn member(&self, name: &str) -> Option<&'d (At<String>, At<Tree>)> {
        self.members.iter().find(|(found, _)| found.value == name)
    }

    /// Reads a field; `null` means absent.
    pub fn field<T>(
        &mut self,
        name: &'static str,
        about: &str,
        read: impl FnOnce(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<T> {
        self.names.push(name);
        if let Some(described) = &mut self.described {
            read(&mut ValueReader::described(self.reader));
            let schema = self.reader.schema.take();
            schema::property(&mut described.properties, name, about, schema);
            return None;
        }
        let node = self.node(name)?;
        self.reader
            .below(name, |reader| read(&mut ValueReader::of(reader, node)))
    }

    /// The node of a field, without marking it as read; `null` means absent.
    pub fn node(&self, name: &str) -> Option<&'d At<Tree>> {
        let (_, node) = self.member(name)?;
        (node.value != Tree::Null).then_some(node)
    }

    /// Whether a field is present, without marking it as read.
    pub fn has(&self, name: &str) -> bool {
        self.node(name).is_some()
    }

    /// Whether the map has no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether a field is `null`.
    pub fn is_null(&self, name: &str) -> bool {
        let member = self.member(name);
        member.is_some_and(|(_, node)| node.value == Tree::Null)
    }

    /// The text of a field, without marking it as read.
    pub fn glance(&self, name: &str) -> Option<&'d str> {
        match &self.node(name)?.value {
            Tree::Scalar { text, .. } => Some(text),
            Tree::Null | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// Reports an error at the value of a field, or at the map if the field is absent.
    pub fn error(&mut self, name: &str, message: impl Into<String>) {
        let position = self.member(name).map(|(_, node)| node.position);
        let position = position.unwrap_or(self.position);
        self.reader
            .below(name, |reader| reader.error(position, message));
    }

    /// Reports that a field's value is not allowed.
    pub fn misplaced(&mut self, name: &str, allowed: &str) {
        if let Some(node) = self.node(name) {
            self.reader.below(name, |reader| {
                reader.misplaced::<()>(node.position, allowed)
            });
        }
    }

    /// Reports an error at the name of a field.
    pub fn error_at_name(&mut self, name: &At<String>, message: impl Into<String>) {
        self.reader
            .below(&name.value, |reader| reader.error(name.position, message));
    }

    /// Reports a warning about a field.
    pub fn note(&mut self, name: &str, message: impl Into<String>) {
        let position = self.member(name).map(|(name, _)| name.position);
        let position = position.unwrap_or(self.position);
        self.reader
            .below(name, |reader| reader.note(position, message));
    }

    /// Reports a missing field; `what` describes the expected value.
    pub fn missing(&mut self, name: &str, what: &str) {
        let message = format!("`{name}` is missing; write {what}");
        self.reader.error(self.position, message);
    }

    /// Requires a field; `what` describes the expected value.
    pub fn require(&mut self, name: &'static str, what: &str) {
        if let Some(described) = &mut self.described {
            described.required.push(name);
        } else if !self.has(name) {
            self.missing(name, what);
        }
    }

    /// The map as JSON with expanded variables, without `null` values.
    pub fn to_json(&self) -> Map<String, Value> {
        let written = self
            .members
            .iter()
            .filter(|(_, node)| node.value != Tree::Null);
        let written = written.map(|(name, node)| (name.value.clone(), node.value.to_json()));
        written.collect()
    }

    /// A new map with those of the fields that are present.
    pub fn part(&self, names: &[&str]) -> At<Tree> {
        let members = self.members.iter().filter(|(name, node)| {
            names.contains(&name.value.as_str()) && node.value != Tree::Null
        });
        At {
            value: Tree::Map(members.cloned().collect()),
            position: self.position,
        }
    }

    /// Requires at least one of the fields. Returns whether one is present; the caller reports the error.
    pub fn require_one_of(&mut self, names: &'static [&'static str]) -> bool {
        if let Some(described) = &mut self.described {
            described.one_of = names;
        }
        names.is_empty() || names.iter().any(|name| self.has(name))
    }

    /// The names of fields that are present but were not read.
    pub fn others(&self) -> Vec<&'d At<String>> {
        let names = self.members.iter().map(|(name, _)| name);
        names
            .filter(|name| !self.names.contains(&name.value.as_str()))
            .collect()
    }

    /// Ignores fields that were not read, because their errors are already reported.
    pub fn leave_others(&mut self) {
        self.leaves_others = true;
    }

    pub(crate) fn refuse_others(&mut self) {
        let others = self.others();
        if self.leaves_others || others.is_empty() {
            return;
        }
        let mut known: Vec<_> = Vec::with_capacity(self.names.len());
        for name in &self.names {
            if !known.contains(name) {
                known.push(*name);
            }
        }
        for name in others {
            let names = known.iter().copied();
            let rest = if known.len() <= LISTED {
                error::allowed(&name.value, names)
            } else {
                error::did_you_mean(&name.value, names)
            };
            self.error_at_name(name, format!("unknown field `{}`{rest}", name.value));
        }
    }

    /// A text that `parse` accepts. Its error becomes the message.
    pub fn parsed<T>(
        &mut self,
        name: &'static str,
        about: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        self.field(name, about, |value| value.parsed(parse))
    }

    /// One of the allowed words; case does not matter. `what` describes them in messages.
    pub fn word<T: Clone>(
        &mut self,
        name: &'static str,
        about: &str,
        what: &str,
        allowed: &[(&str, T)],
    ) -> Option<T> {
        self.field(name, about, |value| value.word(what, allowed))
    }

    /// A map of fields; `what` describes it in messages.
    pub fn block<T>(
        &mut self,
        name: &'static str,
        about: &str,
        what: &str,
        read: impl FnOnce(&mut Fields<'_, 'd>) -> Option<T>,
    ) -> Option<T> {
        self.field(name, about, |value| value.fields(what, read))
    }
}

/// A function for a field of each kind: that of the same name of [`ValueReader`].
macro_rules! fields_of_kinds {
    ($($kind:ident($($argument:ident: $type:ty),*) -> $read:ty;)*) => {
        impl<'d> Fields<'_, 'd> {$(
            #[doc = concat!("A field that is read by [`ValueReader::", stringify!($kind), "`].")]
            pub fn $kind(
                &mut self,
                name: &'static str,
                about: &str,
                $($argument: $type),*
            ) -> Option<$read> {
                self.field(name, about, |value| value.$kind($($argument),*))
            }
        )*}
    };
}

fields_of_kinds! {
    any() -> &'d At<Tree>;
    text() -> At<String>;
    words() -> At<String>;
    exact_words() -> At<String>;
    name() -> At<String>;
    flag() -> bool;
    whole(range: RangeInclusive<u64>, unit: &str) -> u64;
    real(range: RangeInclusive<f64>, unit: &str) -> f64;
    texts(what: &str) -> Vec<At<String>>;
}
