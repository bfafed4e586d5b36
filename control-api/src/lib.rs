//! The control API: chaos in force, recorded exchanges and runs, as JSON over HTTP.
//!
//! A thin layer over [`Chaos`](squall_proxy::chaos::Chaos) and [`Recorder`](squall_proxy::recorder::Recorder):
//! each route reads a request, calls one of them and writes the response. It decides no fault and handles no
//! agent traffic. Every error is an RFC 9457 problem ([`problem`]). [`access`] checks permissions before a
//! request reaches its route.
//!
//! ```text
//! request ─▶ access ─▶ route ─▶ document, query ─▶ Chaos, Recorder, store ─▶ JSON, events
//!                └────────┴──────────┴───────────────────┴─────────────────▶ problem
//! ```

pub mod access;
pub mod audit;
mod chaos_request;
mod claim;
mod clients;
mod collected_traces;
mod credential;
mod dispatch;
mod document;
mod fleet;
mod idempotency;
mod ledger;
mod nearest;
mod outage;
mod page;
pub mod problem;
mod query;
mod readiness;
mod recordings;
mod routes;
mod runs;
mod serve;
mod spread;
mod state;
pub mod store;
mod stored_documents;
mod stored_journal;
mod stored_profiles;
mod stored_tokens;
mod switchers;
mod tasks;
mod trust;
mod workspace;

pub use self::clients::Clients;
pub use self::collected_traces::CollectedTraces;
pub use self::document::{LONGEST_RUN, WITH_VARIABLES};
pub use self::fleet::{Fleet, FleetParts};
pub use self::readiness::{BrokenFile, ListenerAddress, Readiness};
pub use self::recordings::{NewRecording, RecordingBounds, Recordings};
pub use self::routes::router;
pub use self::runs::{DaemonId, Runs, RunsParts};
pub use self::serve::{ServeError, serve};
pub use self::spread::execute_scenarios;
pub use self::state::ApiState;
pub use self::store::Retain;
pub use self::stored_journal::{ExchangeChoice, JournalOptions, StoredJournal, prune};
pub use self::stored_profiles::StoredProfiles;
pub use self::stored_tokens::StoredTokens;
pub use self::switchers::Switchers;
pub use self::trust::{Trust, TrustConfig, environment_variable};
pub use self::workspace::is_workspace_name;

/// A poisoned lock is usable: the value is consistent between any two statements.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
