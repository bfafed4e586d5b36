//! The control API as its clients see it.

mod access;
mod audit;
mod bench;
mod chaos;
mod daemon;
mod documents;
mod events;
mod exchanges;
mod idempotency;
mod names;
mod openapi;
mod pages;
mod problems;
mod profiles;
mod quotas;
mod recordings;
mod runs;
mod store;
mod store_recordings;
mod store_runs;
mod stored_journal;
mod stored_profiles;
mod tokens;
mod trust;
mod workspaces;
