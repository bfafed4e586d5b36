//! Agents that remember what they were asked before, found out by answers that count.
//!
//! Asked the same again, such an agent says the same with a greater number in it: `turn 1`, `turn 4`. Nothing is
//! asked for that alone. What an agent counts for all scopes grows from the clean asking on; what it counts in a
//! process for each slot grows there, from one asking to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::Tried;
use crate::suite::Prompt;

/// So often a number has to be greater than before: once may be the weather.
const TELLING: usize = 2;

/// Digits of the longest number that may be a count.
const DIGITS: usize = 9;

/// The prompt, the number that was said at first, and a later one; `None`: nothing shows that answers count. What
/// was tried is in order, the askings without chaos before all others.
pub(super) fn counts<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<Counted<'r>> {
    let tried: Vec<_> = tried.collect();
    let most = tried.len() as u64;
    let distinct = |numbers: &[u64]| {
        let (first, later) = (numbers[0], &numbers[1..]);
        let grows = |number: &u64| (1..=most).contains(&number.saturating_sub(first));
        later.iter().all(grows) && later.iter().collect::<BTreeSet<_>>().len() == later.len()
    };
    let one_by_one = |numbers: &[u64]| {
        let steps = numbers.windows(2).map(|two| two[1].saturating_sub(two[0]));
        steps.into_iter().all(|step| (1..=most).contains(&step))
    };
    counted(&tried, |_| "", distinct).or_else(|| counted(&tried, |scope| scope, one_by_one))
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
    place: impl Fn(&'r str) -> &'r str,
    counts: impl Fn(&[u64]) -> bool,
) -> Option<Counted<'r>> {
    let mut alike: BTreeMap<(&Prompt, &str), Vec<Said>> = BTreeMap::new();
    for (job, asked) in tried {
        if asked.wrong.is_none() && asked.answer.error.is_none() {
            let here = alike.entry((job.prompt, place(&asked.scope))).or_default();
            here.push(Said::of(&asked.answer.text));
        }
    }
    let (mut times, mut found) = (0, None);
    for ((prompt, _), said) in &alike {
        let first = &said[0];
        let is_alike =
            |one: &&Said| one.words == first.words && one.numbers.len() == first.numbers.len();
        let alike: Vec<_> = said.iter().filter(is_alike).collect();
        if alike.len() < 2 || first.numbers.is_empty() {
            continue;
        }
        let at = |place: usize| alike.iter().map(|one| one.numbers[place]).collect();
        let mut series = (0..first.numbers.len()).map(at);
        let series: Vec<u64> = series.find(|numbers: &Vec<u64>| counts(numbers))?;
        times += series.len() - 1;
        found.get_or_insert(Counted {
            prompt,
            before: series[0],
            after: series[1],
        });
    }
    found.filter(|_| times >= TELLING)
}

/// An answer, its numbers apart from the rest.
struct Said {
    words: String,
    numbers: Vec<u64>,
}

impl Said {
    /// Parts of dates, times and fractions are no numbers of their own.
    fn of(text: &str) -> Self {
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
        Self { words, numbers }
    }
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Job;
    use super::*;
    use crate::answer::Answer;
    use crate::runner::Asked;

    /// Answers to two prompts, each with its slot, in order.
    fn counts_in(said: &[(&str, &str, &str)]) -> bool {
        let prompts = ["Oslo?", "Rome?"].map(Prompt::single);
        let tried: Vec<Tried<'_>> = said
            .iter()
            .map(|(prompt, scope, text)| {
                let asked = Asked {
                    answer: Answer::of(*text),
                    scope: (*scope).to_owned(),
                    ..Asked::default()
                };
                (
                    Job::clean(0, &prompts[usize::from(*prompt == "Rome?")]),
                    asked,
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
            (of_oslo(&["n=3", "n=2", "n=1"]), false),
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
}
