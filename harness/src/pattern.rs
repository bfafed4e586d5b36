//! Regular expressions of suites: in linear time, unless look-around or back-references ask for more.

use jsonschema::PatternOptions;
use regex_automata::meta::{BuildError, Regex};
use squall_profiles::limits::{Limited, Limits};
use squall_profiles::pattern::{self, PatternError, Searched};

/// What one part of an expression with look-around may compile to, bytes: as little as does.
const SIZES: [usize; 3] = [16 << 10, 128 << 10, 1 << 20];
/// What such a part may keep between searches, bytes.
const CACHE: usize = 128 << 10;

/// A regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    written: String,
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(Regex),
    Backtracking(fancy_regex::Regex),
}

/// A search took more steps than it may.
pub(crate) type TooHard = fancy_regex::Error;

impl Pattern {
    /// Compiles an expression of a document with these limits, `flags` in front of it.
    pub(crate) fn new(flags: &str, written: &str, limits: &Limits) -> Result<Self, PatternError> {
        let whole = format!("{flags}{written}");
        let engine = match pattern::compile(&whole, Searched::Text, limits) {
            Ok(regex) => Engine::Linear(regex),
            Err(PatternError::Syntax(_)) => Engine::Backtracking(backtracking(&whole, limits)?),
            Err(over) => return Err(over),
        };
        Ok(Self {
            written: written.to_owned(),
            engine,
        })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// The first match in a text.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Result<Option<&'t str>, TooHard> {
        match &self.engine {
            Engine::Linear(regex) => {
                Ok((regex.find(text)).and_then(|found| text.get(found.range())))
            }
            Engine::Backtracking(regex) => Ok(regex.find(text)?.map(|found| found.as_str())),
        }
    }

    /// Whether there is a match in a text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TooHard> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(regex) => regex.is_match(text),
        }
    }
}

/// How the patterns of JSON Schemas are matched.
pub(crate) fn of_schemas() -> PatternOptions<jsonschema::FancyRegex> {
    PatternOptions::fancy_regex()
        .size_limit(SIZES[2])
        .dfa_size_limit(CACHE)
}

/// The parts between look-arounds, back-references and groups are compiled each by itself.
fn backtracking(whole: &str, limits: &Limits) -> Result<fancy_regex::Regex, PatternError> {
    let parts = 1 + whole.matches(['(', '\\']).count();
    for size in SIZES {
        let much = parts.saturating_mul(size);
        if limits.left(Limited::PatternBytes) < much {
            limits.take(Limited::PatternBytes, much)?;
        }
        let built = fancy_regex::RegexBuilder::new(whole)
            .delegate_size_limit(size)
            .delegate_dfa_size_limit(CACHE)
            .build();
        match built.as_ref().err().and_then(inner) {
            Some(error) if error.size_limit().is_some() => {}
            _ => {
                limits.take(Limited::PatternBytes, much)?;
                return built
                    .map_err(|error| PatternError::Syntax(pattern::last_line(&reason(&error))));
            }
        }
    }
    Err(PatternError::TooLarge)
}

/// What is wrong with a part.
fn inner(error: &fancy_regex::Error) -> Option<&BuildError> {
    match error {
        fancy_regex::Error::CompileError(error) => match &**error {
            fancy_regex::CompileError::InnerError(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

/// What is wrong with an expression, by whoever took it apart: for the most part another library.
fn reason(error: &fancy_regex::Error) -> String {
    let syntax = inner(error).and_then(BuildError::syntax_error);
    syntax.map_or_else(|| error.to_string(), ToString::to_string)
}
