//! A session prepared for playback: finds the next response for a request.
//!
//! A request gets the first unused response that matches it, in the order of [`TapeKey`], then in recorded order.

use std::cmp::Reverse;
use std::sync::Arc;

use http::Method;

use super::given::Given;
use super::session::{Matching, RecordedExchange, Session, ToolResponse};

/// A request to look up, redacted like the recording.
#[derive(Debug, Clone, Copy)]
pub struct TapeQuestion<'a> {
    /// Method.
    pub method: &'a Method,
    /// URL as rules see it.
    pub url: &'a str,
    /// Its fingerprint.
    pub fingerprint: u64,
    /// Names of the tools that it calls.
    pub tools: &'a [String],
    /// Dialect, of a model call.
    pub dialect: Option<&'a str>,
    /// Requested model, of a model call.
    pub model: Option<&'a str>,
}

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq)]
pub enum TapeResult {
    /// This response.
    Answer(Arc<Given>),
    /// This response of a tool.
    Tool(Arc<ToolResponse>),
    /// All matching responses were used; the sentence has their number.
    Exhausted(String),
    /// No response matches; the sentence names the most similar one.
    Missed(String),
}

/// Recorded responses, each used or unused.
#[derive(Debug, Clone, Default)]
pub struct Tape(Vec<TapeEntry>);

#[derive(Debug, Clone)]
struct TapeEntry {
    key: TapeKey,
    response: TapeResult,
    /// Its number in the session, from 0: `exchanges` first, then `tool_responses`, then `llm_responses`.
    number: usize,
    is_used: bool,
}

/// The requests that a response matches.
#[derive(Debug, Clone)]
enum TapeKey {
    /// From `exchanges` with a body or a fingerprint: requests with this fingerprint.
    Exact(Matching, u64),
    /// From other `exchanges`.
    Pattern(Matching),
    /// From `tool_responses`: requests that call this tool.
    Tool(String),
    /// From `llm_responses`, with their dialect.
    Model(Matching, Option<String>),
}

impl Tape {
    /// Prepares a session; `fingerprint` computes the fingerprint of method, URL and body.
    pub fn new(session: &Session, fingerprint: &dyn Fn(&Method, &str, &[u8]) -> u64) -> Self {
        let recorded = |number, key: TapeKey, exchange: &RecordedExchange| TapeEntry {
            key,
            response: TapeResult::Answer(Arc::new(Given::of(exchange))),
            number,
            is_used: false,
        };
        let exchanges = session.exchanges.iter().enumerate();
        let exchanges = exchanges.map(|(number, exchange)| {
            let matching = exchange.matching.clone();
            let (method, url) = (matching.method.as_ref(), matching.url.as_deref());
            let exact = matching.fingerprint.or_else(|| {
                let body = matching.body.as_ref()?;
                let method = method.unwrap_or(&Method::POST);
                Some(fingerprint(method, url.unwrap_or_default(), &body.0))
            });
            match exact {
                Some(exact) => recorded(number, TapeKey::Exact(matching, exact), exchange),
                None => recorded(number, TapeKey::Pattern(matching), exchange),
            }
        });
        let (mut entries, patterns): (Vec<_>, Vec<_>) =
            exchanges.partition(|entry| matches!(entry.key, TapeKey::Exact(..)));
        entries.extend(patterns);
        let tools = (entries.len()..).zip(&session.tool_responses);
        entries.extend(tools.map(|(number, response)| TapeEntry {
            key: TapeKey::Tool(response.tool.clone()),
            response: TapeResult::Tool(Arc::new(response.clone())),
            number,
            is_used: false,
        }));
        let models = (entries.len()..).zip(&session.llm_responses);
        entries.extend(models.map(|(number, response)| {
            let key = TapeKey::Model(response.matching.clone(), response.dialect.clone());
            recorded(number, key, response)
        }));
        Self(entries)
    }

    /// The next response for a request, which then counts as used.
    pub fn ask(&mut self, question: &TapeQuestion<'_>) -> TapeResult {
        let mut used = 0;
        for entry in self.0.iter_mut().filter(|entry| entry.key.is_of(question)) {
            if !entry.is_used {
                entry.is_used = true;
                return entry.response.clone();
            }
            used += 1;
        }
        match used {
            0 => TapeResult::Missed(self.nearest(question)),
            1 => TapeResult::Exhausted("its one recorded answer was given".to_owned()),
            used => TapeResult::Exhausted(format!("its {used} recorded answers were given")),
        }
    }

    /// The next unused response to the same method and URL, whatever the query and the body.
    pub fn ask_nearest(&mut self, question: &TapeQuestion<'_>) -> Option<TapeResult> {
        let path = |url: &str| url.split('?').next().unwrap_or_default().to_owned();
        let asked = path(question.url);
        let entry = self.0.iter_mut().find(|entry| match &entry.key {
            TapeKey::Exact(matching, _) => {
                !entry.is_used
                    && (matching.method.as_ref()).is_none_or(|method| method == question.method)
                    && (matching.url.as_deref()).is_some_and(|url| path(url) == asked)
            }
            TapeKey::Pattern(_) | TapeKey::Tool(_) | TapeKey::Model(..) => false,
        })?;
        entry.is_used = true;
        Some(entry.response.clone())
    }

    /// Number of responses, and of unused ones.
    pub fn answers(&self) -> (usize, usize) {
        let left = self.0.iter().filter(|entry| !entry.is_used);
        (self.0.len(), left.count())
    }

    /// The numbers of the used responses in the session: `exchanges` first, then `tool_responses`, `llm_responses`.
    pub fn used(&self) -> impl Iterator<Item = usize> {
        let used = self.0.iter().filter(|entry| entry.is_used);
        used.map(|entry| entry.number)
    }

    /// The recorded request most similar to this one, as a sentence.
    fn nearest(&self, question: &TapeQuestion<'_>) -> String {
        let tools = self.0.iter().filter_map(|entry| match &entry.key {
            TapeKey::Tool(tool) => Some(tool.as_str()),
            TapeKey::Exact(..) | TapeKey::Pattern(_) | TapeKey::Model(..) => None,
        });
        if let Some(called) = question.tools.first()
            && let Some(near) = tools.min_by_key(|tool| strsim::damerau_levenshtein(tool, called))
        {
            return format!("the nearest recorded key is tool `{near}`");
        }
        let requests = self
            .0
            .iter()
            .enumerate()
            .filter_map(|(at, entry)| match &entry.key {
                TapeKey::Exact(matching, fingerprint) => Some((at, matching, Some(*fingerprint))),
                TapeKey::Pattern(matching) => Some((at, matching, None)),
                TapeKey::Tool(_) | TapeKey::Model(..) => None,
            });
        let Some((_, near, fingerprint)) =
            requests.max_by_key(|(at, matching, _)| (matching.likeness(question), Reverse(*at)))
        else {
            return match self.0.len() {
                0 => "nothing is recorded on it".to_owned(),
                count => format!("it holds {count} answers of tools and model calls"),
            };
        };
        let method = near.method.as_ref().map_or("*", Method::as_str);
        let url = near.url.as_deref().unwrap_or_default();
        let mut nearest = format!("the nearest recorded key is {method} ");
        nearest.extend(url.chars().take(200));
        nearest.extend(fingerprint.map(|it| format!(" ({it:016x})")));
        if url == question.url && (near.method.as_ref()).is_none_or(|it| it == question.method) {
            nearest.push_str(" with another body");
        }
        nearest
    }
}

impl TapeKey {
    fn is_of(&self, question: &TapeQuestion<'_>) -> bool {
        match self {
            Self::Exact(_, fingerprint) => *fingerprint == question.fingerprint,
            Self::Pattern(matching) => matching.is_of(question),
            Self::Tool(tool) => question.tools.contains(tool),
            Self::Model(matching, dialect) => {
                let is_of_call = |called| dialect.as_deref().is_none_or(|it| it == called);
                question.dialect.is_some_and(is_of_call)
                    && matching.is_of(question)
                    && (matching.fingerprint).is_none_or(|it| it == question.fingerprint)
            }
        }
    }
}

impl Matching {
    /// Whether method, URL and model match a request.
    pub fn is_of(&self, question: &TapeQuestion<'_>) -> bool {
        let is_model = |model: &String| question.model.is_some_and(|asked| is_like(model, asked));
        (self.method.as_ref()).is_none_or(|method| method == question.method)
            && (self.url.as_ref()).is_none_or(|url| is_like(url, question.url))
            && self.model.as_ref().is_none_or(is_model)
    }

    /// Similarity to a request: the same URL is best, then a longer common beginning, then the same method.
    fn likeness(&self, question: &TapeQuestion<'_>) -> (bool, usize, bool) {
        let url = self.url.as_deref().unwrap_or_default();
        let alike = url.bytes().zip(question.url.bytes());
        (
            url == question.url,
            alike.take_while(|(one, other)| one == other).count(),
            self.method.as_ref() == Some(question.method),
        )
    }
}

/// Whether `text` matches `pattern`, in which `*` matches anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(begin) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, expected) in [
            ("http://h/a", "http://h/a", true),
            ("http://h/a", "http://h/ab", false),
            ("http://h/*", "http://h/", true),
            ("*", "", true),
            ("*/v1/*", "http://h/v1/x", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(is_like(pattern, text), expected, "{pattern} {text}");
        }
    }
}
