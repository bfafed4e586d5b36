//! Agents that remember what they were asked before, found out by answers that count.
//!
//! Asked the same again, such an agent says the same with a greater number in it: `turn 1`, `turn 4`; or with a
//! smaller one, where it counts what is left. Nothing is asked for that alone. What an agent counts for all scopes
//! grows from the clean asking on, whichever order askings that go on at once come in; what it counts in a process for
//! each slot grows there, from one asking to the next, of whatever prompt. Numbers that its tools told it are not its
//! own.

use std::collections::{BTreeMap, BTreeSet};

use super::Tried;
use super::ask::Asked;
use crate::suite::Prompt;

/// So often a number has to be greater than before: once may be the weather.
const TELLING: usize = 2;

/// Digits of the longest number that may be a count.
const DIGITS: usize = 9;

/// More than any number of so many digits.
const OVER: u64 = 10_u64.pow(9);

/// Which way an agent counts. What counts down is looked at as what it lacks to [`OVER`], which grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

impl Way {
    /// A number as one that grows; and back.
    fn turned(self, number: u64) -> u64 {
        match self {
            Self::Up => number,
            Self::Down => OVER - number,
        }
    }
}

/// The prompt, the number that was said at first, and a later one; `None`: nothing shows that answers count. What
/// was tried is in order, the askings without chaos before all others.
pub(super) fn counts<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<Counted<'r>> {
    let tried: Vec<_> = tried.collect();
    let turns = |(job, _): &&Tried<'_>| job.prompt.turns().len() as u64;
    let most = tried.iter().copied().map(|one| turns(&one)).sum();
    let distinct = |numbers: &[u64]| {
        let (first, later) = (numbers[0], &numbers[1..]);
        let grows = |number: &u64| (1..=most).contains(&number.saturating_sub(first));
        later.iter().all(grows) && later.iter().collect::<BTreeSet<_>>().len() == later.len()
    };
    let one_by_one = |numbers: &[u64]| {
        let steps = numbers.windows(2).map(|two| two[1].saturating_sub(two[0]));
        steps.into_iter().all(|step| (1..=most).contains(&step))
    };
    let ways = [Way::Up, Way::Down];
    ways.into_iter().find_map(|way| {
        counted(&tried, way, |_| "", distinct)
            .or_else(|| counted(&tried, way, |scope| scope, one_by_one))
            .or_else(|| ordinals(&tried, way))
    })
}

/// What shows that an agent's answers count.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counted<'r> {
    pub(super) prompt: &'r Prompt,
    pub(super) before: u64,
    pub(super) after: u64,
}

/// Compares askings of one prompt that have the `place` of their scope in common. A number that does not count
/// somewhere counts nowhere.
fn counted<'r>(
    tried: &[&'r Tried<'r>],
    way: Way,
    place: impl Fn(&'r str) -> &'r str,
    counts: impl Fn(&[u64]) -> bool,
) -> Option<Counted<'r>> {
    let mut alike: BTreeMap<(&Prompt, &str), Vec<Said<'_>>> = BTreeMap::new();
    for (job, asked) in tried {
        if asked.wrong.is_none() && asked.answer.error.is_none() {
            let here = alike
                .entry((job.prompt, place(&asked.place.slot)))
                .or_default();
            here.push(Said::of(asked));
        }
    }
    let (mut times, mut found) = (0, None);
    for ((prompt, _), said) in &alike {
        let first = &said[0];
        let is_alike =
            |one: &&Said<'_>| one.words == first.words && one.numbers.len() == first.numbers.len();
        let alike: Vec<_> = said.iter().filter(is_alike).collect();
        if alike.len() < 2 || first.numbers.is_empty() {
            continue;
        }
        let at = |place: usize| {
            let numbers = alike.iter().map(|one| way.turned(one.numbers[place]));
            numbers.collect()
        };
        let is_own = |place: &usize| !alike.iter().all(|one| one.was_told(*place));
        let mut series = (0..first.numbers.len()).filter(is_own).map(at);
        let series: Vec<u64> = series.find(|numbers: &Vec<u64>| counts(numbers))?;
        times += series.len() - 1;
        found.get_or_insert(Counted {
            prompt,
            before: way.turned(series[0]),
            after: way.turned(series[1]),
        });
    }
    found.filter(|_| times >= TELLING)
}

/// An answer with its place among all that were given in its scope.
struct Numbered<'r> {
    prompt: &'r Prompt,
    /// How often anything was asked there, this asking included, and how many turns that were.
    askings: u64,
    turns: u64,
    said: Said<'r>,
}

/// Answers in the same words, whatever was asked, with a number in them that counts the askings of each scope from
/// the same beginning, without an exception.
fn ordinals<'r>(tried: &[&'r Tried<'r>], way: Way) -> Option<Counted<'r>> {
    let mut in_order = tried.to_vec();
    in_order.sort_by_key(|(_, asked)| asked.during.began);
    let mut scopes: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut alike: BTreeMap<(String, usize), Vec<Numbered<'_>>> = BTreeMap::new();
    for (job, asked) in in_order {
        let (askings, turns) = scopes.entry(&asked.place.slot).or_default();
        *askings += 1;
        *turns += job.prompt.turns().len() as u64;
        if asked.wrong.is_none() && asked.answer.error.is_none() {
            let said = Said::of(asked);
            let form = (said.words.clone(), said.numbers.len());
            alike.entry(form).or_default().push(Numbered {
                prompt: job.prompt,
                askings: *askings,
                turns: *turns,
                said,
            });
        }
    }
    alike.iter().find_map(|((_, numbers), said)| {
        let is_own = |place: &usize| !said.iter().all(|one| one.said.was_told(*place));
        let mut places = (0..*numbers).filter(is_own);
        places.find_map(|place| ordinal(said, place, way))
    })
}

/// The first prompt that was answered with two numbers, if all numbers at a place are ordinals.
fn ordinal<'r>(said: &[Numbered<'r>], place: usize, way: Way) -> Option<Counted<'r>> {
    let number = |one: &Numbered<'_>| way.turned(one.said.numbers[place]);
    let is_counted_by = |count: fn(&Numbered<'_>) -> u64| {
        let from: BTreeSet<_> = said
            .iter()
            .map(|one| number(one).checked_sub(count(one)))
            .collect();
        from.len() == 1 && !from.contains(&None)
    };
    if !is_counted_by(|one| one.askings) && !is_counted_by(|one| one.turns) {
        return None;
    }
    let mut first: BTreeMap<&Prompt, u64> = BTreeMap::new();
    let (mut again, mut found) = (0, None);
    for one in said {
        let before = *first.entry(one.prompt).or_insert_with(|| number(one));
        again += usize::from(before != number(one));
        if before < number(one) {
            found.get_or_insert(Counted {
                prompt: one.prompt,
                before: way.turned(before),
                after: way.turned(number(one)),
            });
        }
    }
    found.filter(|_| again >= TELLING)
}

/// An answer, its numbers apart from the rest.
struct Said<'r> {
    words: String,
    numbers: Vec<u64>,
    asked: &'r Asked,
}

impl<'r> Said<'r> {
    /// Whether a number of it stands in what a tool answered: it is not the agent's.
    fn was_told(&self, place: usize) -> bool {
        let number = self.numbers[place].to_string();
        let mut texts = self.asked.trace.answers_of_tools();
        texts.any(|text| {
            let mut told = text.split(|letter: char| !letter.is_ascii_digit());
            told.any(|told| told == number)
        })
    }

    /// Parts of dates, times and fractions are no numbers of their own.
    fn of(asked: &'r Asked) -> Self {
        let text = asked.answer.text.as_str();
        let is_of_number = |letter: char| letter.is_ascii_digit() || ".,:/-".contains(letter);
        let (mut words, mut numbers) = (String::new(), Vec::new());
        let mut rest = text;
        while let Some(from) = rest.find(|letter: char| letter.is_ascii_digit()) {
            let from_here = &rest[from..];
            let to = from_here.find(|letter| !is_of_number(letter));
            let written = from_here[..to.unwrap_or(from_here.len())]
                .trim_end_matches(|letter: char| !letter.is_ascii_digit());
            words.push_str(&rest[..from]);
            match written.parse() {
                Ok(number) if written.len() <= DIGITS => {
                    words.push('0');
                    numbers.push(number);
                }
                Ok(_) | Err(_) => words.push_str(written),
            }
            rest = &from_here[written.len()..];
        }
        words.push_str(rest);
        Self {
            words,
            numbers,
            asked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Job;
    use super::*;
    use crate::agents::Place;
    use crate::answer::Answer;
    use crate::trace::testing::{Sent, trace};

    /// Answers to two prompts, each with its slot, in order.
    fn counts_in(said: &[(&str, &str, &str)]) -> bool {
        counts_with(said, "")
    }

    /// The same, where tools say this.
    fn counts_with(said: &[(&str, &str, &str)], told: &str) -> bool {
        let prompts = ["Oslo?", "Rome?"].map(Prompt::single);
        let tried: Vec<Tried<'_>> = said
            .iter()
            .map(|(prompt, scope, text)| {
                let asked = Asked {
                    answer: Answer::of(*text),
                    place: Place::shared(scope),
                    trace: trace(&[Sent::get("https://tool.test/").answer_body(told)]),
                    ..Asked::default()
                };
                (
                    Job::clean(0, &prompts[usize::from(*prompt == "Rome?")]),
                    asked.into(),
                )
            })
            .collect();
        counts(tried.iter()).is_some()
    }

    #[test]
    fn g26_answers_that_count_are_told_from_answers_with_numbers() {
        let of_oslo = |answers: &[&'static str]| {
            let said = answers.iter().map(|answer| ("Oslo?", "s-1", *answer));
            said.collect::<Vec<_>>()
        };
        for (said, expected) in [
            (of_oslo(&["n=1", "n=3", "n=2"]), true),
            (
                of_oslo(&["turn 8, sunny.", "turn 9, sunny.", "turn 12, sunny."]),
                true,
            ),
            (of_oslo(&["n=1", "n=2"]), false),
            (of_oslo(&["n=1", "n=2", "n=2"]), false),
            (of_oslo(&["n=3", "n=2", "n=1"]), true),
            (
                of_oslo(&["5 calls left", "3 calls left", "4 calls left"]),
                true,
            ),
            (of_oslo(&["n=2", "n=1", "n=3"]), false),
            (of_oslo(&["n=2", "n=1", "n=1"]), false),
            (
                of_oslo(&["It is 900 degrees", "It is 4 degrees", "It is 2 degrees"]),
                false,
            ),
            (
                of_oslo(&["It is 21 degrees", "It is 23 degrees", "It is 4711 degrees"]),
                false,
            ),
            (
                of_oslo(&["at 10:31:07", "at 10:31:08", "at 10:31:09"]),
                false,
            ),
            (
                of_oslo(&["It is sunny", "It is sunny", "It is sunny"]),
                false,
            ),
            (of_oslo(&["n=1", "The tool is down (503)", "m=7"]), false),
            (
                vec![
                    ("Oslo?", "s-1", "n=1"),
                    ("Rome?", "s-1", "n=2"),
                    ("Oslo?", "s-1", "n=3"),
                    ("Rome?", "s-1", "n=4"),
                ],
                true,
            ),
            // A process for each slot.
            (
                vec![
                    ("Oslo?", "s-1", "n=1"),
                    ("Oslo?", "s-2", "n=1"),
                    ("Oslo?", "s-1", "n=2"),
                    ("Oslo?", "s-2", "n=2"),
                ],
                true,
            ),
            // One prompt's number stays what it was.
            (
                vec![
                    ("Oslo?", "s-1", "7 degrees"),
                    ("Oslo?", "s-1", "8 degrees"),
                    ("Oslo?", "s-1", "9 degrees"),
                    ("Rome?", "s-1", "20 degrees"),
                    ("Rome?", "s-1", "20 degrees"),
                ],
                false,
            ),
        ] {
            assert_eq!(counts_in(&said), expected, "{said:?}");
        }
    }

    #[test]
    fn what_a_process_for_each_slot_counts_is_told_whatever_was_asked() {
        let askings = |numbers: [u64; 6], template: &str| {
            let prompts = ["Oslo?", "Rome?"].into_iter().cycle();
            let scopes = ["s-1", "s-1", "s-1", "s-2", "s-2", "s-3"];
            let texts = numbers.map(|number| template.replace('#', &number.to_string()));
            let said: Vec<_> = prompts.zip(scopes).zip(texts).collect();
            let said: Vec<_> = said
                .iter()
                .map(|((prompt, scope), text)| (*prompt, *scope, text.as_str()))
                .collect();
            counts_in(&said)
        };
        for (numbers, expected) in [
            ([1, 2, 3, 1, 2, 1], true),
            ([7, 8, 9, 7, 8, 7], true),
            ([9, 8, 7, 9, 8, 9], true),
            ([9, 8, 7, 9, 8, 8], false),
            // What is always the same of one prompt, and prices.
            ([12, 15, 12, 15, 12, 15], false),
            ([1, 2, 1, 2, 1, 2], false),
            ([1, 2, 3, 1, 2, 2], false),
            ([412, 305, 399, 311, 415, 308], false),
        ] {
            for template in ["turn #", "call # of today, sunny"] {
                assert_eq!(askings(numbers, template), expected, "{numbers:?}");
            }
        }
    }

    #[test]
    fn an_asking_of_more_turns_may_add_as_much() {
        let conversation = |turns: usize| {
            let turns = (0..turns).map(|turn| turn.to_string()).collect();
            Prompt::conversation(turns).expect("turns")
        };
        let up = ["turn 4", "turn 8", "turn 12"];
        let down = ["12 turns left", "8 turns left", "4 turns left"];
        for (said, turns, expected) in [
            (up, 1, false),
            (up, 4, true),
            (down, 1, false),
            (down, 4, true),
        ] {
            let prompt = conversation(turns);
            let tried = said.map(|text| {
                let asked = Asked {
                    answer: Answer::of(text),
                    place: Place::shared("s-1"),
                    ..Asked::default()
                };
                (Job::clean(0, &prompt), asked.into())
            });
            assert_eq!(counts(tried.iter()).is_some(), expected, "{turns} turns");
        }
    }

    #[test]
    fn what_was_said_is_told_as_it_was() {
        let prompt = Prompt::single("Oslo?");
        let tried = ["9 left", "8 left", "7 left"].map(|text| {
            let asked = Asked {
                answer: Answer::of(text),
                ..Asked::default()
            };
            (Job::clean(0, &prompt), asked.into())
        });
        let found = counts(tried.iter()).expect("it counts");
        assert_eq!((found.before, found.after), (9, 8));
    }

    #[test]
    fn numbers_that_tools_tell_are_not_the_agents() {
        let orders = [1001, 1002, 1003].map(|order| format!("Your order is {order}."));
        let said = orders
            .each_ref()
            .map(|order| ("Oslo?", "s-1", order.as_str()));
        assert!(counts_in(&said));
        assert!(!counts_with(&said, "{\"orders\": [1001, 1002, 1003]}"));
    }
}
