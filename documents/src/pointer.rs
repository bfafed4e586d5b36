//! JSON pointers (RFC 6901) that are extended and shortened while a document is read.

use std::fmt::{self, Display, Write as _};

/// The pointer to the value that is being read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pointer(String);

/// The length of a pointer before it was extended.
#[derive(Debug, Clone, Copy)]
#[must_use = "what was entered is left again"]
pub(crate) struct PointerMark(usize);

impl Pointer {
    /// Extends the pointer by a member's name or an item's index.
    pub(crate) fn enter(&mut self, step: impl Display) -> PointerMark {
        let before = PointerMark(self.0.len());
        self.0.push('/');
        // Writing to a string never fails.
        let _ = write!(Escaped(&mut self.0), "{step}");
        before
    }

    /// Extends the pointer by another pointer.
    pub(crate) fn follow(&mut self, pointer: &str) -> PointerMark {
        let before = PointerMark(self.0.len());
        self.0.push_str(pointer);
        before
    }

    /// Restores the pointer.
    pub(crate) fn leave(&mut self, before: PointerMark) {
        self.0.truncate(before.0);
    }

    /// The pointer as a text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Escapes a step while writing it.
struct Escaped<'s>(&'s mut String);

impl fmt::Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            match character {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// The unescaped steps of a pointer.
pub(crate) fn steps(pointer: &str) -> impl Iterator<Item = String> {
    let steps = pointer.split('/').skip(1);
    steps.map(|step| step.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_can_be_left() {
        let mut pointer = Pointer::default();
        let root = pointer.enter("a/~b");
        let first = pointer.enter(0);
        assert_eq!(pointer.as_str(), "/a~1~0b/0");
        assert_eq!(steps(pointer.as_str()).collect::<Vec<_>>(), ["a/~b", "0"]);
        pointer.leave(first);
        let other = pointer.follow("/c/1");
        assert_eq!(pointer.as_str(), "/a~1~0b/c/1");
        pointer.leave(other);
        pointer.leave(root);
        assert_eq!(pointer, Pointer::default());
    }
}
