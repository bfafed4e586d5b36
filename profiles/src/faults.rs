//! Faults: how each one writes into a plan, and how requests and responses are changed.
//!
//! A family's file has the table of its modes; a fault with more code has its own file below it.
//! [`llm_stream`] changes a model's response as it passes, with the text and tool call changes in
//! `llm_rewrite`. [`model_input`] changes a model's input. [`injection`] puts instructions into
//! tool responses.

mod context;
mod delay;
pub mod editing;
mod fixed;
pub mod injection;
mod llm;
mod llm_rewrite;
pub mod llm_stream;
pub mod model_input;
mod network;
mod remedies;
pub mod rpc_answer;
pub mod schema_drift;
mod tool;

pub(crate) use self::context::overridden;
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

/// The mode with that name.
pub fn mode(family: Family, name: &str) -> Option<&'static FaultMode> {
    modes(family).iter().find(|mode| mode.name == name)
}
