//! Finding secrets in a text, in time that grows with its length and with nothing else.
//!
//! One pass over the bytes, which stops where a word begins (and at `_`, `-` and `:`, for what may be inside
//! of one). What begins there is followed to its end, and no byte more than once for each of few classes of
//! characters ([`Runs`]).

use std::ops::Range;
use std::sync::LazyLock;

use super::shapes::{CLASSES, Of, SHAPES, Shape};
use super::{REDACTED, checks};

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is.
    pub range: Range<usize>,
    /// Whose it is, or what: `GitHub`, `JSON Web Token`, `payment card`.
    pub name: &'static str,
    /// Whether its format has a checksum, or the like, that says so.
    pub certain: bool,
    /// Quotation marks that what stands in its place needs, as the text writes one: it is a number.
    pub(super) quote: Range<usize>,
}

impl Found {
    pub(super) fn new(range: Range<usize>, name: &'static str) -> Self {
        Self {
            range,
            name,
            certain: false,
            quote: 0..0,
        }
    }

    /// What stands in its place.
    pub(crate) fn instead(&self, text: &str) -> String {
        let quote = &text[self.quote.clone()];
        format!("{quote}{REDACTED}{quote}")
    }
}

/// Words that say that a secret follows, in any letter case.
const WORDS: &[&str] = &[
    "bearer",
    "basic",
    "authorization",
    "aws_secret_access_key",
    "accountkey=",
];

/// Bytes that a secret, or a word that announces one, may begin with.
static BEGINNINGS: [bool; 256] = beginnings();

const fn beginnings() -> [bool; 256] {
    let mut all = [false; 256];
    let mut shape = 0;
    while shape < SHAPES.len() {
        all[SHAPES[shape].prefix.as_bytes()[0] as usize] = true;
        shape += 1;
    }
    let mut word = 0;
    while word < WORDS.len() {
        let first = WORDS[word].as_bytes()[0];
        all[first as usize] = true;
        all[first.to_ascii_uppercase() as usize] = true;
        word += 1;
    }
    all[b'e' as usize] = true;
    all[b'b' as usize] = true;
    let mut digit = b'0';
    while digit <= b'9' {
        all[digit as usize] = true;
        digit += 1;
    }
    all
}

/// What words are made of.
static IN_WORD: [bool; 256] = {
    let mut all = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        all[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    all
};

/// What words are made of, but for `_`.
static PLAIN: [bool; 256] = {
    let mut all = IN_WORD;
    all[b'_' as usize] = false;
    all
};

/// Longest mark at the ends of a key block, and longest header of one.
const MARK: usize = 64;

/// Shortest user of a URL without a password that is taken for a key, bytes.
const USER: usize = 16;

/// Longest user information of a URL, bytes.
const USER_INFO: usize = 512;

/// Secrets in a text, in their order; none overlaps another.
pub(super) fn secrets(text: &str) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut found: Vec<Found> = Vec::new();
    let mut runs = Runs::new(text);
    let (mut at, mut in_word) = (0, false);
    while let Some(byte) = bytes.get(at) {
        let was_in_word = std::mem::replace(&mut in_word, IN_WORD[usize::from(*byte)]);
        let secret = match (was_in_word, *byte) {
            (false, byte) if BEGINNINGS[usize::from(byte)] => at_word(text, at, &mut runs),
            (true, b'_') => inside_word(text, at, &mut runs),
            (_, b'-') => key_block(text, at),
            (_, b':') => user_info(text, at),
            _ => None,
        };
        if let Some(secret) = secret {
            at = secret.range.end;
            in_word = is_word(bytes.get(at.wrapping_sub(1)).copied());
            // What a checksum tells may begin before the byte that it was found by.
            let last = found.last().map_or(0, |last| last.range.end);
            let range = secret.range.start.max(last)..secret.range.end;
            found.push(Found { range, ..secret });
            continue;
        }
        at += 1;
        if in_word {
            // Nothing begins inside of a word but behind a `_`.
            let rest = bytes[at..].iter();
            at += rest.take_while(|byte| PLAIN[usize::from(**byte)]).count();
        }
    }
    found
}

/// The secret that a word begins, or that a word announces.
fn at_word(text: &str, start: usize, runs: &mut Runs<'_>) -> Option<Found> {
    let here = &text.as_bytes()[start..];
    let found = |range, name, certain| {
        Some(Found {
            certain,
            ..Found::new(range, name)
        })
    };
    if here[0].is_ascii_digit() {
        return found(card(text.as_bytes(), start)?, "payment card", true);
    }
    if let Some(shape) = shape(here) {
        let begins = start + shape.prefix.len();
        let end = runs.end(shape.of, begins);
        let body = &text[begins..end];
        (body.len() >= shape.least).then_some(())?;
        let certain = shape.check.is_some_and(|check| check(body));
        return found(start..end, shape.name, certain);
    }
    if here.starts_with(b"eyJ") {
        let (range, certain) = jwt(text, start, runs)?;
        return found(range, "JSON Web Token", certain);
    }
    if here.starts_with(b"bot") {
        return found(start..bot(text, start + 3, runs)?, "Telegram", false);
    }
    if !b"abAB".contains(&here[0]) {
        return None;
    }
    let word = WORDS.iter().find(|word| {
        let given = here.get(..word.len());
        given.is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
    })?;
    let range = behind_word(text, word, start, runs)?;
    found(range, "credentials", false)
}

/// The secret that begins inside of a word, whose prefix ends with the `_` at `at`: one that a checksum
/// tells.
fn inside_word(text: &str, at: usize, runs: &mut Runs<'_>) -> Option<Found> {
    let start = at.checked_sub(3)?;
    let prefix = text.as_bytes().get(start..=at)?;
    let mut shapes = SHAPES.iter();
    let shape = shapes.find(|shape| shape.check.is_some() && shape.prefix.as_bytes() == prefix)?;
    let end = runs.end(shape.of, at + 1);
    let certain = shape.check.is_some_and(|check| check(&text[at + 1..end]));
    certain.then(|| Found {
        certain,
        ..Found::new(start..end, shape.name)
    })
}

/// Shapes by the second byte of their prefix, for each that may be the first; the longest prefixes first.
static BY_FIRST: LazyLock<Vec<Vec<(u8, &'static Shape)>>> = LazyLock::new(|| {
    let mut all = vec![Vec::new(); 128];
    for shape in SHAPES {
        let prefix = shape.prefix.as_bytes();
        all[usize::from(prefix[0])].push((prefix[1], shape));
    }
    for shapes in &mut all {
        shapes.sort_by_key(|(_, shape)| std::cmp::Reverse(shape.prefix.len()));
    }
    all
});

/// The shape whose prefix is here: the longest.
fn shape(here: &[u8]) -> Option<&'static Shape> {
    let [first, second, ..] = here else {
        return None;
    };
    let shapes = BY_FIRST.get(usize::from(*first))?.iter();
    let fitting = shapes
        .filter(|(byte, _)| byte == second)
        .map(|(_, shape)| shape);
    let mut fitting = fitting.filter(|shape| here.starts_with(shape.prefix.as_bytes()));
    fitting.next().copied()
}

/// What comes behind a word that says that it is a secret. `Authorization: Bearer` and the scheme alone
/// stay, so that people see what was there.
fn behind_word(text: &str, word: &str, start: usize, runs: &mut Runs<'_>) -> Option<Range<usize>> {
    let end = start + word.len();
    let value = |begins: usize, of: Of, least: usize, runs: &mut Runs<'_>| {
        let ends = runs.end(of, begins);
        (ends - begins >= least).then_some(begins..ends)
    };
    match word {
        "bearer" => {
            let begins = behind_spaces(text, end)?;
            value(begins, Of::Bearer, 16, runs)
        }
        "basic" => {
            let begins = behind_spaces(text, end)?;
            let range = value(begins, Of::Base64, 7, runs)?;
            // Without padding it may be any word.
            text[range.clone()]
                .ends_with('=')
                .then_some(start..range.end)
        }
        "authorization" => {
            let begins = behind(text, end, b" :=\"'", 4)?;
            let rest = text.get(begins..)?;
            let scheme = ["bearer", "basic", "token"].into_iter().find(|scheme| {
                let given = rest.get(..scheme.len());
                given.is_some_and(|given| given.eq_ignore_ascii_case(scheme))
            })?;
            let begins = behind_spaces(text, begins + scheme.len())?;
            value(begins, Of::Bearer, 4, runs)
        }
        "aws_secret_access_key" => {
            let begins = behind(text, end, b" :=\"'", 5)?;
            value(begins, Of::Base64, 40, runs)
        }
        "accountkey=" => value(end, Of::Base64, 40, runs),
        _ => None,
    }
}

/// Behind one to `most` of these bytes.
fn behind(text: &str, from: usize, bytes: &[u8], most: usize) -> Option<usize> {
    let rest = &text.as_bytes()[from..];
    let count = rest.iter().take_while(|byte| bytes.contains(byte)).count();
    (1..=most).contains(&count).then_some(from + count)
}

fn behind_spaces(text: &str, from: usize) -> Option<usize> {
    behind(text, from, b" ", 8)
}

/// A JSON Web Token: two parts, or three, with dots between them.
fn jwt(text: &str, start: usize, runs: &mut Runs<'_>) -> Option<(Range<usize>, bool)> {
    let dot = runs.end(Of::Key, start);
    let is_dot = |at: usize| text.as_bytes().get(at) == Some(&b'.');
    if dot - start < 11 || !is_dot(dot) {
        return None;
    }
    let mut end = runs.end(Of::Key, dot + 1);
    if end - dot < 9 {
        return None;
    }
    if is_dot(end) {
        end = runs.end(Of::Key, end + 1);
    }
    // Longer ones are no headers, and decoding them would take its time.
    let certain = dot - start <= 1024 && checks::is_jwt_header(&text[start..dot]);
    Some((start..end, certain))
}

/// `bot123456:AA…`: where it ends.
fn bot(text: &str, digits: usize, runs: &mut Runs<'_>) -> Option<usize> {
    let bytes = text.as_bytes();
    let count = bytes[digits..]
        .iter()
        .take(13)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let colon = digits + count;
    if !(6..=12).contains(&count) || bytes.get(colon) != Some(&b':') {
        return None;
    }
    let end = runs.end(Of::Key, colon + 1);
    (end - colon > 30).then_some(end)
}

/// A private key: to its end, or to that of the text.
fn key_block(text: &str, start: usize) -> Option<Found> {
    const BEGIN: &str = "-----BEGIN ";
    if !text.as_bytes()[start..].starts_with(BEGIN.as_bytes()) {
        return None;
    }
    let label = start + BEGIN.len();
    let rest = &text[label..];
    let dashes = rest.bytes().take(MARK).position(|byte| byte == b'-')?;
    let words = &rest[..dashes];
    let is_private = words.ends_with("PRIVATE KEY") || words.ends_with("PRIVATE KEY BLOCK");
    if !is_private || !rest[dashes..].starts_with("-----") {
        return None;
    }
    let mark = format!("-----END {words}-----");
    let end = rest
        .find(&mark)
        .map_or(text.len(), |at| label + at + mark.len());
    Some(Found {
        certain: true,
        ..Found::new(start..end, "private key")
    })
}

/// `user:password` before the host of a URL, or a user that is a key.
fn user_info(text: &str, colon: usize) -> Option<Found> {
    if !text.as_bytes()[colon..].starts_with(b"://") {
        return None;
    }
    let authority = colon + 3;
    let rest = &text.as_bytes()[authority..];
    let ends = |byte: &u8| b"/?#\"'<> ".contains(byte) || byte.is_ascii_control();
    let length = rest.iter().take(USER_INFO).position(ends);
    let length = length.unwrap_or(rest.len().min(USER_INFO));
    let at = rest[..length].iter().rposition(|byte| *byte == b'@')?;
    let has_password = at > 1 && rest[..at].contains(&b':');
    let place = authority..authority + at;
    (has_password || at >= USER).then(|| Found::new(place, "user information"))
}

fn is_word(byte: Option<u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Where runs of characters end. Each is followed once, however many secrets might begin in it.
struct Runs<'t> {
    text: &'t str,
    /// For each class, the run that was followed last.
    known: [Range<usize>; CLASSES],
}

impl<'t> Runs<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            known: std::array::from_fn(|_| 0..0),
        }
    }

    /// Where the characters of a class end that begin at `from`.
    fn end(&mut self, of: Of, from: usize) -> usize {
        let known = &mut self.known[of as usize];
        if !known.contains(&from) {
            let rest = self.text.as_bytes().get(from..).unwrap_or_default();
            let count = rest.iter().take_while(|byte| of.holds(**byte)).count();
            *known = from..from + count;
        }
        known.end.max(from)
    }
}

/// How the digits of a payment card are grouped, where they are.
const GROUPS: [&[usize]; 3] = [&[4, 4, 4, 4], &[4, 6, 5], &[4, 6, 4]];

/// The number of a payment card that begins at `start`: digits alone, or in groups with one space or
/// hyphen between each two.
fn card(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let before = |back: usize| start.checked_sub(back).map(|at| bytes[at]);
    let end = start + digits(bytes, start, 17);
    if before(1) == Some(b'.') {
        return None;
    }
    if (14..=16).contains(&(end - start)) {
        return (!is_word(bytes.get(end).copied()) && is_number(&bytes[start..end]))
            .then_some(start..end);
    }
    let separator = *bytes.get(end).filter(|byte| b" -".contains(byte))?;
    // A group of a longer row: of an id, say.
    let is_of_row = |byte: Option<u8>| match separator {
        b' ' => byte.is_some_and(|byte| byte.is_ascii_digit()),
        _ => is_word(byte),
    };
    if before(1) == Some(separator) && is_of_row(before(2)) {
        return None;
    }
    GROUPS.into_iter().find_map(|groups| {
        let mut at = start;
        for (number, group) in groups.iter().enumerate() {
            if number > 0 {
                (bytes.get(at) == Some(&separator)).then_some(())?;
                at += 1;
            }
            (digits(bytes, at, 7) == *group).then_some(())?;
            at += group;
        }
        let next = bytes.get(at).copied();
        let goes_on = next == Some(separator) && is_of_row(bytes.get(at + 1).copied());
        (!is_word(next) && !goes_on && is_number(&bytes[start..at])).then_some(start..at)
    })
}

/// How many digits there are from `from` on, counted to `most`.
fn digits(bytes: &[u8], from: usize, most: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default().iter().take(most);
    rest.take_while(|byte| byte.is_ascii_digit()).count()
}

fn is_number(written: &[u8]) -> bool {
    let digits = written.iter().filter(|byte| byte.is_ascii_digit());
    let digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
    checks::is_card(&digits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::shapes::SHAPES;
    use super::*;

    fn names(text: &str) -> Vec<(&str, &str, bool)> {
        let found = secrets(text).into_iter();
        found
            .map(|one| (one.name, &text[one.range], one.certain))
            .collect()
    }

    #[test]
    fn prefixes_differ_and_none_hides_another() {
        for (number, shape) in SHAPES.iter().enumerate() {
            let least = "A0".repeat(shape.least);
            let text = format!("x {}{least} y", shape.prefix);
            assert_eq!(names(&text)[0].0, shape.name, "{}", shape.prefix);
            let twin = SHAPES[..number]
                .iter()
                .find(|other| other.prefix == shape.prefix);
            assert!(twin.is_none(), "{}", shape.prefix);
        }
    }

    #[test]
    fn what_a_checksum_tells_is_found_inside_of_words_too() {
        let token = "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";
        let word = format!("TOKEN_{token}");
        assert_eq!(names(&word), [("GitHub", token, true)]);
        let made_up = format!("TOKEN_ghp_{}", "a".repeat(36));
        assert_eq!(names(&made_up), []);
        assert_eq!(names(&made_up[6..]), [("GitHub", &made_up[6..], false)]);
    }

    #[test]
    fn each_kind_is_found_where_it_is() {
        for (text, name, found, certain) in [
            (
                "pay 4242 4242 4242 4242.",
                "payment card",
                "4242 4242 4242 4242",
                true,
            ),
            (
                "no=4111-1111-1111-1111&x",
                "payment card",
                "4111-1111-1111-1111",
                true,
            ),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc,",
                "JSON Web Token",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
                true,
            ),
            (
                "at postgres://u:hunter2@db/x",
                "user information",
                "u:hunter2",
                false,
            ),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY;",
                "credentials",
                "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                false,
            ),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK----- y",
                "private key",
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----",
                true,
            ),
            (
                "Authorization: \"token abcd\"",
                "credentials",
                "abcd",
                false,
            ),
            (
                "authorization=token abcd1234",
                "credentials",
                "abcd1234",
                false,
            ),
        ] {
            assert_eq!(names(text), [(name, found, certain)], "{text}");
        }
    }

    #[test]
    fn what_is_no_secret_is_left_alone() {
        for text in [
            "0193a1b2-c3d4-7000-8001-beefbeefbeef",
            "550e8400-e29b-41d4-a716-446655440000",
            "42424242-4242-4242-4242-424242424242",
            "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "d41d8cd98f00b204e9800998ecf8427e",
            "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
            "chatcmpl-9f2cABCDEF1234567890abcdef",
            "msg_01XFDUDYJgAACzvnptvVoYEL",
            "toolu_01A09q90qw90lq917835lq9",
            "call_62136354f7b8a4e9b0c1d2e3",
            "req_011CSHoEeqs5C35K2UUqR7Fy",
            "1763812345678",
            "1763812345678901234",
            "4242424242424241",
            "0.4242424242424242",
            "order 4242424242424242a",
            "+49 170 1234567",
            "2026-11-22T12:34:56.789012345Z",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "task-management-system, risk-averse-behaviour, desk-organiser",
            "the bearer of bad news has basic training",
            "https://host.example/a@b:c",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "bottle:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "eyJust a word. And another.",
            "squall_events_dropped_total",
        ] {
            assert_eq!(names(text), [], "{text}");
        }
    }

    #[test]
    fn hostile_texts_take_no_longer_than_others_of_their_length() {
        // Each would take hours if it were followed anew from every place that looks like a beginning.
        for piece in [
            "eyJaaaaaaaa-AKIA1234567890123456-",
            "eyJaaaaaaaaaaa",
            "sk-",
            "-----BEGIN PRIVATE KEY",
            "-----BEGIN RSA ",
            "://a:",
            "bot123456:a",
            "bearer ",
            "authorization:bearer ",
            "4242 4242 4242 4242 ",
            "1-",
            "xghp_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ] {
            let text = piece.repeat((1 << 20) / piece.len());
            let found = secrets(&text);
            assert!(found.len() <= text.len(), "{piece}");
        }
    }

    proptest! {
        #[test]
        fn secrets_are_found_in_any_surroundings_in_order_and_apart(
            before in "[ \\PC]{0,40}[ =:\"]",
            number in 0..SHAPES.len(),
            filler in "[A-F0-9]{80}",
            after in "[ \",;)][ \\PC]{0,40}",
        ) {
            let shape = SHAPES[number];
            let secret = format!("{}{}", shape.prefix, &filler[..shape.least.min(80)]);
            let text = format!("{before}{secret}{after}");
            let found = secrets(&text);
            let (start, end) = (before.len(), before.len() + secret.len());
            prop_assert!(
                found.iter().any(|one| one.range.start <= start && one.range.end >= end),
                "{:?} in {}", found, text
            );
            for pair in found.windows(2) {
                prop_assert!(pair[0].range.end <= pair[1].range.start, "{:?}", pair);
            }
        }

        #[test]
        fn any_text_is_looked_through(text in "\\PC{0,200}") {
            for one in secrets(&text) {
                prop_assert!(text.get(one.range).is_some_and(|found| !found.is_empty()));
            }
        }
    }
}
