//! A session made ready to be asked: which answer is the next for a request.
//!
//! Answers are kept in queues, one per key, each in recorded order. A request is looked up where it
//! is told most exactly first:
//!
//! | place | key |
//! |---|---|
//! | `exchanges` with a body or a fingerprint | method, URL, fingerprint |
//! | `exchanges` without | method, URL with `*` |
//! | `tool_responses` | the tool that is called |
//! | `llm_responses` | dialect, model and whatever else is given |

use std::collections::HashMap;
use std::sync::Arc;

use http::Method;

use super::given::Given;
use super::session::{Exchange, Matching, Session, ToolResponse};

/// A request, as it is looked up: redacted as what was recorded.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Method.
    pub method: &'a Method,
    /// URL as rules see it.
    pub url: &'a str,
    /// What tells it from others of the same method and URL.
    pub fingerprint: u64,
    /// Names of the tools that it calls.
    pub tools: &'a [String],
    /// Dialect, of a model call.
    pub dialect: Option<&'a str>,
    /// Model asked for, of a model call.
    pub model: Option<&'a str>,
}

/// What a tape has for a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// This answer.
    Answer(Arc<Given>),
    /// What the tool said.
    Tool(Arc<ToolResponse>),
    /// All answers were given; the sentence says how many there were.
    Exhausted(String),
    /// Nothing; the sentence names what is nearest.
    Missed(String),
}

/// Recorded answers, and how far they were given.
#[derive(Debug, Clone, Default)]
pub struct Tape {
    exact: HashMap<u64, Queue<Given>>,
    /// Those of `exact` and of `loose`, in the order written: for what is nearest.
    keys: Vec<Key>,
    loose: Vec<(Matching, Queue<Given>)>,
    tools: HashMap<String, Queue<ToolResponse>>,
    models: Vec<(Exchange, Queue<Given>)>,
}

/// Answers of one key.
#[derive(Debug, Clone)]
struct Queue<T> {
    answers: Vec<Arc<T>>,
    given: usize,
}

/// What people know a key by.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    method: Option<Method>,
    url: String,
    fingerprint: Option<u64>,
}

impl Tape {
    /// Makes a session ready; `fingerprint` tells the fingerprint of a request with this method, URL
    /// and body.
    pub fn new(session: &Session, fingerprint: &dyn Fn(&Method, &str, &[u8]) -> u64) -> Self {
        let mut tape = Self::default();
        for exchange in &session.exchanges {
            tape.record(exchange, fingerprint);
        }
        for response in &session.tool_responses {
            let queue = tape.tools.entry(response.tool.clone());
            queue.or_default().push(response.clone());
        }
        for response in &session.llm_responses {
            let same = tape.models.iter_mut().find(|(first, _)| {
                first.matching == response.matching && first.dialect == response.dialect
            });
            match same {
                Some((_, queue)) => queue.push(Given::of(response)),
                None => tape
                    .models
                    .push((response.clone(), Queue::of(Given::of(response)))),
            }
        }
        tape
    }

    fn record(&mut self, exchange: &Exchange, fingerprint: &dyn Fn(&Method, &str, &[u8]) -> u64) {
        let matching = &exchange.matching;
        let url = matching.url.clone().unwrap_or_default();
        let method = matching.method.as_ref();
        let exact = match (&matching.body, matching.fingerprint) {
            (_, Some(fingerprint)) => Some(fingerprint),
            (Some(body), None) => Some(fingerprint(method.unwrap_or(&Method::POST), &url, &body.0)),
            (None, None) => None,
        };
        let key = Key {
            method: matching.method.clone(),
            url,
            fingerprint: exact,
        };
        if !self.keys.contains(&key) {
            self.keys.push(key);
        }
        let answer = Given::of(exchange);
        if let Some(fingerprint) = exact {
            self.exact.entry(fingerprint).or_default().push(answer);
            return;
        }
        match self.loose.iter_mut().find(|(first, _)| first == matching) {
            Some((_, queue)) => queue.push(answer),
            None => self.loose.push((matching.clone(), Queue::of(answer))),
        }
    }

    /// The next answer for a request; it is then given.
    pub fn ask(&mut self, question: &Question<'_>) -> Found {
        let mut exhausted = None;
        if let Some(queue) = self.exact.get_mut(&question.fingerprint) {
            match queue.next() {
                Ok(answer) => return Found::Answer(answer),
                Err(given) => exhausted = Some(given),
            }
        }
        for (_, queue) in self
            .loose
            .iter_mut()
            .filter(|(matching, _)| matching.is_of(question))
        {
            match queue.next() {
                Ok(answer) => return Found::Answer(answer),
                Err(given) => exhausted = exhausted.or(Some(given)),
            }
        }
        for tool in question.tools {
            if let Some(queue) = self.tools.get_mut(tool) {
                match queue.next() {
                    Ok(response) => return Found::Tool(response),
                    Err(given) => exhausted = exhausted.or(Some(given)),
                }
            }
        }
        if question.dialect.is_some() {
            for (_, queue) in self
                .models
                .iter_mut()
                .filter(|(exchange, _)| exchange.is_of_call(question))
            {
                match queue.next() {
                    Ok(answer) => return Found::Answer(answer),
                    Err(given) => exhausted = exhausted.or(Some(given)),
                }
            }
        }
        match exhausted {
            Some(1) => Found::Exhausted("its one recorded answer was given".to_owned()),
            Some(given) => Found::Exhausted(format!("its {given} recorded answers were given")),
            None => Found::Missed(self.nearest(question)),
        }
    }

    /// How many answers there are, and how many of them were not given yet.
    pub fn answers(&self) -> (usize, usize) {
        let answers = self.exact.values().map(Queue::count);
        let loose = self.loose.iter().map(|(_, queue)| queue.count());
        let models = self.models.iter().map(|(_, queue)| queue.count());
        let tools = self.tools.values().map(Queue::count);
        answers
            .chain(loose)
            .chain(models)
            .chain(tools)
            .fold((0, 0), |(all, left), (more, more_left)| {
                (all + more, left + more_left)
            })
    }

    /// What was recorded that is most like the request, as a sentence.
    fn nearest(&self, question: &Question<'_>) -> String {
        if let Some(tool) = question.tools.first().filter(|_| !self.tools.is_empty()) {
            let mut known: Vec<&str> = self.tools.keys().map(String::as_str).collect();
            known.sort_unstable();
            let near = known
                .iter()
                .min_by_key(|known| strsim::damerau_levenshtein(known, tool))
                .copied()
                .unwrap_or_default();
            return format!("the nearest recorded key is tool `{near}`");
        }
        let near = self
            .keys
            .iter()
            .enumerate()
            .max_by_key(|(at, key)| (key.likeness(question), std::cmp::Reverse(*at)));
        let Some((_, near)) = near else {
            return if self.models.is_empty() && self.tools.is_empty() {
                "nothing is recorded on it".to_owned()
            } else {
                let (tools, models) = (self.tools.len(), self.models.len());
                format!("it holds answers of {tools} tools and {models} kinds of model calls")
            };
        };
        let same_request = near.url == question.url
            && near
                .method
                .as_ref()
                .is_none_or(|method| method == question.method);
        let but = if same_request {
            "with another body "
        } else {
            ""
        };
        format!("the nearest recorded key is {near} {but}")
            .trim_end()
            .to_owned()
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            answers: Vec::new(),
            given: 0,
        }
    }
}

impl<T> Queue<T> {
    fn of(answer: T) -> Self {
        let mut queue = Self::default();
        queue.push(answer);
        queue
    }

    fn push(&mut self, answer: T) {
        self.answers.push(Arc::new(answer));
    }

    /// The next answer; or how many there were.
    fn next(&mut self) -> Result<Arc<T>, usize> {
        let next = self.answers.get(self.given).ok_or(self.answers.len())?;
        self.given += 1;
        Ok(Arc::clone(next))
    }

    /// How many there are, and how many of them are left.
    fn count(&self) -> (usize, usize) {
        (self.answers.len(), self.answers.len() - self.given)
    }
}

impl Matching {
    fn is_of(&self, question: &Question<'_>) -> bool {
        self.method
            .as_ref()
            .is_none_or(|method| method == question.method)
            && self
                .url
                .as_ref()
                .is_none_or(|url| is_like(url, question.url))
            && self
                .model
                .as_ref()
                .is_none_or(|model| question.model.is_some_and(|asked| is_like(model, asked)))
    }
}

impl Exchange {
    /// Whether this may answer a model call.
    fn is_of_call(&self, question: &Question<'_>) -> bool {
        let matching = &self.matching;
        matching.is_of(question)
            && matching
                .fingerprint
                .is_none_or(|fingerprint| fingerprint == question.fingerprint)
            && self
                .dialect
                .as_deref()
                .is_none_or(|dialect| Some(dialect) == question.dialect)
    }
}

impl Key {
    /// How like a request it is: what begins and ends alike, and the method.
    fn likeness(&self, question: &Question<'_>) -> usize {
        let alike = |one: &mut dyn Iterator<Item = (u8, u8)>| -> usize {
            one.take_while(|(a, b)| a == b).count()
        };
        let (one, other) = (self.url.as_bytes(), question.url.as_bytes());
        let begin = alike(&mut one.iter().copied().zip(other.iter().copied()));
        let end = alike(&mut one.iter().rev().copied().zip(other.iter().rev().copied()));
        let whole = usize::from(self.url == question.url) * 1000;
        let method = usize::from(self.method.as_ref() == Some(question.method));
        2 * (begin + end.min(one.len() - begin)) + whole + method
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let method = self.method.as_ref().map_or("*", Method::as_str);
        let shown: String = self.url.chars().take(200).collect();
        write!(f, "{method} {shown}")?;
        if let Some(fingerprint) = self.fingerprint {
            write!(f, " ({fingerprint:016x})")?;
        }
        Ok(())
    }
}

/// Whether `text` is like `pattern`, in which `*` stands for anything.
fn is_like(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pattern.rfind('*').map(|at| &pattern[at + 1..]) else {
        return rest.is_empty();
    };
    let middle: Vec<&str> = parts.collect();
    let middle = &middle[..middle.len().saturating_sub(1)];
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
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
