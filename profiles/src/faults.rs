//! What each family of faults does to a plan: one file per family.
//!
//! A family's file holds its faults, how they are read from a rule, what they write into a plan and
//! the parameters the journal keeps of them. [`llm_stream`] is the machine that changes a model's
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
pub mod model_input;
pub mod network;
pub mod schema_drift;
pub mod tool;
