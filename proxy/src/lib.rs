//! Executes plans: listeners, TLS interception, upstreams and bodies.
//!
//! Each module uses only those below it:
//!
//! ```text
//! daemon ─ server ─ exchange ─┬─ chaos ─ recorder ─ tape ─┬─ body ─ http1
//!                             ├─ faults ─ mcp ────────────┤
//!                             └─ upstream ─ tls ──────────┘
//! ```

mod abort;
mod body;
mod bounded_map;
pub mod chaos;
mod compiled;
pub mod config;
mod daemon;
pub mod descriptors;
mod egress;
mod engine;
mod exchange;
mod faults;
mod frames;
mod headers;
pub mod http1;
mod lock;
mod mcp;
pub mod metrics;
pub mod peer;
pub mod problem;
pub mod recorder;
mod run_mark;
mod server;
pub mod tape;
mod timer;
pub mod tls;
pub mod upstream;
pub mod user_file;
mod vocabularies;

pub use self::config::ConfigError;
pub use self::daemon::{Proxy, ProxyParts, StartError};
pub use self::exchange::scope::is_scope_name;
