//! Making an agent forget, and checking that it was told to.

use std::time::Duration;

use reqwest::Client;

use super::ResetError;
use super::program::{self, NotEnded};
use super::turn::why;
use crate::suite::agent::Reset;

/// How long a reset may take.
const WITHIN: Duration = Duration::from_secs(5);

/// Carries a reset out; nothing where the suite names no way.
pub(super) async fn reset(way: Option<&Reset>, client: &Client) -> Result<(), ResetError> {
    match way {
        None => Ok(()),
        Some(Reset::Endpoint(endpoint)) => by_endpoint(endpoint, client).await,
        Some(Reset::Command(words)) => by_command(words).await,
        Some(Reset::Function(_)) => Err(ResetError::WrongWay("`reset_function`")),
    }
}

async fn by_endpoint(endpoint: &str, client: &Client) -> Result<(), ResetError> {
    let asked = client.post(endpoint).timeout(WITHIN).send().await;
    match asked {
        Ok(response) if response.status().is_success() => Ok(()),
        Ok(response) => Err(ResetError::Refused {
            endpoint: endpoint.to_owned(),
            status: response.status().as_u16(),
        }),
        Err(error) => Err(ResetError::Unanswered {
            endpoint: endpoint.to_owned(),
            why: why(&error),
        }),
    }
}

async fn by_command(words: &[String]) -> Result<(), ResetError> {
    let nothing: [(&str, &str); 0] = [];
    let failed = |why: String| {
        Err(ResetError::Failed {
            program: words[0].clone(),
            why,
        })
    };
    match program::run(words, nothing, "", WITHIN).await {
        Ok(ended) if ended.status.success() => Ok(()),
        Ok(ended) => failed(ended.why()),
        Err(NotEnded::TooSlow) => failed(format!("it took more than {} s", WITHIN.as_secs())),
        Err(NotEnded::NotStarted(error) | NotEnded::Broken(error)) => failed(error.to_string()),
    }
}
