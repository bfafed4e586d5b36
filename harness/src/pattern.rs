//! Regular expressions of suites. They run in linear time, except those with look-around or back-references.
//!
//! A search blocks its thread until it ends, so its cost is limited. The limit for look-around is the number of
//! steps and the length of the text. For all others it is the size of the expression and the length of the text.

use fancy_regex::Expr;
use regex_automata::meta::{BuildError, Regex};
use squall_documents::{At, DocumentLimits, DocumentReader, Limited, ValueReader};
use squall_profiles::glob::Glob;
use squall_profiles::pattern::{self, PatternError, Searched};

use crate::deadline::is_late;

/// Most bytes that one part of an expression with look-around may compile to, and cache between searches.
const PART: usize = 128 << 10;
/// Longest text for a search with look-around, in bytes.
const LONGEST: usize = 16 << 10;
/// Most steps of such a search. Each step may scan the whole text as often as look-around is repeated.
const STEPS: usize = 64 << 10;
/// Most repetitions of look-around and back-references by counts.
const MOST_TIMES: usize = 100;
/// Maximum product of compiled size and text length, in bytes. One unit may take 0.15 ns.
pub(crate) const MOST: usize = 1 << 37;

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

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooHard {
    #[error(
        "an expression with look-around or back-references is searched in {LONGEST} bytes at most, and there are {0}"
    )]
    TooLong(usize),
    #[error("it takes more than {STEPS} steps")]
    Steps,
    #[error("it compiles to {size} bytes, which is too much to search in {found}")]
    TooLarge { size: usize, found: usize },
    #[error("the verdict's deadline is over")]
    Late,
}

impl Pattern {
    /// Compiles an expression of a document within these limits, with `flags` as prefix.
    pub(crate) fn new(
        flags: &str,
        written: &str,
        limits: &DocumentLimits,
    ) -> Result<Self, PatternError> {
        let whole = format!("{flags}{written}");
        let engine = match pattern::compile(&whole, Searched::Text, limits) {
            Ok(regex) => Engine::Linear(regex),
            Err(PatternError::Syntax(_)) => backtracking(&whole, limits)?,
            Err(over) => return Err(over),
        };
        Ok(Self {
            written: written.to_owned(),
            engine,
        })
    }

    /// Reads an expression, with `flags` as prefix.
    pub(crate) fn read(value: &mut ValueReader<'_, '_>, flags: &str) -> Option<Self> {
        let text = value.text()?;
        Self::new(flags, &text.value, &value.reader.limits)
            .map_err(|error| {
                let found = value.reader.shown(text.position);
                value.error(match error {
                    PatternError::Syntax(why) => {
                        let why = why.rsplit_once(": ").map_or(&*why, |(_, why)| why);
                        format!("`{found}` is not a regular expression: {why}")
                    }
                    over => format!("`{found}` is not taken: {over}"),
                });
            })
            .ok()
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.written
    }

    /// The cost of a search in a text of this many bytes: compiled size times text length.
    pub(crate) fn cost(&self, length: usize) -> usize {
        match &self.engine {
            Engine::Linear(regex) => regex.memory_usage().saturating_mul(length),
            Engine::Backtracking(_) => usize::MAX,
        }
    }

    /// The first match in a text.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Result<Option<&'t str>, TooHard> {
        if is_late() {
            return Err(TooHard::Late);
        }
        let found = text.len();
        match &self.engine {
            Engine::Linear(regex) => {
                if self.cost(found) > MOST {
                    let size = regex.memory_usage();
                    return Err(TooHard::TooLarge { size, found });
                }
                Ok((regex.find(text)).and_then(|found| text.get(found.range())))
            }
            Engine::Backtracking(_) if found > LONGEST => Err(TooHard::TooLong(found)),
            Engine::Backtracking(regex) => {
                let found = regex.find(text).map_err(|_| TooHard::Steps)?;
                Ok(found.map(|found| found.as_str()))
            }
        }
    }

    /// Whether there is a match in a text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TooHard> {
        self.find(text).map(|found| found.is_some())
    }
}

/// How many look-arounds and back-references one step of a search may try. Counted repetitions are part of one
/// step.
fn look_arounds(expression: &Expr) -> usize {
    let parts = expression.children_iter().map(look_arounds);
    let parts = parts.fold(0, usize::saturating_add);
    match expression {
        Expr::Repeat { lo, hi, .. } => {
            let times = if *hi == usize::MAX { *lo } else { *hi };
            parts.saturating_mul(times.max(1))
        }
        Expr::LookAround(..)
        | Expr::AtomicGroup(_)
        | Expr::Absent(_)
        | Expr::Conditional { .. }
        | Expr::Backref { .. }
        | Expr::BackrefWithRelativeRecursionLevel { .. } => parts.saturating_add(1),
        _ => parts,
    }
}

/// Compiles an expression for backtracking. The parts between look-arounds, back-references and groups are compiled
/// separately.
fn backtracking(whole: &str, limits: &DocumentLimits) -> Result<Engine, PatternError> {
    let wrong =
        |error: &fancy_regex::Error| PatternError::Syntax(pattern::last_line(&reason(error)));
    let tree = Expr::parse_tree(whole).map_err(|error| wrong(&error))?;
    let unsupported = if tree.contains_subroutines {
        Some("calls of groups, like `\\g<name>`, are not supported".to_owned())
    } else {
        (look_arounds(&tree.expr) > MOST_TIMES).then(|| {
            format!("there are more than {MOST_TIMES} look-arounds and back-references, repetitions counted")
        })
    };
    if let Some(why) = unsupported {
        return Err(PatternError::Syntax(why));
    }
    let parts = 1 + whole.matches(['(', '\\']).count();
    limits.take(Limited::PatternBytes, parts.saturating_mul(PART))?;
    let built = fancy_regex::RegexBuilder::new(whole)
        .backtrack_limit(STEPS)
        .delegate_size_limit(PART)
        .delegate_dfa_size_limit(PART)
        .build();
    let regex = built.map_err(|error| match inner(&error) {
        Some(error) if error.size_limit().is_some() => PatternError::TooLarge,
        _ => wrong(&error),
    })?;
    Ok(Engine::Backtracking(regex))
}

/// The build error of a part.
fn inner(error: &fancy_regex::Error) -> Option<&BuildError> {
    match error {
        fancy_regex::Error::CompileError(error) => match &**error {
            fancy_regex::CompileError::InnerError(inner) => Some(inner),
            _ => None,
        },
        _ => None,
    }
}

/// Describes an error, mostly in the words of the regex library.
fn reason(error: &fancy_regex::Error) -> String {
    let syntax = inner(error).and_then(BuildError::syntax_error);
    syntax.map_or_else(|| error.to_string(), ToString::to_string)
}

/// A glob for names.
pub(crate) fn glob(reader: &mut DocumentReader, written: &At<String>) -> Option<Glob> {
    Glob::within(&written.value, &reader.limits)
        .map_err(|error| reader.error(written.position, error.to_string()))
        .ok()
}
