//! Which tokens there are at one moment, and whether one is asked for.

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use tokio_util::sync::CancellationToken;

use super::{Digest, Token};
use crate::problem::Problem;

/// What holds at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Doors {
    /// Whether others than this machine reach the API: then nobody gets in without a token, also when
    /// there is none.
    pub(super) exposed: bool,
    pub(super) configured: Vec<Arc<Token>>,
    pub(super) stored: Vec<Arc<Token>>,
    /// Cancelled when a token is asked for from those who have come in without one.
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
        // Every token is compared, whichever fits.
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

/// What is new in the place of what was. A token that is in both goes on as it was; one that is not any
/// more ends what is still open with it.
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
