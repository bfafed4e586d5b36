//! Changes the input of a model call: tool results, user messages and the agent's instructions.
//!
//! The results of tools that run inside the agent only appear in the next model call's messages. A
//! [`Dialect`] finds them and their tools, by the call's id. Only texts change, in place: ids,
//! pairing, order, unknown fields and the model's own messages stay byte for byte.

mod called;
mod changed_results;
pub mod filler;
mod messages;
mod results;
#[cfg(test)]
mod tests;

use squall_dialects::Dialect;
use squall_dialects::json::{Document, Edits};
use squall_dialects::model::{Conversation, Role, ToolResult};

pub use self::called::Called;
pub use self::changed_results::{ChangedResults, RepeatedChanges, request_key};
use crate::plan::RequestEdit;

/// How a request is parsed: its dialect, and the known calls that it leaves out.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Its dialect.
    pub dialect: &'a dyn Dialect,
    /// The calls of earlier responses; `None`: only those in the request are known.
    pub called: Option<&'a Called>,
}

impl<'a> From<&'a dyn Dialect> for Terms<'a> {
    fn from(dialect: &'a dyn Dialect) -> Self {
        Self {
            dialect,
            called: None,
        }
    }
}

impl Terms<'_> {
    fn conversation<'d>(self, document: &'d Document<'d>) -> Conversation<'d> {
        let mut conversation = self.dialect.conversation(document);
        if let Some(called) = self.called {
            called.name(&mut conversation);
        }
        conversation
    }
}

/// The body of a model request with one change, or why it cannot be made.
pub fn rewrite<'a>(
    edit: &RequestEdit,
    terms: impl Into<Terms<'a>>,
    body: &[u8],
) -> Result<Vec<u8>, String> {
    let document = Document::parse(body).map_err(|why| format!("the request is {why}"))?;
    let terms = terms.into();
    let (dialect, conversation) = (terms.dialect, terms.conversation(&document));
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

/// The tools with new results in a model request, in order; the name is empty if the tool is
/// unknown.
pub fn unseen_tools<'a>(terms: impl Into<Terms<'a>>, body: &[u8]) -> Vec<String> {
    let Ok(document) = Document::parse(body) else {
        return Vec::new();
    };
    let conversation = terms.into().conversation(&document);
    let names = unseen(&conversation).map(|result| result.tool.as_deref().unwrap_or_default());
    names.map(str::to_owned).collect()
}

/// The results after the model's last message. A prefilled answer at the end is not a message of
/// the model.
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
