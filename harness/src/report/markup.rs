//! Markup that is well-formed whatever stands in it.
//!
//! Names of elements and attributes are the program's own; whatever comes from outside is text or the value
//! of an attribute, is made visible ([`super::shown`]) and escaped, and there is no way to write it
//! otherwise. Every element is closed by whoever opened it. So what is written is XML, and, with the
//! names of HTML, HTML that a browser reads alike.

use std::fmt::Write as _;

use super::shown;

/// Markup being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    written: String,
}

/// An element whose start is being written.
#[must_use = "an element is to be closed: `empty`, `text` or `holding`"]
pub(super) struct Element<'m> {
    markup: &'m mut Markup,
    name: &'static str,
}

impl Markup {
    /// A document that begins with this.
    pub(super) fn beginning(prolog: &'static str) -> Self {
        Self {
            written: prolog.to_owned(),
        }
    }

    /// Begins an element.
    pub(super) fn element(&mut self, name: &'static str) -> Element<'_> {
        self.written.push('<');
        self.written.push_str(name);
        Element { markup: self, name }
    }

    /// A text.
    pub(super) fn text(&mut self, text: &str) {
        escape(&mut self.written, text, "");
    }

    /// A text in which what stands between two backticks is code.
    pub(super) fn prose(&mut self, text: &str) {
        let mut rest = text;
        while let Some((before, code, after)) = code_in(rest) {
            self.text(before);
            self.with_text("code", code);
            rest = after;
        }
        self.text(rest);
    }

    /// An element with nothing but a text in it, and no attributes.
    pub(super) fn with_text(&mut self, name: &'static str, text: &str) {
        self.element(name).text(text);
    }

    pub(super) fn written(self) -> String {
        self.written
    }
}

impl Element<'_> {
    /// An attribute.
    pub(super) fn with(self, name: &'static str, value: impl AsRef<str>) -> Self {
        let written = &mut self.markup.written;
        written.push(' ');
        written.push_str(name);
        written.push_str("=\"");
        // A line in an attribute would be read as a space.
        escape(written, value.as_ref(), "\n\t");
        written.push('"');
        self
    }

    /// An attribute that is a number.
    pub(super) fn number(self, name: &'static str, value: f64) -> Self {
        self.with(name, format!("{}", (value * 100.0).round() / 100.0))
    }

    /// Ends an element that holds nothing.
    pub(super) fn empty(self) {
        self.markup.written.push_str("/>");
    }

    /// Ends it with a text in it.
    pub(super) fn text(self, text: &str) {
        self.holding(|inner| inner.text(text));
    }

    /// Ends it with a text in it, code between backticks.
    pub(super) fn prose(self, text: &str) {
        self.holding(|inner| inner.prose(text));
    }

    /// Ends it with a text of the program's own in it, as it is: a style sheet.
    pub(super) fn literally(self, text: &'static str) {
        self.holding(|inner| inner.written.push_str(text));
    }

    /// Ends it with whatever is written in it.
    pub(super) fn holding(self, inner: impl FnOnce(&mut Markup)) {
        let Self { markup, name } = self;
        markup.written.push('>');
        inner(markup);
        markup.written.push_str("</");
        markup.written.push_str(name);
        markup.written.push('>');
    }
}

/// What stands before the first code in a text, the code, and what stands behind it.
fn code_in(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('`')?;
    let (code, after) = rest.split_once('`')?;
    Some((before, code, after))
}

/// Writes a text so that it is nothing but text, `also` these characters as numbers.
fn escape(written: &mut String, text: &str, also: &str) {
    for character in shown(text).chars() {
        match character {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            other if also.contains(other) => {
                let _ = write!(written, "&#{};", u32::from(other));
            }
            other => written.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_backticks_is_code_and_stays_text() {
        for (text, expected) in [
            (
                "`a<b>` failed in `c`.",
                "<code>a&lt;b&gt;</code> failed in <code>c</code>.",
            ),
            ("``", "<code></code>"),
            ("one ` alone", "one ` alone"),
            ("`a` and ` alone", "<code>a</code> and ` alone"),
            ("none", "none"),
        ] {
            let mut markup = Markup::default();
            markup.prose(text);
            assert_eq!(markup.written(), expected, "{text}");
        }
    }

    #[test]
    fn what_comes_from_outside_stays_text() {
        let mut markup = Markup::default();
        let hostile = "\"'><b>&\n\u{1b}]]>";
        markup
            .element("p")
            .with("title", hostile)
            .number("x", 1.0 / 3.0)
            .holding(|p| {
                p.text(hostile);
                p.element("br").empty();
            });
        assert_eq!(
            markup.written(),
            "<p title=\"&quot;&#39;&gt;&lt;b&gt;&amp;&#10;␛]]&gt;\" x=\"0.33\">\
             &quot;&#39;&gt;&lt;b&gt;&amp;\n␛]]&gt;<br/></p>"
        );
    }
}
