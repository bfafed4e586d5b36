//! The token of a private daemon.

use squall_control_api::access::TokenRole;
use squall_control_api::store::DEFAULT_WORKSPACE;

use super::{Config, ConfiguredToken};
use crate::failure::Failure;

impl Config {
    /// Makes the control API require a token, because every local program can reach loopback: `$SQUALL_TOKEN` if it is
    /// set, else 128 random bits.
    pub(crate) fn require_token(&mut self) -> Result<String, Failure> {
        let given = std::env::var("SQUALL_TOKEN").ok();
        let secret = given.filter(|token| !token.is_empty());
        let secret = secret.map_or_else(random, Ok)?;
        self.api.tokens.push(ConfiguredToken {
            name: "command".to_owned(),
            role: TokenRole::Admin,
            workspace: DEFAULT_WORKSPACE.to_owned(),
            secret: secret.clone(),
        });
        Ok(secret)
    }
}

fn random() -> Result<String, Failure> {
    let mut bytes = [0; 16];
    rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| Failure::CouldNotRun("the system has no random bits".to_owned()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tokens_are_alike() {
        let (one, other) = (random().expect("bits"), random().expect("bits"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
    }
}
