//! Parameters of URLs and forms that are secrets by their names, and the user before a host.

use std::ops::Range;

use super::detect::Found;
use super::names::is_secret_parameter;

/// Longest name of a parameter within a text, bytes.
const NAME: usize = 64;

/// Secret parameters: anywhere in a URL or a form; in another text behind `?`, `&` and `#`, to the end of
/// the word.
pub(super) fn find(text: &str, in_url: bool, found: &mut Vec<Found>) {
    let separates = |letter: char| "?&#".contains(letter) || (in_url && letter == ';');
    let mut start = 0;
    for (number, piece) in text.split(separates).enumerate() {
        let next = start + piece.len() + 1;
        if in_url {
            pair(piece, start, |_| true, found);
        } else if number > 0 {
            let written = piece.strip_prefix("amp;").unwrap_or(piece);
            let ends = |letter: char| letter.is_whitespace() || "\"'`<>\\;".contains(letter);
            let word = &written[..written.find(ends).unwrap_or(written.len())];
            pair(word, next - 1 - written.len(), is_word, found);
        }
        start = next;
    }
}

/// The value of a pair, if it is a secret. A value may be another pair, where separators were undone.
fn pair(pair: &str, start: usize, is_name: impl Fn(&str) -> bool, found: &mut Vec<Found>) {
    let (mut rest, mut at) = (pair, start);
    while let Some((name, value)) = rest.split_once('=') {
        at += name.len() + 1;
        if is_name(name) && !value.is_empty() && is_secret_parameter(name) {
            found.push(Found::new(at..at + value.len(), "parameter"));
            return;
        }
        rest = value;
    }
}

fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= NAME
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.%[]-".contains(&byte))
}

/// Where the user of a URL stands, without its `@`; and where its path begins, or what is in its place.
pub(super) fn authority(url: &str) -> (Option<Range<usize>>, usize) {
    let start = url.find("://").map_or(0, |at| at + 3);
    let rest = &url[start..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let user = rest[..end].rfind('@').map(|at| start..start + at);
    (user, start + end)
}
