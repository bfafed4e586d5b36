//! Carries plans out: listeners, TLS interception, upstreams, bodies.

pub mod broken;
pub mod carry_out;
pub mod chaos;
mod classify;
pub mod config;
mod connect;
mod connection;
mod daemon;
mod egress;
mod engine;
mod exchange;
mod exchange_log;
mod forward;
pub mod h1;
mod headers;
mod listener;
mod live;
mod mcp_sessions;
pub mod metrics;
mod observed;
pub mod problem;
pub mod recorder;
mod request_body;
mod route;
mod scope;
mod splice;
mod stage;
pub mod timer;
pub mod tls;
mod tunnel;
pub mod upstream;
pub mod wire;
mod worker;

pub use self::daemon::{Parts, Proxy, StartError};
pub use self::live::ConfigError;
pub use self::scope::is_scope_name;
