//! From a tree to typed values, gathering every error on the way.
//!
//! A map is read field by field; the names that were asked for are the ones it may have, so what it
//! has beside them is an error with the nearest of them. Values that come from variables are never
//! repeated in a message: what is shown is the text as it was written.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use squall_profiles::document::{self, At, ScalarKind, Tree};
use squall_profiles::error::{self, Position, ProfileError};
use squall_profiles::pointer::Pointer;

/// What is wrong, or only odd, with one suite so far.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    pub(crate) file: &'a str,
    /// The text as it was written.
    text: &'a str,
    pointer: Pointer,
    pub(crate) errors: Vec<ProfileError>,
    /// What is allowed and changes nothing, or surely is not meant.
    pub(crate) notes: Vec<ProfileError>,
    /// Where scalars stand that have a variable in them.
    variables: BTreeSet<Position>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str, variables: BTreeSet<Position>) -> Self {
        Self {
            file,
            text,
            pointer: Pointer::default(),
            errors: Vec::new(),
            notes: Vec::new(),
            variables,
        }
    }

    /// Notes an error about what is being read.
    pub(crate) fn error(&mut self, position: Position, message: impl Into<String>) {
        // Of a variable that is missing nothing more can be said.
        let said = |error: &ProfileError| error.position == position;
        if self.has_variable(position) && self.errors.iter().any(said) {
            return;
        }
        let error = self.told(position, message);
        self.errors.push(error);
    }

    /// Notes what is no error.
    pub(crate) fn note(&mut self, position: Position, message: impl Into<String>) {
        let note = self.told(position, message);
        self.notes.push(note);
    }

    fn told(&self, position: Position, message: impl Into<String>) -> ProfileError {
        ProfileError {
            file: self.file.to_owned(),
            position,
            pointer: self.pointer.to(""),
            message: message.into(),
        }
    }

    /// Reads what stands below a name or a number.
    pub(crate) fn below<T>(&mut self, name: impl Display, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.enter(name);
        let value = read(self);
        self.pointer.leave(before);
        value
    }

    /// Reads what stands below by a JSON pointer.
    pub(crate) fn below_pointer(&mut self, pointer: &str, read: impl FnOnce(&mut Self)) {
        let before = self.pointer.follow(pointer);
        read(self);
        self.pointer.leave(before);
    }

    /// JSON pointer to what is being read.
    pub(crate) fn pointer(&self) -> &str {
        self.pointer.as_str()
    }

    /// What stands at a place, as it was written.
    pub(crate) fn shown(&self, position: Position) -> String {
        document::found_at(self.text, position)
    }

    /// Something else stands where one of a kind belongs.
    pub(crate) fn misplaced(&mut self, position: Position, allowed: &str) {
        let found = self.shown(position);
        let message = if found.is_empty() {
            format!("nothing stands here, allowed is {allowed}")
        } else {
            format!("found `{found}`, allowed is {allowed}")
        };
        self.error(position, message);
    }

    /// Whether a variable stands in the scalar at a place.
    pub(crate) fn has_variable(&self, position: Position) -> bool {
        self.variables.contains(&position)
    }

    /// A map, field by field. What it has beside the fields that were asked for is an error.
    pub(crate) fn fields<'t, T>(
        &mut self,
        node: &'t At<Tree>,
        what: &str,
        read: impl FnOnce(&mut Fields<'_, 'a, 't>) -> T,
    ) -> Option<T> {
        let Tree::Map(members) = &node.value else {
            self.misplaced(node.position, what);
            return None;
        };
        let mut fields = Fields {
            reader: self,
            position: node.position,
            members,
            known: Vec::new(),
        };
        let value = read(&mut fields);
        fields.refuse_others();
        Some(value)
    }

    /// A text; numbers and flags are taken for one.
    pub(crate) fn text(&mut self, node: &At<Tree>) -> Option<At<String>> {
        if let Tree::Scalar { text, .. } = &node.value {
            return Some(At {
                value: text.clone(),
                position: node.position,
            });
        }
        self.misplaced(node.position, "a text");
        None
    }

    /// A text that is more than blanks.
    pub(crate) fn words(&mut self, node: &At<Tree>) -> Option<At<String>> {
        let text = self.text(node)?;
        if text.value.trim().is_empty() {
            self.error(text.position, "this is empty; write a text");
            return None;
        }
        Some(text)
    }

    /// A regular expression, look-around and back-references included.
    pub(crate) fn pattern(&mut self, node: &At<Tree>, flags: &str) -> Option<fancy_regex::Regex> {
        let text = self.text(node)?;
        match fancy_regex::Regex::new(&format!("{flags}{}", text.value)) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                // Some of these draw a picture over several lines; the last one says what is wrong.
                let picture = error.to_string();
                let why = picture.lines().last().unwrap_or_default();
                let why = why.trim().trim_start_matches("error: ");
                let why = why.rsplit_once(": ").map_or(why, |(_, why)| why).to_owned();
                let found = self.shown(text.position);
                let message = format!("`{found}` is not a regular expression: {why}");
                self.error(text.position, message);
                None
            }
        }
    }

    fn number(&mut self, node: &At<Tree>, allowed: &str) -> Option<f64> {
        let Tree::Scalar { text, kind } = &node.value else {
            self.misplaced(node.position, allowed);
            return None;
        };
        let number = text
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite());
        match (kind, number) {
            (ScalarKind::Number, Some(number)) => return Some(number),
            (ScalarKind::Text, Some(number)) if self.has_variable(node.position) => {
                return Some(number);
            }
            (ScalarKind::Text, Some(_)) if !text.contains(['e', 'E', 'n', 'N']) => {
                let message =
                    format!("found the text `\"{text}\"`, allowed is {allowed}; write `{text}`");
                self.error(node.position, message);
            }
            _ if self.has_variable(node.position) => {
                let found = self.shown(node.position);
                let message =
                    format!("`{found}` does not stand for what is allowed here, {allowed}");
                self.error(node.position, message);
            }
            _ => self.misplaced(node.position, allowed),
        }
        None
    }

    /// A number in a range.
    pub(crate) fn real(&mut self, node: &At<Tree>, range: RangeInclusive<f64>) -> Option<f64> {
        self.real_of(node, range, "")
    }

    fn real_of(&mut self, node: &At<Tree>, range: RangeInclusive<f64>, unit: &str) -> Option<f64> {
        let (least, most) = (*range.start(), *range.end());
        let allowed = if most >= f64::MAX {
            format!("a number of at least {least}{unit}")
        } else {
            format!("a number from {least} to {most}{unit}")
        };
        let number = self.number(node, &allowed)?;
        if !range.contains(&number) {
            self.misplaced(node.position, &allowed);
            return None;
        }
        Some(number)
    }

    fn flag(&mut self, node: &At<Tree>) -> Option<bool> {
        match &node.value {
            Tree::Scalar { text, kind } => match (kind, text.as_str()) {
                (ScalarKind::Flag, text) => return Some(text == "true"),
                (ScalarKind::Text, "true") if self.has_variable(node.position) => {
                    return Some(true);
                }
                (ScalarKind::Text, "false") if self.has_variable(node.position) => {
                    return Some(false);
                }
                (ScalarKind::Text, text) => {
                    if let Some(value) = document::flag_of_yaml_1_1(text) {
                        return Some(value);
                    }
                }
                _ => {}
            },
            Tree::Null | Tree::List(_) | Tree::Map(_) => {}
        }
        self.misplaced(node.position, "`true` or `false`");
        None
    }
}

/// A map that is being read.
#[derive(Debug)]
pub(crate) struct Fields<'r, 'a, 't> {
    pub(crate) reader: &'r mut Reader<'a>,
    /// Where the map begins.
    pub(crate) position: Position,
    members: &'t [(At<String>, At<Tree>)],
    known: Vec<&'static str>,
}

impl<'a, 't> Fields<'_, 'a, 't> {
    /// A field that is there; `null` is as good as absent.
    pub(crate) fn node(&mut self, name: &'static str) -> Option<&'t At<Tree>> {
        if !self.known.contains(&name) {
            self.known.push(name);
        }
        let members = self.members;
        let (_, node) = members.iter().find(|(found, _)| found.value == name)?;
        (node.value != Tree::Null).then_some(node)
    }

    /// Whether a field is a list without an item.
    pub(crate) fn is_empty_list(&self, name: &str) -> bool {
        let named = self.members.iter().find(|(found, _)| found.value == name);
        named.is_some_and(|(_, node)| matches!(&node.value, Tree::List(items) if items.is_empty()))
    }

    /// Whether a field is there, which need not be one that was asked for.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members
            .iter()
            .any(|(found, node)| found.value == name && node.value != Tree::Null)
    }

    /// What a field says, without a word on whether it belongs here.
    pub(crate) fn glance(&self, name: &str) -> Option<&'t str> {
        let members = self.members;
        let (_, node) = members.iter().find(|(found, _)| found.value == name)?;
        match &node.value {
            Tree::Scalar { text, .. } => Some(text),
            Tree::Null | Tree::List(_) | Tree::Map(_) => None,
        }
    }

    /// Where a field's name stands.
    pub(crate) fn place_of(&self, name: &str) -> Position {
        self.members
            .iter()
            .find(|(found, _)| found.value == name)
            .map_or(self.position, |(found, _)| found.position)
    }

    /// Names that were asked for.
    pub(crate) fn known(&self) -> &[&'static str] {
        &self.known
    }

    /// Names that are there and were not asked for.
    pub(crate) fn others(&self) -> Vec<&'t At<String>> {
        self.members
            .iter()
            .map(|(name, _)| name)
            .filter(|name| !self.known.contains(&name.value.as_str()))
            .collect()
    }

    /// Leaves what was not asked for to somebody who has said what is wrong with it.
    pub(crate) fn leave_others(&mut self) {
        self.members = &[];
    }

    fn refuse_others(&mut self) {
        for name in self.others() {
            let known = self.known.iter().copied();
            let rest = if self.known.len() <= 20 {
                error::allowed(&name.value, known)
            } else {
                error::did_you_mean(&name.value, known)
            };
            let message = format!("unknown field `{}`{rest}", name.value);
            self.reader
                .below(&name.value, |reader| reader.error(name.position, message));
        }
    }

    /// Notes an error about one of the fields.
    pub(crate) fn error(&mut self, name: &'static str, message: impl Into<String>) {
        let position = self
            .members
            .iter()
            .find(|(found, _)| found.value == name)
            .map_or(self.position, |(_, node)| node.position);
        self.reader
            .below(name, |reader| reader.error(position, message));
    }

    /// Says that a field is missing.
    pub(crate) fn missing(&mut self, name: &str, what: &str) {
        let message = format!("`{name}` is missing; write {what}");
        self.reader.error(self.position, message);
    }

    /// A field's node, read below its name.
    pub(crate) fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>, &'t At<Tree>) -> Option<T>,
    ) -> Option<T> {
        let node = self.node(name)?;
        self.reader.below(name, |reader| read(reader, node))
    }

    pub(crate) fn text(&mut self, name: &'static str) -> Option<At<String>> {
        self.read(name, Reader::text)
    }

    /// A text that is more than blanks.
    pub(crate) fn words(&mut self, name: &'static str) -> Option<At<String>> {
        self.read(name, Reader::words)
    }

    /// A list; each item is read below its number.
    pub(crate) fn each<T>(
        &mut self,
        name: &'static str,
        what: &str,
        read: impl FnMut(&mut Reader<'a>, &'t At<Tree>) -> Option<T>,
    ) -> Option<At<Vec<T>>> {
        let node = self.node(name)?;
        self.reader
            .below(name, |reader| each(reader, node, what, read))
    }

    /// One text or a list of them, at least one.
    pub(crate) fn texts(&mut self, name: &'static str, what: &str) -> Option<Vec<At<String>>> {
        let node = self.node(name)?;
        let texts = self.reader.below(name, |reader| match &node.value {
            Tree::Scalar { .. } => reader.text(node).map(|text| vec![text]),
            _ => each(reader, node, what, Reader::text).map(|list| list.value),
        })?;
        if self.is_empty_list(name) {
            self.error(name, format!("the list is empty; write {what}"));
            return None;
        }
        Some(texts)
    }

    pub(crate) fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, Reader::flag)
    }

    /// A whole number in a range; `unit` follows it in messages.
    pub(crate) fn whole(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        unit: &str,
    ) -> Option<u64> {
        let (least, most) = (*range.start(), *range.end());
        let allowed = if most == u64::MAX {
            format!("a whole number of at least {least}{unit}")
        } else {
            format!("a whole number from {least} to {most}{unit}")
        };
        let node = self.node(name)?;
        self.reader.below(name, |reader| {
            let number = reader.number(node, &allowed)?;
            let text = match &node.value {
                Tree::Scalar { text, .. } => text.trim(),
                _ => "",
            };
            let whole = text.parse().ok().filter(|whole| range.contains(whole));
            if whole.is_none() {
                let found = reader.shown(node.position);
                let instead = seconds_meant(name, number, &range);
                let message = format!("found `{found}`, allowed is {allowed}{instead}");
                reader.error(node.position, message);
            }
            whole
        })
    }

    /// A number in a range.
    pub(crate) fn real(
        &mut self,
        name: &'static str,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Option<f64> {
        self.read(name, |reader, node| reader.real_of(node, range, unit))
    }

    /// One of a few words; case does not count.
    pub(crate) fn word<T: Copy>(
        &mut self,
        name: &'static str,
        what: &str,
        allowed: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(name)?;
        let word = text.value.trim().to_lowercase();
        let known = allowed
            .iter()
            .find(|(known, _)| known.to_lowercase() == word);
        if known.is_none() {
            let rest = error::allowed(&text.value, allowed.iter().map(|(word, _)| *word));
            let found = self.reader.shown(text.position);
            let message = format!("unknown {what} `{found}`{rest}");
            self.error(name, message);
        }
        known.map(|(_, value)| *value)
    }

    /// A map whose keys are no fields: each member is read below its name.
    pub(crate) fn pairs<T>(
        &mut self,
        name: &'static str,
        what: &str,
        mut read: impl FnMut(&mut Reader<'a>, &At<String>, &'t At<Tree>) -> Option<T>,
    ) -> Option<Vec<(At<String>, T)>> {
        let node = self.node(name)?;
        self.reader.below(name, |reader| {
            let Tree::Map(members) = &node.value else {
                reader.misplaced(node.position, what);
                return None;
            };
            let pairs = members.iter().filter_map(|(key, member)| {
                let value = reader.below(&key.value, |reader| read(reader, key, member))?;
                Some((key.clone(), value))
            });
            Some(pairs.collect())
        })
    }
}

/// A list; each item is read below its number.
pub(crate) fn each<'t, 'a, T>(
    reader: &mut Reader<'a>,
    node: &'t At<Tree>,
    what: &str,
    mut read: impl FnMut(&mut Reader<'a>, &'t At<Tree>) -> Option<T>,
) -> Option<At<Vec<T>>> {
    let Tree::List(items) = &node.value else {
        reader.misplaced(node.position, what);
        return None;
    };
    let items = items.iter().enumerate();
    let value = items
        .filter_map(|(index, item)| reader.below(index, |reader| read(reader, item)))
        .collect();
    Some(At {
        value,
        position: node.position,
    })
}

/// The common slip of writing seconds where milliseconds belong.
fn seconds_meant(name: &str, number: f64, range: &RangeInclusive<u64>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "to compare")]
    let (least, most) = (*range.start() as f64, *range.end() as f64);
    let meant = number * 1000.0;
    let fits = number > 0.0 && number < least && (least..=most).contains(&meant);
    if fits && matches!(name, "timeout" | "max_ms") {
        format!("; for {number} seconds write `{name}: {meant}`")
    } else {
        String::new()
    }
}
