//! What the end-to-end tests are made of.
//!
//! The real `squall` binary ([`Daemon`]) stands between clients and an [`Upstream`] that does
//! exactly what it is told, down to the byte and the RST. Clients are a raw one ([`Wire`]) and real
//! programs ([`program`]). Nothing here looks into Squall: all is seen from outside.

#![expect(
    clippy::missing_panics_doc,
    reason = "a panic here is a failed test, which says why"
)]

pub mod api;
pub mod authority;
pub mod daemon;
pub mod dead;
pub mod duplex;
pub mod h2_upstream;
pub mod postgres;
pub mod program;
pub mod relay;
pub mod stage;
pub mod upstream;
pub mod wire;

pub use authority::Authority;
pub use daemon::Daemon;
pub use h2_upstream::H2Upstream;
pub use stage::{Path, Stage};
pub use upstream::Upstream;
pub use wire::{End, Wire};

use std::time::Duration;

/// How long a test waits for what must come. Far beyond what anything takes, so that it says "never
/// came", not "came late".
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Lets some time pass before the same question is asked again.
#[expect(
    clippy::disallowed_methods,
    reason = "asking without a pause takes the core from the asked"
)]
pub(crate) fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
