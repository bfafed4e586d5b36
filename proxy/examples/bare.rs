//! temp
use squall_proxy::*;
use std::sync::Arc;
fn main() {
    tracing_subscriber::fmt::init();
    let mut config = config::ProxyConfig::with_home("/tmp/sqhome".into());
    config.listen = std::env::args().nth(1).unwrap().parse().unwrap();
    if let Some(up) = std::env::args().nth(2) {
        config.routes.push(config::Route {
            name: "up".into(),
            entry: config::RouteEntry::Prefix("/".into()),
            upstream: up.parse().unwrap(),
            scope: None,
        });
    }
    let metrics = Arc::new(metrics::Metrics::new("0"));
    let recorder = recorder::Recorder::start(Default::default(), metrics.clone()).unwrap();
    let chaos = make_chaos(&recorder, &metrics);
    let ca = Arc::new(tls::CertificateAuthority::load_or_create("/tmp/sqhome".as_ref()).unwrap());
    let p = Proxy::start(
        config,
        Parts {
            chaos,
            recorder,
            metrics,
            ca,
        },
    )
    .unwrap();
    eprintln!("proxy on {}", p.address());
    loop {
        std::thread::park();
    }
}
fn make_chaos(r: &recorder::Recorder, m: &Arc<metrics::Metrics>) -> Arc<chaos::Chaos> {
    chaos::Chaos::new(
        squall_profiles::library::Library::builtin(),
        Default::default(),
        Default::default(),
        r.clone(),
        m.clone(),
    )
}
