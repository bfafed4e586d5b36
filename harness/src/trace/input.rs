//! The input of a model request, to recognise its retry.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use squall_dialects::json::Document;
use squall_dialects::model::Message;
use squall_dialects::{Quirk, by_name};

use crate::reach::SeenExchange;

/// The input of a request to a provider that may keep the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelInput {
    /// Id of the answer or conversation that it continues. It then contains only what is new.
    pub(super) continues: Option<String>,
    /// A hash of each message.
    messages: Vec<u64>,
}

impl ModelInput {
    /// `None`: the provider keeps no conversations, or the request was not kept.
    pub(super) fn of(seen: &SeenExchange) -> Option<Self> {
        let dialect = by_name(seen.record.dialect.as_deref()?)?;
        if !dialect.provider().has(Quirk::KeepsConversations) {
            return None;
        }
        let body = seen.request.as_ref()?.body.as_ref()?;
        let document = Document::parse_prefix(&body.bytes)?;
        let sent = dialect.conversation(&document);
        let mut results = sent.tool_results.iter().peekable();
        let hashed = |(index, message): (usize, &Message<'_>)| {
            let mut hash = DefaultHasher::new();
            message.role.hash(&mut hash);
            message
                .texts
                .iter()
                .for_each(|text| text.text.hash(&mut hash));
            while let Some(result) = results.next_if(|result| result.message <= index) {
                (&result.call, document.value(result.content).raw()).hash(&mut hash);
            }
            hash.finish()
        };
        Some(Self {
            messages: sent.messages.iter().enumerate().map(hashed).collect(),
            continues: sent.continues.map(Cow::into_owned),
        })
    }

    /// Whether `later` sends the same input with the conversation before it, because the provider may no longer have
    /// that.
    pub(super) fn is_restored_by(&self, later: &Self) -> bool {
        let continues = self.continues.is_some() && later.continues.is_none();
        continues && !self.messages.is_empty() && later.messages.ends_with(&self.messages)
    }
}
