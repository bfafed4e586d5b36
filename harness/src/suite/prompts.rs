//! Golden prompts and probes: what an agent is asked.

use squall_profiles::document::{At, Tree};

use super::reader::{Fields, Reader, each};

/// What an agent is asked in one invocation: one turn, or several with one conversation.
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

    /// Several turns of one conversation; `None` without one.
    pub fn conversation(turns: Vec<String>) -> Option<Self> {
        (!turns.is_empty()).then_some(Self { turns })
    }

    /// The turns in order, at least one.
    pub fn turns(&self) -> &[String] {
        &self.turns
    }

    /// All turns, a line each: for filters and reports.
    pub fn text(&self) -> String {
        self.turns.join("\n")
    }
}

/// A list of prompts, each a text, a list of turns, or a map with `turns`.
pub(crate) fn read(fields: &mut Fields<'_, '_, '_>, name: &'static str) -> Option<Vec<Prompt>> {
    let prompts = fields.each(name, "a list of prompts", prompt)?;
    if fields.is_empty_list(name) {
        fields.error(name, "the list is empty; write what the agent is asked");
        return None;
    }
    Some(prompts.value)
}

fn prompt(reader: &mut Reader<'_>, node: &At<Tree>) -> Option<Prompt> {
    match &node.value {
        Tree::Scalar { .. } => reader.words(node).map(|text| Prompt::single(text.value)),
        Tree::List(_) => turns(reader, node),
        Tree::Map(_) => {
            let read = |fields: &mut Fields<'_, '_, '_>| {
                if !fields.has("turns") {
                    fields.missing("turns", "what is said in turn, a list of texts");
                }
                fields.read("turns", turns)
            };
            reader.fields(node, "a prompt", read).flatten()
        }
        Tree::Null => {
            reader.misplaced(node.position, "a prompt, or a list of turns");
            None
        }
    }
}

fn turns(reader: &mut Reader<'_>, node: &At<Tree>) -> Option<Prompt> {
    let turns = each(reader, node, "a list of turns, each a text", Reader::words)?;
    if matches!(&node.value, Tree::List(items) if items.is_empty()) {
        reader.error(
            node.position,
            "the list of turns is empty; write what is said",
        );
        return None;
    }
    let turns = turns.value.into_iter().map(|turn| turn.value);
    Prompt::conversation(turns.collect())
}
