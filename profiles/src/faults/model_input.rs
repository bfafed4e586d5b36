//! The request of a model call, changed: what the model is to read of tools, of the user and of the
//! agent's instructions.
//!
//! Tools that run inside the agent never touch the wire; their results do, among the messages of the
//! next model call. A [`Dialect`] says where they stand and which tool they are of, by the call's id.
//! Only texts change, in place: ids, pairing, order, unknown fields and the model's own words stay as
//! they are, to the byte.

mod filler;
mod messages;
mod results;
#[cfg(test)]
mod tests;
mod told;

use squall_dialects::Dialect;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Conversation, Role, ToolResult};

pub use self::told::{Again, Told, request_key};
use crate::plan::RequestEdit;

/// The body of a model call's request with one change made; or why it cannot be made.
pub fn rewrite(edit: &RequestEdit, dialect: &dyn Dialect, body: &[u8]) -> Result<Vec<u8>, String> {
    let document = Document::parse(body).map_err(|why| format!("the request is {why}"))?;
    let conversation = dialect.conversation(&document);
    let mut edits = Edits::new(&document);
    match edit {
        RequestEdit::Results(tools, change) => {
            results::change(change, tools, dialect, &document, &conversation, &mut edits)
        }
        RequestEdit::Inject(tools, injection) => {
            results::inject(injection, tools, &document, &conversation, &mut edits)
        }
        RequestEdit::Poison(poisoning) => messages::poison(poisoning, &conversation, &mut edits),
        RequestEdit::Pad(padding) => messages::pad(*padding, &conversation, &mut edits),
        RequestEdit::Contradict(text) => messages::contradict(text, &conversation, &mut edits),
        RequestEdit::Attach(text) => messages::attach(text, &conversation, &mut edits),
    }?;
    let edited = edits.apply();
    if edited == body {
        return Err("the request says so already".to_owned());
    }
    Ok(edited)
}

/// The tools whose results a model call brings and the model has not seen yet, in order; empty names
/// for those that go without.
pub fn unseen_tools(dialect: &dyn Dialect, body: &[u8]) -> Vec<String> {
    let Ok(document) = Document::parse(body) else {
        return Vec::new();
    };
    let conversation = dialect.conversation(&document);
    let names = unseen(&conversation).map(|result| result.tool.as_deref().unwrap_or_default());
    names.map(str::to_owned).collect()
}

/// The results that came since the model last spoke. An answer that the agent has begun for the
/// model, at the very end, was not spoken by it.
fn unseen<'c, 'd>(
    conversation: &'c Conversation<'d>,
) -> impl Iterator<Item = &'c ToolResult<'d>> + use<'c, 'd> {
    let messages = &conversation.messages;
    let spoken = |(_, message): &(usize, &squall_dialects::model::Message<'_>)| {
        message.role == Role::Assistant
    };
    let begun = messages
        .iter()
        .rev()
        .take_while(|message| message.role == Role::Assistant);
    let complete = messages.len() - begun.count();
    let last = messages[..complete].iter().enumerate().rfind(spoken);
    let since = last.map_or(0, |(index, _)| index + 1);
    let results = conversation.tool_results.iter();
    results.filter(move |result| result.message >= since)
}
