//! `squall env`: the variables that point any program at a running daemon's proxy.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use squall_proxy::tls::Bundle;

use crate::args::EnvArgs;
use crate::client::Client;
use crate::failure::Failure;
use crate::home::home;
use crate::pointing::{self, Variable};
use crate::render::output;

pub(super) async fn run(env: EnvArgs) -> Result<(), Failure> {
    let client = Client::new(&env.remote)?;
    let authority = proxy_authority(&client).await?;
    let bundle = bundle(&client, &home()?).await?;
    let variables = pointing::variables(&authority, env.scope.as_deref(), &bundle);
    if env.remote.json {
        return output::json(&document(&variables));
    }
    output::document(&pointing::script(env.shell.language(), &variables))
}

/// The address at which local programs reach the proxy.
async fn proxy_authority(client: &Client) -> Result<String, Failure> {
    let address = client.proxy().await?;
    // A proxy on all addresses has the host of its API.
    Ok(if address.ip().is_unspecified() {
        format!("{}:{}", client.host(), address.port())
    } else {
        address.to_string()
    })
}

/// A bundle with the CA of the daemon, which may run on another machine.
async fn bundle(client: &Client, home: &Path) -> Result<PathBuf, Failure> {
    let certificate = client.get_text("/ca.pem", "application/x-pem-file").await?;
    Ok(Bundle::of(&certificate, home)?.path)
}

fn document(variables: &[Variable]) -> Value {
    let members = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone().into()));
    Value::Object(members.collect::<Map<_, _>>())
}
