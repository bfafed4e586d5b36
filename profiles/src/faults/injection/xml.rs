//! Instructions in XML: feeds, envelopes, whatever tools answer in it.
//!
//! It is not parsed, only looked through for the texts of its elements; all else stays as it is.

use std::ops::Range;

use super::{commented, escaped, in_text, likeness};
use crate::fault::{Injection, Placement};

/// A text in an element.
#[derive(Debug, PartialEq, Eq)]
struct Run<'a> {
    element: &'a str,
    /// Without the blanks around it.
    place: Range<usize>,
    /// It stands in a CDATA section, where nothing is escaped.
    verbatim: bool,
}

/// XML with the instruction behind the text that looks most like prose; or why it has no place for it.
pub(super) fn in_xml(injection: &Injection, xml: &str) -> Result<String, String> {
    let runs = runs(xml).ok_or("the tool's answer is no XML that can be read")?;
    let likeness = |run: &&Run<'_>| likeness(run.element, &xml[run.place.clone()]);
    let best = runs.iter().rev().max_by_key(likeness);
    let best = best.filter(|run| likeness(run) > 0);
    let run = best.ok_or("the tool's answer has no text to put an instruction into")?;
    let (before, after) = xml.split_at(run.place.end);
    let text = &xml[run.place.clone()];
    let said = in_text(injection, text);
    let more = &said[text.len()..];
    let more = match (run.verbatim, injection.placement) {
        (true, _) => more.replace("]]>", "]] >"),
        (false, Placement::Comment) => commented(&injection.text),
        (
            false,
            Placement::Field | Placement::ZeroWidth | Placement::Markdown | Placement::ErrorMessage,
        ) => escaped(more),
    };
    Ok([before, &more, after].concat())
}

/// The texts of all elements, in order; `None`: this is no XML.
fn runs(xml: &str) -> Option<Vec<Run<'_>>> {
    let mut runs = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    let mut at = 0;
    while let Some(sign) = xml[at..].find('<').map(|sign| at + sign) {
        runs.extend(run(xml, at..sign, &open, false));
        let rest = &xml[sign..];
        at = if rest.starts_with("<!--") {
            behind(xml, sign + 4, "-->")?
        } else if rest.starts_with("<![CDATA[") {
            let end = behind(xml, sign + 9, "]]>")?;
            runs.extend(run(xml, sign + 9..end - 3, &open, true));
            end
        } else if rest.starts_with("<?") {
            behind(xml, sign, "?>")?
        } else if rest.starts_with("<!") {
            declaration(xml, sign)?
        } else if rest.starts_with("</") {
            open.pop()?;
            behind(xml, sign, ">")?
        } else {
            let end = tag(xml, sign)?;
            let inside = &xml[sign + 1..end - 1];
            if !inside.ends_with('/') {
                let name = inside.split(|c: char| c.is_ascii_whitespace()).next();
                open.push(name.unwrap_or_default());
            }
            end
        };
    }
    (open.is_empty() && !runs.is_empty()).then_some(runs)
}

/// A text that says something.
fn run<'a>(xml: &'a str, place: Range<usize>, open: &[&'a str], verbatim: bool) -> Option<Run<'a>> {
    let text = &xml[place.clone()];
    let said = text.trim();
    let element = open.last().filter(|_| !said.is_empty())?;
    let start = place.start + (text.len() - text.trim_start().len());
    Some(Run {
        // Without its namespace.
        element: element.rsplit(':').next().unwrap_or(element),
        place: start..start + said.len(),
        verbatim,
    })
}

/// Where the first `end` from `from` on is over.
fn behind(xml: &str, from: usize, end: &str) -> Option<usize> {
    let found = xml.get(from..)?.find(end)?;
    Some(from + found + end.len())
}

/// Where a declaration is over, with what it holds in brackets.
fn declaration(xml: &str, from: usize) -> Option<usize> {
    let end = behind(xml, from, ">")?;
    match xml[from..end].find('[') {
        Some(_) => behind(xml, from, "]>"),
        None => Some(end),
    }
}

/// Where a tag is over: `>` may stand in its attributes.
fn tag(xml: &str, from: usize) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in xml.bytes().enumerate().skip(from) {
        match (quote, byte) {
            (None, b'>') => return Some(at + 1),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SAID: &str = "Call <now> sq-0123456789ab.";

    fn put(placement: Placement, xml: &str) -> Result<String, String> {
        let injection = Injection {
            text: SAID.to_owned(),
            placement,
            choice: 0,
        };
        in_xml(&injection, xml)
    }

    #[test]
    fn of_the_texts_the_one_that_reads_like_prose_is_taken() {
        const SHOWN: &str = "Call &lt;now&gt; sq-0123456789ab.";
        for (xml, placement, expected) in [
            (
                "<?xml version=\"1.0\"?>\n<rss><item a='>'><link/><id>a-17</id>\n<!-- a <b> of words -->\n<title>Quiet rooms in Kiel</title></item></rss>",
                Placement::Field,
                format!("<title>Quiet rooms in Kiel {SHOWN}</title>"),
            ),
            (
                "<soap:Body><soap:answer>\n  It will rain today.\n</soap:answer></soap:Body>",
                Placement::ErrorMessage,
                format!("  It will rain today.\nError: {SHOWN}\n</soap:answer>"),
            ),
            (
                "<!DOCTYPE a [<!ENTITY b \"words of three\">]><a><b><![CDATA[A <i>fine</i> day it is]]></b></a>",
                Placement::Field,
                format!("<![CDATA[A <i>fine</i> day it is {SAID}]]>"),
            ),
            (
                "<a>Words of one text</a>",
                Placement::Comment,
                "<a>Words of one text<!-- Call <now> sq-0123456789ab. --></a>".to_owned(),
            ),
        ] {
            let put = put(placement, xml).expect(xml);
            assert!(put.contains(&expected), "{put}");
        }
    }

    #[test]
    fn what_is_no_xml_or_says_nothing_is_left_alone() {
        let unread = "the tool's answer is no XML that can be read";
        let silent = "the tool's answer has no text to put an instruction into";
        for (xml, why) in [
            ("<a>words of three<b></a>", unread),
            ("<a>words of three", unread),
            ("<a b=\"c>words</a>", unread),
            ("words", unread),
            ("</a>", unread),
            ("<a><b/></a>", unread),
            ("<a>12</a>", silent),
        ] {
            assert_eq!(put(Placement::Field, xml).expect_err(xml), why, "{xml}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in prop_oneof![any::<String>(), "[<>/a \"!\\[\\]CDAT?é-]{0,40}"]) {
            if let Ok(put) = put(Placement::Field, &text) {
                prop_assert!(put.contains("sq-0123456789ab"));
            }
        }
    }
}
