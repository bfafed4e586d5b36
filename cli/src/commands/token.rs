//! `squall token`: who may use the daemon's control API.

use serde::Deserialize;
use serde_json::{Value, json};

use squall_control_api::store::DEFAULT_WORKSPACE;

use crate::args::{Remote, Token};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;
use crate::render::table::Table;

const TOKENS: &str = "/v1/tokens";

pub(super) async fn run(action: Token) -> Result<(), Failure> {
    match action {
        Token::Create {
            name,
            role,
            workspace,
            remote,
        } => create(&name, role.as_str(), workspace.as_deref(), &remote).await,
        Token::List(remote) => list(&remote).await,
        Token::Revoke {
            name,
            workspace,
            remote,
        } => revoke(&name, workspace.as_deref(), &remote).await,
    }
}

/// The secret is the one thing on stdout, so that a script can take it from there.
async fn create(
    name: &str,
    role: &str,
    workspace: Option<&str>,
    remote: &Remote,
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
        Some(other) => format!(" of workspace {other}"),
    };
    output::tell_line(&format!(
        "token {}, {role}{workspace}; it is not shown again. Commands take it as SQUALL_TOKEN or `--token`, other \
         programs send `Authorization: Bearer …`",
        paint.name(name)
    ));
    Ok(())
}

/// A line of `GET /v1/tokens`.
#[derive(Deserialize)]
struct Listed {
    name: String,
    role: String,
    workspace: String,
    source: String,
    created_at: Option<String>,
}

async fn list(remote: &Remote) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    if remote.json {
        let items: Vec<Value> = client.list(TOKENS).await?;
        return output::json(&json!({ "items": items }));
    }
    let items: Vec<Listed> = client.list(TOKENS).await?;
    if items.is_empty() {
        return output::line(
            "no tokens: everybody on this machine may do everything; make one with `squall token create \
             NAME --role admin`",
        );
    }
    let paint = Paint::stdout();
    let mut table = Table::new(["NAME", "ROLE", "WORKSPACE", "FROM", "SINCE"]);
    for listed in items {
        table.row([
            paint.name(&listed.name),
            listed.role,
            listed.workspace,
            listed.source,
            listed.created_at.unwrap_or_default(),
        ]);
    }
    output::print(&table.render())
}

async fn revoke(name: &str, workspace: Option<&str>, remote: &Remote) -> Result<(), Failure> {
    let mut path = format!("{TOKENS}/{}", segment(name));
    if let Some(workspace) = workspace {
        path = format!("{path}?workspace={}", segment(workspace));
    }
    Client::new(remote)?.delete(&path).await?;
    let told = format!("token {name} is revoked");
    output::done(remote.json, &json!({ "revoked": name }), &told)
}
