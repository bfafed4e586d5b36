//! The interception floor: hudsucker with no handler, the run's authority and the same TLS provider.

use anyhow::{Context as _, Result};
use hudsucker::certificate_authority::RcgenAuthority;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use rcgen::{Issuer, KeyPair};
use rustls::crypto::ring;
use tokio::net::TcpListener;

use crate::pki::{Pki, client_config};

/// Leaves hudsucker keeps; more than any row asks for, so that "cached" is cached.
const LEAVES: u64 = 100_000;

/// Serves until the process is killed.
pub async fn serve(pki: &Pki) -> Result<()> {
    let key = KeyPair::from_pem(&std::fs::read_to_string(&pki.ca_key)?)?;
    let issuer = Issuer::from_ca_cert_pem(&std::fs::read_to_string(&pki.ca)?, key)?;
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    let mut tls = client_config(&pki.ca)?.as_ref().clone();
    tls.resumption = rustls::client::Resumption::default();
    tls.alpn_protocols.clear();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("ready http={}", listener.local_addr()?.port());
    hudsucker::Proxy::builder()
        .with_listener(listener)
        .with_ca(RcgenAuthority::new(
            issuer,
            LEAVES,
            ring::default_provider(),
        ))
        .with_http_connector(connector.wrap_connector(http))
        .build()
        .context("hudsucker cannot be set up")?
        .start()
        .await
        .context("hudsucker stopped")
}
