//! Reads one value of a document.

mod fields;

use std::ops::RangeInclusive;

use serde_json::{Value, json};

pub use self::fields::Fields;
use crate::error::{self, Position};
use crate::reader::DocumentReader;
use crate::schema;
use crate::tree::{At, ScalarKind, Tree};

/// Reads the value at one place. In a description there is no value: each method then returns `None` and records
/// its schema.
#[derive(Debug)]
pub struct ValueReader<'r, 'd> {
    /// Collects the errors.
    pub reader: &'r mut DocumentReader,
    node: Option<&'d At<Tree>>,
}

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A text, a number or a flag.
    Scalar,
    /// A list.
    List,
    /// A map.
    Map,
}

/// Larger upper limits are not shown in messages, because doubles are not exact beyond this.
const UNBOUNDED: u64 = 1 << 53;

/// The placeholder name of a map's members in a description.
static NO_NAME: At<String> = At {
    value: String::new(),
    position: Position { line: 0, column: 0 },
};

impl DocumentReader {
    /// Reads a tree, after its variables are expanded.
    pub fn read<'d, T>(
        &mut self,
        tree: &'d At<Tree>,
        read: impl FnOnce(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<T> {
        read(&mut ValueReader::of(self, tree))
    }
}

/// The JSON Schema (draft 2020-12) of the documents that `read` accepts. Runs `read` without a document.
pub fn describe<T>(
    title: &str,
    about: &str,
    read: impl FnOnce(&mut ValueReader<'_, 'static>) -> Option<T>,
) -> Value {
    let mut reader = DocumentReader::describing();
    read(&mut ValueReader::described(&mut reader));
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": about,
    });
    if let (Some(schema), Value::Object(read)) = (schema.as_object_mut(), reader.schema) {
        schema.extend(read);
    }
    if let Some(definitions) = reader.definitions.filter(|all| !all.is_empty()) {
        schema["$defs"] = Value::Object(definitions);
    }
    schema
}

impl<'r, 'd> ValueReader<'r, 'd> {
    /// A reader for a node.
    pub fn of(reader: &'r mut DocumentReader, node: &'d At<Tree>) -> Self {
        Self {
            reader,
            node: Some(node),
        }
    }

    pub(crate) fn described(reader: &'r mut DocumentReader) -> Self {
        Self { reader, node: None }
    }

    /// The node; `None` in a description.
    pub fn node(&self) -> Option<&'d At<Tree>> {
        self.node
    }

    /// The position where the value begins.
    pub fn position(&self) -> Position {
        self.node.map(|node| node.position).unwrap_or_default()
    }

    /// Reports an error at this value.
    pub fn error(&mut self, message: impl Into<String>) {
        let position = self.position();
        self.reader.error(position, message);
    }

    /// The kind of the value.
    fn kind(&self) -> Option<NodeKind> {
        match self.node?.value {
            Tree::Null => None,
            Tree::Scalar { .. } => Some(NodeKind::Scalar),
            Tree::List(_) => Some(NodeKind::List),
            Tree::Map(_) => Some(NodeKind::Map),
        }
    }

    /// Any value.
    pub fn any(&mut self) -> Option<&'d At<Tree>> {
        match self.node {
            Some(node) => Some(node),
            None => self.reader.describe(json!({})),
        }
    }

    /// Runs `read`; in a description, records this schema instead.
    pub fn with_schema<T>(
        &mut self,
        schema: impl FnOnce() -> Value,
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        match self.node {
            Some(_) => read(self),
            None => self.reader.describe(schema()),
        }
    }

    /// Runs `read`; in a description, records a reference to its schema under this name.
    pub fn named<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<T> {
        let Some(definitions) = &mut self.reader.definitions else {
            return read(self);
        };
        if !definitions.contains_key(name) {
            definitions.insert(name.to_owned(), Value::Null);
            read(self);
            let schema = self.reader.schema.take();
            if let Some(definitions) = &mut self.reader.definitions {
                definitions.insert(name.to_owned(), schema);
            }
        }
        let reference = json!({ "$ref": format!("#/$defs/{name}") });
        self.reader.describe(reference)
    }

    /// A text; numbers and flags are accepted as text.
    pub fn text(&mut self) -> Option<At<String>> {
        let Some(node) = self.node else {
            return self.reader.describe(schema::text());
        };
        let Tree::Scalar { text, .. } = &node.value else {
            return self.reader.misplaced(node.position, "a text");
        };
        Some(At {
            value: text.clone(),
            position: node.position,
        })
    }

    /// A text; numbers and flags are rejected, because people read the text as it is written.
    pub fn exact_text(&mut self) -> Option<At<String>> {
        let Some(node) = self.node else {
            return self.reader.describe(schema::exact_text());
        };
        if let Tree::Scalar {
            kind: ScalarKind::Number | ScalarKind::Flag,
            ..
        } = node.value
        {
            let found = self.reader.shown(node.position);
            self.error(format!(
                "found `{found}`, expected a text; write `\"{found}\"`"
            ));
            return None;
        }
        self.text()
    }

    /// A text that is not blank.
    pub fn words(&mut self) -> Option<At<String>> {
        if self.node.is_none() {
            return self.reader.describe(schema::words(schema::text()));
        }
        let text = self.text()?;
        self.not_blank(text)
    }

    /// A text that is not blank; numbers and flags are rejected.
    pub fn exact_words(&mut self) -> Option<At<String>> {
        if self.node.is_none() {
            return self.reader.describe(schema::words(schema::exact_text()));
        }
        let text = self.exact_text()?;
        self.not_blank(text)
    }

    fn not_blank(&mut self, text: At<String>) -> Option<At<String>> {
        if text.value.trim().is_empty() {
            self.error("this is empty; write a text");
            return None;
        }
        Some(text)
    }

    /// A name. Names are shown everywhere, so values of variables are removed from them.
    pub fn name(&mut self) -> Option<At<String>> {
        let mut name = self.words()?;
        self.reader.hide(&mut name.value);
        Some(name)
    }

    /// A text that `parse` accepts. Its error becomes the message.
    pub fn parsed<T>(&mut self, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text()?;
        let parsed = parse(&text.value);
        parsed
            .map_err(|message| self.reader.error(text.position, message))
            .ok()
    }

    fn number(&mut self, allowed: &str) -> Option<(f64, &'d str)> {
        let node = self.node?;
        let Tree::Scalar { text, kind } = &node.value else {
            return self.reader.misplaced(node.position, allowed);
        };
        let text = text.trim();
        let number = text.parse::<f64>().ok();
        let number = number.filter(|number| number.is_finite());
        let is_variable = self.reader.has_variable(node.position);
        let message = match (kind, number) {
            (ScalarKind::Number, Some(number)) => return Some((number, text)),
            (ScalarKind::Text, Some(number)) if is_variable => {
                self.reader.is_plain(node.position);
                return Some((number, text));
            }
            (ScalarKind::Text, Some(_)) if !text.contains(['e', 'E', 'n', 'N']) => {
                format!("found the text `\"{text}\"`, expected {allowed}; write `{text}`")
            }
            _ if is_variable => {
                let found = self.reader.shown(node.position);
                format!("the value of `{found}` is not {allowed}")
            }
            _ => return self.reader.misplaced(node.position, allowed),
        };
        self.reader.error(node.position, message);
        None
    }

    /// A whole number in a range; messages show `unit` after it.
    pub fn whole(&mut self, range: RangeInclusive<u64>, unit: &str) -> Option<u64> {
        let (least, most) = (*range.start(), *range.end());
        let Some(node) = self.node else {
            return self.reader.describe(schema::whole(least, most));
        };
        let allowed = if most >= UNBOUNDED {
            format!("a whole number of at least {least}{unit}")
        } else {
            format!("a whole number from {least} to {most}{unit}")
        };
        let (number, text) = self.number(&allowed)?;
        let whole = text.parse().ok().filter(|whole| range.contains(whole));
        if whole.is_none() {
            let found = self.reader.shown(node.position);
            let instead = instead(number, &range, unit);
            let message = format!("found `{found}`, expected {allowed}{instead}");
            self.reader.error(node.position, message);
        }
        whole
    }

    /// A number in a range; messages show `unit` after it.
    pub fn real(&mut self, range: RangeInclusive<f64>, unit: &str) -> Option<f64> {
        let (least, most) = (*range.start(), *range.end());
        let Some(node) = self.node else {
            return self.reader.describe(schema::real(least, most));
        };
        let allowed = if most >= f64::MAX {
            format!("a number of at least {least}{unit}")
        } else {
            format!("a number from {least} to {most}{unit}")
        };
        let (number, _) = self.number(&allowed)?;
        if range.contains(&number) {
            return Some(number);
        }
        self.reader.misplaced(node.position, &allowed)
    }

    /// `true` or `false`, or a YAML 1.1 word for them.
    pub fn flag(&mut self) -> Option<bool> {
        let Some(node) = self.node else {
            return self.reader.describe(schema::flag());
        };
        if let Tree::Scalar { text, kind } = &node.value {
            let is_variable = self.reader.has_variable(node.position);
            let flag = match (kind, text.trim()) {
                (ScalarKind::Flag, text) => Some(text == "true"),
                (ScalarKind::Text, "true") if is_variable => Some(true),
                (ScalarKind::Text, "false") if is_variable => Some(false),
                (ScalarKind::Text, text) => flag_of_yaml_1_1(text),
                (ScalarKind::Number, _) => None,
            };
            if flag.is_some() {
                self.reader.is_plain(node.position);
                return flag;
            }
        }
        self.reader.misplaced(node.position, "`true` or `false`")
    }

    /// One of the allowed words; case does not matter. `what` describes them in messages.
    pub fn word<T: Clone>(&mut self, what: &str, allowed: &[(&str, T)]) -> Option<T> {
        let words = allowed.iter().map(|(word, _)| *word);
        if self.node.is_none() {
            return self.reader.describe(schema::word(words));
        }
        let text = self.text()?;
        let found = text.value.trim();
        let known = allowed
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(found));
        if known.is_none() {
            let rest = error::allowed(&text.value, words);
            let found = self.reader.shown(text.position);
            let message = format!("unknown {what} `{found}`{rest}");
            self.reader.error(text.position, message);
        }
        known.map(|(_, value)| value.clone())
    }

    /// A list; `what` describes it in messages.
    pub fn list<T>(
        &mut self,
        what: &str,
        mut read: impl FnMut(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(node) = self.node else {
            read(self);
            let items = self.reader.schema.take();
            let schema = json!({ "type": "array", "items": items });
            return self.reader.describe(schema);
        };
        let Tree::List(items) = &node.value else {
            return self.reader.misplaced(node.position, what);
        };
        let items = items.iter().enumerate().filter_map(|(index, item)| {
            self.reader
                .below(index, |reader| read(&mut ValueReader::of(reader, item)))
        });
        Some(items.collect())
    }

    /// A list of at least one item; `empty` is the message for an empty list.
    pub fn some<T>(
        &mut self,
        what: &str,
        empty: &str,
        read: impl FnMut(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<Vec<T>> {
        if matches!(self.node.map(|node| &node.value), Some(Tree::List(items)) if items.is_empty())
        {
            self.error(empty);
            return None;
        }
        let items = self.list(what, read);
        if self.node.is_none() {
            self.reader.schema["minItems"] = json!(1);
        }
        items
    }

    /// One text or a non-empty list of texts.
    pub fn texts(&mut self, what: &str) -> Option<Vec<At<String>>> {
        let empty = format!("the list is empty; write {what}");
        self.either()
            .when(NodeKind::Scalar, |value| Some(vec![value.text()?]))
            .when(NodeKind::List, |value| {
                value.some(what, &empty, |value| value.text())
            })
            .or(what)
    }

    /// A map with arbitrary names; `what` describes it in messages.
    pub fn pairs<T>(
        &mut self,
        what: &str,
        mut read: impl FnMut(&'d At<String>, &mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<Vec<(&'d At<String>, T)>> {
        let Some(node) = self.node else {
            read(&NO_NAME, self);
            let values = self.reader.schema.take();
            let schema = json!({ "type": "object", "additionalProperties": values });
            return self.reader.describe(schema);
        };
        let Tree::Map(members) = &node.value else {
            return self.reader.misplaced(node.position, what);
        };
        let pairs = members.iter().filter_map(|(name, member)| {
            let value = self.reader.below(&name.value, |reader| {
                read(name, &mut ValueReader::of(reader, member))
            });
            Some((name, value?))
        });
        Some(pairs.collect())
    }

    /// A map whose names must be in `names`; messages call them `kind`.
    pub fn pairs_of<K: Clone, T>(
        &mut self,
        what: &str,
        kind: &str,
        names: &[(&str, K)],
        mut read: impl FnMut(K, &mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let words = || names.iter().map(|(name, _)| *name);
        let is_describing = self.reader.is_describing();
        let pairs = self.pairs(what, |name, value| {
            let is_known = |(known, _): &&(&str, K)| is_describing || *known == name.value;
            if let Some((_, key)) = names.iter().find(is_known) {
                return read(key.clone(), value);
            }
            let rest = error::allowed(&name.value, words());
            let message = format!("unknown {kind} `{}`{rest}", name.value);
            value.reader.error(name.position, message);
            None
        });
        if is_describing {
            let words: Vec<_> = words().collect();
            self.reader.schema["propertyNames"] = json!({ "enum": words });
        }
        Some(pairs?.into_iter().map(|(_, read)| read).collect())
    }

    /// A map, read field by field; `what` describes it in messages. Fields that `read` does not read are errors.
    pub fn fields<T>(
        &mut self,
        what: &str,
        read: impl FnOnce(&mut Fields<'_, 'd>) -> Option<T>,
    ) -> Option<T> {
        let (position, members) = match self.node {
            None => {
                let mut fields = Fields::described(self.reader);
                read(&mut fields);
                let schema = fields.schema();
                return self.reader.describe(schema);
            }
            Some(node) => match &node.value {
                Tree::Map(members) => (node.position, &members[..]),
                // An empty value is a map without fields.
                Tree::Null => (node.position, &[][..]),
                Tree::Scalar { .. } | Tree::List(_) => {
                    return self.reader.misplaced(node.position, what);
                }
            },
        };
        let mut fields = Fields::of(self.reader, position, members);
        let value = read(&mut fields);
        fields.refuse_others();
        value
    }

    /// A value of one of several kinds.
    pub fn either<T>(&mut self) -> Either<'_, 'r, 'd, T> {
        Either {
            value: self,
            is_read: false,
            read: None,
            schemas: Vec::new(),
        }
    }
}

/// A value of one of several kinds.
#[derive(Debug)]
pub struct Either<'v, 'r, 'd, T> {
    value: &'v mut ValueReader<'r, 'd>,
    is_read: bool,
    read: Option<T>,
    schemas: Vec<Value>,
}

impl<'d, T> Either<'_, '_, 'd, T> {
    /// Reads the value if it is of this kind.
    #[must_use]
    pub fn when(
        mut self,
        kind: NodeKind,
        read: impl FnOnce(&mut ValueReader<'_, 'd>) -> Option<T>,
    ) -> Self {
        if self.value.node.is_none() {
            read(self.value);
            self.schemas.push(self.value.reader.schema.take());
        } else if self.value.kind() == Some(kind) {
            self.is_read = true;
            self.read = read(self.value);
        }
        self
    }

    /// The result; a value of another kind is an error, and `what` describes the allowed kinds.
    pub fn or(self, what: &str) -> Option<T> {
        let reader = &mut *self.value.reader;
        match self.value.node {
            None => reader.describe(schema::either(&self.schemas)),
            Some(_) if self.is_read => self.read,
            Some(node) => reader.misplaced(node.position, what),
        }
    }
}

/// Suggests a correction for common mistakes: seconds instead of milliseconds, and a whole number with a decimal
/// point.
fn instead(number: f64, range: &RangeInclusive<u64>, unit: &str) -> String {
    #[expect(clippy::cast_precision_loss, reason = "to compare")]
    let (least, most) = (*range.start() as f64, *range.end() as f64);
    let is_allowed = |number: f64| number.fract() == 0.0 && (least..=most).contains(&number);
    if is_allowed(number) {
        format!("; write `{number}`")
    } else if unit == " milliseconds" && number > 0.0 && is_allowed(number * 1000.0) {
        format!("; for {number} seconds write `{}`", number * 1000.0)
    } else {
        String::new()
    }
}

/// Accepts YAML 1.1 flags where a flag is expected: `yes`, `no`, `on` and `off`, in lower case, capitalised or in
/// upper case. Elsewhere they are plain words.
fn flag_of_yaml_1_1(word: &str) -> Option<bool> {
    match word {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}
