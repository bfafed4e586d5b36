//! Regular expressions in documents, matched in linear time.

use regex_automata::meta::{BuildError, Config, Regex};
use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::util::syntax;

use squall_documents::{DocumentLimits, Limited, OverLimit};

/// Longest expression, bytes.
const LONGEST: usize = 20_000;
/// Largest compiled size of one expression, bytes.
const LARGEST: usize = 4 << 20;
/// Largest cache of one expression between searches, bytes.
const CACHE: usize = 128 << 10;

/// Why a text is not a valid regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It is too long.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// Its compiled size is too large.
    #[error("it compiles to more than {LARGEST} bytes")]
    TooLarge,
    /// The document exceeds its limit of compiled expressions.
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    /// A syntax error.
    #[error("{0}")]
    Syntax(String),
}

/// What an expression is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Searched {
    /// Any bytes.
    Bytes,
    /// Text, in UTF-8.
    Text,
}

/// Compiles an expression in a document with these limits, without look-around and back-references.
pub fn compile(
    written: &str,
    searched: Searched,
    limits: &DocumentLimits,
) -> Result<Regex, PatternError> {
    if written.len() > LONGEST {
        return Err(PatternError::TooLong);
    }
    limits.take(Limited::Patterns, 1)?;
    let is_text = searched == Searched::Text;
    let left = limits.left(Limited::PatternBytes);
    if left == 0 {
        return Err(OverLimit(Limited::PatternBytes).into());
    }
    let config = Config::new()
        .nfa_size_limit(Some(left.min(LARGEST)))
        .hybrid_cache_capacity(CACHE)
        .which_captures(WhichCaptures::Implicit)
        .onepass(false)
        .utf8_empty(is_text);
    let mut builder = Regex::builder();
    builder
        .configure(config)
        .syntax(syntax::Config::new().utf8(is_text));
    let pattern = builder
        .build(written)
        .map_err(|error| why(&error, limits))?;
    limits.take(Limited::PatternBytes, pattern.memory_usage())?;
    Ok(pattern)
}

fn why(error: &BuildError, limits: &DocumentLimits) -> PatternError {
    let left = limits.left(Limited::PatternBytes);
    match error.syntax_error() {
        Some(error) => PatternError::Syntax(last_line(&error.to_string())),
        None if error.size_limit().is_some() && left < LARGEST => {
            OverLimit(Limited::PatternBytes).into()
        }
        None if error.size_limit().is_some() => PatternError::TooLarge,
        None => PatternError::Syntax(error.to_string()),
    }
}

/// The last line of an error. Some errors quote the expression over several lines first.
pub fn last_line(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default().trim();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_compiles_to_so_much_and_no_more() {
        let limits = DocumentLimits::default();
        for (written, expected) in [
            (r"\w{40}".to_owned(), None),
            (
                "(".to_owned(),
                Some(PatternError::Syntax("unclosed group".to_owned())),
            ),
            ("a".repeat(LONGEST + 1), Some(PatternError::TooLong)),
            (r"\w{1000}".to_owned(), Some(PatternError::TooLarge)),
        ] {
            let compiled = compile(&written, Searched::Bytes, &limits);
            assert_eq!(compiled.err(), expected, "{written:.20}");
        }
        let mut all = std::iter::repeat_with(|| compile(r"\w{9}", Searched::Text, &limits));
        let error = all.find_map(Result::err);
        let over = OverLimit(Limited::PatternBytes).into();
        assert_eq!(error, Some(over));
    }

    #[test]
    fn bytes_need_not_be_text() {
        let limits = DocumentLimits::default();
        let bytes = compile(r"(?-u)\xff", Searched::Bytes, &limits).expect("bytes");
        assert!(bytes.is_match(&b"a\xff"[..]));
        assert!(compile(r"(?-u)\xff", Searched::Text, &limits).is_err());
    }
}
