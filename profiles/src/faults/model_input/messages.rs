//! Changes user messages and the agent's instructions in a model call.

use squall_dialects::json::{Edits, quote};
use squall_dialects::model::{Conversation, Message, PlacedText, Role};

use super::filler;
use crate::changes::{Padding, PaddingPlace, Poisoning, Strategy, Turn};

/// Separates a message from added text.
const GAP: &str = "\n\n";

/// Adds a false statement to one of the user messages.
pub(super) fn poison(
    poisoning: &Poisoning,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let messages = of_user(conversation);
    let message = match poisoning.at {
        Turn::First => messages.first(),
        Turn::Last => messages.last(),
        Turn::Number(number) => usize::try_from(number - 1)
            .ok()
            .and_then(|at| messages.get(at)),
    };
    let Some(message) = message else {
        return Err(match poisoning.at {
            Turn::Number(number) => format!(
                "`inject_at` is {number}, and the user says something in {} message{}",
                messages.len(),
                if messages.len() == 1 { "" } else { "s" }
            ),
            Turn::First | Turn::Last => NO_USER.to_owned(),
        });
    };
    let text = &poisoning.text;
    match poisoning.strategy {
        Strategy::Prepend => prepend(text, &message.texts[0], edits),
        Strategy::Append => append(text, &message.texts[message.texts.len() - 1], edits),
        Strategy::Replace => edits.replace(message.texts[0].place, quote(text)),
    }
    Ok(())
}

/// Adds filler.
pub(super) fn pad(
    padding: Padding,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let messages = of_user(conversation);
    let texts: Vec<_> = messages.iter().flat_map(|message| &message.texts).collect();
    let filler = filler::of(padding.tokens);
    match padding.position {
        PaddingPlace::Start => prepend(&filler, texts.first().ok_or(NO_USER)?, edits),
        PaddingPlace::End => append(&filler, texts.last().ok_or(NO_USER)?, edits),
        PaddingPlace::Middle => {
            let said = texts.get(texts.len() / 2).ok_or(NO_USER)?;
            let half = said.text.floor_char_boundary(said.text.len() / 2);
            let after_space = said.text[..half]
                .rfind(char::is_whitespace)
                .map(|at| at + 1);
            let at = after_space.map_or(half, |at| said.text.ceil_char_boundary(at));
            let (before, after) = said.text.split_at(at);
            let text = [before, GAP, &filler, GAP, after].concat();
            edits.replace(said.place, quote(&text));
        }
    }
    Ok(())
}

/// Appends to the agent's instructions, or without any to the first user message.
pub(super) fn contradict(
    text: &str,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let among = conversation.messages.iter();
    let among = among.filter(|message| message.role == Role::System);
    let system = conversation.system.iter();
    let instructions = system
        .chain(among.flat_map(|message| &message.texts))
        .last();
    let first = || {
        of_user(conversation)
            .first()
            .and_then(|message| message.texts.first())
    };
    let said = instructions
        .or_else(first)
        .ok_or("the request has neither instructions nor a message of the user's to add to")?;
    append(text, said, edits);
    Ok(())
}

/// Appends to the newest user message, as agents add retrieved documents.
pub(super) fn attach(
    text: &str,
    conversation: &Conversation<'_>,
    edits: &mut Edits<'_>,
) -> Result<(), String> {
    let messages = of_user(conversation);
    let said = messages
        .last()
        .and_then(|message| message.texts.last())
        .ok_or(NO_USER)?;
    append(&format!("Retrieved context:\n{text}"), said, edits);
    Ok(())
}

const NO_USER: &str = "the request has no message of the user's";

/// The user messages with text.
fn of_user<'c, 'd>(conversation: &'c Conversation<'d>) -> Vec<&'c Message<'d>> {
    let messages = conversation.messages.iter();
    let said = messages.filter(|message| message.role == Role::User && !message.texts.is_empty());
    said.collect()
}

fn append(text: &str, said: &PlacedText<'_>, edits: &mut Edits<'_>) {
    let gap = if said.text.is_empty() { "" } else { GAP };
    edits.replace(said.place, quote(&[&*said.text, gap, text].concat()));
}

fn prepend(text: &str, said: &PlacedText<'_>, edits: &mut Edits<'_>) {
    let gap = if said.text.is_empty() { "" } else { GAP };
    edits.replace(said.place, quote(&[text, gap, &said.text].concat()));
}
