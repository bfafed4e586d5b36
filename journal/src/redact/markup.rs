//! Elements and attributes of XML and HTML that are secrets by their names, in documents and in texts.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::detect::Found;
use super::names::is_secret_member;

/// The beginning of an element.
static TAGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"<(?P<name>[A-Za-z_][A-Za-z0-9_.:\-]{0,63})(?P<attributes>\s[^<>]*)?>")
        .expect("the pattern is a constant and compiles")
});

/// An attribute.
static ATTRIBUTES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?P<name>[A-Za-z_][A-Za-z0-9_.:\-]{0,63})\s*=\s*(?:"(?P<double>[^"]*)|'(?P<single>[^']*))"#,
    )
    .expect("the pattern is a constant and compiles")
});

/// What an element holds: other elements' marks, and texts.
static CONTENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?s)<!\[CDATA\[(?P<data>.*?)(?:\]\]>|$)|<[^>]*>|(?P<text>[^<]+)")
        .expect("the pattern is a constant and compiles")
});

/// The end of an element.
static ENDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"</(?P<name>[A-Za-z_][A-Za-z0-9_.:\-]{0,63})")
        .expect("the pattern is a constant and compiles")
});

/// Texts of elements and values of attributes that are secrets by their names. Of an element that
/// is cut off, its text to the end, if the whole is a document; `<password>` in a sentence is none.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    if !text.contains('<') {
        return;
    }
    let is_document = text.trim_start().starts_with('<');
    // The content of elements is looked at up to here.
    let mut seen = 0;
    let ends = Ends::of(text);
    for tag in TAGS.captures_iter(text) {
        let (Some(whole), name) = (tag.get(0), local(&tag["name"])) else {
            continue;
        };
        let attributes = tag.name("attributes");
        if let Some(attributes) = attributes {
            of_attributes(attributes.as_str(), attributes.start(), found);
        }
        let is_empty = attributes.is_some_and(|written| written.as_str().ends_with('/'));
        // No text is a secret by a name that is none for this one.
        if is_empty || whole.start() < seen || !is_secret_member(name, ANY) {
            continue;
        }
        let begins = whole.end();
        let end = ends.after(&tag["name"], begins).or_else(|| {
            let cut_off = || {
                text[begins..]
                    .find('<')
                    .map_or(text.len(), |at| begins + at)
            };
            is_document.then(cut_off)
        });
        if let Some(end) = end {
            of_content(name, &text[begins..end], begins, found);
            seen = end;
        }
    }
}

/// Where elements end, by name and in order: each is found once, however many begin.
struct Ends<'t>(HashMap<&'t str, Vec<usize>>);

impl<'t> Ends<'t> {
    fn of(text: &'t str) -> Self {
        let mut ends: HashMap<_, Vec<_>> = HashMap::new();
        for end in ENDS.captures_iter(text) {
            if let (Some(whole), Some(name)) = (end.get(0), end.name("name")) {
                ends.entry(name.as_str()).or_default().push(whole.start());
            }
        }
        Self(ends)
    }

    /// The first of that name from a place on.
    fn after(&self, name: &str, place: usize) -> Option<usize> {
        let ends = self.0.get(name)?;
        ends.get(ends.partition_point(|end| *end < place)).copied()
    }
}

/// A text that is a secret under every name that makes secrets of any.
const ANY: &str = "0123456789abcdef";

/// The name without its prefix (`soap:`).
fn local(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn of_content(name: &str, content: &str, at: usize, found: &mut Vec<Found>) {
    for piece in CONTENT.captures_iter(content) {
        let Some(text) = piece.name("data").or_else(|| piece.name("text")) else {
            continue;
        };
        if !text.as_str().trim().is_empty() && is_secret_member(name, text.as_str()) {
            let place = at + text.start()..at + text.end();
            found.push(Found::new(place, "element"));
        }
    }
}

/// Attributes named so, and the `value` beside a `name` or `key` that says so: fields of forms, settings.
fn of_attributes(written: &str, at: usize, found: &mut Vec<Found>) {
    let attributes: Vec<_> = ATTRIBUTES
        .captures_iter(written)
        .filter_map(|one| {
            let value = one.name("double").or_else(|| one.name("single"))?;
            Some((local(one.name("name")?.as_str()), value))
        })
        .collect();
    let called = attributes
        .iter()
        .find(|(name, _)| ["name", "key"].contains(name));
    for (name, value) in &attributes {
        let of_field = called.filter(|_| *name == "value");
        let by_field =
            of_field.is_some_and(|(_, field)| is_secret_member(field.as_str(), value.as_str()));
        if by_field || is_secret_member(name, value.as_str()) {
            let place = at + value.start()..at + value.end();
            found.push(Found::new(place, "attribute"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_attributes_are_found_by_their_names() {
        for (text, expected) in [
            ("<a><password>x y</password><b>c</b></a>", &["x y"][..]),
            ("<s:Password Type=\"t\">x</s:Password>", &["x"]),
            ("<apiKey><![CDATA[x<y]]></apiKey>", &["x<y"]),
            (
                "<credentials><user>u</user> <pin>1</pin></credentials>",
                &["u", "1"],
            ),
            ("<user password=\"x\" name='n' apiKey='y'/>", &["x", "y"]),
            (
                "<input type=\"password\" name=\"password\" value=\"x\">",
                &["x"],
            ),
            ("<add key=\"ClientSecret\" value=\"x\" />", &["x"]),
            ("see <password>x</password>", &["x"]),
            ("<a><password>cut o", &["cut o"]),
            ("<a><password>x<b>", &["x"]),
            // Nothing that is one.
            ("https://user:<password>@host/<path>", &[]),
            ("<password></password><password/><password />", &[]),
            (
                "<input type=\"password\"><label for=\"password\">p</label>",
                &[],
            ),
            ("<token>the</token><key>k</key>", &[]),
            ("a < password > b", &[]),
        ] {
            let mut found = Vec::new();
            find(text, &mut found);
            let found: Vec<_> = found.into_iter().map(|one| &text[one.range]).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
