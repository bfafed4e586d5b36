//! Finds the rules that an exchange may match.
//!
//! A glob with literal text requires that text in the URL. One piece of each glob (the least
//! shared, then the longest) is added to an Aho–Corasick automaton. One pass over the URL finds the
//! few globs to verify. Rules that name only a tool are found by its name. Rules with neither are
//! always candidates.

use std::collections::{HashMap, HashSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use smallvec::SmallVec;

use crate::facts::{CanonicalUrl, Facts, Kind};
use crate::glob::{UrlGlobs, is_stars};
use crate::matching::{Match, ToolMatch, Touches};

/// Most globs in one set of rules, after brace expansion: an index of some tens of megabytes.
pub(crate) const MAX_GLOBS: usize = 100_000;
/// Longest piece of text in the automaton; a longer one would only enlarge it.
const WINDOW: usize = 24;

/// Numbers of the rules (or watches) that an exchange may match, in ascending order.
pub(crate) type Candidates = SmallVec<[u32; 16]>;

/// Finds candidates by URL and tool.
#[derive(Debug, Default)]
pub(crate) struct Index {
    automaton: Option<AhoCorasick>,
    /// End of each pattern's postings.
    ends: Box<[u32]>,
    postings: Box<[Posting]>,
    by_tool: HashMap<Box<str>, Vec<u32>>,
    /// Candidates with a tool and no URL, for MCP calls whose tool is not known yet.
    by_any_tool: Vec<u32>,
    /// Candidates without an indexed condition.
    always: Vec<u32>,
}

/// A glob to verify once its piece was found.
#[derive(Debug, Clone, Copy)]
struct Posting {
    candidate: u32,
    /// The candidate's glob; `None`: a glob of its tool, which is verified with the tool.
    alternative: Option<u32>,
}

/// A set with too many globs to compile.
#[derive(Debug)]
pub(crate) struct TooMany;

/// The indexed conditions of one candidate, and the config's globs for its tool.
pub(crate) type Indexed<'a> = (&'a Match, &'a [UrlGlobs]);

impl Index {
    /// Whether any candidate has a tool name and no URL.
    pub(crate) fn asks_for_names(&self) -> bool {
        !self.by_any_tool.is_empty()
    }

    /// Builds the index over candidates numbered in the order given.
    pub(crate) fn build(candidates: &[Indexed<'_>]) -> Result<Self, TooMany> {
        let mut index = Self::default();
        let mut globs: Vec<(&str, Posting)> = Vec::new();
        for (candidate, indexed) in (0u32..).zip(candidates.iter().copied()) {
            index.enter(candidate, indexed, &mut globs);
            if globs.len() > MAX_GLOBS {
                return Err(TooMany);
            }
        }
        let mut shared: HashMap<&str, u32> = HashMap::new();
        for (glob, _) in &globs {
            for window in pieces(glob).flat_map(windows) {
                *shared.entry(window).or_insert(0) += 1;
            }
        }
        let mut by_piece: HashMap<String, Vec<Posting>> = HashMap::new();
        for (glob, posting) in &globs {
            let windows = pieces(glob).flat_map(windows);
            let piece = windows.min_by_key(|window| cost(window, shared[window]));
            let piece = piece.expect("globs of stars alone were set apart");
            by_piece
                .entry(piece.to_ascii_lowercase())
                .or_default()
                .push(*posting);
        }
        index.compile(by_piece).map_err(|_| TooMany)?;
        Ok(index)
    }

    /// The candidates whose URL and tool conditions may hold. `verify` returns whether one glob of
    /// a candidate matches the exchange's URL.
    pub(crate) fn find(
        &self,
        facts: &Facts<'_>,
        tool_is_open: bool,
        verify: impl Fn(u32, usize) -> bool,
    ) -> Candidates {
        let mut found = Candidates::from_slice(&self.always);
        self.find_by_url(facts.url, verify, &mut found);
        for tool in facts.tools {
            if let Some(candidates) = self.by_tool.get(tool.as_str()) {
                found.extend_from_slice(candidates);
            }
        }
        if facts.kind == Kind::Mcp && tool_is_open {
            found.extend_from_slice(&self.by_any_tool);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn find_by_url(
        &self,
        url: &CanonicalUrl,
        verify: impl Fn(u32, usize) -> bool,
        found: &mut Candidates,
    ) {
        let Some(automaton) = &self.automaton else {
            return;
        };
        // Verification checks the case. Folding a URL is cheaper than an automaton with both cases
        // of every letter.
        let mut folded: SmallVec<[u8; 256]> = SmallVec::from_slice(url.as_str().as_bytes());
        folded.make_ascii_lowercase();
        // A long URL may repeat a piece at every byte.
        let mut seen = HashSet::new();
        for occurrence in automaton.find_overlapping_iter(&folded) {
            let pattern = occurrence.pattern().as_usize();
            if !seen.insert(pattern) {
                continue;
            }
            let begin = pattern
                .checked_sub(1)
                .map_or(0, |before| self.ends[before] as usize);
            for posting in &self.postings[begin..self.ends[pattern] as usize] {
                let holds = posting
                    .alternative
                    .is_none_or(|alternative| verify(posting.candidate, alternative as usize));
                if holds {
                    found.push(posting.candidate);
                }
            }
        }
    }

    /// Adds a candidate to the index by its conditions.
    fn enter<'a>(
        &mut self,
        candidate: u32,
        (matching, tool_urls): Indexed<'a>,
        globs: &mut Vec<(&'a str, Posting)>,
    ) {
        let urls = matching.urls.alternatives();
        // Tool results in a model call are not indexed.
        let in_results = matching.touches.in_results() && urls.is_empty();
        if in_results || urls.iter().any(|glob| is_stars(glob)) {
            self.always.push(candidate);
        } else if !urls.is_empty() {
            for (alternative, glob) in (0u32..).zip(urls) {
                globs.push((
                    glob,
                    Posting {
                        candidate,
                        alternative: Some(alternative),
                    },
                ));
            }
        } else if matching.touches == Touches::Lists {
            self.always.push(candidate);
        } else if let Some(tool) = matching.tool.as_deref() {
            self.enter_tool(candidate, tool, tool_urls, globs);
        } else {
            self.always.push(candidate);
        }
    }

    fn enter_tool<'a>(
        &mut self,
        candidate: u32,
        tool: &'a ToolMatch,
        tool_urls: &'a [UrlGlobs],
        globs: &mut Vec<(&'a str, Posting)>,
    ) {
        let urls: Vec<_> = tool_urls
            .iter()
            .chain([&tool.urls])
            .flat_map(UrlGlobs::alternatives)
            .collect();
        let Some(names) = tool
            .name
            .literals()
            .filter(|_| !urls.iter().any(|url| is_stars(url)))
        else {
            self.always.push(candidate);
            return;
        };
        for name in names {
            self.by_tool.entry(name.into()).or_default().push(candidate);
        }
        self.by_any_tool.push(candidate);
        globs.extend(urls.iter().map(|url| {
            (
                &***url,
                Posting {
                    candidate,
                    alternative: None,
                },
            )
        }));
    }

    fn compile(
        &mut self,
        by_piece: HashMap<String, Vec<Posting>>,
    ) -> Result<(), aho_corasick::BuildError> {
        if by_piece.is_empty() {
            return Ok(());
        }
        // Sorted, so that equal rules compile to equal indexes.
        let mut by_piece: Vec<_> = by_piece.into_iter().collect();
        by_piece.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            // URLs are too short for a prefilter to pay.
            .prefilter(false)
            .kind((by_piece.len() > 64).then_some(AhoCorasickKind::ContiguousNFA))
            .build(by_piece.iter().map(|(piece, _)| piece))?;
        let mut ends = Vec::with_capacity(by_piece.len());
        let mut postings = Vec::new();
        for (_, of_piece) in by_piece {
            postings.extend(of_piece);
            ends.push(u32::try_from(postings.len()).expect("at most MAX_GLOBS"));
        }
        self.automaton = Some(automaton);
        self.ends = ends.into();
        self.postings = postings.into();
        Ok(())
    }
}

/// The literal pieces that a glob requires.
fn pieces(glob: &str) -> impl Iterator<Item = &str> {
    glob.split('*').filter(|piece| !piece.is_empty())
}

/// How unspecific a piece is: lower is better. Every URL has a scheme, so a scheme comes last.
/// Otherwise the least shared piece is best, then the longest.
fn cost(piece: &str, shared: u32) -> (bool, u32, usize) {
    let is_scheme = matches!(piece, "http://" | "https://" | "://" | "/");
    (is_scheme, shared, usize::MAX - piece.len())
}

/// Overlapping windows of a piece. A glob requires each of them, and the specific part may be
/// anywhere in the piece.
fn windows(piece: &str) -> impl Iterator<Item = &str> {
    let last = piece.len().saturating_sub(WINDOW);
    let starts = (0..last).step_by(WINDOW / 2).chain([last]);
    starts.map(|start| {
        let start = piece.floor_char_boundary(start);
        &piece[start..piece.floor_char_boundary(start + WINDOW)]
    })
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use proptest::prelude::*;

    use super::*;

    /// Globs over few letters, so that they match the URLs of the test.
    fn globs() -> impl Strategy<Value = Vec<Vec<String>>> {
        let glob = prop_oneof![
            "(http|https|HTTP)://[abB*.]{1,4}(/[abA*]{0,3}){0,2}",
            "\\*[abAB./:]{0,6}(:80|:443)?",
            "[abhtps:/*]{1,3}\\*",
            "(http|https)://\\{a,b[.]b\\}/[abA*]{0,4}",
            "\\*{1,2}",
        ];
        prop::collection::vec(prop::collection::vec(glob, 1..4), 1..30)
    }

    proptest! {
        #[test]
        fn the_index_finds_what_looking_at_every_rule_finds(
            globs in globs(),
            scheme in "http|https",
            authority in "[ab.]{1,4}(:80|:443|:8)?",
            path in "(/[abA]{0,3}){0,3}",
        ) {
            let url = CanonicalUrl::new(&scheme, &authority, &path);
            let matches: Vec<_> = globs
                .iter()
                .map(|globs| {
                    let urls = UrlGlobs::new(globs.iter().map(String::as_str)).unwrap();
                    Match { urls, ..Match::default() }
                })
                .collect();
            let indexed: Vec<_> =
                matches.iter().map(|matching| (matching, &[][..])).collect();
            let index = Index::build(&indexed).unwrap();
            let facts = Facts {
                kind: Kind::Tool,
                dialect: None,
                tools: &[],
                rpc_tool_call: false,
                mcp_tool_list: false,
                from: None,
                may_be_rpc: false,
                method: &Method::GET,
                url: &url,
                headers: &HeaderMap::new(),
                model: None,
                stream: None,
                results: None,
                body: None,
            };
            let verify = |candidate: u32, alternative: usize| {
                matches[candidate as usize].urls.alternative_matches(alternative, &url)
            };
            let found = index.find(&facts, false, verify).to_vec();
            let expected: Vec<u32> = (0u32..)
                .zip(&matches)
                .filter(|(_, matching)| matching.urls.matches(&url))
                .map(|(number, _)| number)
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// The distinguishing part of a glob may be at its start, in the middle or at the end.
    #[test]
    fn a_piece_that_all_globs_share_is_not_looked_for() {
        for glob in [
            |n: usize| {
                format!("https://svc-{n:04}.prod.internal.a-long-company-name.example.com/*")
            },
            |n: usize| {
                format!("https://api.a-long-company-name.example.com/v1/resources/items/{n:04}*")
            },
            |n: usize| {
                format!("https://api.example.com/tenants/{n:04}/a/rather/long/common/suffix/of/all")
            },
            |n: usize| format!("*{n:04}/a/rather/long/common/suffix/of/all"),
        ] {
            let matches: Vec<_> = (0..500)
                .map(|n| Match {
                    urls: UrlGlobs::new([&*glob(n)]).unwrap(),
                    ..Match::default()
                })
                .collect();
            let indexed: Vec<_> = matches.iter().map(|matching| (matching, &[][..])).collect();
            let index = Index::build(&indexed).unwrap();
            let most = index.ends.iter().scan(0, |begin, end| {
                let size = end - *begin;
                *begin = *end;
                Some(size)
            });
            assert!(most.max() <= Some(2), "{}", glob(0));
        }
    }

    #[test]
    fn a_set_too_big_is_not_compiled() {
        let globs: Vec<_> = (0..10_000).map(|n| format!("https://{n}/*")).collect();
        let urls = UrlGlobs::new(globs.iter().map(String::as_str)).unwrap();
        let matching = Match {
            urls,
            ..Match::default()
        };
        for (sets, expected) in [(10, true), (11, false)] {
            let indexed: Vec<Indexed<'_>> = vec![(&matching, &[]); sets];
            assert_eq!(Index::build(&indexed).is_ok(), expected, "{sets}");
        }
    }
}
