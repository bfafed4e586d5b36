//! The token of a private daemon.

use squall_control_api::access::{TokenRole, random_hex};
use squall_control_api::store::DEFAULT_WORKSPACE;

use super::{Config, ConfiguredToken};
use crate::failure::Failure;
use crate::variables;

impl Config {
    /// Makes the control API require a token, because every local program can reach loopback: [`variables::token`] if it
    /// is set, else 128 random bits.
    pub(crate) fn require_token(&mut self) -> Result<String, Failure> {
        let secret = variables::token()?
            .map_or_else(random_hex::<16>, Ok)
            .map_err(|error| Failure::CouldNotRun(error.to_string()))?;
        self.api.tokens.push(ConfiguredToken {
            name: "command".to_owned(),
            role: TokenRole::Admin,
            workspace: DEFAULT_WORKSPACE.to_owned(),
            secret: secret.clone(),
        });
        Ok(secret)
    }
}
