//! Where a mutation changes a prompt: in which turn, and in which value of a structured prompt.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;
use squall_profiles::dice::Dice;

use super::below;
use crate::agents::settings::{Agent, Way};
use crate::agents::template;
use crate::prompt::Prompt;

/// What an agent's template requires of prompts.
#[derive(Debug, Clone, Default)]
pub(super) struct PromptForm<'a> {
    /// The template's placeholders for values of lines, without those for the whole prompt.
    names: Vec<&'a str>,
    structured: bool,
}

impl<'a> PromptForm<'a> {
    pub(super) fn of(agent: &'a Agent) -> Self {
        let Way::Http(http) = &agent.way else {
            return Self::default();
        };
        let template = http.request_template.as_deref().unwrap_or_default();
        let places = template::places(template);
        Self {
            names: template::of_lines(&places),
            structured: http.parse_structured_input,
        }
    }

    /// Whether a mutant defines every value that the original defines.
    pub(super) fn accepts(&self, original: &Prompt, mutant: &Prompt) -> bool {
        let complete =
            |turn: &String| template::left_over(&self.names, turn, self.structured).is_none();
        mutant.turns().iter().all(complete) || !original.turns().iter().all(complete)
    }
}

/// How the changed turn is put into a conversation of several turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TurnOperation {
    Change,
    Insert,
    Repeat,
    Drop,
    Later,
}

/// The part of a prompt that a mutation changes.
#[derive(Debug, Clone)]
pub(super) struct MutatedPlace<'p> {
    prompt: &'p Prompt,
    operation: TurnOperation,
    turn: usize,
    /// The other turn of an operation that has one.
    other: usize,
    part: TurnPart<'p>,
}

/// The part of a turn that a mutation changes.
#[derive(Debug, Clone)]
enum TurnPart<'p> {
    Whole,
    /// The value of a line that defines a placeholder.
    Line {
        at: usize,
        name: &'p str,
        value: &'p str,
    },
    /// A text in a JSON document, and its place with quotes.
    Json {
        value: String,
        at: Range<usize>,
    },
}

impl TurnPart<'_> {
    fn value<'s>(&'s self, turn: &'s str) -> &'s str {
        match self {
            Self::Whole => turn,
            Self::Line { value, .. } => value,
            Self::Json { value, .. } => value,
        }
    }
}

impl<'p> MutatedPlace<'p> {
    /// With `keeps_meaning`, the turns stay, and of a structured prompt values of several words are changed. `None`:
    /// there is no such value.
    pub(super) fn draw(
        prompt: &'p Prompt,
        form: &PromptForm<'_>,
        keeps_meaning: bool,
        is_new_turn: bool,
        dice: &mut Dice,
    ) -> Option<Self> {
        let turns = prompt.turns();
        let turn = below(turns.len(), dice);
        let operation = match dice.below(6) {
            _ if turns.len() < 2 || keeps_meaning => TurnOperation::Change,
            2 => TurnOperation::Insert,
            3 => TurnOperation::Repeat,
            4 => TurnOperation::Drop,
            5 if turn + 1 < turns.len() => TurnOperation::Later,
            _ => TurnOperation::Change,
        };
        let (turn, operation) = if is_new_turn {
            (turns.len() - 1, TurnOperation::Insert)
        } else {
            (turn, operation)
        };
        let other = match operation {
            TurnOperation::Later => turn + 1 + below(turns.len() - turn - 1, dice),
            TurnOperation::Drop => (turn + 1 + below(turns.len() - 1, dice)) % turns.len(),
            TurnOperation::Change | TurnOperation::Insert | TurnOperation::Repeat => turn,
        };
        let mut parts = parts(&turns[turn], form);
        if parts.is_empty() {
            parts.push(TurnPart::Whole);
        } else if keeps_meaning {
            parts.retain(|part| part.value("").contains(char::is_whitespace));
        }
        let part = below(parts.len(), dice);
        (part < parts.len()).then(|| Self {
            prompt,
            operation,
            turn,
            other,
            part: parts.swap_remove(part),
        })
    }

    /// The text that the mutation changes.
    pub(super) fn source(&self) -> &str {
        self.part.value(&self.prompt.turns()[self.turn])
    }

    /// The prompt with the changed texts instead of the source: one, or the turns of an attack.
    pub(super) fn put(&self, texts: Vec<String>) -> Option<Prompt> {
        let turns = self.prompt.turns();
        let changed = texts.into_iter().map(|text| self.in_turn(text));
        let mut changed: Vec<_> = changed.collect();
        match self.operation {
            TurnOperation::Insert => changed.insert(0, turns[self.turn].clone()),
            TurnOperation::Repeat => changed.extend(vec![turns[self.turn].clone(); 2]),
            TurnOperation::Change | TurnOperation::Drop | TurnOperation::Later => {}
        }
        let mut mutant: Vec<Vec<String>> = turns.iter().map(|turn| vec![turn.clone()]).collect();
        mutant[self.turn] = changed;
        match self.operation {
            TurnOperation::Drop => mutant[self.other].clear(),
            TurnOperation::Later => {
                let moved = mutant.remove(self.turn);
                mutant.insert(self.other, moved);
            }
            TurnOperation::Change | TurnOperation::Insert | TurnOperation::Repeat => {}
        }
        Prompt::conversation(mutant.concat())
    }

    fn in_turn(&self, text: String) -> String {
        let turn = &self.prompt.turns()[self.turn];
        match &self.part {
            TurnPart::Whole => text,
            TurnPart::Line { at: line, name, .. } => {
                let text = text.lines().collect::<Vec<_>>().join(" ");
                let lines = turn.lines().enumerate().map(|(at, old)| {
                    if at == *line {
                        format!("{name}: {text}")
                    } else {
                        old.to_owned()
                    }
                });
                lines.collect::<Vec<_>>().join("\n")
            }
            TurnPart::Json { at, .. } => {
                let text = Value::from(text);
                format!("{}{text}{}", &turn[..at.start], &turn[at.end..])
            }
        }
    }

    /// The operation for reports; `None`: the only turn was changed.
    pub(super) fn describe(&self) -> Option<String> {
        let (turn, other) = (self.turn + 1, self.other + 1);
        let is_plain = self.prompt.turns().len() < 2 && self.operation == TurnOperation::Change;
        (!is_plain).then(|| match self.operation {
            TurnOperation::Change => format!("turn {turn} changed"),
            TurnOperation::Insert => format!("turn inserted after turn {turn}"),
            TurnOperation::Repeat => format!("turn {turn} changed, and repeated twice"),
            TurnOperation::Drop => format!("turn {turn} changed, turn {other} dropped"),
            TurnOperation::Later => format!("turn {turn} changed and moved to place {other}"),
        })
    }
}

/// The parts of a structured turn; none: it has no structure.
fn parts<'p>(turn: &'p str, form: &PromptForm<'_>) -> Vec<TurnPart<'p>> {
    let lines = template::lines_of(turn, &form.names);
    if form.structured && !lines.is_empty() {
        let lines = lines.into_iter();
        let lines = lines.map(|(at, name, value)| TurnPart::Line { at, name, value });
        return lines.collect();
    }
    let is_json = turn.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(turn).is_ok();
    if !is_json {
        return Vec::new();
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    while let Some(start) = turn[from..].find('"').map(|found| from + found) {
        let mut last = start + 1;
        while let Some(byte @ (0..=b'!' | b'#'..)) = turn.as_bytes().get(last) {
            last += if *byte == b'\\' { 2 } else { 1 };
        }
        from = last + 1;
        let is_name = turn[from..].trim_start().starts_with(':');
        let value = serde_json::from_str(&turn[start..from]);
        if let Ok(value) = value
            && !is_name
        {
            let at = start..from;
            parts.push(TurnPart::Json { value, at });
        }
    }
    parts
}
