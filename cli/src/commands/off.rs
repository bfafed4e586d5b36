//! `squall off`: ends all chaos in one swap, or one scope's.

use serde_json::json;

use super::chaos_path;
use crate::args::Off;
use crate::client::Client;
use crate::failure::Failure;
use crate::render::output;

pub(super) async fn run(off: Off) -> Result<(), Failure> {
    let client = Client::new(&off.remote)?;
    let (path, said) = match &off.scope {
        Some(scope) => (
            chaos_path(Some(scope)),
            format!("scope {scope} has no chaos of its own"),
        ),
        None => (
            "/v1/chaos?all=true".to_owned(),
            "all chaos is over".to_owned(),
        ),
    };
    client.delete(&path).await?;
    if off.remote.json {
        output::json(&json!({ "ended": off.scope.as_deref().unwrap_or("all") }))
    } else {
        output::line(&said)
    }
}
