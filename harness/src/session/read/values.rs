//! Single values of a session: what they may be, and what is said where they are something else.

use serde_json::Value;
use squall_journal::tape::Otherwise;
use squall_profiles::document::{At, ScalarKind, Tree};
use squall_profiles::error::{Position, allowed};

use super::{LONGEST_MS, Members, Reader};

impl Reader {
    pub(super) fn status(&mut self, members: Members<'_>) -> Option<u16> {
        let number = self.whole(members, "status")?;
        let status = u16::try_from(number)
            .ok()
            .filter(|status| *status == 0 || (200..=999).contains(status));
        if status.is_none() {
            let at = member(members, "status")?.position;
            let message =
                format!("`status: {number}`: allowed are 200 to 999, and 0 for no answer at all");
            self.error("status", at, message);
        }
        status
    }

    pub(super) fn millis(&mut self, members: Members<'_>, name: &str) -> u64 {
        let Some(number) = self.number(members, name) else {
            return 0;
        };
        if number > LONGEST_MS {
            let at = member(members, name).map(|at| at.position);
            let message =
                format!("`{name}: {number}`: allowed are milliseconds, 0 to {LONGEST_MS} (a day)");
            self.error(name, at.unwrap_or_default(), message);
        }
        number
    }

    /// A whole number from 0.
    pub(super) fn whole(&mut self, members: Members<'_>, name: &str) -> Option<u64> {
        let at = member(members, name)?;
        let read = match at.value.to_json() {
            Value::Number(number) => number.as_u64(),
            _ => None,
        };
        if read.is_none() {
            self.expected(name, at, "a whole number from 0");
        }
        read
    }

    /// A number from 0, to the nearest whole one.
    pub(super) fn number(&mut self, members: Members<'_>, name: &str) -> Option<u64> {
        let at = member(members, name)?;
        let read = match at.value.to_json() {
            Value::Number(number) => number.as_u64().or_else(|| rounded(number.as_f64()?)),
            _ => None,
        };
        if read.is_none() {
            self.expected(name, at, "a number from 0");
        }
        read
    }

    pub(super) fn flag(&mut self, members: Members<'_>, name: &str) -> bool {
        let Some(at) = member(members, name) else {
            return false;
        };
        if let Value::Bool(flag) = at.value.to_json() {
            return flag;
        }
        self.expected(name, at, "`true` or `false`");
        false
    }

    pub(super) fn otherwise(&mut self, members: Members<'_>, name: &str) -> Option<Otherwise> {
        let at = member(members, name)?;
        let written = self.text(members, name)?;
        let read = Otherwise::parse(&written);
        if read.is_none() {
            let words = [Otherwise::Error, Otherwise::Passthrough].map(Otherwise::as_str);
            let rest = allowed(&written, words.into_iter());
            let message = format!("`{name}: {written}`{rest}");
            self.error(name, at.position, message);
        }
        read
    }

    /// A text. `null` is nothing.
    pub(super) fn text(&mut self, members: Members<'_>, name: &str) -> Option<String> {
        let at = member(members, name)?;
        match &at.value {
            Tree::Scalar {
                text,
                kind: ScalarKind::Text,
            } => Some(text.clone()),
            Tree::Null => None,
            Tree::Scalar { .. } => {
                self.expected(name, at, "a text: put it into quotes");
                None
            }
            Tree::List(_) | Tree::Map(_) => {
                self.expected(name, at, "a text");
                None
            }
        }
    }

    pub(super) fn items<T>(
        &mut self,
        members: Members<'_>,
        name: &str,
        mut read: impl FnMut(&mut Self, &At<Tree>) -> Option<T>,
    ) -> Vec<T> {
        let Some(at) = member(members, name) else {
            return Vec::new();
        };
        match &at.value {
            Tree::Null => Vec::new(),
            Tree::List(items) => self.below(name, |reader| {
                let read = |(index, item): (usize, &At<Tree>)| {
                    reader.below(&index.to_string(), |reader| read(reader, item))
                };
                items.iter().enumerate().filter_map(read).collect()
            }),
            _ => {
                self.expected(name, at, "a list");
                Vec::new()
            }
        }
    }

    /// The members of a map that may have these fields and no others.
    pub(super) fn map<'a>(&mut self, node: &'a At<Tree>, fields: &[&str]) -> Members<'a> {
        let Tree::Map(members) = &node.value else {
            self.expected("", node, "a map");
            return &[];
        };
        for (name, _) in members {
            if !fields.contains(&name.value.as_str()) {
                let shown: String = name.value.chars().take(40).collect();
                let rest = allowed(&name.value, fields.iter().copied());
                let message = format!("unknown field `{shown}`{rest}");
                self.error(&name.value, name.position, message);
            }
        }
        members
    }

    pub(super) fn expected(&mut self, field: &str, at: &At<Tree>, expected: &str) {
        let found = found(&at.value);
        self.error(
            field,
            at.position,
            format!("found {found}, allowed is {expected}"),
        );
    }

    pub(super) fn error(&mut self, field: &str, position: Position, message: impl Into<String>) {
        let pointer = self.pointer.to(field);
        self.errors.push((position, pointer, message.into()));
    }

    /// Notes those of the fields that are there and say something.
    pub(super) fn changes_nothing(&mut self, members: Members<'_>, fields: &[&str], why: &str) {
        for (name, value) in members {
            let field = name.value.as_str();
            if fields.contains(&field) && value.value != Tree::Null {
                let pointer = self.pointer.to(field);
                let message = format!("`{field}` changes nothing here: {why}");
                self.notes.push((name.position, pointer, message));
            }
        }
    }

    /// The same of fields of `match`.
    pub(super) fn matches_nothing(&mut self, node: &At<Tree>, fields: &[&str], why: &str) {
        if let Some(matching) = member(members_of(node), "match") {
            self.below("match", |reader| {
                reader.changes_nothing(members_of(matching), fields, why);
            });
        }
    }

    pub(super) fn below<T>(&mut self, field: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.pointer.enter(field);
        let value = read(self);
        self.pointer.leave(before);
        value
    }
}

/// The members of a map; none of what is something else.
pub(super) fn members_of(node: &At<Tree>) -> Members<'_> {
    match &node.value {
        Tree::Map(members) => members,
        Tree::Null | Tree::Scalar { .. } | Tree::List(_) => &[],
    }
}

pub(super) fn member<'a>(members: Members<'a>, name: &str) -> Option<&'a At<Tree>> {
    members
        .iter()
        .find(|(key, _)| key.value == name)
        .map(|(_, member)| member)
}

/// A number of at least 0, rounded.
fn rounded(number: f64) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    (0.0..=9e15)
        .contains(&number)
        .then(|| number.round() as u64)
}

/// What something is, for a message.
fn found(tree: &Tree) -> String {
    match tree {
        Tree::List(_) => "a list".to_owned(),
        Tree::Map(_) => "a map".to_owned(),
        Tree::Null => "`null`".to_owned(),
        Tree::Scalar { text, .. } => {
            let shown: String = text.chars().take(40).collect();
            let more = if shown.len() < text.len() { "…" } else { "" };
            format!("`{}{more}`", shown.escape_debug())
        }
    }
}
