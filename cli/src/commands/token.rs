//! `squall token`: manages the tokens of the control API.

use serde_json::{Value, json};

use squall_control_api::store::DEFAULT_WORKSPACE;

use super::print_list;
use crate::args::{RemoteArgs, TokenCommand};
use crate::client::{Client, path};
use crate::failure::Failure;
use crate::render::output;
use crate::render::paint::Paint;

const TOKENS: &str = "/v1/tokens";

const COLUMNS: [(&str, &str, &str); 5] = [
    ("NAME", "name", ""),
    ("ROLE", "role", ""),
    ("WORKSPACE", "workspace", ""),
    ("SOURCE", "source", ""),
    ("CREATED", "created_at", ""),
];

const NONE: &str = "no tokens: every local program has full access; create one with `squall token create NAME --role \
                    admin`";

pub(super) async fn run(action: TokenCommand, remote: RemoteArgs) -> Result<(), Failure> {
    let client = Client::new(&remote)?;
    match action {
        TokenCommand::Create {
            name,
            role,
            workspace,
        } => {
            let mut body = json!({ "name": name, "role": role });
            if let Some(workspace) = workspace {
                body["workspace"] = json!(workspace);
            }
            let created: Value = client.post(TOKENS, &body).await?;
            if remote.json {
                return output::json(&created);
            }
            // Only the secret is on stdout, for scripts.
            output::line(created["token"].as_str().unwrap_or_default())?;
            let workspace = match created["workspace"].as_str() {
                Some(DEFAULT_WORKSPACE) | None => String::new(),
                Some(other) => format!(", workspace {other}"),
            };
            output::report_line(&format!(
                "token {}, role {role}{workspace}; the secret is not shown again. Pass it to commands as SQUALL_TOKEN \
                 or `--token`; other programs send `Authorization: Bearer …`",
                Paint::stderr().name(name)
            ));
            Ok(())
        }
        TokenCommand::List => {
            let items = client.list(TOKENS).await?;
            print_list(&items, remote.json, &COLUMNS, NONE)
        }
        TokenCommand::Revoke { name, workspace } => {
            let of_workspace = [("workspace", workspace)];
            client
                .delete(&path(&[TOKENS, &name], &of_workspace))
                .await?;
            let line = format!("token {name} is revoked");
            output::result(remote.json, &json!({ "revoked": name }), &line)
        }
    }
}
