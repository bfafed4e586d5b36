//! Agents that remember what they were asked before, found out by answers that hold words of other prompts.
//!
//! A mark of a prompt is a word that no other prompt has. Two things show that an agent has kept it:
//!
//! - growth: asked the same again, it answers with all the words it said before, and with marks of what it was
//!   asked in between;
//! - recall: it names what it was asked before (a name, or a whole prompt) and never what it is asked later.
//!
//! Marks that were there before the prompt was asked, in an answer or in what a model was sent, are the agent's own
//! words; those in its tools' answers are theirs. Once may be chance, so that each has to show twice.

use std::collections::{BTreeMap, BTreeSet};

use super::Tried;
use super::ask::{Asked, During};
use crate::suite::Prompt;

/// So often it has to show.
const TELLING: usize = 2;

/// Shortest word that tells something without the rest of its prompt, characters.
const LONG: usize = 4;

/// An answer to one prompt that holds a word of another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recalled<'r> {
    pub(super) prompt: &'r Prompt,
    /// The other.
    pub(super) of: &'r Prompt,
    pub(super) word: String,
}

/// What shows that an agent's answers recall what it was asked before; `None`: nothing does.
pub(super) fn recalls<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<Recalled<'r>> {
    let mut askings: Vec<_> = tried.map(Asking::of).collect();
    askings.sort_by_key(|asking| asking.during.began);
    let marked = marked(&askings);
    shown_twice(growths(&askings, &marked)).or_else(|| {
        let (recalled, foretold) = recalled(&askings, &marked);
        // Who names what it is asked later does not know it from there.
        shown_twice(recalled).filter(|_| !foretold)
    })
}

/// The first, if so many pairs of prompts show the same, of more than one prompt that is recalled.
fn shown_twice(found: Vec<Recalled<'_>>) -> Option<Recalled<'_>> {
    let pairs: BTreeSet<_> = found.iter().map(|one| (one.prompt, one.of)).collect();
    let of: BTreeSet<_> = found.iter().map(|one| one.of).collect();
    let is_shown = pairs.len() >= TELLING && of.len() >= TELLING;
    found.into_iter().next().filter(|_| is_shown)
}

/// An asking with what was answered.
struct Asking<'r> {
    prompt: &'r Prompt,
    asked: &'r Asked,
    during: During,
    /// `None`: it was not answered.
    answer: Option<Said>,
}

impl<'r> Asking<'r> {
    fn of((job, asked): &'r Tried<'r>) -> Self {
        let is_answered = asked.wrong.is_none() && asked.answer.error.is_none();
        Self {
            prompt: job.prompt,
            asked,
            during: asked.during,
            answer: is_answered.then(|| Said::of(&asked.answer.text)),
        }
    }

    /// Whether a word stands in an answer of a tool: the agent has it from there.
    fn was_told(&self, word: &str) -> bool {
        let mut texts = self.asked.trace.answers_of_tools();
        texts.any(|text| words(&text).any(|told| told == word))
    }
}

/// A text as its words, in lower case. Numbers are no words: answers count by themselves.
struct Said {
    words: BTreeSet<String>,
    /// The same in order, a space around each.
    line: String,
}

impl Said {
    fn of(text: &str) -> Self {
        let all: Vec<_> = words(text).collect();
        Self {
            line: format!(" {} ", all.join(" ")),
            words: all.into_iter().collect(),
        }
    }
}

pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words
        .filter(|word| word.chars().any(char::is_alphabetic))
        .map(str::to_lowercase)
}

/// A prompt's marks.
struct Marked {
    /// When it was first asked.
    since: u64,
    said: Said,
    marks: BTreeSet<String>,
    /// Those that are names: written with a capital that no sentence begins with.
    names: BTreeSet<String>,
}

impl Marked {
    /// A word that an answer has of this prompt, for having been asked it: a name, or one of the whole prompt.
    fn named_in(&self, answer: &Said) -> Option<&String> {
        let name = self.names.iter().find(|name| answer.words.contains(*name));
        let is_quoted = self.said.words.len() > 1 && answer.line.contains(&self.said.line);
        name.or_else(|| self.marks.last().filter(|_| is_quoted))
    }

    /// A mark that an answer has, and the answer before it had not. A short word tells nothing by itself.
    fn new_in(&self, answer: &Said, before: &Said) -> Option<&String> {
        let is_quoted = answer.line.contains(&self.said.line);
        let tells = |mark: &&String| is_quoted || mark.chars().count() >= LONG;
        let new = |mark: &&String| answer.words.contains(*mark) && !before.words.contains(*mark);
        self.marks.iter().filter(tells).find(new)
    }
}

fn marked<'r>(askings: &[Asking<'r>]) -> BTreeMap<&'r Prompt, Marked> {
    let mut marked: BTreeMap<&Prompt, Marked> = BTreeMap::new();
    for asking in askings {
        marked.entry(asking.prompt).or_insert_with(|| {
            let text = asking.prompt.text();
            let said = Said::of(&text);
            Marked {
                since: asking.during.began,
                marks: said.words.clone(),
                names: names(&text),
                said,
            }
        });
    }
    let mut prompts: BTreeMap<String, usize> = BTreeMap::new();
    for word in marked.values().flat_map(|one| &one.said.words) {
        *prompts.entry(word.clone()).or_default() += 1;
    }
    let last = marked.values().map(|one| one.since).max().unwrap_or(0);
    let early = askings.iter().filter(|one| one.during.ended < last);
    let early: Vec<_> = early
        .map(|one| (one.during.ended, own_words(one)))
        .collect();
    for one in marked.values_mut() {
        let before = early.iter().filter(|(ended, _)| *ended < one.since);
        let known: BTreeSet<_> = before.flat_map(|(_, words)| words).collect();
        one.marks
            .retain(|word| prompts.get(word) == Some(&1) && !known.contains(word));
        one.names.retain(|name| one.marks.contains(name));
    }
    marked
}

/// What an agent says in an asking by itself: to models, and in its answer.
fn own_words(asking: &Asking<'_>) -> BTreeSet<String> {
    let mut all: BTreeSet<_> = asking
        .answer
        .iter()
        .flat_map(|said| said.words.clone())
        .collect();
    for sent in asking.asked.trace.sent_to_models() {
        all.extend(words(&sent));
    }
    all
}

fn names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for sentence in text.split(['.', '!', '?', ':', '\n']) {
        let words = sentence.split(|letter: char| !letter.is_alphanumeric());
        let behind_first = words.filter(|word| !word.is_empty()).skip(1);
        let capital = behind_first
            .filter(|word| word.chars().count() > 2 && word.starts_with(char::is_uppercase));
        names.extend(capital.map(str::to_lowercase));
    }
    names
}

/// Answers that say what the same prompt was answered with before, and marks of what was asked since.
fn growths<'r>(askings: &[Asking<'r>], marked: &BTreeMap<&'r Prompt, Marked>) -> Vec<Recalled<'r>> {
    let mut found = Vec::new();
    let mut last: BTreeMap<&Prompt, &Asking<'_>> = BTreeMap::new();
    for asking in askings {
        let Some(said) = &asking.answer else {
            continue;
        };
        let before = last.insert(asking.prompt, asking);
        let Some((before, said_before)) = before.and_then(|one| Some((one, one.answer.as_ref()?)))
        else {
            continue;
        };
        if !said_before.words.is_subset(&said.words) || said_before.words.is_empty() {
            continue;
        }
        let since = |one: &&Asking<'_>| {
            one.prompt != asking.prompt
                && (before.during.began..asking.during.began).contains(&one.during.began)
        };
        for between in askings.iter().filter(since) {
            let other = marked.get(between.prompt);
            let new = other.and_then(|one| one.new_in(said, said_before));
            found.extend(
                new.filter(|mark| !asking.was_told(mark))
                    .map(|mark| Recalled {
                        prompt: asking.prompt,
                        of: between.prompt,
                        word: mark.clone(),
                    }),
            );
        }
    }
    found
}

/// Answers that name what was asked before, and whether one names what was asked later only.
fn recalled<'r>(
    askings: &[Asking<'r>],
    marked: &BTreeMap<&'r Prompt, Marked>,
) -> (Vec<Recalled<'r>>, bool) {
    let (mut found, mut foretold) = (Vec::new(), false);
    for asking in askings {
        let others = marked
            .iter()
            .filter(|(prompt, _)| **prompt != asking.prompt);
        for (of, other) in others {
            let Some(said) = &asking.answer else {
                continue;
            };
            if asking.during.ended < other.since {
                // Its marks are what nobody said before it; what it has as names may have been said.
                let names = names(&of.text());
                foretold |= names.iter().any(|name| said.words.contains(name));
            } else if other.since < asking.during.began
                && let Some(word) = other.named_in(said)
                && !asking.was_told(word)
            {
                found.push(Recalled {
                    prompt: asking.prompt,
                    of,
                    word: word.clone(),
                });
            }
        }
    }
    (found, foretold)
}

#[cfg(test)]
mod tests;
