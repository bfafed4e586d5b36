//! What each fault does to a plan, and how requests and answers are changed.
//!
//! A family's file has the table of its modes; a fault that needs more than a row has a file of its own below it.
//! [`llm_stream`] is the machine that changes a model's answer as it passes, `llm_rewrite` holds what it makes of texts
//! and tool calls. [`model_input`] changes what a model is sent, [`injection`] puts instructions into tools' answers.

mod context;
mod delay;
pub mod editing;
mod fixed;
pub mod injection;
mod llm;
mod llm_rewrite;
pub mod llm_stream;
pub mod mcp_answer;
pub mod model_input;
mod network;
mod remedies;
pub mod schema_drift;
mod tool;

pub(crate) use self::context::eclipsed;
use crate::family::Family;
use crate::fault::FaultMode;

/// The modes of a family, in the order of the reference.
pub fn modes(family: Family) -> &'static [FaultMode] {
    match family {
        Family::Network => network::MODES,
        Family::Tool => tool::MODES,
        Family::Llm => llm::MODES,
        Family::Context => context::MODES,
    }
}

/// The mode of that name.
pub fn mode(family: Family, name: &str) -> Option<&'static FaultMode> {
    modes(family).iter().find(|mode| mode.name == name)
}
