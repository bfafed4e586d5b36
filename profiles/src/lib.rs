//! The vocabulary of failure: profiles, rules, matching, dice and plans.
//!
//! A profile file is read ([`profile::parse`]), its rules put together with those of the profiles
//! it extends ([`library::Library`]) and compiled ([`ruleset::RuleSet`]). An
//! [`activation::Activation`] puts them in force: per exchange it takes [`facts::Facts`] and
//! answers with a [`plan::Plan`]. Nothing here does I/O, reads a clock or owns a random generator,
//! so every decision can be tested without a port.

pub mod activation;
pub mod allowance;
mod amounts;
mod attempts;
pub mod budget;
pub mod canary;
pub mod changes;
pub mod decide;
pub mod dice;
pub mod explain;
pub mod facts;
pub mod family;
pub mod fault;
pub mod faults;
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
