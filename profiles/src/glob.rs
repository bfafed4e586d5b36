//! Globs over URLs and plain words.
//!
//! Only `*` (any characters, including `/`) and `{a,b}` (alternatives) are special. A glob is
//! expanded into its alternatives once. Each is matched in one pass over the text: between two
//! stars, the leftmost match of a piece is sufficient.

use std::fmt;
use std::sync::Arc;

use memchr::memmem;

use crate::facts::CanonicalUrl;
use squall_documents::{DocumentLimits, Limited, OverLimit};

/// Longest glob as it is written, bytes.
const LONGEST: usize = 10_000;
/// Most pairs of braces in a glob.
const BRACES: usize = 100;

/// An invalid glob.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GlobError {
    /// It is empty.
    #[error("the glob is empty; `*` matches everything")]
    Empty,
    /// A brace is missing.
    #[error("`{0:.60}` has a `{{` without its `}}`, or a `}}` without its `{{`")]
    Unbalanced(String),
    /// It is too long.
    #[error("the glob is longer than {LONGEST} bytes, or has more than {BRACES} pairs of braces")]
    TooLong,
    /// It expands to too many alternatives.
    #[error("{0}; write globs that cover more")]
    OverLimit(#[from] OverLimit),
}

/// A glob over words: tool names, models, header values. It is case-sensitive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob {
    written: Arc<str>,
    alternatives: Arc<[Box<str>]>,
}

impl Glob {
    /// Compiles a glob.
    pub fn new(written: &str) -> Result<Self, GlobError> {
        Self::within(written, &DocumentLimits::default())
    }

    /// [`Self::new`] for a glob in a document with these limits.
    pub fn within(written: &str, limits: &DocumentLimits) -> Result<Self, GlobError> {
        let alternatives = spell_out(written, limits)?;
        let alternatives = alternatives.into_iter().map(Into::into).collect();
        Ok(Self {
            written: written.into(),
            alternatives,
        })
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// True for `*` and equivalents, which match everything.
    pub(crate) fn is_everything(&self) -> bool {
        self.alternatives.iter().any(|glob| is_stars(glob))
    }

    /// The words it matches, if it has no wildcard.
    pub(crate) fn literals(&self) -> Option<impl Iterator<Item = &str>> {
        let literal = self.alternatives.iter().all(|glob| !glob.contains('*'));
        literal.then(|| self.alternatives.iter().map(AsRef::as_ref))
    }

    /// Whether it matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        self.alternatives.iter().any(|glob| matches(glob, text, 0))
    }
}

/// A list of globs over canonical URLs, of which one must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct UrlGlobs {
    alternatives: Arc<[Box<str>]>,
}

impl UrlGlobs {
    /// Compiles a list; each glob is converted to the form of [`CanonicalUrl`].
    pub(crate) fn new<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, GlobError> {
        Self::within(globs, &DocumentLimits::default()).map_err(|(_, error)| error)
    }

    /// [`Self::new`] for a list in a document with these limits. An error includes the number of
    /// its glob.
    pub(crate) fn within<'a>(
        globs: impl IntoIterator<Item = &'a str>,
        limits: &DocumentLimits,
    ) -> Result<Self, (usize, GlobError)> {
        let mut alternatives: Vec<Box<str>> = Vec::new();
        for (number, glob) in globs.into_iter().enumerate() {
            let spelled = spell_out(glob, limits).map_err(|error| (number, error))?;
            let canonical = spelled.iter().flat_map(|one| canonical(one));
            alternatives.extend(canonical.map(Box::<str>::from));
        }
        alternatives.sort_unstable();
        alternatives.dedup();
        Ok(Self {
            alternatives: alternatives.into(),
        })
    }

    /// True without globs, so that any URL matches.
    pub(crate) fn is_empty(&self) -> bool {
        self.alternatives.is_empty()
    }

    pub(crate) fn alternatives(&self) -> &[Box<str>] {
        &self.alternatives
    }

    pub(crate) fn matches(&self, url: &CanonicalUrl) -> bool {
        (0..self.alternatives.len()).any(|index| self.alternative_matches(index, url))
    }

    pub(crate) fn alternative_matches(&self, index: usize, url: &CanonicalUrl) -> bool {
        matches(&self.alternatives[index], url.as_str(), url.origin().len())
    }

    /// Whether some glob may match a URL of this origin: one that ends at its path, or the part of one
    /// up to a slash, matches the root.
    pub(crate) fn may_match_at(&self, origin: &CanonicalUrl) -> bool {
        let root = CanonicalUrl::new(origin.scheme(), origin.authority(), "/");
        let matches_root = |glob: &str| matches(glob, root.as_str(), root.origin().len());
        self.alternatives.iter().any(|glob| {
            let mut slashes = glob.match_indices('/');
            matches_root(glob) || slashes.any(|(at, _)| matches_root(&glob[..=at]))
        })
    }

    /// Whether some glob matches every URL of this origin: it only depends on scheme and authority.
    pub(crate) fn match_all_of(&self, origin: &CanonicalUrl) -> bool {
        let root = CanonicalUrl::new(origin.scheme(), origin.authority(), "/");
        (0..self.alternatives.len()).any(|index| {
            // All pieces match before the path and a star follows, so every path matches.
            self.alternatives[index].ends_with('*') && self.alternative_matches(index, &root)
        })
    }
}

/// True if the glob consists of stars only.
pub(crate) fn is_stars(glob: &str) -> bool {
    !glob.is_empty() && glob.bytes().all(|byte| byte == b'*')
}

/// Matches one alternative. The first `folded` bytes of `text` are already in lower case, and are
/// compared case-insensitively.
pub(crate) fn matches(glob: &str, text: &str, folded: usize) -> bool {
    let folded = if glob.bytes().any(|byte| byte.is_ascii_uppercase()) {
        folded
    } else {
        0
    };
    let (text, glob) = (text.as_bytes(), glob.as_bytes());
    let Some(first_star) = memchr::memchr(b'*', glob) else {
        return text.len() == glob.len() && stands_at(glob, text, 0, folded);
    };
    let last_star = memchr::memrchr(b'*', glob).expect("there is a star");
    let (head, tail) = (&glob[..first_star], &glob[last_star + 1..]);
    if text.len() < head.len() + tail.len() || !stands_at(head, text, 0, folded) {
        return false;
    }
    let end = text.len() - tail.len();
    if !stands_at(tail, text, end, folded) {
        return false;
    }
    let mut from = head.len();
    for piece in glob[first_star..=last_star].split(|byte| *byte == b'*') {
        match find(piece, &text[..end], from, folded) {
            Some(at) => from = at + piece.len(),
            None => return false,
        }
    }
    true
}

/// Whether `piece` is at byte `at` of `text`, which is long enough.
fn stands_at(piece: &[u8], text: &[u8], at: usize, folded: usize) -> bool {
    piece
        .iter()
        .zip(&text[at..])
        .enumerate()
        .all(|(offset, (expected, found))| {
            expected == found || (at + offset < folded && expected.to_ascii_lowercase() == *found)
        })
}

/// The leftmost place of `piece` in `text` at or after `from`.
fn find(piece: &[u8], text: &[u8], from: usize, folded: usize) -> Option<usize> {
    let mut from = from;
    // Byte by byte in the case-insensitive part: scheme and host are short.
    while from < folded.min(text.len()) {
        if from + piece.len() <= text.len() && stands_at(piece, text, from, folded) {
            return Some(from);
        }
        from += 1;
    }
    Some(from + memmem::find(text.get(from..)?, piece)?)
}

/// Expands `{a,b}` into the glob's alternatives without braces, in the order written. Braces may
/// nest.
fn spell_out(written: &str, limits: &DocumentLimits) -> Result<Vec<String>, GlobError> {
    if written.is_empty() {
        return Err(GlobError::Empty);
    }
    if written.len() > LONGEST || written.matches('{').count() > BRACES {
        return Err(GlobError::TooLong);
    }
    let mut alternatives = Vec::new();
    let mut open = vec![written.to_owned()];
    while let Some(glob) = open.pop() {
        let Some(brace) = glob.find(['{', '}']) else {
            limits.take(Limited::Globs, 1)?;
            limits.take(Limited::GlobBytes, glob.len())?;
            alternatives.push(glob);
            continue;
        };
        let (before, braces) = glob.split_at(brace);
        let parts = in_braces(braces).ok_or_else(|| GlobError::Unbalanced(written.to_owned()))?;
        let (members, after) = parts;
        let spelled = members.iter().rev();
        open.extend(spelled.map(|member| [before, member, after].concat()));
    }
    Ok(alternatives)
}

/// The members of the braces with which a text begins, and the text behind them; `None` if the
/// braces are unbalanced.
fn in_braces(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut depth, mut begin, mut members) = (0_usize, 1, Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        if matches!(byte, b',' | b'}') && depth == 1 {
            members.push(&text[begin..at]);
            begin = at + 1;
        }
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some((members, &text[begin..]));
        }
    }
    None
}

/// One alternative in the form of [`CanonicalUrl`]: scheme `http(s)`, no default port, `/` for an
/// empty path. Matching handles the case of scheme and host, because it knows where they end.
fn canonical(glob: &str) -> Vec<String> {
    let Some((scheme, rest)) = glob.split_once("://") else {
        let mut forms = vec![glob.to_owned()];
        // `*.example:443/*` has no scheme, but the port implies one.
        if glob.starts_with('*') {
            forms.extend(with_elided_port(glob));
        }
        return forms;
    };
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "ws" => "http".to_owned(),
        "wss" => "https".to_owned(),
        other => other.to_owned(),
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() && !authority.ends_with('*') {
        "/"
    } else {
        path
    };
    let elided = match scheme.as_str() {
        "http" => authority.strip_suffix(":80"),
        "https" => authority.strip_suffix(":443"),
        "*" => {
            let mut forms = vec![format!("{scheme}://{authority}{path}")];
            forms.extend(with_elided_port(&format!("{authority}{path}")));
            return forms;
        }
        _ => None,
    };
    vec![format!("{scheme}://{}{path}", elided.unwrap_or(authority))]
}

/// `HOST:443/…` as `https://HOST/…`, `HOST:80/…` as `http://HOST/…`.
fn with_elided_port(rest: &str) -> Option<String> {
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    [("https", ":443"), ("http", ":80")]
        .iter()
        .find_map(|(scheme, port)| {
            let host = authority.strip_suffix(port)?;
            Some(format!("{scheme}://{host}{path}"))
        })
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_stars_and_braces_are_special() {
        for (glob, text, expected) in [
            ("*", "", true),
            ("*", "anything/at all", true),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("a*b*c", "a-b-b-c", true),
            ("ab*ba", "aba", false),
            ("**a**", "xax", true),
            ("a?c", "abc", false),
            ("a?c", "a?c", true),
            ("[ab]", "a", false),
            ("[ab]", "[ab]", true),
            ("gpt-{4,5}*", "gpt-5-mini", true),
            ("gpt-{4,5}*", "gpt-3", false),
            ("{a,b{c,d}}e", "bde", true),
            ("{a,b{c,d}}e", "be", false),
            ("x{,s}", "x", true),
            ("Case", "case", false),
        ] {
            assert_eq!(
                Glob::new(glob).unwrap().matches(text),
                expected,
                "{glob} on {text}"
            );
        }
    }

    #[test]
    fn a_url_glob_is_read_in_the_canonical_form() {
        for (glob, url, expected) in [
            ("https://*", "https://api.example/v1", true),
            ("https://*", "http://api.example/v1", false),
            ("HTTPS://API.Example/V1*", "https://api.example/V1/x", true),
            ("HTTPS://API.Example/V1*", "https://api.example/v1/x", false),
            ("*.Example/v1", "https://api.example/v1", true),
            ("*Example/V1", "https://api.example/V1", true),
            ("*Example/V1", "https://api.example/v1", false),
            ("*Search*", "https://api.search.example/v1", true),
            ("*Search*", "https://api.example/search", false),
            ("https://api.example:443/*", "https://api.example/x", true),
            ("*api.example:443/*", "https://api.example/x", true),
            ("*api.example:443/*", "http://api.example/x", false),
            ("*api.example:443/*", "http://api.example:443/x", true),
            ("*://api.example:80/*", "http://api.example/x", true),
            ("wss://api.example/*", "https://api.example/socket", true),
            ("http{,s}://api.example", "https://api.example/", true),
            ("https://api.example", "https://api.example/x", false),
            ("*/search?q=*", "http://h/search?q=1", true),
            ("*/search?q=*", "http://h/searchXq=1", false),
        ] {
            let (scheme, rest) = url.split_once("://").unwrap();
            let (authority, path) = rest.split_at(rest.find('/').unwrap());
            let canonical = CanonicalUrl::new(scheme, authority, path);
            let globs = UrlGlobs::new([glob]).unwrap();
            assert_eq!(globs.matches(&canonical), expected, "{glob} on {url}");
        }
    }

    #[test]
    fn a_glob_over_the_authority_alone_matches_all_of_an_origin() {
        let origin = CanonicalUrl::new("https", "api.example", "");
        for (glob, expected) in [
            ("*", true),
            ("https://*", true),
            ("https://api.example/*", true),
            ("https://api.example*", true),
            ("*example*", true),
            ("https://api.example/v1/*", false),
            ("*v1*", false),
            ("https://api.example/", false),
            ("http://*", false),
        ] {
            assert_eq!(
                UrlGlobs::new([glob]).unwrap().match_all_of(&origin),
                expected,
                "{glob}"
            );
        }
    }

    #[test]
    fn a_broken_glob_says_what_is_wrong() {
        for glob in ["", "a{b", "a}b", "{a,{b}", "{a,b}}"] {
            assert!(Glob::new(glob).is_err(), "{glob}");
        }
    }

    #[test]
    fn braces_stand_for_so_much_and_no_more() {
        let over = |what| Err(GlobError::OverLimit(OverLimit(what)));
        let many = "{a,b}".repeat(40);
        assert_eq!(Glob::new(&many), over(Limited::Globs));
        let long = ["x".repeat(9_000), "{a,b,c,d,e,f,g}".repeat(3)].concat();
        assert_eq!(Glob::new(&long), over(Limited::GlobBytes));
        let nested = ["{".repeat(100), "a".to_owned(), "}".repeat(100)].concat();
        assert!(Glob::new(&nested).unwrap().matches("a"));
        assert_eq!(Glob::new(&"{a}".repeat(101)), Err(GlobError::TooLong));
        assert_eq!(Glob::new(&"x".repeat(10_001)), Err(GlobError::TooLong));
        let limits = DocumentLimits::default();
        let list = vec!["{a,b}{c,d}/*"; 6_250];
        assert!(UrlGlobs::within(list, &limits).is_ok());
        let (number, error) = UrlGlobs::within(["e", "f"], &limits).unwrap_err();
        assert_eq!((number, Err::<Glob, _>(error)), (0, over(Limited::Globs)));
    }

    proptest::proptest! {
        /// Compares the matcher with an equivalent regular expression.
        #[test]
        fn a_glob_matches_what_its_regular_expression_matches(
            glob in "[abA*]{0,8}",
            text in "[abA]{0,10}",
            folded in 0usize..12,
        ) {
            let folded = folded.min(text.len());
            let text = text[..folded].to_ascii_lowercase() + &text[folded..];
            // `+` follows every letter of the text that is compared case-insensitively.
            let letters = glob.chars().map(|letter| match letter {
                '*' => "(?:..)*".to_owned(),
                'A' => "(?:A.|a\\+)".to_owned(),
                other => format!("(?:{other}.)"),
            });
            let mut marked = String::new();
            for (at, letter) in text.char_indices() {
                marked.extend([letter, if at < folded { '+' } else { '-' }]);
            }
            let pattern: String = letters.collect();
            let regex = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            proptest::prop_assert_eq!(matches(&glob, &text, folded), regex.is_match(&marked));
        }
    }
}
