//! Real client stacks through the proxy, told only of the proxy and its CA.

use std::fs;

use serde_json::json;
use squall_tests::daemon::squall;
use squall_tests::program::{python, script};
use squall_tests::{Path, Stage};

#[test]
fn every_stack_gets_the_same_bytes_and_sends_its_own_headers_on_every_path() {
    let stage = Stage::new();
    // The first three belong to the hop; undici accepts one more coding over TLS.
    let other = ["host", "connection", "proxy-connection", "accept-encoding"];
    let own = |path| {
        let mut headers = stage.upstream(path).request_to("/bytes/100000").headers;
        headers.retain(|(name, _)| !other.contains(&name.to_lowercase().as_str()));
        headers
    };
    for stack in [
        "requests_get.py",
        "httpx_get.py",
        "aiohttp_get.py",
        "fetch.mjs",
    ] {
        let ask = |path| stage.way(path, "/bytes/100000").ask(stack, &[]);
        let straight = (ask(Path::Direct), own(Path::Direct));
        assert_eq!(straight.0["status"], 200, "{stack}: {straight:?}");
        for path in Path::THROUGH {
            let through = (ask(path), own(path));
            assert_eq!(through, straight, "{path:?} {stack}");
        }
    }
}

#[test]
fn run_points_a_program_with_the_official_client_at_squall_with_nothing_else_configured() {
    let stage = Stage::new();
    let dir = tempfile::TempDir::new().unwrap();
    // The only thing said is who vouches for the upstream, which a real one would not need.
    let config = dir.path().join("squall.yaml");
    let upstream_ca = stage.authority.file();
    fs::write(
        &config,
        json!({ "proxy": { "upstream_ca": [upstream_ca] } }).to_string(),
    )
    .unwrap();
    for (profile, ok) in [("none", true), ("rate_limit_storm", false)] {
        let output = squall(&dir.path().join("home"))
            .args(["run", "--seed", "1", "--profile", profile])
            .arg("-c")
            .arg(&config)
            .arg("--")
            .arg(python())
            .arg(script("openai_chat.py"))
            .args(["--url", &stage.url(Path::Intercepted, "/v1")])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let summary = String::from_utf8_lossy(&output.stderr);
        let told: serde_json::Value = serde_json::from_str(said.lines().last().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{profile}: {said}\n{summary}"));
        assert!(output.status.success(), "{profile}: {summary}");
        if ok {
            assert_eq!(told["ok"], true, "{told}\n{summary}");
        } else {
            // The storm may spare one call; its summary tells either way.
            assert!(
                told["ok"] == true || told["status"] == 429,
                "{told}\n{summary}"
            );
        }
        assert!(!summary.trim().is_empty(), "{profile}: no summary");
    }
}

#[test]
fn run_hands_out_every_variable_and_passes_on_the_exit_code() {
    let dir = tempfile::TempDir::new().unwrap();
    let output = squall(&dir.path().join("home"))
        .args(["run", "--", "sh", "-c", "env; exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    let value = |name: &str| {
        let line = said
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("no {name} in {said}"))
            .to_owned()
    };
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        assert!(
            value(name).starts_with("http://127.0.0.1:"),
            "{name}={}",
            value(name)
        );
    }
    assert_eq!(
        (value("NO_PROXY").as_str(), value("no_proxy").as_str()),
        ("", "")
    );
    for name in [
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "AWS_CA_BUNDLE",
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        "DENO_CERT",
        "PIP_CERT",
        "GIT_SSL_CAINFO",
    ] {
        let bundle = value(name);
        assert!(bundle.starts_with('/'), "{name}={bundle}");
    }
    assert_eq!(value("NODE_USE_ENV_PROXY"), "1");
}
