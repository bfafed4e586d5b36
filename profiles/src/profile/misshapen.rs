//! Everything that is wrong with the shape of a document.
//!
//! serde stops at the first thing it cannot read. When it does, the document is walked once more as a
//! tree, beside the raw structs it should have become, and every fault of its shape is noted.

use serde_json::Value;

use super::located::{At, OneOrMany, Pairs, ScalarKind, Text, Tree, Word};
use super::scalar::{Flag, Number, flag_of_yaml_1_1};
use super::shape::found_at;
use crate::error::{self, Position, ProfileError};
use crate::pointer::Pointer;
use crate::variables::mentions_variable;

/// Longest list of fields that is spelled out when one is unknown.
const LISTED: usize = 12;

/// What a node must look like to become a value of this type.
pub(crate) trait Shape {
    /// Notes what does not.
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>);
}

/// What is wrong so far, in the order of the walk.
#[derive(Debug)]
pub(crate) struct Complaints<'a> {
    file: &'a str,
    text: &'a str,
    pointer: Pointer,
    errors: Vec<ProfileError>,
}

/// Everything that keeps a document from becoming a `T`; nothing, if the reader stopped for another
/// reason than shape.
pub(crate) fn complaints<T: Shape>(file: &str, text: &str, tree: &At<Tree>) -> Vec<ProfileError> {
    let mut complaints = Complaints {
        file,
        text,
        pointer: Pointer::default(),
        errors: Vec::new(),
    };
    // Nothing at all is a document without a field.
    if tree.value != Tree::Null {
        T::check(tree, &mut complaints);
    }
    complaints.errors
}

impl Complaints<'_> {
    /// Walks the members of a map, which may have these fields and no others. One that is null is as
    /// good as absent.
    pub(crate) fn members(
        &mut self,
        node: &At<Tree>,
        fields: &[&str],
        mut check: impl FnMut(&str, &At<Tree>, &mut Self),
    ) {
        let Tree::Map(members) = &node.value else {
            return self.found(node.position, "a map of fields");
        };
        for (name, member) in members {
            self.below(&name.value, |complaints| {
                if error::is_full(&complaints.errors) {
                } else if !fields.contains(&name.value.as_str()) {
                    complaints.note(name.position, unknown_field(&name.value, fields));
                } else if member.value != Tree::Null {
                    check(&name.value, member, complaints);
                }
            });
        }
    }

    /// Walks the members of a map whose keys are no fields. One that is null is as good as empty.
    pub(crate) fn members_of(
        &mut self,
        members: &[(At<String>, At<Tree>)],
        mut check: impl FnMut(&At<Tree>, &mut Self),
    ) {
        for (name, member) in members {
            if member.value != Tree::Null {
                self.below(&name.value, |complaints| check(member, complaints));
            }
        }
    }

    fn items<'t>(&mut self, items: impl IntoIterator<Item = &'t At<Tree>>, check: Check) {
        for (index, item) in items.into_iter().enumerate() {
            self.below(&index.to_string(), |complaints| check(item, complaints));
        }
    }

    fn below(&mut self, name: &str, walk: impl FnOnce(&mut Self)) {
        let before = self.pointer.enter(name);
        walk(self);
        self.pointer.leave(before);
    }

    /// Something else stands where one of a kind belongs.
    pub(crate) fn found(&mut self, position: Position, allowed: &str) {
        if error::is_full(&self.errors) {
            return;
        }
        let found = found_at(self.text, position);
        let message = if found.is_empty() {
            format!("nothing stands here, allowed is {allowed}")
        } else {
            format!("found `{found}`, allowed is {allowed}")
        };
        self.note(position, message);
    }

    fn note(&mut self, position: Position, message: String) {
        let error = ProfileError {
            file: self.file.to_owned(),
            position,
            pointer: self.pointer.to(""),
            message,
        };
        error::note(&mut self.errors, error);
    }
}

type Check = fn(&At<Tree>, &mut Complaints<'_>);

/// The nearest fields, and all of them, or where they are listed.
pub(crate) fn unknown_field(found: &str, fields: &[&str]) -> String {
    if fields.len() <= LISTED {
        let rest = error::allowed(found, fields.iter().copied());
        return format!("unknown field `{found}`{rest}");
    }
    let near = error::nearest(found, fields.iter().copied());
    let hint = match near.split_last() {
        None => ";".to_owned(),
        Some((last, [])) => format!(", did you mean `{last}`?"),
        Some((last, others)) => format!(
            ", did you mean {} or `{last}`?",
            error::words(others.iter().copied())
        ),
    };
    format!("unknown field `{found}`{hint} `squall schema profile` lists the fields of a rule")
}

impl<T: Shape> Shape for At<T> {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        T::check(node, complaints);
    }
}

impl<T: Shape> Shape for Box<T> {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        T::check(node, complaints);
    }
}

impl<T: Shape> Shape for Vec<T> {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        match &node.value {
            Tree::List(items) => complaints.items(items, T::check),
            _ => complaints.found(node.position, "a list"),
        }
    }
}

impl<T: Shape> Shape for Pairs<T> {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        let Tree::Map(members) = &node.value else {
            return complaints.found(node.position, "a map");
        };
        for (name, member) in members {
            complaints.below(&name.value, |complaints| T::check(member, complaints));
        }
    }
}

impl Shape for String {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        if !matches!(node.value, Tree::Scalar { .. }) {
            complaints.found(node.position, "a text");
        }
    }
}

impl Shape for Word {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        if !matches!(node.value, Tree::Scalar { .. }) {
            complaints.found(node.position, "a word or a number");
        }
    }
}

impl Shape for Text {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        match &node.value {
            Tree::Scalar { kind, .. } if *kind == ScalarKind::Text => {}
            Tree::Scalar { .. } if error::is_full(&complaints.errors) => {}
            Tree::Scalar { .. } => {
                let found = found_at(complaints.text, node.position);
                let message = format!("found `{found}`, allowed is a text; write `\"{found}\"`");
                complaints.note(node.position, message);
            }
            Tree::Null | Tree::List(_) | Tree::Map(_) => {
                complaints.found(node.position, "a text");
            }
        }
    }
}

impl Shape for OneOrMany {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        match &node.value {
            Tree::Scalar { .. } => {}
            Tree::List(items) => complaints.items(items, String::check),
            Tree::Null | Tree::Map(_) => {
                complaints.found(node.position, "a text or a list of texts");
            }
        }
    }
}

impl Shape for Number {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        unquoted(node, ScalarKind::Number, "a number", complaints, |text| {
            text.parse::<f64>().is_ok()
        });
    }
}

impl Shape for Flag {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        if matches!(&node.value, Tree::Scalar { text, .. } if flag_of_yaml_1_1(text).is_some()) {
            return;
        }
        unquoted(
            node,
            ScalarKind::Flag,
            "`true` or `false`",
            complaints,
            |text| matches!(text, "true" | "false"),
        );
    }
}

/// A scalar of a kind that is written without quotes, or a variable that stands for one.
fn unquoted(
    node: &At<Tree>,
    kind: ScalarKind,
    allowed: &str,
    complaints: &mut Complaints<'_>,
    would_do: impl FnOnce(&str) -> bool,
) {
    match &node.value {
        Tree::Scalar { kind: found, .. } if *found == kind => {}
        Tree::Scalar { text, .. } if mentions_variable(text) => {}
        Tree::Scalar { text, .. } if would_do(text) => {
            let message =
                format!("found the text `\"{text}\"`, allowed is {allowed}; write `{text}`");
            complaints.note(node.position, message);
        }
        _ => complaints.found(node.position, allowed),
    }
}

/// Anything goes.
impl Shape for Value {
    fn check(_: &At<Tree>, _: &mut Complaints<'_>) {}
}

/// Anything goes here; what reads the tree says what does not.
impl Shape for Tree {
    fn check(_: &At<Tree>, _: &mut Complaints<'_>) {}
}
