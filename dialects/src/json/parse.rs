//! The parser of [`Document`]: one pass, a stack on the heap, no recursion.

use std::ops::Range;

use memchr::memchr2;

use super::{MAX_DEPTH, NotJson, TOO_LARGE};

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number of any size.
    Number,
    /// `true`
    True,
    /// `false`
    False,
    /// `null`
    Null,
}

/// One value: its span, its key's span, and its position in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node {
    pub(super) kind: JsonKind,
    /// Span of the key, quotes included; empty if the value is not an object member.
    pub(super) key_start: u32,
    pub(super) key_end: u32,
    pub(super) start: u32,
    pub(super) end: u32,
    /// Index of the first node that is not inside this one.
    pub(super) next: u32,
    /// Index of its container; the outermost value has its own index.
    pub(super) parent: u32,
}

impl Node {
    pub(super) fn is_member(&self) -> bool {
        self.key_end > 0
    }

    pub(super) fn key_span(&self) -> Range<usize> {
        self.key_start as usize..self.key_end as usize
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// Parses one JSON text into nodes, in the order of the text.
pub(super) struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    nodes: Vec<Node>,
    max_values: usize,
    /// Open containers, innermost last.
    open: Vec<u32>,
}

/// What may follow.
enum Expect {
    /// A value; or `]` if an array was just opened.
    Value { or_end: bool },
    /// A key; or `}` if an object was just opened.
    Key { or_end: bool },
    /// A comma or the end of the innermost container; at the top level only white space.
    Separator,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8], max_values: usize) -> Self {
        Self {
            text,
            at: 0,
            nodes: Vec::new(),
            max_values,
            open: Vec::new(),
        }
    }

    /// Parses the whole text. After an error it also returns the nodes before it; open containers then end at the
    /// error.
    pub(super) fn run(mut self) -> (Vec<Node>, Result<(), NotJson>) {
        let outcome = if u32::try_from(self.text.len()).is_ok() {
            self.read()
        } else {
            self.wrong("the text is 4 GiB or longer")
        };
        let end = offset(self.at.min(self.text.len()));
        let next = offset(self.nodes.len());
        for &index in &self.open {
            let node = &mut self.nodes[index as usize];
            (node.end, node.next) = (end, next);
        }
        (self.nodes, outcome)
    }

    fn read(&mut self) -> Result<(), NotJson> {
        let mut expect = Expect::Value { or_end: false };
        let mut key = None;
        loop {
            self.skip_white_space();
            let Some(&byte) = self.text.get(self.at) else {
                return match expect {
                    Expect::Separator if self.open.is_empty() => Ok(()),
                    _ => self.wrong("the text ends in the middle"),
                };
            };
            expect = match (expect, byte) {
                (Expect::Value { or_end: true }, b']') | (Expect::Key { or_end: true }, b'}') => {
                    self.close();
                    Expect::Separator
                }
                (Expect::Value { .. }, _) => self.value(byte, key.take())?,
                (Expect::Key { .. }, b'"') => {
                    key = Some(self.key()?);
                    Expect::Value { or_end: false }
                }
                (Expect::Key { .. }, _) => return self.wrong("expected a key"),
                (Expect::Separator, _) => self.separator(byte)?,
            };
        }
    }

    /// Handles the byte after a value, depending on the innermost container.
    fn separator(&mut self, byte: u8) -> Result<Expect, NotJson> {
        let Some(&container) = self.open.last() else {
            return self.wrong("more follows after the end");
        };
        let object = self.nodes[container as usize].kind == JsonKind::Object;
        match byte {
            b',' => {
                self.at += 1;
                Ok(if object {
                    Expect::Key { or_end: false }
                } else {
                    Expect::Value { or_end: false }
                })
            }
            b'}' if object => {
                self.close();
                Ok(Expect::Separator)
            }
            b']' if !object => {
                self.close();
                Ok(Expect::Separator)
            }
            _ => self.wrong("expected a comma or the end of the object or list"),
        }
    }

    /// Parses a key and its colon; returns the span of the key, quotes included.
    fn key(&mut self) -> Result<(u32, u32), NotJson> {
        let start = offset(self.at);
        self.string()?;
        let end = offset(self.at);
        self.skip_white_space();
        if self.text.get(self.at) != Some(&b':') {
            return self.wrong("expected a colon");
        }
        self.at += 1;
        Ok((start, end))
    }

    fn value(&mut self, byte: u8, key: Option<(u32, u32)>) -> Result<Expect, NotJson> {
        if self.nodes.len() == self.max_values {
            return self.wrong(TOO_LARGE);
        }
        let start = self.at;
        let index = offset(self.nodes.len());
        let parent = self.open.last().copied().unwrap_or(index);
        let (kind, expect) = match byte {
            b'{' => (JsonKind::Object, Expect::Key { or_end: true }),
            b'[' => (JsonKind::Array, Expect::Value { or_end: true }),
            b'"' => (JsonKind::String, Expect::Separator),
            b't' => (JsonKind::True, Expect::Separator),
            b'f' => (JsonKind::False, Expect::Separator),
            b'n' => (JsonKind::Null, Expect::Separator),
            b'-' | b'0'..=b'9' => (JsonKind::Number, Expect::Separator),
            _ => return self.wrong("expected a value"),
        };
        match kind {
            JsonKind::Object | JsonKind::Array => {
                if self.open.len() == MAX_DEPTH {
                    return self.wrong("nested too deep");
                }
                self.at += 1;
                self.open.push(index);
            }
            JsonKind::String => self.string()?,
            JsonKind::Number => self.number()?,
            JsonKind::True => self.word(b"true")?,
            JsonKind::False => self.word(b"false")?,
            JsonKind::Null => self.word(b"null")?,
        }
        let (key_start, key_end) = key.unwrap_or_default();
        self.nodes.push(Node {
            kind,
            key_start,
            key_end,
            start: offset(start),
            end: offset(self.at),
            next: index + 1,
            parent,
        });
        Ok(expect)
    }

    /// Closes the innermost container at its bracket.
    fn close(&mut self) {
        self.at += 1;
        if let Some(index) = self.open.pop() {
            let next = offset(self.nodes.len());
            let node = &mut self.nodes[index as usize];
            (node.end, node.next) = (offset(self.at), next);
        }
    }

    fn skip_white_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), NotJson> {
        if self.text[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            self.wrong("expected true, false or null")
        }
    }

    fn string(&mut self) -> Result<(), NotJson> {
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            if let Some(control) = rest[..plain].iter().position(|byte| *byte < b' ') {
                self.at += control;
                return self.wrong("a control character in a string");
            }
            self.at += plain + 1;
            match rest.get(plain) {
                Some(b'"') => return Ok(()),
                Some(_) => self.escape()?,
                None => {
                    self.at = self.text.len();
                    return self.wrong("a string does not end");
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), NotJson> {
        match self.text.get(self.at) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u')
                if self
                    .text
                    .get(self.at + 1..self.at + 5)
                    .is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                self.at += 5;
                Ok(())
            }
            _ => self.wrong("an escape that JSON does not know"),
        }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        if self.text[self.at] == b'-' {
            self.at += 1;
        }
        match self.text.get(self.at) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            if let Some(b'+' | b'-') = self.text.get(self.at) {
                self.at += 1;
            }
            self.digits()?;
        }
        // The number may be truncated.
        if self.at == self.text.len() && !self.open.is_empty() {
            return self.wrong("the text ends in the middle");
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let count = self.text[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if count == 0 {
            return self.wrong("expected a digit");
        }
        self.at += count;
        Ok(())
    }

    fn wrong<T>(&self, what: &'static str) -> Result<T, NotJson> {
        Err(NotJson { at: self.at, what })
    }
}

/// An offset; [`Parser::run`] has checked that the text is shorter than 4 GiB.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
