//! A map, field by field.

use std::ops::RangeInclusive;

use squall_profiles::document::{At, Tree};
use squall_profiles::error::{self, Position};

use super::{Reader, each};

impl<'a> Reader<'a> {
    /// A map, field by field. What it has beside the fields that were asked for is an error.
    pub fn fields<'t, T>(
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
}

/// A map that is being read.
#[derive(Debug)]
pub struct Fields<'r, 'a, 't> {
    /// Where errors go.
    pub reader: &'r mut Reader<'a>,
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
    pub fn has(&self, name: &str) -> bool {
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
    pub fn error(&mut self, name: &'static str, message: impl Into<String>) {
        let position = self
            .members
            .iter()
            .find(|(found, _)| found.value == name)
            .map_or(self.position, |(_, node)| node.position);
        self.reader
            .below(name, |reader| reader.error(position, message));
    }

    /// Says that a field is missing.
    pub fn missing(&mut self, name: &str, what: &str) {
        let message = format!("`{name}` is missing; write {what}");
        self.reader.error(self.position, message);
    }

    /// A field's node, read below its name.
    pub fn read<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&mut Reader<'a>, &'t At<Tree>) -> Option<T>,
    ) -> Option<T> {
        let node = self.node(name)?;
        self.reader.below(name, |reader| read(reader, node))
    }

    /// A text; numbers and flags are taken for one.
    pub fn text(&mut self, name: &'static str) -> Option<At<String>> {
        self.read(name, Reader::text)
    }

    /// A text that is more than blanks.
    pub(crate) fn words(&mut self, name: &'static str) -> Option<At<String>> {
        self.read(name, Reader::words)
    }

    /// What something is called, for everybody to see.
    pub(crate) fn name(&mut self, field: &'static str) -> Option<At<String>> {
        self.read(field, Reader::name)
    }

    /// A list; each item is read below its number.
    pub fn each<T>(
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
    pub fn texts(&mut self, name: &'static str, what: &str) -> Option<Vec<At<String>>> {
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

    /// `true` or `false`.
    pub fn flag(&mut self, name: &'static str) -> Option<bool> {
        self.read(name, Reader::flag)
    }

    /// A whole number in a range; `unit` follows it in messages.
    pub fn whole(
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
    pub fn real(
        &mut self,
        name: &'static str,
        range: RangeInclusive<f64>,
        unit: &str,
    ) -> Option<f64> {
        self.read(name, |reader, node| reader.real_of(node, range, unit))
    }

    /// One of a few words; case does not count.
    pub fn word<T: Copy>(
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
    pub fn pairs<T>(
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
