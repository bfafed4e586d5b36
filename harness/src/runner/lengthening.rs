//! Agents that remember what they were asked before, found out by answers that grow: asked the same again, such an
//! agent says all that it said, in its order, and more behind it.
//!
//! An answer that a fault has cut is shorter than the clean one, and counts nowhere. One exception shows that the
//! answers of a prompt differ for another reason.

use std::collections::BTreeMap;

use super::Tried;
use super::recalling::words;
use crate::suite::Prompt;

/// So often an answer has to grow.
const TELLING: usize = 2;

/// A prompt whose answers grow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lengthened<'r> {
    pub(super) prompt: &'r Prompt,
    /// How many words were said at first, and at last.
    pub(super) before: usize,
    pub(super) after: usize,
}

/// The first prompt of which every answer goes on where the one before it ended; `None`: there is none. What was
/// tried is in order, the askings without chaos before all others.
pub(super) fn lengthens<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<Lengthened<'r>> {
    let mut askings: Vec<_> = tried.collect();
    askings.sort_by_key(|(_, asked)| asked.during.began);
    let mut clean: BTreeMap<&Prompt, usize> = BTreeMap::new();
    let mut answers: BTreeMap<(&Prompt, &str), Vec<Vec<String>>> = BTreeMap::new();
    for (job, asked) in askings {
        if asked.wrong.is_none() && asked.answer.error.is_none() {
            let said: Vec<_> = words(&asked.answer.text).collect();
            clean.entry(job.prompt).or_insert(said.len());
            let here = answers.entry((job.prompt, &asked.place.slot)).or_default();
            here.push(said);
        }
    }
    answers.into_iter().find_map(|((prompt, _), said)| {
        let first = said.first()?.len();
        let (last, grown) = (said.last()?.len(), said.len() - 1);
        let goes_on = |two: &[Vec<String>]| {
            two[1].len() > two[0].len() && two[1].starts_with(&two[0]) && !two[0].is_empty()
        };
        let is_more = clean.get(prompt).is_some_and(|clean| last > *clean);
        let is_growing = grown >= TELLING && said.windows(2).all(goes_on);
        (is_growing && is_more).then_some(Lengthened {
            prompt,
            before: first,
            after: last,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Job;
    use super::*;
    use crate::agents::Place;
    use crate::answer::Answer;
    use crate::runner::Asked;
    use crate::runner::ask::During;

    fn lengthens_in(said: &[(&str, &str, &str)]) -> bool {
        let prompts: Vec<_> = said
            .iter()
            .map(|(prompt, ..)| Prompt::single(*prompt))
            .collect();
        let tried: Vec<Tried<'_>> = said
            .iter()
            .zip(&prompts)
            .zip(0..)
            .map(|(((_, scope, answer), prompt), place)| {
                let asked = Asked {
                    answer: Answer::of(*answer),
                    place: Place::shared(scope),
                    during: During {
                        began: 2 * place,
                        ended: 2 * place + 1,
                    },
                    ..Asked::default()
                };
                (Job::clean(0, prompt), asked.into())
            })
            .collect();
        lengthens(tried.iter()).is_some()
    }

    #[test]
    fn g26_a_cart_that_fills_up_is_found() {
        const BLUE: &str = "Put the blue jacket into my cart.";
        const RED: &str = "Put the red scarf into my cart.";
        let mut cart = Vec::new();
        let mut said = Vec::new();
        for (prompt, item) in [(BLUE, "blue jacket"), (RED, "red scarf")].repeat(3) {
            cart.push(item);
            said.push((prompt, format!("Your cart now holds: {}.", cart.join(", "))));
        }
        let said: Vec<_> = said
            .iter()
            .map(|(prompt, answer)| (*prompt, "s-1", answer.as_str()))
            .collect();
        assert!(lengthens_in(&said));
        assert!(!lengthens_in(&said[..4]), "twice in all is too little");
    }

    #[test]
    fn g26_answers_that_differ_for_another_reason_do_not_grow() {
        for (what, said) in [
            (
                "it is always the same",
                ["It rains", "It rains", "It rains"],
            ),
            (
                "faults cut it",
                ["It rains in Kiel today", "It", "It rains"],
            ),
            ("and then let it be", ["It rains", "It", "It rains"]),
            (
                "a fault is told of",
                ["It rains", "It rains; no wind data", "It rains"],
            ),
            (
                "it is another answer",
                ["It rains", "There is rain", "It rains in Kiel"],
            ),
        ] {
            let said = said.map(|answer| ("Weather?", "s-1", answer));
            assert!(!lengthens_in(&said), "{what}");
        }
        // Cut less and less where a process has not been asked without chaos.
        let said = [
            ("Weather?", "s-1", "It rains in Kiel"),
            ("Weather?", "s-2", "It"),
            ("Weather?", "s-2", "It rains"),
            ("Weather?", "s-2", "It rains in Kiel"),
        ];
        assert!(!lengthens_in(&said));
    }
}
