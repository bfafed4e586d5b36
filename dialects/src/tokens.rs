//! Counts the tokens of a text.
//!
//! Models with a public vocabulary are counted exactly, with `o200k_base` and `cl100k_base`. All others are
//! **estimated**. Text is split where byte-pair tokenizers usually split English: a word with the space before it,
//! three digits, a run of punctuation, a run of white space, every character of a script without spaces. Words
//! longer than `LONGEST_WORD` letters count more than once. Estimates differ from a provider's counts by about ten
//! to twenty per cent. For faults it only matters that they are deterministic.
//!
//! Loading a vocabulary takes tens of megabytes and some tenths of a second. It is loaded on first use, once per
//! process. Callers that must not block check [`Counting::is_read`] first and call [`Counting::read`] elsewhere.

use std::sync::atomic::{AtomicBool, Ordering};

use tiktoken_rs::CoreBPE;

/// Bytes that are counted together, because a long text without spaces would take too long. Its count may be a few
/// tokens too high.
const LONGEST_BATCH: usize = 1 << 10;

/// A word counts as a further token after this many letters.
const LONGEST_WORD: usize = 10;

/// Maximum digits in one token.
const LONGEST_NUMBER: usize = 3;

/// Maximum punctuation marks in one token.
const LONGEST_PUNCTUATION: usize = 4;

/// How the tokens of a model are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Counting {
    /// With the vocabulary `o200k_base`.
    O200k,
    /// With the vocabulary `cl100k_base`.
    Cl100k,
    /// Estimated: the vocabulary is not public, or not supported.
    #[default]
    Estimate,
}

/// Whether the vocabularies are loaded: `O200k`, `Cl100k`.
static READ: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];

impl Counting {
    /// The token counting of `model`. A vendor prefix (`openai/gpt-4o`) and `ft:` are ignored, and so is case.
    pub fn of_model(model: &str) -> Self {
        let name = model
            .rsplit('/')
            .next()
            .unwrap_or(model)
            .to_ascii_lowercase();
        let name = name.strip_prefix("ft:").unwrap_or(&name);
        // Amazon's vendor prefix.
        let name = name.strip_prefix("openai.").unwrap_or(name);
        let is = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        let named = is(&[
            "gpt-4o",
            "gpt-4.1",
            "gpt-5",
            "gpt-oss",
            "chatgpt-",
            "codex-mini",
        ]);
        if named || family(name, &["o1", "o3", "o4"]) {
            Self::O200k
        } else if family(name, &["gpt-4", "gpt-4-turbo"])
            || is(&["gpt-3.5", "gpt-35", "text-embedding-3"])
        {
            Self::Cl100k
        } else {
            Self::Estimate
        }
    }

    /// The token counting of a model that may be unknown.
    pub fn of(model: Option<&str>) -> Self {
        model.map(Self::of_model).unwrap_or_default()
    }

    /// Its name in journals: the vocabulary, or `estimate`.
    pub fn name(self) -> &'static str {
        match self {
            Self::O200k => "o200k_base",
            Self::Cl100k => "cl100k_base",
            Self::Estimate => "estimate",
        }
    }

    /// Loads the vocabulary if necessary, in some tenths of a second.
    pub fn read(self) {
        let _ = self.vocabulary();
    }

    /// Whether counting does not need to load a vocabulary.
    pub fn is_read(self) -> bool {
        let read = |at: usize| READ[at].load(Ordering::Acquire);
        match self {
            Self::O200k => read(0),
            Self::Cl100k => read(1),
            Self::Estimate => true,
        }
    }

    fn vocabulary(self) -> Option<&'static CoreBPE> {
        let (vocabulary, at) = match self {
            Self::O200k => (tiktoken_rs::o200k_base_singleton(), 0),
            Self::Cl100k => (tiktoken_rs::cl100k_base_singleton(), 1),
            Self::Estimate => return None,
        };
        READ[at].store(true, Ordering::Release);
        Some(vocabulary)
    }
}

/// Whether `name` is one of `families` or a member of one (`o3-mini`).
fn family(name: &str, families: &[&str]) -> bool {
    let member = |family: &str| {
        let rest = name.strip_prefix(family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', ':']))
    };
    families.iter().any(|family| member(family))
}

/// The number of tokens in `text`; 0 for the empty text.
pub fn count(counting: Counting, text: &str) -> u64 {
    let vocabulary = counting.vocabulary();
    let mut tokens = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let (batch, behind) = rest.split_at(batch(rest));
        tokens += match vocabulary {
            Some(vocabulary) => vocabulary.encode_ordinary(batch).len() as u64,
            None => estimate(batch),
        };
        rest = behind;
    }
    tokens
}

/// Tokens of a piece of a streamed text, counted separately. A trailing space is not counted, because it belongs to
/// the next word.
pub fn count_piece(counting: Counting, piece: &str) -> u64 {
    count(counting, piece.strip_suffix(' ').unwrap_or(piece))
}

/// The start of `text` with at most `tokens` tokens. Characters are not split.
pub fn take(counting: Counting, text: &str, tokens: u64) -> &str {
    let vocabulary = counting.vocabulary();
    let (mut end, mut left) = (0, tokens);
    while end < text.len() && left > 0 {
        let batch = &text[end..end + batch(&text[end..])];
        let (kept, worth) = match vocabulary {
            Some(vocabulary) => take_counted(vocabulary, batch, left),
            None => take_estimated(batch, left),
        };
        end += kept;
        if kept < batch.len() {
            break;
        }
        left -= worth;
    }
    &text[..end]
}

/// Bytes at the start of `text` that are counted together: up to a space, because no token of a vocabulary crosses
/// it.
fn batch(text: &str) -> usize {
    if text.len() <= LONGEST_BATCH {
        return text.len();
    }
    let end = text.floor_char_boundary(LONGEST_BATCH);
    let space = text[..end]
        .rfind(' ')
        .map(|at| text[..at].trim_end_matches(' '));
    match space.map_or(0, str::len) {
        0 => end,
        space => space,
    }
}

fn estimate(text: &str) -> u64 {
    let mut rest = text;
    let mut tokens = 0;
    while !rest.is_empty() {
        rest = &rest[first(rest)..];
        tokens += 1;
    }
    tokens
}

/// Bytes at the start of `text` with at most `tokens` tokens, and their number of tokens.
fn take_counted(vocabulary: &CoreBPE, text: &str, tokens: u64) -> (usize, u64) {
    let encoded = vocabulary.encode_ordinary(text);
    let most = usize::try_from(tokens).unwrap_or(usize::MAX);
    let Some(first) = encoded.get(..most).filter(|first| *first != encoded) else {
        return (text.len(), encoded.len() as u64);
    };
    let bytes = vocabulary.decode_bytes(first);
    let bytes = bytes.map_or(0, |bytes| bytes.len());
    (text.floor_char_boundary(bytes), tokens)
}

/// Like [`take_counted`], but estimated.
fn take_estimated(text: &str, tokens: u64) -> (usize, u64) {
    let (mut end, mut taken) = (0, 0);
    while taken < tokens && end < text.len() {
        end += first(&text[end..]);
        taken += 1;
    }
    (end, taken)
}

/// Bytes of the first token of a non-empty text.
fn first(text: &str) -> usize {
    let after_space = text.strip_prefix(' ');
    let body = match after_space {
        // A single space belongs to the next word; several are a separate run.
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

/// Classes of characters that share a token.
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
            'a'..='z' | 'A'..='Z' => Self::Letter,
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

    const ALL: [Counting; 3] = [Counting::O200k, Counting::Cl100k, Counting::Estimate];

    #[test]
    fn models_are_counted_by_their_vocabulary() {
        for (model, counting) in [
            ("gpt-4o", Counting::O200k),
            ("gpt-4o-mini-2024-07-18", Counting::O200k),
            ("gpt-4.1-nano", Counting::O200k),
            ("gpt-5", Counting::O200k),
            ("gpt-oss:20b", Counting::O200k),
            ("openai.gpt-oss-120b-1:0", Counting::O200k),
            ("codex-mini-latest", Counting::O200k),
            ("o1", Counting::O200k),
            ("o3-mini", Counting::O200k),
            ("openai/o4-mini", Counting::O200k),
            ("openai/GPT-4o", Counting::O200k),
            ("chatgpt-4o-latest", Counting::O200k),
            ("ft:gpt-4o:acme::1", Counting::O200k),
            ("gpt-4", Counting::Cl100k),
            ("gpt-4-turbo", Counting::Cl100k),
            ("gpt-4-0613", Counting::Cl100k),
            ("openai/gpt-3.5-turbo", Counting::Cl100k),
            ("text-embedding-3-small", Counting::Cl100k),
            ("o1x", Counting::Estimate),
            ("gpt-40", Counting::Estimate),
            ("claude-sonnet-4-5", Counting::Estimate),
            ("gemini-2.5-pro", Counting::Estimate),
            ("my-deployment", Counting::Estimate),
            ("", Counting::Estimate),
        ] {
            assert_eq!(Counting::of_model(model), counting, "{model}");
        }
    }

    /// From OpenAI's cookbook, "How to count tokens with tiktoken", and counted with tiktoken.
    #[test]
    fn texts_are_worth_what_the_provider_counts() {
        for (text, o200k, cl100k) in [
            ("", 0, 0),
            ("Hello, world!", 4, 4),
            ("tiktoken is great!", 6, 6),
            ("antidisestablishmentarianism", 6, 6),
            ("2 + 2 = 4", 7, 7),
            ("お誕生日おめでとう", 8, 9),
            ("東京タワー", 4, 7),
            ("👍🏽", 3, 6),
            ("fn main() {\n    println!(\"hi\");\n}", 10, 10),
            ("Kyoto has mild weather today", 6, 6),
            ("<|endoftext|>", 7, 7),
        ] {
            assert_eq!(count(Counting::O200k, text), o200k, "{text:?}");
            assert_eq!(count(Counting::Cl100k, text), cl100k, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_counted_in_parts() {
        let words = "Kyoto has   mild weather. ".repeat(200);
        let digits = "1234567".repeat(500);
        for counting in ALL {
            let at_once = match counting.vocabulary() {
                Some(vocabulary) => vocabulary.encode_ordinary(&words).len() as u64,
                None => estimate(&words),
            };
            assert_eq!(count(counting, &words), at_once, "cut at spaces");
            let parts = digits.as_bytes().chunks(LONGEST_BATCH);
            let parts =
                parts.map(|part| count(counting, std::str::from_utf8(part).expect("ASCII")));
            assert_eq!(count(counting, &digits), parts.sum::<u64>(), "cut anywhere");
        }
    }

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
            assert_eq!(count(Counting::Estimate, text), tokens, "{text:?}");
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
            assert_eq!(take(Counting::Estimate, text, tokens), kept);
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_is_worth_what_was_asked(text in "\\PC{0,60}", tokens in 0_u64..30) {
            let kept = take(Counting::Estimate, &text, tokens);
            prop_assert!(text.starts_with(kept));
            let worth = count(Counting::Estimate, kept);
            prop_assert_eq!(worth, count(Counting::Estimate, &text).min(tokens));
        }

        #[test]
        fn what_is_taken_is_the_beginning_within_the_limit(
            words in proptest::collection::vec("[a-z]{1,9}[ ,.]{0,1}", 1..20), tokens in 0_u64..40,
        ) {
            let text = words.concat();
            for counting in ALL {
                let kept = take(counting, &text, tokens);
                prop_assert!(text.starts_with(kept));
                prop_assert!(count(counting, kept) <= tokens);
            }
        }
    }
}
