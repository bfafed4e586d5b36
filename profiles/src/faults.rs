//! What each fault does to a plan: one file per fault, below its family's.
//!
//! A fault's file holds its parameters, how they are read from a rule, what it writes into a plan and
//! what the journal keeps of it ([`mode::FaultMode`]); its family's file has a line for it, from which
//! the enum and the table of modes follow. [`llm_stream`] is the machine that changes a model's
//! answer as it passes, `llm_rewrite` holds what it makes of texts and tool calls. [`model_input`]
//! changes what a model is sent, [`injection`] puts instructions into what tools say.

pub mod context;
pub mod delay;
pub mod editing;
pub mod injection;
pub mod llm;
mod llm_rewrite;
pub mod llm_stream;
pub mod mcp_answer;
pub(crate) mod mode;
pub mod model_input;
pub mod network;
pub mod schema_drift;
pub mod tool;
