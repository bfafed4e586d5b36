//! Carries plans out: listeners, TLS interception, upstreams, bodies.

pub mod broken;
pub mod config;
pub mod metrics;
pub mod wire;
