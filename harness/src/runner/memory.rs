//! Agents that remember what they were asked before, found out by what they tell their models.
//!
//! The first request to a model in an asking begins a conversation. Where it tells the model what the model
//! said in another asking, the agent has kept that, and no asking stands for itself.

use std::collections::HashMap;

use super::{Tried, acquainted, counting, lengthening, recalling};
use crate::suite::Prompt;

/// Shortest text of a model's that tells askings apart, characters.
const TELLING: usize = 4;

/// A sentence about an agent that remembers; `None`: nothing shows that it does.
pub(super) fn remembers<'r>(tried: impl Iterator<Item = &'r Tried<'r>> + Clone) -> Option<String> {
    let mut said: HashMap<String, usize> = HashMap::new();
    for (place, (_, asked)) in tried.clone().enumerate() {
        for turn in asked.trace.turns() {
            if turn.said.trim().chars().count() >= TELLING {
                said.entry(turn.said).or_insert(place);
            }
        }
    }
    for (place, (job, asked)) in tried.enumerate() {
        let turns = asked.trace.turns();
        let history = turns.first().and_then(|turn| turn.history.as_ref());
        let of_another = |text: &String| said.get(text).is_some_and(|by| *by != place);
        if history.is_some_and(|history| history.iter().any(of_another)) {
            return Some(told(
                job.prompt,
                "it began by telling its model what the model had said in another asking",
            ));
        }
    }
    None
}

/// The same of an agent whose answers count, recall what they were not asked, grow, or say that it knows whoever
/// asks.
pub(super) fn shows_in_answers<'r>(
    tried: impl Iterator<Item = &'r Tried<'r>> + Clone,
) -> Option<String> {
    counts(tried.clone())
        .or_else(|| recalls(tried.clone()))
        .or_else(|| lengthens(tried.clone()))
        .or_else(|| knows(tried))
}

fn counts<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let found = counting::counts(tried)?;
    let how = format!(
        "it said {}, and asked the same again {} in the same words; it counts",
        found.before, found.after
    );
    Some(told(found.prompt, &how))
}

fn recalls<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let found = recalling::recalls(tried)?;
    Some(told(found.prompt, &of_another(&found.word, found.of)))
}

fn lengthens<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let found = lengthening::lengthens(tried)?;
    let how = format!(
        "it went on each time where its answer had ended before, from {} words to {}",
        found.before, found.after
    );
    Some(told(found.prompt, &how))
}

fn knows<'r>(tried: impl Iterator<Item = &'r Tried<'r>>) -> Option<String> {
    let found = acquainted::knows(tried)?;
    let how = match found.from {
        Some(from) => of_another(&found.said, from),
        None => format!(
            "it said `{}`, and nothing of that when it was asked first",
            found.said
        ),
    };
    Some(told(found.prompt, &how))
}

fn of_another(word: &str, prompt: &Prompt) -> String {
    format!(
        "it said `{word}`, which stands in another prompt that it was asked before: `{}`",
        shown(prompt)
    )
}

fn shown(prompt: &Prompt) -> String {
    prompt.beginning()
}

fn told(prompt: &Prompt, how: &str) -> String {
    let prompt = shown(prompt);
    format!(
        "the agent remembers: asked `{prompt}`, {how}. Without `agent.reset_endpoint`, `reset_function` or \
         `reset_command` no asking stands for itself"
    )
}

#[cfg(test)]
mod tests {
    use super::super::jobs::Job;
    use super::*;
    use crate::runner::Asked;
    use crate::trace::testing::{Sent, trace};

    fn call(messages: &str, said: &str) -> Sent {
        let answer = serde_json::json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": said } }] });
        let sent = Sent::model(messages).answer_header("content-type", "application/json");
        sent.answer_body(&answer.to_string())
    }

    #[test]
    fn g26_what_another_asking_was_told_shows_and_what_an_agent_always_says_does_not() {
        let example = r#"{"role": "assistant", "content": "An example."}"#;
        for (second, expected) in [
            (r#"[{"role": "user", "content": "Rome?"}]"#.to_owned(), false),
            (format!(r#"[{example}, {{"role": "user", "content": "Rome?"}}]"#), false),
            (
                r#"[{"role": "user", "content": "Paris?"}, {"role": "assistant", "content": "It is sunny."},
                    {"role": "user", "content": "Rome?"}]"#
                    .to_owned(),
                true,
            ),
        ] {
            let prompts = ["Paris?", "Rome?"].map(Prompt::single);
            let first = format!(r#"[{example}, {{"role": "user", "content": "Paris?"}}]"#);
            let traces = [
                trace(&[call(&first, "It is sunny.")]),
                trace(&[call(&second, "It rains.")]),
            ];
            let tried = prompts.iter().zip(traces).map(|(prompt, trace)| {
                let asked = Asked {
                    trace,
                    ..Asked::default()
                };
                (Job::clean(0, prompt), asked.into())
            });
            let tried: Vec<_> = tried.collect();
            let found = remembers(tried.iter());
            assert_eq!(found.is_some(), expected, "{second}: {found:?}");
        }
    }
}
