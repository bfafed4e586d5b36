//! Exploration over actions: finds the sequences of actions that break an application with state.
//!
//! Only the actions that the suite declares are sent, and only to its `base_url`, through the proxy.
//!
//! ```text
//! reset ─▶ state ─▶ choose an action ─▶ send it ─▶ state, log, anomalies ─▶ learn ─┐
//!                        └──────────────── until the episode's last step ◀─────────┘
//! ```

mod anomalies;
mod application;
mod explorer;
mod file;
mod observation;
pub(crate) mod settings;
mod signature;

pub use self::application::{Application, ExploreError, SCOPE};
pub use self::explorer::{Explorer, ExplorerOptions};
pub use self::file::{Episode, EpisodeStep, shrink};
pub use self::observation::{FoundAnomaly, Observation};
pub use self::settings::{ActionChoice, Exploration};
