//! Exploration: finds what breaks an agent or an application, instead of being told.

pub mod actions;
pub(crate) mod calls;
