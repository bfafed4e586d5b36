use proptest::prelude::*;

use super::super::jobs::Job;
use super::*;
use crate::answer::Answer;
use crate::trace::testing::{Sent, trace};

/// Each prompt with what was answered, one after the other, and what a tool said to that.
fn recalls_in(said: &[(&str, &str, &str)]) -> bool {
    let prompts: Vec<_> = said
        .iter()
        .map(|(prompt, ..)| Prompt::single(*prompt))
        .collect();
    let tried = said.iter().zip(&prompts).zip(0..);
    let tried: Vec<Tried<'_>> = tried
        .map(|(((_, answer, told), prompt), place)| {
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
    recalls(tried.iter()).is_some()
}

const OSLO: &str = "What is the weather in Oslo?";
const ROME: &str = "Book a flight to Rome.";
const PARIS: &str = "Find me a hotel in Paris.";

/// What is said, each prompt with its answer, and what that is.
type Case = (&'static str, Vec<(&'static str, &'static str)>);

fn check(cases: Vec<Case>, expected: bool) {
    for (what, said) in cases {
        let told = |(prompt, answer)| (prompt, answer, "");
        let said: Vec<_> = said.into_iter().map(told).collect();
        assert_eq!(recalls_in(&said), expected, "{what}");
    }
}

#[test]
fn g26_answers_that_recall_other_prompts_are_found() {
    let cases = vec![
        (
            "a list of all that was asked",
            vec![
                ("a", "I remember: a"),
                ("b", "I remember: a, b"),
                ("c", "I remember: a, b, c"),
                ("a", "I remember: a, b, c, a"),
            ],
        ),
        (
            "what was asked before, by name",
            vec![
                (OSLO, "It is sunny in Oslo."),
                (ROME, "Booked to Rome. How was Oslo?"),
                (PARIS, "Here is a hotel in Paris. Rome was before that."),
            ],
        ),
        (
            "what was asked before, in its words",
            vec![
                ("say hello", "hello"),
                ("say goodbye", "goodbye (before: say hello)"),
                ("be quiet", "(before: say goodbye)"),
            ],
        ),
        (
            "keywords, more of them each time",
            vec![
                (OSLO, "Sunny. Topics so far: weather"),
                (ROME, "Booked. Topics so far: weather, flight"),
                (PARIS, "Found. Topics so far: weather, flight, hotel"),
                (OSLO, "Sunny. Topics so far: weather, flight, hotel"),
            ],
        ),
    ];
    check(cases, true);
}

#[test]
fn g26_answers_that_have_their_words_from_elsewhere_recall_nothing() {
    let cases = vec![
        (
            "its own prompt",
            vec![
                (OSLO, OSLO),
                (ROME, ROME),
                (PARIS, PARIS),
                (OSLO, OSLO),
                (ROME, ROME),
            ],
        ),
        (
            "whatever it can do, always",
            vec![
                (OSLO, "Sunny. I also do flight, hotel, Rome, Paris."),
                (ROME, "Booked. I also do weather, hotel, Oslo, Paris."),
                (PARIS, "Found. I also do weather, flight, Oslo, Rome."),
                (OSLO, "Sunny. I also do flight, hotel, Rome, Paris."),
            ],
        ),
        (
            "what it can do, when a tool is down",
            vec![
                (OSLO, "It is sunny."),
                (ROME, "It is booked."),
                (PARIS, "It is found."),
                (OSLO, "The tool is down; ask for a flight or a hotel."),
                (ROME, "The tool is down; ask for weather or a hotel."),
            ],
        ),
        (
            "what else it can do, in the last answer",
            vec![
                (OSLO, "It is sunny."),
                (ROME, "It is booked."),
                (
                    PARIS,
                    "It is found. Would you like a flight, or the weather?",
                ),
                (OSLO, "It is sunny."),
                (
                    PARIS,
                    "It is found. Would you like a flight, or the weather?",
                ),
            ],
        ),
        (
            "one name by chance",
            vec![
                (OSLO, "It is sunny in Oslo."),
                (ROME, "Booked to Rome, by way of Oslo."),
                (PARIS, "Hotels in Paris: Oslo Inn."),
                (OSLO, "It is sunny in Oslo."),
            ],
        ),
        (
            "prices and dates that differ",
            vec![
                (OSLO, "It is 21 degrees on 2026-11-22."),
                (ROME, "Order 1001: 400 EUR."),
                (OSLO, "It is 22 degrees on 2026-11-23."),
                (ROME, "Order 1002: 420 EUR."),
            ],
        ),
        (
            "one prompt",
            vec![(OSLO, "Sunny."), (OSLO, "Sunny in Oslo.")],
        ),
    ];
    check(cases, false);
}

#[test]
fn what_tools_say_is_not_recalled() {
    let told = "Popular: Oslo, Rome, Paris";
    let answers = [
        (OSLO, "It is sunny in Oslo."),
        (ROME, "Booked to Rome. Popular, too: Oslo"),
        (PARIS, "Found in Paris. Popular, too: Oslo, Rome"),
    ];
    for (told, expected) in [(told, false), ("", true)] {
        let said = answers.map(|(prompt, answer)| (prompt, answer, told));
        assert_eq!(recalls_in(&said), expected, "{told}");
    }
}

const WORDS: [&str; 8] = [
    "Oslo", "Rome", "weather", "flight", "to", "a", "Anna", "tomorrow",
];

fn any_text() -> impl Strategy<Value = String> {
    let words = prop::collection::vec(prop::sample::select(&WORDS[..]), 1..5);
    words.prop_map(|words| words.join(" "))
}

proptest! {
    /// Who says its own prompt again and what it always says recalls nothing, however often and in which order it
    /// is asked.
    #[test]
    fn an_answer_that_hangs_on_its_prompt_alone_recalls_nothing(
        prompts in prop::collection::vec(any_text(), 1..5),
        order in prop::collection::vec(0_usize..5, 1..12),
        always in any_text(),
    ) {
        let asked: Vec<_> = order.iter().map(|place| &prompts[place % prompts.len()]).collect();
        let answers: Vec<_> = asked.iter().map(|prompt| format!("{prompt}: {always}")).collect();
        let said: Vec<_> = asked
            .iter()
            .zip(&answers)
            .map(|(prompt, answer)| (prompt.as_str(), answer.as_str(), ""))
            .collect();
        prop_assert!(!recalls_in(&said));
    }
}
