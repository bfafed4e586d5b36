//! Profiles, rules, matching, random draws and plans.
//!
//! [`profile::parse`] reads a profile file. [`library::Library`] merges its rules with those of the
//! profiles it extends, and [`ruleset::RuleSet`] compiles them. An [`activation::Activation`]
//! applies the compiled rules: for each exchange it turns [`facts::Facts`] into a [`plan::Plan`].
//! This crate does no I/O, reads no clock and owns no random generator, so tests need no port.

pub mod activation;
pub mod allowance;
mod amounts;
mod attempts;
pub mod budget;
pub mod canary;
pub mod changes;
pub mod decide;
pub mod dice;
pub mod dry_run;
pub mod explain;
pub mod facts;
pub mod family;
pub mod fault;
pub mod faults;
mod fifo_map;
pub mod fingerprint;
pub mod glob;
mod index;
pub mod json_path;
pub mod json_tree;
pub mod library;
mod matching;
pub mod pattern;
pub mod payloads;
pub mod plan;
pub mod prices;
pub mod profile;
pub mod rule;
pub mod ruleset;
pub mod schema;
pub mod spending;
pub mod tools;
pub mod trigger;
pub mod validate;
pub mod verdict;
