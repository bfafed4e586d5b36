//! What each family of faults does to a plan: one file per family.

pub mod llm_stream;
