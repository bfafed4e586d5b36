//! Golden prompts and probes.

use squall_documents::{Fields, NodeKind, ValueReader};

/// Characters of a prompt that are quoted in a sentence about it.
const BEGINNING: usize = 60;

/// The prompt of one invocation: one turn, or several turns of one conversation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prompt {
    turns: Vec<String>,
}

impl Prompt {
    /// A single turn.
    pub fn single(text: impl Into<String>) -> Self {
        Self {
            turns: vec![text.into()],
        }
    }

    /// Several turns of one conversation; `None` if there are none.
    pub fn conversation(turns: Vec<String>) -> Option<Self> {
        (!turns.is_empty()).then_some(Self { turns })
    }

    /// The turns in order, at least one.
    pub fn turns(&self) -> &[String] {
        &self.turns
    }

    /// All turns, separated by line breaks: for filters and reports.
    pub fn text(&self) -> String {
        self.turns.join("\n")
    }

    /// The beginning, for sentences about the prompt. Words are not cut, because a partial secret would not be
    /// recognised and redacted.
    pub fn beginning(&self) -> String {
        let text = self.text();
        let Some((end, _)) = text.char_indices().nth(BEGINNING) else {
            return text;
        };
        let (mut shown, rest) = text.split_at(end);
        if rest.starts_with(is_of_a_word) {
            shown = shown.trim_end_matches(is_of_a_word);
        }
        format!("{}…", shown.trim_end())
    }
}

fn is_of_a_word(character: char) -> bool {
    character.is_ascii_graphic()
}

/// A list of prompts, each a text, a list of turns, or a map with `turns`.
pub(crate) fn read(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
) -> Option<Vec<Prompt>> {
    fields.field(name, about, |value| {
        let empty = "the list is empty; write what the agent is asked";
        value.some("a list of prompts", empty, |value| {
            value.named("Prompt", one)
        })
    })
}

/// A prompt: a text, a list of turns, or a map with `turns`.
pub(crate) fn one(value: &mut ValueReader<'_, '_>) -> Option<Prompt> {
    value
        .either()
        .when(NodeKind::Scalar, |value| {
            Some(Prompt::single(value.words()?.value))
        })
        .when(NodeKind::List, turns)
        .when(NodeKind::Map, |value| {
            value.fields("a prompt", |fields| {
                fields.require("turns", "what is said in turn, a list of texts");
                fields.field("turns", "The turns of one conversation.", turns)
            })
        })
        .or("a prompt, or a list of turns")
}

fn turns(value: &mut ValueReader<'_, '_>) -> Option<Prompt> {
    let empty = "the list of turns is empty; write what is said";
    let turns = value.some("a list of turns, each a text", empty, |value| value.words())?;
    Prompt::conversation(turns.into_iter().map(|turn| turn.value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_cuts_no_word() {
        let words = "word ".repeat(11);
        for (text, shown) in [
            (
                "What is the weather in Kiel?".to_owned(),
                "What is the weather in Kiel?".to_owned(),
            ),
            (
                format!("{words}Tr0ub4dor/3+x="),
                format!("{}…", words.trim_end()),
            ),
            (format!("{words}word, and more"), format!("{words}word,…")),
            ("東".repeat(70), format!("{}…", "東".repeat(60))),
            ("x".repeat(61), "…".to_owned()),
        ] {
            assert_eq!(Prompt::single(text).beginning(), shown);
        }
    }
}
