//! The clauses of a text, of which each may ask for something.

use std::sync::LazyLock;

use regex::Regex;

use super::deeds::Wants;

/// What ends a clause: an end of a sentence, a bracket, a comma, a word that joins.
static ENDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)[.!?;,:]+(?:\s+|$)|\n|[()\[\]{}<>#]+|\s[-–—]+\s|\b(?:and|then|but|because|und|et|y)\b\s")
        .expect("a constant pattern")
});

/// What stands before the verb of an imperative.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^\W*(?:(?:[\w'-]+\W+){1,6}?(?:must|should|shall|have\ to|has\ to|need\ to|are\ to|is\ to)\W+)?(?:(?:additionally|furthermore|silently|quietly|do|now|then|and|please|next|also|just|always|instead|immediately|first|finally|simply|so|you|must|should|shall|will|may|need\ to|have\ to|has\ to|are\ to|i|want|it|to|can|could|would|bitte|step\ \d+|@\w+|\w*\ ?(?:agents?|bots?|ai|llms?|assistants?))\W+)*",
    )
    .expect("a constant pattern")
});

/// A question for something.
static ASKS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^\W*(?:what|which|who|whose|where)\b").expect("a constant pattern")
});

/// Verbs whose object is a deed of its own.
static CALLS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)^(?:call|run|invoke|execute|use)\W+(?:the (?:tool|function)\W+)?")
        .expect("a constant pattern")
});

/// A clause that asks for something.
#[derive(Debug)]
pub(super) struct Clause<'a> {
    /// Where its verb stands in the text, bytes.
    pub(super) at: usize,
    /// What its verb may want.
    pub(super) wants: Vec<Wants>,
    /// What stands behind the verb.
    pub(super) of: &'a str,
    /// All of it, from the verb on.
    pub(super) text: &'a str,
}

/// The clauses of a text that ask for something, in order.
pub(super) fn clauses(text: &str) -> Vec<Clause<'_>> {
    pieces(text)
        .flat_map(|(at, piece)| {
            let start = BEFORE.find(piece).map_or(0, |before| before.end());
            let called = CALLS.find(&piece[start..]).map(|call| start + call.end());
            let starts = [Some(start), called].into_iter().flatten();
            starts
                .filter_map(|start| clause(at + start, &piece[start..]))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// A text between what ends its clauses, each piece with where it begins.
fn pieces(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    let ends = ENDS.find_iter(text).map(|end| (end.start(), end.end()));
    ends.chain([(text.len(), text.len())])
        .map(move |(start, end)| {
            let piece = (from, &text[from..start]);
            from = end;
            piece
        })
}

fn clause(at: usize, text: &str) -> Option<Clause<'_>> {
    let length = text
        .find(|c: char| !(c.is_alphabetic() || c == '-'))
        .unwrap_or(text.len());
    let mut wants = Wants::of(&text[..length].to_lowercase());
    if ASKS.is_match(text) {
        wants.push(Wants::Telling);
    }
    (!wants.is_empty()).then(|| Clause {
        at,
        wants,
        of: &text[length..],
        text,
    })
}
