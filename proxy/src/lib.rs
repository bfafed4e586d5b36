//! Carries plans out: listeners, TLS interception, upstreams, bodies.

pub mod broken;
pub mod carry_out;
pub mod chaos;
pub mod config;
pub mod h1;
pub mod metrics;
pub mod recorder;
pub mod timer;
pub mod tls;
pub mod upstream;
pub mod wire;
