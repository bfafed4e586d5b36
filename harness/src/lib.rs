//! The judge: suites, agents, invariants, scores.
//!
//! A [`suite::Suite`] describes an agent and what is demanded of it; an [`agents::Driver`] invokes it. Each demand is
//! an [`invariants::Invariant`], judged on the answer ([`answer::Answer`]) and on the traffic meanwhile
//! ([`trace::Trace`]). What the verdicts come to is in [`scores`]; [`runner`] does all of it, and [`report`] is what a
//! person or a CI system reads. The proxy is reached through [`reach::Reach`] only: nothing here knows how chaos is made.

pub mod agents;
pub mod answer;
mod deadline;
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
pub mod verify;

#[cfg(test)]
mod tests;
