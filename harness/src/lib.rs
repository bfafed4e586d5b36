//! The judge: suites, agents, invariants, scores.
//!
//! A [`suite::Suite`] describes an agent and its invariants; an [`agents::Driver`] invokes the agent. Each
//! [`invariants::Invariant`] is judged on the answer ([`answer::AgentAnswer`]) and on the traffic of the invocation
//! ([`trace::Trace`]). [`scores`] turns verdicts into scores, [`runner`] executes runs, and [`report`] renders them
//! for people and CI systems. This crate reaches the proxy only through [`reach::Reach`] and does not know how
//! faults are injected.

pub mod agents;
pub mod answer;
pub mod count;
mod crew;
pub mod date_range;
mod ddmin;
mod deadline;
pub mod dial;
pub mod digest;
mod divergence;
pub mod explore;
pub mod import;
pub mod invariants;
pub mod model;
pub mod mutations;
pub mod outside;
mod pattern;
pub mod prompt;
pub mod reach;
pub mod report;
pub mod run;
pub mod runner;
pub mod scores;
pub mod suite;
pub mod trace;
pub mod verify;

pub use suite::session;

#[cfg(test)]
mod tests;
