//! Members of JSON whose values are secrets by their names: in documents, and in what is only a part of one.
//! JSON that is the text of other JSON is a text by itself ([`super::decoded`]).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::detect::Found;
use super::names::{is_secret_member, is_secret_number};

/// A member's name and what its value begins with.
static HEADS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#""(?P<name>[A-Za-z0-9_.\-]{2,64})(?P<quote>")\s*:\s*(?:(?P<number>-?[0-9][0-9.eE+\-]*)|(?P<text>")|[\[{])"#,
    )
    .expect("the pattern is a constant and compiles")
});

/// What such a secret is called.
const MEMBER: &str = "JSON";

/// A text that is a secret under every name that makes secrets of any.
const ANY: &str = "0123456789abcdef";

/// Texts without their quotes, and numbers, that are secrets by the names of members that they are, or stand
/// somewhere in.
pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    // What stands within a secret went with it.
    let mut seen = 0;
    for head in HEADS.captures_iter(text) {
        let (Some(whole), Some(quote)) = (head.get(0), head.name("quote")) else {
            continue;
        };
        let (name, quote) = (&head["name"], quote.range());
        if whole.start() < seen {
            continue;
        }
        if let Some(number) = head.name("number") {
            if is_secret_number(name) {
                found.push(number_at(number.range(), quote));
            }
        } else if head.name("text").is_some() {
            let start = whole.end();
            let place = start..start + length(&text.as_bytes()[start..]);
            if is_secret_member(name, &text[place.clone()]) {
                seen = place.end;
                found.push(Found::new(place, MEMBER));
            }
        } else if is_secret_member(name, ANY) && !is_schema(&text[whole.end() - 1..]) {
            seen = below(text, name, whole.end() - 1, &quote, found);
        }
    }
}

fn number_at(place: Range<usize>, quote: Range<usize>) -> Found {
    Found {
        quote,
        ..Found::new(place, MEMBER)
    }
}

/// Secrets in the object or array that begins at `start`, which is called `name`; where it ends.
fn below(
    text: &str,
    name: &str,
    start: usize,
    quote: &Range<usize>,
    found: &mut Vec<Found>,
) -> usize {
    let mut depth = 0_usize;
    let mut tokens = Tokens { text, at: start };
    for token in &mut tokens {
        match token {
            Token::Open => depth += 1,
            Token::Close => depth = depth.saturating_sub(1),
            Token::Text(place) if is_secret_member(name, &text[place.clone()]) => {
                found.push(Found::new(place, MEMBER));
            }
            Token::Number(place) if is_secret_number(name) => {
                found.push(number_at(place, quote.clone()));
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
fn is_schema(text: &str) -> bool {
    if !text.starts_with('{') {
        return false;
    }
    let text = &text[..text.floor_char_boundary(LOOK.min(text.len()))];
    let (mut depth, mut last, mut says) = (0_usize, "", false);
    for token in (Tokens { text, at: 0 }) {
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

/// What JSON is made of, from some place on. Ends where that JSON is cut off.
struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl Tokens<'_> {
    /// A text, whose opening quote is at `quote`.
    fn text(&mut self, quote: usize) -> Token {
        let bytes = self.text.as_bytes();
        let start = quote + 1;
        let place = start..start + length(&bytes[start..]);
        self.at = (place.end + 1).min(bytes.len());
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
        while let Some(byte) = bytes.get(self.at) {
            let here = self.at;
            self.at += 1;
            match byte {
                b'"' => return Some(self.text(here)),
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
        }
        None
    }
}

/// How long a text is that begins here. One that is not closed goes to the end.
fn length(text: &[u8]) -> usize {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use crate::redact::Redactor;

    fn redacted(text: &str) -> String {
        let mut text = text.to_owned();
        Redactor::default().text(&mut text, usize::MAX);
        text
    }

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
                r#"{"a":"{\"secret\":[\"REDACTED","password":"REDACTED"}"#,
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
            assert_eq!(redacted(given), expected, "{given}");
            assert_eq!(redacted(expected), expected);
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
            assert_eq!(redacted(harmless), harmless);
        }
    }
}
