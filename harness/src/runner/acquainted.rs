//! Agents that remember what they were asked before, found out by what they say to whoever asks: that they know
//! each other. Either in so many words ("as I told you before"), or by a name that another prompt has introduced
//! itself with.
//!
//! Words that stand in the prompt, in what a tool has answered, or in any answer to a first asking are no sign of
//! it, and once may be chance.

use std::collections::{BTreeMap, BTreeSet};

use super::Tried;
use super::ask::Asked;
use super::recalling::words;
use crate::suite::Prompt;

/// So often it has to show.
const TELLING: usize = 2;

/// What is said only to somebody who was there before, each between spaces.
const KNOWN: [&str; 34] = [
    "as i told you",
    "as i said before",
    "as i already said",
    "as i have told you",
    "i told you before",
    "i told you already",
    "already told you",
    "told you that before",
    "you asked that already",
    "you asked this already",
    "you asked me that already",
    "you asked that before",
    "you asked this before",
    "you asked me that before",
    "you already asked",
    "you have already asked",
    "you ve already asked",
    "you have asked that before",
    "you have asked me that before",
    "i already answered that",
    "i have already answered",
    "i ve already answered",
    "i do not repeat myself",
    "i don t repeat myself",
    "last time you asked",
    "our last conversation",
    "our previous conversation",
    "welcome back",
    "hello again",
    "good to see you again",
    "nice to see you again",
    "wie ich schon sagte",
    "das haben sie schon gefragt",
    "das hast du schon gefragt",
];

/// What a prompt introduces whoever asks with, each between spaces.
const INTRODUCTIONS: [&str; 8] = [
    "my name is",
    "call me",
    "my name s",
    "ich heiße",
    "mein name ist",
    "je m appelle",
    "me llamo",
    "mi chiamo",
];

/// Words that show that an agent knows whoever asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Acquainted<'r> {
    pub(super) prompt: &'r Prompt,
    pub(super) said: String,
    /// The prompt that has told the name; `None`: it is said in so many words.
    pub(super) from: Option<&'r Prompt>,
}

/// What shows that an agent knows whoever asks; `None`: nothing does.
pub(super) fn knows<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<Acquainted<'r>> {
    let mut askings: Vec<_> = tried
        .filter(|(_, asked)| asked.wrong.is_none() && asked.answer.error.is_none())
        .map(|(job, asked)| Asking::of(job.prompt, asked))
        .collect();
    askings.sort_by_key(|asking| asking.asked.during.began);
    says_so(&askings).or_else(|| names(&askings))
}

struct Asking<'r> {
    prompt: &'r Prompt,
    asked: &'r Asked,
    /// Its words, a space around each.
    line: String,
    answer: String,
}

impl<'r> Asking<'r> {
    fn of(prompt: &'r Prompt, asked: &'r Asked) -> Self {
        Self {
            prompt,
            asked,
            line: line(&prompt.text()),
            answer: line(&asked.answer.text),
        }
    }

    /// Whether it says something that neither its prompt nor a tool does.
    fn says(&self, said: &str) -> bool {
        let within = format!(" {said} ");
        let mut tools = self.asked.trace.answers_of_tools();
        self.answer.contains(&within)
            && !self.line.contains(&within)
            && !tools.any(|told| line(&told).contains(&within))
    }
}

fn line(text: &str) -> String {
    let words: Vec<_> = words(text).collect();
    format!(" {} ", words.join(" "))
}

/// The first that says so in so many words, and did not when it was asked the same for the first time.
fn says_so<'r>(askings: &[Asking<'r>]) -> Option<Acquainted<'r>> {
    let (mut asked, mut always) = (BTreeSet::new(), BTreeSet::new());
    let (mut found, mut times) = (None, 0);
    for asking in askings {
        let is_first = asked.insert(asking.prompt);
        let said = KNOWN.iter().find(|said| asking.says(said));
        match said {
            // That is how it speaks to anybody who asks that.
            Some(_) if is_first => {
                always.insert(asking.prompt);
            }
            Some(said) if asking.prompt.turns().len() == 1 && !always.contains(asking.prompt) => {
                times += 1;
                found.get_or_insert(Acquainted {
                    prompt: asking.prompt,
                    said: (*said).to_owned(),
                    from: None,
                });
            }
            Some(_) | None => {}
        }
    }
    found.filter(|_| times >= TELLING)
}

/// The first that names somebody whom another prompt has introduced, and before that nobody named.
fn names<'r>(askings: &[Asking<'r>]) -> Option<Acquainted<'r>> {
    let mut introduced: BTreeMap<&Prompt, (u64, String)> = BTreeMap::new();
    for asking in askings {
        if let Some(name) = introduction(&asking.prompt.text()) {
            let began = asking.asked.during.began;
            introduced.entry(asking.prompt).or_insert((began, name));
        }
    }
    introduced.into_iter().find_map(|(from, (since, name))| {
        let others = askings.iter().filter(|one| one.prompt != from);
        let (before, after): (Vec<_>, Vec<_>) =
            others.partition(|one| one.asked.during.began < since);
        if before.iter().any(|one| one.says(&name)) {
            return None;
        }
        let mut naming = after.into_iter().filter(|one| one.says(&name));
        let first = naming.next()?;
        (1 + naming.count() >= TELLING).then_some(Acquainted {
            prompt: first.prompt,
            said: name,
            from: Some(from),
        })
    })
}

/// The name that whoever asks gives, as words: those with a capital behind an introduction.
fn introduction(text: &str) -> Option<String> {
    let words: Vec<&str> = text
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    let lower: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    INTRODUCTIONS.iter().find_map(|introduction| {
        let length = introduction.split(' ').count();
        let place = lower
            .windows(length)
            .position(|window| window.join(" ") == *introduction)?;
        let behind = words[place + length..].iter().zip(&lower[place + length..]);
        let name: Vec<_> = behind
            .take_while(|(word, _)| word.starts_with(char::is_uppercase))
            .map(|(_, lower)| lower.as_str())
            .take(3)
            .collect();
        (!name.is_empty()).then(|| name.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Job;
    use super::*;
    use crate::answer::Answer;
    use crate::runner::ask::During;
    use crate::trace::testing::{Sent, trace};

    /// Each prompt with what was answered, one after the other, while a tool said this.
    fn knows_in(said: &[(&str, &str)], told: &str) -> bool {
        let prompts: Vec<_> = said
            .iter()
            .map(|(prompt, _)| Prompt::single(*prompt))
            .collect();
        let tried: Vec<Tried<'_>> = said
            .iter()
            .zip(&prompts)
            .zip(0..)
            .map(|(((_, answer), prompt), place)| {
                let asked = Asked {
                    answer: Answer::of(*answer),
                    during: During {
                        began: 2 * place,
                        ended: 2 * place + 1,
                    },
                    trace: trace(&[Sent::get("https://tool.test/").answer_body(told)]),
                    ..Asked::default()
                };
                (Job::clean(0, prompt), asked.into())
            })
            .collect();
        knows(tried.iter()).is_some()
    }

    const KIEL: &str = "What is the weather in Kiel?";
    const PARIS: &str = "What is the weather in Paris?";
    const ANNA: &str = "My name is Anna Petersen.";

    #[test]
    fn g26_who_says_that_it_knows_whoever_asks_is_found() {
        for said in [
            vec![
                (KIEL, "It rains in Kiel."),
                (PARIS, "The sun shines in Paris."),
                (KIEL, "As I told you before, it rains in Kiel."),
                (PARIS, "As I told you before, the sun shines in Paris."),
            ],
            vec![
                (KIEL, "It rains."),
                (KIEL, "It rains."),
                (KIEL, "You asked that already; I do not repeat myself."),
                (KIEL, "You asked that already; I do not repeat myself."),
            ],
            vec![
                (ANNA, "Nice to meet you."),
                (KIEL, "Hello Anna Petersen, it rains."),
                (ANNA, "Nice to meet you."),
                (KIEL, "Hello Anna Petersen, it rains."),
            ],
        ] {
            assert!(knows_in(&said, ""), "{said:?}");
        }
    }

    #[test]
    fn g26_what_is_said_to_anybody_or_has_been_told_shows_nothing() {
        for (what, said, told) in [
            (
                "to anybody",
                vec![
                    (KIEL, "Welcome back! It rains."),
                    (KIEL, "Welcome back! It rains."),
                    (KIEL, "Welcome back! It rains."),
                ],
                "",
            ),
            (
                "once",
                vec![(KIEL, "It rains."), (KIEL, "As I told you, it rains.")],
                "",
            ),
            (
                "a tool says so",
                vec![
                    (KIEL, "It rains."),
                    (KIEL, "Welcome back."),
                    (KIEL, "Welcome back."),
                ],
                "{\"greeting\": \"Welcome back.\"}",
            ),
            (
                "the prompt's own name",
                vec![
                    (ANNA, "Hello Anna Petersen."),
                    (ANNA, "Hello Anna Petersen."),
                    (KIEL, "It rains."),
                ],
                "",
            ),
            (
                "a tool's name",
                vec![
                    (ANNA, "Hello."),
                    (KIEL, "Anna Petersen reports rain."),
                    (KIEL, "Anna Petersen reports rain."),
                ],
                "{\"reporter\": \"Anna Petersen\"}",
            ),
            (
                "named before it was told",
                vec![
                    (KIEL, "Ask Anna Petersen."),
                    (ANNA, "Hello."),
                    (KIEL, "Ask Anna Petersen."),
                    (KIEL, "Ask Anna Petersen."),
                ],
                "",
            ),
        ] {
            assert!(!knows_in(&said, told), "{what}");
        }
    }

    #[test]
    fn a_name_is_what_stands_behind_an_introduction() {
        for (text, name) in [
            (ANNA, Some("anna petersen")),
            ("Hi! Call me Bo, and book a table", Some("bo")),
            ("Ich heiße Jörg Müller und suche", Some("jörg müller")),
            ("my name is on the list", None),
            ("What is the weather in New York?", None),
        ] {
            assert_eq!(introduction(text).as_deref(), name, "{text}");
        }
    }
}
