//! `squall token`: manages the tokens of the control API.

use serde_json::{Value, json};

use squall_control_api::store::DEFAULT_WORKSPACE;

use super::print_list;
use crate::args::{RemoteArgs, TokenCommand};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

const TOKENS: &str = "/v1/tokens";

pub(super) async fn run(action: TokenCommand) -> Result<(), Failure> {
    match action {
        TokenCommand::Create {
            name,
            role,
            workspace,
            remote,
        } => create(&name, &role, workspace.as_deref(), &remote).await,
        TokenCommand::List(remote) => list(&remote).await,
        TokenCommand::Revoke {
            name,
            workspace,
            remote,
        } => revoke(&name, workspace.as_deref(), &remote).await,
    }
}

/// Only the secret is on stdout, for scripts.
async fn create(
    name: &str,
    role: &str,
    workspace: Option<&str>,
    remote: &RemoteArgs,
) -> Result<(), Failure> {
    let mut body = json!({ "name": name, "role": role });
    if let Some(workspace) = workspace {
        body["workspace"] = json!(workspace);
    }
    let made: Value = Client::new(remote)?.post(TOKENS, &body).await?;
    if remote.json {
        return output::json(&made);
    }
    let secret = made["token"].as_str().unwrap_or_default();
    output::line(secret)?;
    let paint = Paint::stderr();
    let workspace = match made["workspace"].as_str() {
        Some(DEFAULT_WORKSPACE) | None => String::new(),
        Some(other) => format!(", workspace {other}"),
    };
    output::tell_line(&format!(
        "token {}, role {role}{workspace}; the secret is not shown again. Pass it to commands as SQUALL_TOKEN or `--token`; \
         other programs send `Authorization: Bearer …`",
        paint.name(name)
    ));
    Ok(())
}

async fn list(remote: &RemoteArgs) -> Result<(), Failure> {
    let items: Vec<Value> = Client::new(remote)?.list(TOKENS).await?;
    let columns = [
        ("NAME", "name", ""),
        ("ROLE", "role", ""),
        ("WORKSPACE", "workspace", ""),
        ("SOURCE", "source", ""),
        ("CREATED", "created_at", ""),
    ];
    let empty = "no tokens: every local program has full access; create one with `squall token create NAME --role admin`";
    print_list(&items, remote.json, &columns, empty)
}

async fn revoke(name: &str, workspace: Option<&str>, remote: &RemoteArgs) -> Result<(), Failure> {
    let mut path = format!("{TOKENS}/{}", segment(name));
    if let Some(workspace) = workspace {
        path = format!("{path}?workspace={}", segment(workspace));
    }
    Client::new(remote)?.delete(&path).await?;
    let line = format!("token {name} is revoked");
    output::done(remote.json, &json!({ "revoked": name }), &line)
}
