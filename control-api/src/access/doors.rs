//! The valid tokens at one moment, and whether a token is required.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;

use super::{Digest, Token};
use crate::problem::Problem;

/// The valid tokens at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Doors {
    /// Whether other machines reach the API: then a token is required, even when none exists.
    pub(super) exposed: bool,
    pub(super) configured: Vec<Arc<Token>>,
    pub(super) stored: Vec<Arc<Token>>,
    /// Cancelled when clients that were admitted without a token need one.
    pub(super) closed: CancellationToken,
}

impl Doors {
    pub(super) fn are_open(&self) -> bool {
        !self.exposed && self.tokens().next().is_none()
    }

    pub(super) fn tokens(&self) -> impl Iterator<Item = &Arc<Token>> {
        self.configured.iter().chain(&self.stored)
    }

    pub(super) fn bearer(&self, headers: &HeaderMap) -> Result<Arc<Token>, Problem> {
        let Some(given) = headers.get(AUTHORIZATION) else {
            return Err(Problem::unauthenticated(
                "send a token: `Authorization: Bearer …`; an admin makes one with `squall token create`, \
                 and the config may have some under `api.tokens`",
            ));
        };
        let secret = given.to_str().ok().and_then(|value| value.split_once(' '));
        let Some((_, secret)) = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        else {
            return Err(Problem::unauthenticated("write `Authorization: Bearer …`"));
        };
        let given = Digest::of(secret.trim());
        // Compares every token, so that the time does not depend on which one matches.
        let mut found = None;
        for token in self.tokens() {
            if token.digest == given {
                found = Some(token);
            }
        }
        found
            .cloned()
            .ok_or_else(|| Problem::unauthenticated("nobody has this token, or not any more"))
    }
}

/// The new tokens. One that existed before keeps its state; the open streams of one that is missing end.
pub(super) fn taken_over(former: &[Arc<Token>], new: Vec<Token>) -> Vec<Arc<Token>> {
    let kept = |token: Token| {
        let same = former.iter().find(|former| former.is(&token));
        same.cloned().unwrap_or_else(|| Arc::new(token))
    };
    let tokens: Vec<Arc<Token>> = new.into_iter().map(kept).collect();
    for gone in former {
        if !tokens.iter().any(|token| Arc::ptr_eq(token, gone)) {
            gone.ended.cancel();
        }
    }
    tokens
}
