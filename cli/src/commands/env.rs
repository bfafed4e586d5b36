//! `squall env`: the variables that point any program at a running daemon's proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use squall_proxy::tls::Bundle;

use crate::args::Env;
use crate::client::Client;
use crate::failure::Failure;
use crate::home::home;
use crate::pointing::{self, Variable};
use crate::render::output;

pub(super) async fn run(env: Env) -> Result<(), Failure> {
    let client = Client::new(&env.remote)?;
    let authority = proxy_authority(&client).await?;
    let bundle = bundle(&client, &home()?).await?;
    let variables = pointing::variables(&authority, env.scope.as_deref(), &bundle);
    if env.remote.json {
        return output::json(&document(&variables));
    }
    output::document(&pointing::script(env.shell, &variables))
}

/// What `/readyz` says about listeners.
#[derive(Deserialize)]
struct Ready {
    listeners: Vec<Listening>,
}

#[derive(Deserialize)]
struct Listening {
    name: String,
    address: SocketAddr,
}

/// Where programs on this machine reach the proxy.
async fn proxy_authority(client: &Client) -> Result<String, Failure> {
    let ready: Ready = client.get("/readyz").await?;
    let proxy = ready
        .listeners
        .iter()
        .find(|listener| listener.name == "proxy");
    let address = proxy
        .map(|listener| listener.address)
        .ok_or_else(|| Failure::CouldNotRun(format!("{} has no proxy", client.server())))?;
    // A proxy that listens everywhere is where its API is.
    Ok(if address.ip().is_unspecified() {
        format!("{}:{}", client.host(), address.port())
    } else {
        address.to_string()
    })
}

/// A file of roots for the daemon's CA, which need not be the one of this machine.
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
