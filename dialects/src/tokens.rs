//! How many tokens a text is worth.
//!
//! **An estimate, for now**: text is cut where byte-pair tokenizers usually cut English (a word
//! with the space before it, three digits, a run of punctuation, a run of white space, every
//! character of a script without spaces), and words longer than `LONGEST_WORD` letters count
//! more than once. Counts differ from a provider's own by some ten to twenty per cent; what
//! matters to faults is that they are the same every time.

/// Letters after which a word counts as a further token.
const LONGEST_WORD: usize = 10;

/// Digits that make one token.
const LONGEST_NUMBER: usize = 3;

/// Punctuation marks that make one token.
const LONGEST_PUNCTUATION: usize = 4;

/// How many tokens `text` is worth; 0 for the empty text.
pub fn count(text: &str) -> u64 {
    let mut rest = text;
    let mut tokens = 0;
    while !rest.is_empty() {
        rest = &rest[first(rest)..];
        tokens += 1;
    }
    tokens
}

/// The beginning of `text` that is worth at most `tokens` tokens.
pub fn take(text: &str, tokens: u64) -> &str {
    let mut end = 0;
    for _ in 0..tokens {
        if end == text.len() {
            break;
        }
        end += first(&text[end..]);
    }
    &text[..end]
}

/// Bytes of the first token of a text that is not empty.
fn first(text: &str) -> usize {
    let after_space = text.strip_prefix(' ');
    let body = match after_space {
        // One space goes with the word after it, more are a run of their own.
        Some(rest) if rest.starts_with(|c: char| !c.is_whitespace()) => rest,
        _ => text,
    };
    let space = text.len() - body.len();
    let class = body.chars().next().map_or(Class::Space, Class::of);
    let same = body
        .chars()
        .take_while(|&c| Class::of(c) == class)
        .take(class.longest());
    space + same.map(char::len_utf8).sum::<usize>()
}

/// Characters that go into one token together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Space,
    Ideograph,
    Punctuation,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' => Self::Digit,
            c if c.is_whitespace() => Self::Space,
            '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' => {
                Self::Ideograph
            }
            '\u{20000}'..='\u{3ffff}' => Self::Ideograph,
            c if c.is_alphanumeric() => Self::Letter,
            _ => Self::Punctuation,
        }
    }

    fn longest(self) -> usize {
        match self {
            Self::Letter => LONGEST_WORD,
            Self::Digit => LONGEST_NUMBER,
            Self::Space => usize::MAX,
            Self::Ideograph => 1,
            Self::Punctuation => LONGEST_PUNCTUATION,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_numbers_and_marks_are_counted() {
        for (text, tokens) in [
            ("", 0),
            ("Hello", 1),
            (" world", 1),
            ("Hello, world!", 4),
            ("The capital of France is Paris.", 7),
            ("12345", 2),
            ("internationalisation", 2),
            ("  \n\t ", 1),
            ("a  b", 3),
            ("東京タワー", 5),
            ("{\"city\":\"Paris\"}", 5),
        ] {
            assert_eq!(count(text), tokens, "{text:?}");
        }
    }

    #[test]
    fn a_text_is_cut_between_tokens() {
        for (text, tokens, kept) in [
            ("Hello, world!", 0, ""),
            ("Hello, world!", 1, "Hello"),
            ("Hello, world!", 3, "Hello, world"),
            ("Hello, world!", 99, "Hello, world!"),
            ("東京", 1, "東"),
        ] {
            assert_eq!(take(text, tokens), kept);
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_is_worth_what_was_asked(text in "\\PC{0,60}", tokens in 0_u64..30) {
            let kept = take(&text, tokens);
            prop_assert!(text.starts_with(kept));
            prop_assert_eq!(count(kept), count(&text).min(tokens));
        }
    }
}
