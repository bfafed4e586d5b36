//! The common interface of editors that change a response as it passes.

use bytes::Bytes;
use squall_dialects::Tally;

use crate::plan::Ending;

/// The next step for a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends these bytes to the agent.
    Emit(Bytes),
    /// Sends nothing for this long.
    Wait(std::time::Duration),
    /// The connection breaks; nothing follows.
    End(Ending),
    /// Ends the response regularly; the rest of the upstream's is discarded.
    Finish,
}

/// An editor of one decoded response. It does no I/O.
pub enum AnswerEditor {
    /// Edits events as they arrive.
    Events(Box<dyn EventsEditor>),
    /// Edits a response that is complete.
    Whole(Box<WholeEditor>),
}

/// Edits a complete response, or returns why it stays unchanged.
pub type WholeEditor = dyn FnOnce(&[u8]) -> Result<EditedAnswer, String>;

/// A complete response with its edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedAnswer {
    /// What to send to the agent.
    pub steps: Vec<Step>,
    /// The new media type; `None` if it does not change.
    pub media_type: Option<&'static str>,
    /// Whether the announced output tokens were counted here and not by the provider.
    pub counts_anew: bool,
}

impl EditedAnswer {
    /// A response that is sent at once.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self::in_steps(emit(bytes.into()))
    }

    pub(crate) fn in_steps(steps: Vec<Step>) -> Self {
        Self {
            steps,
            media_type: None,
            counts_anew: false,
        }
    }
}

/// The step that sends these bytes, if there are any.
pub(crate) fn emit(bytes: Bytes) -> Vec<Step> {
    let bytes = (!bytes.is_empty()).then_some(Step::Emit(bytes));
    bytes.into_iter().collect()
}

/// Edits the events of a response.
pub trait EventsEditor {
    /// Takes the next bytes of the response. After [`Step::End`] or [`Step::Finish`] there are no
    /// further steps.
    fn push(&mut self, chunk: &[u8]) -> Vec<Step>;

    /// The response has ended regularly.
    fn finish(&mut self) -> Vec<Step>;

    /// The upstream broke off: held bytes go to the agent unchanged before the abort.
    fn broke_off(&mut self) -> Vec<Step>;

    /// Whether anything was changed or delayed so far.
    fn touched(&self) -> bool;

    /// Why nothing was changed, once the response has ended; `None` if something was.
    fn untouched_because(&self) -> Option<String>;

    /// Whether the announced output tokens were counted here and not by the provider.
    fn counts_anew(&self) -> bool {
        false
    }

    /// The tally of a model's stream that passed unchanged to its end, so that nobody needs to parse it again.
    fn tally(&mut self) -> Option<Box<Tally>> {
        None
    }
}

impl AnswerEditor {
    /// Edits a complete response in either form, or returns why it stays unchanged.
    pub fn edit(self, body: &[u8]) -> Result<EditedAnswer, String> {
        match self {
            Self::Whole(edit) => edit(body),
            Self::Events(mut editor) => {
                let mut steps = editor.push(body);
                steps.extend(editor.finish());
                match editor.untouched_because() {
                    Some(why) => Err(why),
                    None => Ok(EditedAnswer {
                        counts_anew: editor.counts_anew(),
                        ..EditedAnswer::in_steps(steps)
                    }),
                }
            }
        }
    }
}
