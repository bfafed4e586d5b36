//! `JSONPath`s in documents (RFC 9535), restricted to those that visit each value a few times.

use serde_json::Value;
use serde_json_path::{JsonPath, NodeList};

use squall_documents::{DocumentLimits, Limited, OverLimit};

/// Longest path, bytes.
const LONGEST: usize = 1_000;
/// Most values to which alternative selectors may multiply one value.
const MOST_SELECTED: usize = 16;
/// Cost of a path in addition to its length, as the body is parsed for it.
const COST: usize = 200;
/// Cost of a path that visits many values of the body: `..`, `*`, a slice, a filter.
const COST_OF_MANY: usize = 1_000;

/// A `JSONPath` in a document.
#[derive(Debug, Clone)]
pub struct Path {
    path: JsonPath,
    /// How often it may visit each value of a document; 0: only some values.
    looks: usize,
}

impl Path {
    /// The selected values.
    pub fn query<'d>(&self, document: &'d Value) -> NodeList<'d> {
        self.path.query(document)
    }

    /// How many values it may visit in a document with this many.
    pub(crate) fn looks_at(&self, values: usize) -> usize {
        self.looks.saturating_mul(values)
    }
}

/// A path that visits many values counts one more visit per value for this many bytes, as filters
/// do.
const BYTES_OF_A_LOOK: usize = 16;

/// Why a text is not a valid `JSONPath`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// A syntax error.
    #[error("is no JSONPath (RFC 9535), which begins with `$`: {0}")]
    Syntax(String),
    /// It may visit values too often.
    #[error("is not supported: {0}")]
    TooDear(&'static str),
    /// The document exceeds its limit of paths.
    #[error("is not taken: {0}")]
    OverLimit(#[from] OverLimit),
}

/// Parses a path in a document with these limits.
pub fn parse(written: &str, limits: &DocumentLimits) -> Result<Path, PathError> {
    if written.len() > LONGEST {
        return Err(PathError::TooDear("it is longer than 1,000 bytes"));
    }
    let bare = without_texts(written);
    let times = times(&bare).map_err(PathError::TooDear)?;
    let looks_at_many = bare.contains(['*', '?', ':']) || bare.contains("..");
    let cost = if looks_at_many { COST_OF_MANY } else { COST };
    limits.take(Limited::PathBytes, cost + written.len() * times)?;
    let path = JsonPath::parse(written).map_err(|error| PathError::Syntax(error.to_string()))?;
    let looks = if looks_at_many {
        times * (1 + written.len() / BYTES_OF_A_LOOK)
    } else {
        0
    };
    Ok(Path { path, looks })
}

/// How often a path may visit one value because of its lists of selectors. Rejects paths with more
/// visits: several descents, queries from the root, and `match` or `search`, which compile a
/// pattern each time.
fn times(bare: &str) -> Result<usize, &'static str> {
    if bare.matches("..").count() > 1 {
        return Err("`..` may stand in it once");
    }
    if bare.matches('$').count() > 1 {
        return Err("in a filter only queries from `@` are");
    }
    if ["match(", "search("].iter().any(|name| bare.contains(name)) {
        return Err("`match` and `search` are not; `match_body` takes a regular expression");
    }
    let mut selected = 1;
    for selectors in bare.split(['[', ']']) {
        selected *= 1 + selectors.matches(',').count();
        if selected > MOST_SELECTED {
            return Err("its lists of selectors select a value more than 16 times");
        }
    }
    Ok(selected)
}

/// The path with empty quotes.
fn without_texts(written: &str) -> String {
    let (mut bare, mut quote, mut escaped) = (String::new(), None, false);
    for letter in written.chars() {
        match quote {
            None => {
                bare.push(letter);
                quote = Some(letter).filter(|letter| matches!(letter, '\'' | '"'));
            }
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_looks_at_each_value_a_few_times() {
        for (written, supported) in [
            ("$", true),
            ("$.messages[-1:].content", true),
            ("$..content", true),
            ("$..[?@.role == 'user' && @.content]", true),
            ("$['a..b', \"$..$..\", 'it\\'s,,,,search']", true),
            ("$.match", true),
            ("$['matched']", true),
            ("$..*..*", false),
            ("$..[?@..a]", false),
            ("$[?$.a]", false),
            ("$[?search(@.a, 'b')]", false),
            ("$[0,1,2,3][0,1,2,3]", true),
            ("$[0,1,2,3][0,1,2,3][0,1]", false),
        ] {
            let read = parse(written, &DocumentLimits::default());
            assert_eq!(read.is_ok(), supported, "{written}: {read:?}");
        }
        let long = ["$", &".a".repeat(500)].concat();
        assert!(matches!(
            parse(&long, &DocumentLimits::default()),
            Err(PathError::TooDear(_))
        ));
    }

    #[test]
    fn a_document_has_so_many_paths_and_no_more() {
        for (path, most) in [
            ("$['a','b','c','d']", 20_000 / (COST + 18 * 4)),
            ("$..a", 20_000 / (COST_OF_MANY + 4)),
            ("$[*]", 20_000 / (COST_OF_MANY + 4)),
            ("$[?@.a]", 20_000 / (COST_OF_MANY + 7)),
            ("$['..*']", 20_000 / (COST + 8)),
        ] {
            let limits = DocumentLimits::default();
            let taken = (0..1_000).take_while(|_| parse(path, &limits).is_ok());
            assert_eq!(taken.count(), most, "{path}");
        }
    }
}
