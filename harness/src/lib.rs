//! The judge: suites, agents, invariants, scores.
//!
//! A [`suite::Suite`] says how an agent is reached and what is demanded of it; an [`agents::Driver`]
//! asks it. Each demand is an [`invariants::Invariant`], judged on what the agent answered
//! ([`answer::Answer`]) and on what went over the wire while it did ([`trace::Trace`]). What the
//! judgements come to is in [`scores`]; [`runner`] does all of it, and [`report`] is what a person or
//! a CI system reads of it. The proxy is reached through
//! [`reach::Reach`] only: nothing here knows how chaos is made.

pub mod agents;
pub mod answer;
pub mod dial;
pub mod digest;
pub mod invariants;
pub mod model;
pub mod outside;
mod pattern;
pub mod reach;
pub mod report;
pub mod run;
pub mod runner;
pub mod scores;
pub mod session;
pub mod suite;
pub mod trace;
mod undrawn;
pub mod verify;

#[cfg(test)]
mod tests;
