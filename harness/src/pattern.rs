//! Regular expressions of suites: in linear time, unless look-around or back-references ask for more.
//!
//! A search holds up its thread until it is over, so all that it may cost is bounded: an expression that looks
//! around by steps and by the length of the text, others by their size and the length of the text.

use fancy_regex::Expr;
use regex_automata::meta::{BuildError, Regex};
use squall_documents::{Limited, Limits, ValueReader};
use squall_profiles::pattern::{self, PatternError, Searched};

use crate::runner::is_late;

/// What one part of an expression with look-around may compile to, bytes: as little as does.
const SIZES: [usize; 3] = [16 << 10, 128 << 10, 1 << 20];
/// What such a part may keep between searches, bytes.
const CACHE: usize = 128 << 10;
/// Longest text that is searched with look-around, bytes.
const LONGEST: usize = 16 << 10;
/// Steps of such a search for each byte of the longest text: each step may go over all of it.
const STEPS: usize = 4;
/// How often one step may go over the text.
const MOST_TIMES: usize = 10_000;
/// Most of a compiled expression's bytes times the text's: each may cost 0.15 ns.
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
    Backtracking {
        regex: fancy_regex::Regex,
        /// Longest text that it is searched in, bytes.
        longest: usize,
    },
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooHard {
    #[error(
        "an expression with look-around or back-references like this one is searched in {longest} bytes at most, and \
         there are {found}"
    )]
    TooLong { longest: usize, found: usize },
    #[error("it takes more than {0} steps")]
    Steps(usize),
    #[error("it compiles to {size} bytes, which is too much to search in {found}")]
    TooLarge { size: usize, found: usize },
    #[error("the verdict's deadline is over")]
    Late,
}

impl Pattern {
    /// Compiles an expression of a document with these limits, `flags` in front of it.
    pub(crate) fn new(flags: &str, written: &str, limits: &Limits) -> Result<Self, PatternError> {
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

    /// Reads an expression, `flags` in front of it.
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

    /// What a search in a text of so many bytes may cost, in bytes of the expression times those of the text.
    pub(crate) fn cost(&self, length: usize) -> usize {
        match &self.engine {
            Engine::Linear(regex) => regex.memory_usage().saturating_mul(length),
            Engine::Backtracking { .. } => usize::MAX,
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
            Engine::Backtracking { longest, .. } if found > *longest => Err(TooHard::TooLong {
                longest: *longest,
                found,
            }),
            Engine::Backtracking { regex, longest } => {
                let found = regex
                    .find(text)
                    .map_err(|_| TooHard::Steps(STEPS * longest))?;
                Ok(found.map(|found| found.as_str()))
            }
        }
    }

    /// Whether there is a match in a text.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool, TooHard> {
        self.find(text).map(|found| found.is_some())
    }
}

/// How much of a text one step of a search may go over, in bytes of the longest one: look-around goes over all of it,
/// and what is repeated so many times is one step too.
fn reach(expression: &Expr) -> usize {
    let parts = expression.children_iter().map(reach);
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
        | Expr::BackrefWithRelativeRecursionLevel { .. } => parts.saturating_add(LONGEST),
        _ => parts.saturating_add(1),
    }
}

/// The parts between look-arounds, back-references and groups are compiled each by itself.
fn backtracking(whole: &str, limits: &Limits) -> Result<Engine, PatternError> {
    let wrong = |error| PatternError::Syntax(pattern::last_line(&reason(&error)));
    let tree = Expr::parse_tree(whole).map_err(wrong)?;
    if tree.contains_subroutines {
        let why = "calls of groups, like `\\g<name>`, are not supported";
        return Err(PatternError::Syntax(why.to_owned()));
    }
    let times = 1 + reach(&tree.expr) / LONGEST;
    if times > MOST_TIMES {
        let why =
            format!("look-around and back-references are repeated more than {MOST_TIMES} times");
        return Err(PatternError::Syntax(why));
    }
    let longest = LONGEST / times.isqrt();
    let parts = 1 + whole.matches(['(', '\\']).count();
    for size in SIZES {
        let much = parts.saturating_mul(size);
        if limits.left(Limited::PatternBytes) < much {
            limits.take(Limited::PatternBytes, much)?;
        }
        let built = fancy_regex::RegexBuilder::new(whole)
            .backtrack_limit(STEPS * longest)
            .delegate_size_limit(size)
            .delegate_dfa_size_limit(CACHE)
            .build();
        match built.as_ref().err().and_then(inner) {
            Some(error) if error.size_limit().is_some() => {}
            _ => {
                limits.take(Limited::PatternBytes, much)?;
                let regex = built.map_err(wrong)?;
                return Ok(Engine::Backtracking { regex, longest });
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
