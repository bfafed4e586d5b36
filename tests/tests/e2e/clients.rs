//! Real client stacks through the proxy, told only of the proxy and its CA.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use squall_tests::daemon::squall;
use squall_tests::program::{clean, python, script};
use squall_tests::upstream::standard::{JSON, TOOL, pattern};
use squall_tests::{Path, Stage};

#[test]
fn curl_gets_the_same_bytes_on_every_path() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        let output = stage.way(path, "/bytes/100000").curl(&[]);
        assert!(output.status.success(), "{path:?}: {output:?}");
        assert!(
            output.stdout == pattern(100_000),
            "{path:?}: {} bytes",
            output.stdout.len()
        );
        // curl decompresses by itself: the compressed bytes must have been intact.
        let output = stage.way(path, "/gzip").curl(&["--compressed"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), TOOL, "{path:?}");
        let output =
            stage
                .way(path, "/upload")
                .curl(&["--data-binary", "hello", "--request", "PUT"]);
        assert!(output.stdout.ends_with(b"hello"), "{path:?}: {output:?}");
    }
}

#[test]
fn every_stack_gets_the_same_bytes_on_every_path() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for stack in [
            "requests_get.py",
            "httpx_get.py",
            "aiohttp_get.py",
            "fetch.mjs",
        ] {
            let straight = stage.way(Path::Direct, "/bytes/100000").ask(stack, &[]);
            let through = stage.way(path, "/bytes/100000").ask(stack, &[]);
            assert_eq!(through["status"], 200, "{path:?} {stack}: {through}");
            assert_eq!(through["sha256"], straight["sha256"], "{path:?} {stack}");
            assert_eq!(through["headers"], straight["headers"], "{path:?} {stack}");
            let posted = stage
                .way(path, "/upload")
                .ask(stack, &["--method", "POST", "--data", "hello"]);
            let text = posted["text"].as_str().unwrap_or_default();
            assert!(text.ends_with("hello"), "{path:?} {stack}: {posted}");
        }
    }
}

#[test]
fn a_program_s_own_headers_are_what_the_upstream_sees() {
    let stage = Stage::new();
    for path in Path::THROUGH {
        for stack in [
            "requests_get.py",
            "httpx_get.py",
            "aiohttp_get.py",
            "fetch.mjs",
        ] {
            stage.way(Path::Direct, "/seen").ask(stack, &[]);
            let straight = stage.plain.request_to("/seen");
            stage.way(path, "/seen").ask(stack, &[]);
            let through = stage.upstream(path).request_to("/seen");
            // The first three belong to the hop; undici accepts one more coding over TLS.
            let other = ["host", "connection", "proxy-connection", "accept-encoding"];
            let names = |request: &squall_tests::upstream::Request| -> Vec<(String, String)> {
                let kept = |name: &str| !other.contains(&name.to_lowercase().as_str());
                request
                    .headers
                    .iter()
                    .filter(|(name, _)| kept(name))
                    .cloned()
                    .collect()
            };
            assert_eq!(names(&through), names(&straight), "{path:?} {stack}");
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

#[test]
fn run_serves_curl_over_https_from_its_variables_alone() {
    let stage = Stage::new();
    let dir = tempfile::TempDir::new().unwrap();
    let config = dir.path().join("squall.yaml");
    let upstream_ca = stage.authority.file();
    fs::write(
        &config,
        json!({ "proxy": { "upstream_ca": [upstream_ca] } }).to_string(),
    )
    .unwrap();
    let output = squall(&dir.path().join("home"))
        .args(["run", "-c"])
        .arg(&config)
        .args([
            "--",
            "curl",
            "--silent",
            "--show-error",
            &stage.url(Path::Intercepted, "/json"),
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), JSON, "{output:?}");
}

#[test]
fn the_authority_is_kept_from_everybody_else_and_stays_the_same() {
    let stage = Stage::new();
    let home = &stage.daemon.home;
    let mut keys = Vec::new();
    let mut folders = vec![home.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if fs::read_to_string(entry.path())
                .is_ok_and(|text| text.contains("PRIVATE KEY"))
            {
                keys.push(entry.path());
            }
        }
    }
    assert_eq!(keys.len(), 1, "{keys:?}");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&keys[0]), 0o600, "{keys:?}");
    assert_eq!(mode(keys[0].parent().unwrap()), 0o700);
    let shown = squall(home).args(["ca", "export"]).output().unwrap();
    let exported = String::from_utf8_lossy(&shown.stdout);
    let served = fs::read_to_string(&stage.daemon.ca).unwrap();
    assert!(exported.contains(served.trim()), "{shown:?}");
    assert!(
        !exported.contains("PRIVATE KEY"),
        "the key left the machine's owner"
    );
}

#[test]
fn openssl_finds_a_leaf_in_order() {
    let stage = Stage::new();
    let output = clean("openssl")
        .args([
            "s_client",
            "-connect",
            &stage.secure_authority(),
            "-servername",
            "localhost",
        ])
        .args([
            "-proxy",
            &stage.daemon.proxy.to_string(),
            "-verify_return_error",
            "-brief",
        ])
        .arg("-CAfile")
        .arg(&stage.daemon.ca)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("Verification: OK"),
        "{said}{}",
        String::from_utf8_lossy(&output.stdout)
    );
}
