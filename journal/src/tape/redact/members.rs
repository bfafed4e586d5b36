//! Members of JSON whose values are secrets by their names: in documents, in JSON that is the text of
//! another document, and in what is only a part of one.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::redact::{REDACTED, is_secret_member, is_secret_number};

/// A member's name and what its value begins with. Of JSON within a text the quotes are escaped.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?P<escape>\\*)"(?P<name>[A-Za-z0-9_.\-]{2,64})\\*"\s*:\s*(?:(?P<number>-?[0-9][0-9.eE+\-]*)|(?P<open>\\*)"|(?P<below>[\[{]))"#,
    )
    .expect("the pattern is a constant and compiles")
});

/// Backslashes before a quote of JSON that is a text of JSON, and so on. No more: each is looked for to the
/// end of the text once at most.
const LEVELS: [usize; 5] = [0, 1, 3, 7, 15];

/// A value that is a secret by the name of a member that it is, or stands somewhere in.
enum Secret {
    /// A text, without its quotes.
    Text(Range<usize>),
    /// A number, and backslashes that quotes in its place need.
    Number(Range<usize>, usize),
}

/// Where texts stand that are secrets by the names of their members, without their quotes, in order.
pub(super) fn places(text: &str) -> Vec<Range<usize>> {
    let texts = secrets(text).into_iter().filter_map(|secret| match secret {
        Secret::Text(place) => Some(place),
        Secret::Number(..) => None,
    });
    texts.collect()
}

/// Whether a member in a text is a secret by its name.
pub(in crate::tape) fn names_a_secret(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// The text without them; `None` where there are none.
pub(super) fn without(text: &str) -> Option<String> {
    let mut redacted = String::new();
    let mut copied = 0;
    for secret in secrets(text) {
        let (place, instead) = match secret {
            Secret::Text(place) => (place, REDACTED.to_owned()),
            Secret::Number(place, behind) => {
                let escape = "\\".repeat(behind);
                (place, format!("{escape}\"{REDACTED}{escape}\""))
            }
        };
        redacted.push_str(&text[copied..place.start]);
        redacted.push_str(&instead);
        copied = place.end;
    }
    if copied == 0 {
        return None;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

/// Secrets in a text, in order; none overlaps another.
fn secrets(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    // What stands within a secret went with it.
    let mut seen = 0;
    for head in HEADS.captures_iter(text) {
        let Some(whole) = head.get(0).filter(|whole| whole.start() >= seen) else {
            continue;
        };
        let (name, behind) = (&head["name"], head["escape"].len());
        if let Some(number) = head.name("number") {
            if is_secret_number(name) {
                found.push(Secret::Number(number.range(), behind));
            }
        } else if let Some(open) = head.name("open") {
            if let Some(place) = secret_text(text, name, whole.end(), open.len()) {
                seen = place.end;
                found.push(Secret::Text(place));
            }
        } else if LEVELS.contains(&behind)
            && is_secret_member(name, ANY)
            && !is_schema(&text[whole.end() - 1..], behind)
        {
            seen = below(text, name, whole.end() - 1, behind, &mut found);
        }
    }
    found
}

/// A text that is a secret under every name that makes secrets of any.
const ANY: &str = "0123456789abcdef";

fn secret_text(text: &str, name: &str, start: usize, behind: usize) -> Option<Range<usize>> {
    let known = LEVELS.contains(&behind);
    let length = known.then(|| length(&text.as_bytes()[start..], behind))?;
    let place = start..start + length;
    is_secret_member(name, &text[place.clone()]).then_some(place)
}

/// Secrets in the object or array that begins at `start`, which is called `name`; where it ends.
fn below(text: &str, name: &str, start: usize, behind: usize, found: &mut Vec<Secret>) -> usize {
    let mut depth = 0_usize;
    let mut tokens = Tokens::new(text, start, behind);
    for token in &mut tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Text(place) if is_secret_member(name, &text[place.clone()]) => {
                found.push(Secret::Text(place));
            }
            Token::Number(place) if is_secret_number(name) => {
                found.push(Secret::Number(place, behind));
            }
            Token::Name(_) | Token::Text(_) | Token::Number(_) => {}
        }
        if depth == 0 {
            break;
        }
    }
    tokens.at
}

/// How far into an object is looked for what it is, bytes.
const LOOK: usize = 1 << 10;

/// Whether an object describes what a value must be (JSON Schema), as the parameters of tools do.
fn is_schema(text: &str, behind: usize) -> bool {
    if !text.starts_with('{') {
        return false;
    }
    let text = &text[..text.floor_char_boundary(LOOK.min(text.len()))];
    let (mut depth, mut last, mut says) = (0_usize, "", false);
    for token in Tokens::new(text, 0, behind) {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Name(place) if depth == 1 => {
                last = &text[place];
                if !SCHEMA.contains(&last) {
                    return false;
                }
                says |= ["$ref", "allOf", "anyOf", "oneOf"].contains(&last);
            }
            Token::Text(place) if last == "type" => says |= TYPES.contains(&&text[place]),
            Token::Name(_) | Token::Text(_) | Token::Number(_) => {}
        }
        if depth == 0 {
            break;
        }
    }
    says
}

/// Values of `type`.
const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// Members of a schema.
const SCHEMA: [&str; 33] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

enum Token {
    Open,
    Close,
    Name(Range<usize>),
    Text(Range<usize>),
    Number(Range<usize>),
}

/// What JSON is made of, from some place on, whose quotes are behind so many backslashes. Ends where that JSON
/// is cut off.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
    behind: usize,
}

impl<'t> Tokens<'t> {
    fn new(text: &'t str, at: usize, behind: usize) -> Self {
        Self { text, at, behind }
    }

    /// A text, whose opening quote was at `quote`.
    fn text(&mut self, quote: usize) -> Token {
        let bytes = self.text.as_bytes();
        let start = quote + 1;
        let place = start..start + length(&bytes[start..], self.behind);
        self.at = (place.end + self.behind + 1).min(bytes.len());
        let rest = self.text[self.at..].trim_start();
        if rest.starts_with(':') {
            return Token::Name(place);
        }
        Token::Text(place)
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let bytes = self.text.as_bytes();
        let mut run = 0;
        while let Some(byte) = bytes.get(self.at) {
            let here = self.at;
            self.at += 1;
            match byte {
                b'\\' => {
                    run += 1;
                    continue;
                }
                b'"' if run == self.behind => return Some(self.text(here)),
                b'"' => break,
                b'{' | b'[' => return Some(Token::Open),
                b'}' | b']' => return Some(Token::Close),
                b'-' | b'0'..=b'9' => {
                    let rest = bytes[self.at..].iter();
                    let more = rest.take_while(|byte| b"0123456789.eE+-".contains(byte));
                    self.at += more.count();
                    return Some(Token::Number(here..self.at));
                }
                _ => {}
            }
            run = 0;
        }
        None
    }
}

/// How long a text is that begins here and whose quotes are behind so many backslashes. One that is not
/// closed goes to the end.
///
/// Each level of JSON within JSON writes a backslash as two and a quote behind one: where the closing quote
/// is behind `n`, a backslash of the text itself is `2 (n + 1)`, and a quote of its own behind `2 n + 1`.
fn length(text: &[u8], behind: usize) -> usize {
    let mut run = 0;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            b'\\' => run += 1,
            b'"' if run % (2 * (behind + 1)) == behind => return at - behind,
            _ => run = 0,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_value_is_taken_out_and_nothing_else() {
        for (given, expected) in [
            (
                r#"{"password":"first\"TAIL","n":"x"}"#,
                r#"{"password":"REDACTED","n":"x"}"#,
            ),
            (
                r#"{"password" : "a\\","n":"x"}"#,
                r#"{"password" : "REDACTED","n":"x"}"#,
            ),
            (r#"{"password":"caf\u00e9"}"#, r#"{"password":"REDACTED"}"#),
            (
                r#"{"SecretAccessKey":"wJalr/K7","SessionToken":"x"}"#,
                r#"{"SecretAccessKey":"REDACTED","SessionToken":"REDACTED"}"#,
            ),
            (
                r#"{"credentials":{"userPassword":"a","openaiApiKey":"b"}}"#,
                r#"{"credentials":{"userPassword":"REDACTED","openaiApiKey":"REDACTED"}}"#,
            ),
            (
                r#"{"password":1234,"n":5}"#,
                r#"{"password":"REDACTED","n":5}"#,
            ),
            (
                r#"{"a":"{\"password\":\"x\\\"y\\\\\",\"n\":\"z\"}"}"#,
                r#"{"a":"{\"password\":\"REDACTED\",\"n\":\"z\"}"}"#,
            ),
            (
                r#"{"a":"{\"pwd\":12}"}"#,
                r#"{"a":"{\"pwd\":\"REDACTED\"}"}"#,
            ),
            (
                r#""{\"b\":\"{\\\"passwd\\\":\\\"x\\\\n\\\"}\"}""#,
                r#""{\"b\":\"{\\\"passwd\\\":\\\"REDACTED\\\"}\"}""#,
            ),
            (
                r#"{"password":{"x":"a","y":{"z":["b",{"w":1}]},"t":true},"n":"c"}"#,
                r#"{"password":{"x":"REDACTED","y":{"z":["REDACTED",{"w":"REDACTED"}]},"t":true},"n":"c"}"#,
            ),
            (
                r#"{"passwords" : ["a", "b\"]", 3], "secrets":[], "n":[1]}"#,
                r#"{"passwords" : ["REDACTED", "REDACTED", "REDACTED"], "secrets":[], "n":[1]}"#,
            ),
            (
                r#"{"a":"{\"credentials\":{\n \"user\": \"u\",\n \"n\": 5}}","b":"c"}"#,
                r#"{"a":"{\"credentials\":{\n \"user\": \"REDACTED\",\n \"n\": 5}}","b":"c"}"#,
            ),
            (
                r#"{"a":"{\"secret\":[\"cut","password":"x"}"#,
                r#"{"a":"{\"secret\":[\"REDACTED"#,
            ),
            (
                r#"{"password":{"type":"hunter2"},"secret":{"type":"string","value":"x"}}"#,
                r#"{"password":{"type":"REDACTED"},"secret":{"type":"REDACTED","value":"REDACTED"}}"#,
            ),
            (
                r#"{"githubToken":"a","tokens":["b","abcdefgh12345678"]}"#,
                r#"{"githubToken":"REDACTED","tokens":["b","REDACTED"]}"#,
            ),
            (
                r#"…,"client_secret":"cut in the mid"#,
                r#"…,"client_secret":"REDACTED"#,
            ),
        ] {
            assert_eq!(without(given).as_deref(), Some(expected), "{given}");
            assert_eq!(without(expected).unwrap_or(expected.to_owned()), expected);
            assert!(names_a_secret(given), "{given}");
        }
        for harmless in [
            r#"{"token":" the","key":"colour"}"#,
            r#"{"password":"","secret":null,"properties":{"password":{"type":"string"}}}"#,
            r#"{"required":["password"],"a":"password","b":"c"}"#,
            r#"{"max_tokens":12,"input_token":5}"#,
            r##"{"password":{"description":"yours","type":["string","null"],"minLength":8},"apiKey":{"$ref":"#/a"}}"##,
            r#"{"credentials":{"type":"object","properties":{"user":{"type":"string","default":"u"}}}}"#,
            r#"{"password":{},"secrets":[true,null,{"a":[]}],"tokens":["a","b"],"keys":{"a":"b"}}"#,
        ] {
            assert_eq!(without(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn a_place_is_the_value_without_its_quotes() {
        let text = r#"{"password":"a\"b","n":1}"#;
        let found: Vec<_> = places(text).into_iter().map(|place| &text[place]).collect();
        assert_eq!(found, [r#"a\"b"#]);
    }
}
