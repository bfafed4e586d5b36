//! Decisions from the outside: a profile as a user writes it, requests, and what is decided.

mod answers;
mod context;
mod explain;
mod matching;
mod out_of_band;
mod repeatable;
mod scope;
mod status;
mod triggers;
mod validating;
