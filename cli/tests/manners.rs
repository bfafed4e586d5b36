//! How the binary behaves towards whoever runs it: exit codes, signals, ready lines, reloads.

#![expect(
    clippy::unwrap_used,
    reason = "what the functions below cannot do fails the test"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A directory of its own for the CA and the working directory, and nothing of ours in the
/// environment.
struct Sandbox(TempDir);

impl Sandbox {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: &str) {
        // In one step, as editors do: a half-written file must not be what is read.
        let draft = self.path().join(".draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(draft, self.path().join(name)).unwrap();
    }

    fn pipe(&self, name: &str) {
        let made = Command::new("mkfifo").arg(self.path().join(name)).status();
        assert!(made.unwrap().success());
    }

    fn squall(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_squall"));
        command
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::null());
        let ours = std::env::vars_os().map(|(name, _)| name);
        for name in ours.filter(|name| name.to_string_lossy().starts_with("SQUALL_")) {
            command.env_remove(name);
        }
        command
            .env("SQUALL_HOME", self.path().join("home"))
            .env("NO_COLOR", "1");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.squall(arguments).output().unwrap()
    }

    /// Runs a command that ends with this code and has this on standard error.
    #[track_caller]
    fn ends(&self, arguments: &[&str], code: i32, part: &str) -> Output {
        let output = self.run(arguments);
        let stderr = stderr(&output);
        let ended = (output.status.code(), stderr.contains(part));
        assert_eq!(ended, (Some(code), true), "{arguments:?}: {part}: {stderr}");
        output
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// A daemon that has said where it listens.
struct Daemon {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStderr>>,
    proxy: String,
    api: String,
}

impl Daemon {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::spawn(sandbox.squall(arguments))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut ready = |prefix: &str| {
            let line = lines.next().expect("a ready line").unwrap();
            line.strip_prefix(prefix)
                .unwrap_or_else(|| panic!("{line}"))
                .to_owned()
        };
        let (proxy, api) = (ready("proxy on "), ready("api on "));
        Self {
            child,
            lines,
            proxy,
            api,
        }
    }

    /// Reads the log up to a line that holds `text`.
    fn log_until(&mut self, text: &str) -> String {
        loop {
            let line = self
                .lines
                .next()
                .unwrap_or_else(|| panic!("no `{text}`"))
                .unwrap();
            if line.contains(text) {
                return line;
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FREE: [&str; 5] = ["serve", "--proxy", "127.0.0.1:0", "--api", "127.0.0.1:0"];

#[test]
fn what_is_no_daemon_s_address_is_a_wrong_call() {
    let sandbox = Sandbox::new();
    for server in ["ftp://127.0.0.1:7071", "http://", "nonsense://x"] {
        let mut command = sandbox.squall(&["token", "list"]);
        let output = command.env("SQUALL_SERVER", server).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{server}: {said}");
        assert!(said.contains(server), "{server}: {said}");
    }
}

#[test]
fn completions_and_man_pages_cover_the_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.run(&["completions", shell]);
        let script = String::from_utf8_lossy(&script.stdout).into_owned();
        assert!(script.contains("min-score"), "{shell}");
    }
    let written = sandbox.run(&["man", "pages"]);
    assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
    let page = sandbox.path().join("pages/squall-contract-run.1");
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains("concurrency")
    );
}

#[test]
fn a_token_that_is_set_to_nothing_is_none() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &FREE);
    let mut command = sandbox.squall(&["token", "list", "--server", &daemon.api]);
    let output = command.env("SQUALL_TOKEN", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.squall(&["status"]);
    let output = command.env("SQUALL_SERVER", "").output().unwrap();
    // The usual address is asked, where another daemon may require a token.
    let usual = ["127.0.0.1:7071", "401"];
    assert!(usual.iter().any(|part| stderr(&output).contains(part)) || output.status.success());
    let mut command = sandbox.squall(&["run", "--", "true"]);
    let output = command.env("SQUALL_SEED", "").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_program_s_exit_code_is_ours() {
    let sandbox = Sandbox::new();
    sandbox.write("not-executable", "");
    for (program, code, said) in [
        (&["true"][..], 0, ""),
        (&["sh", "-c", "exit 7"], 7, ""),
        (&["sh", "-c", "kill -TERM $$"], 143, ""),
        (&["there-is-no-such-program"], 127, "was not found"),
        (&["./not-executable"], 126, "may not be executed"),
    ] {
        sandbox.ends(&[&["run", "--"][..], program].concat(), code, said);
    }
}

#[test]
fn input_and_output_pass_through_and_the_summary_goes_to_stderr() {
    let sandbox = Sandbox::new();
    let script =
        "read line; echo \"got $line\"; echo \"$http_proxy\" >&2; cat \"$SSL_CERT_FILE\" | tail -1";
    let mut child = sandbox
        .squall(&["run", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"a line\n").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(stdout, "got a line\n-----END CERTIFICATE-----\n");
    let said = stderr(&output);
    assert!(said.starts_with("http://127.0.0.1:"), "{said}");
    assert!(said.contains("0 exchanges through the proxy"), "{said}");
}

#[test]
fn signals_are_passed_on() {
    for (signal, name) in [
        (Signal::INT, "INT"),
        (Signal::TERM, "TERM"),
        (Signal::HUP, "HUP"),
    ] {
        let sandbox = Sandbox::new();
        // KILL: between its fork and its exec the sleeper is still a shell with that trap set, and
        // would note a TERM and forget it.
        let script = format!(
            "trap 'echo got {name}; kill -KILL $!; wait; exit 3' {name}; \
             sleep 60 & echo ready; wait"
        );
        let mut child = sandbox
            .squall(&["run", "--quiet", "--", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        send(&child, signal);
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, format!("got {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(3), "{name}");
    }
}

#[test]
#[rustfmt::skip]
fn invalid_use_differs_from_what_could_not_run() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.yaml", "proxy:\n  lisen: 127.0.0.1:1\n");
    sandbox.write("exposed.yaml", "proxy: { listen: 0.0.0.0:0 }\n");
    sandbox.pipe("pipe");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let unknown = "bad.yaml:2:3: unknown field `lisen`, did you mean";
    for (arguments, code, part) in [
        ("certificate verify /dev/zero", 2, "no regular file"),
        ("run --record pipe -- true", 2, "a pipe"),
        ("run --replay a.har -- true", 2, "an HTTP archive cannot be played"),
        ("serve -c bad.yaml", 2, unknown),
        ("serve -c absent.yaml", 2, "absent.yaml: cannot be read"),
        ("serve -c exposed.yaml", 2, "narrow `proxy.allow`"),
        ("serve --api 0.0.0.0:0", 2, "without a token"),
        ("serve --log-level inof", 2, "did you mean `info`?"),
        ("serve --profile brownot --proxy 127.0.0.1:0", 2, "unknown profile"),
        ("serve --proxy TAKEN --api 127.0.0.1:0", 3, "cannot listen on"),
        ("serve --proxy 127.0.0.1:0 --api TAKEN", 3, "cannot listen on"),
        ("status --server 127.0.0.1:1", 3, "no daemon answers"),
        ("serve --seed -1", 2, "a seed is a whole number from 0 to"),
        ("env --scope a/b", 2, "`a/b` is not a valid scope name; use 1 to 128"),
        ("sreve", 2, "serve"),
        ("run", 2, "CMD"),
    ] {
        let words = arguments.split(' ');
        let words = words.map(|word| if word == "TAKEN" { &taken } else { word });
        sandbox.ends(&words.collect::<Vec<_>>(), code, part);
    }
}

#[test]
#[rustfmt::skip]
fn a_file_that_a_configuration_names_is_missed_where_it_is_named() {
    let sandbox = Sandbox::new();
    let made = sandbox.run(&["ca", "export", "--output", "ca.pem"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    sandbox.pipe("pipe");
    sandbox.write("empty.pem", "");
    for (text, error) in [
        (
            "proxy:\n  upstream_ca:\n    - ca.pem\n    - absent.pem\n",
            "4:7: `proxy.upstream_ca`: absent.pem: ",
        ),
        (
            "proxy: { upstream_ca: [empty.pem] }\n",
            "1:24: `proxy.upstream_ca`: empty.pem: no certificate in it",
        ),
        ("# mine\nprofiles: ./absent\n", "2:11: `profiles`: ./absent: the directory cannot be read"),
        ("proxy: { upstream_ca: [pipe] }\n", "1:24: `proxy.upstream_ca`: pipe: it is no regular file"),
    ] {
        sandbox.write("squall.yaml", text);
        sandbox.ends(&FREE, 2, &format!("squall.yaml:{error}"));
    }
    for (ca, error) in [
        ("cert: absent.pem, key: home/ca.key", "15: `proxy.ca`: cannot read absent.pem"),
        ("cert: empty.pem, key: home/ca.key", "15: `proxy.ca`: empty.pem holds no certificate"),
        ("cert: pipe, key: home/ca.key", "15: `proxy.ca`: cannot read pipe: it is no regular file"),
        ("cert: ca.pem, key: absent.key", "15: `proxy.ca`: the key absent.key does not exist"),
        ("cert: ca.pem, key: ca.pem", "28: `proxy.ca`: ca.pem "),
    ] {
        sandbox.write("squall.yaml", &format!("proxy:\n  ca: {{ {ca} }}\n"));
        sandbox.ends(&FREE, 2, &format!("squall.yaml:2:{error}"));
    }
}

#[test]
fn two_files_with_one_profile_are_an_error_that_names_both() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("profiles")).unwrap();
    sandbox.write("squall.yaml", "profiles: profiles\n");
    let profile = "name: same\ntool_faults: [{ mode: error }]\n";
    sandbox.write("profiles/b.yaml", profile);
    let mut daemon = Daemon::start(&sandbox, &FREE);
    daemon.log_until("started");
    sandbox.write(
        "profiles/a.yaml",
        &format!("{profile}description: the other\n"),
    );
    let said = "profiles/b.yaml has a profile called `same` too";
    let line = daemon.log_until(said);
    assert!(line.contains("profiles/a.yaml"), "{line}");
    assert!(api(&daemon, "/readyz").contains(said));
    assert!(!api(&daemon, "/v1/profiles/same").contains("the other"));
    let said = "profiles/a.yaml has a profile called `same` too";
    for arguments in [
        &FREE[..],
        &["profile", "validate", "profiles/a.yaml", "profiles/b.yaml"],
    ] {
        let output = sandbox.ends(arguments, 2, said);
        assert!(stderr(&output).contains("profiles/b.yaml:"));
    }
}

#[test]
fn a_file_that_cannot_be_read_hides_nothing_of_the_others() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "tool_faults: [{ mode: eror }]\n");
    for part in ["missing.yaml: cannot be read", "a.yaml:1:", "`eror`"] {
        sandbox.ends(&["profile", "validate", "missing.yaml", "a.yaml"], 2, part);
    }
}

#[test]
fn a_private_daemon_needs_no_port_of_the_configuration() {
    let sandbox = Sandbox::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    sandbox.write(
        "squall.yaml",
        &format!("routes: [{{ name: own, listen: \"{taken}\", upstream: http://a.example }}]\n"),
    );
    sandbox.ends(&["run", "--", "true"], 0, "route own on http://127.0.0.1:");
    sandbox.ends(&FREE, 3, &format!("route `own` cannot listen on {taken}"));
}

#[test]
fn the_proxy_is_not_taken_for_its_control_api() {
    for config in ["", "proxy: { credentials: required }\n"] {
        let sandbox = Sandbox::new();
        sandbox.write("squall.yaml", config);
        let daemon = Daemon::start(&sandbox, &FREE);
        for command in ["status", "env", "off"] {
            let error = "is Squall's proxy, not its control API";
            sandbox.ends(&[command, "--server", &daemon.proxy], 3, error);
        }
    }
}

#[test]
fn a_daemon_ends_in_good_order() {
    for (signal, code) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let sandbox = Sandbox::new();
        let mut daemon = Daemon::start(&sandbox, &FREE);
        send(&daemon.child, signal);
        assert_eq!(
            daemon.child.wait().unwrap().code(),
            Some(code),
            "{signal:?}"
        );
    }
}

#[test]
fn a_second_signal_ends_a_daemon_at_once() {
    let sandbox = Sandbox::new();
    let mut daemon = Daemon::start(&sandbox, &[&FREE[..], &["--grace", "10m"]].concat());
    // An upstream that never answers keeps one exchange open.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", upstream.local_addr().unwrap());
    let mut agent =
        std::net::TcpStream::connect(daemon.proxy.strip_prefix("http://").unwrap()).unwrap();
    let request = format!("GET {url} HTTP/1.1\r\nhost: upstream\r\n\r\n");
    std::io::Write::write_all(&mut agent, request.as_bytes()).unwrap();
    let (mut connection, _) = upstream.accept().unwrap();
    connection.read_exact(&mut [0; 4]).unwrap();
    send(&daemon.child, Signal::TERM);
    daemon.log_until("stopping");
    assert!(
        daemon.child.try_wait().unwrap().is_none(),
        "it must wait for the exchange"
    );
    send(&daemon.child, Signal::TERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_changed_file_is_taken_over_and_a_broken_one_is_not() {
    let sandbox = Sandbox::new();
    sandbox.write("squall.yaml", "proxy: { annotate: false }\n");
    let mut daemon = Daemon::start(&sandbox, &FREE);
    daemon.log_until("started");
    sandbox.write("squall.yaml", "proxy:\n  anotate: true\n");
    daemon.log_until("squall.yaml:2:3: unknown field `anotate`, did you mean `annotate`?");
    let status = sandbox.run(&["status", "--server", &daemon.api]);
    assert!(String::from_utf8_lossy(&status.stdout).contains("squall.yaml:2:3"));
    sandbox.write(
        "squall.yaml",
        "proxy:\n  annotate: true\n  limits: { connections: 9 }\n",
    );
    let line = daemon.log_until("reloaded");
    assert!(line.contains("proxy.limits.connections"), "{line}");
    let status = sandbox.run(&["status", "--server", &daemon.api]);
    assert!(!String::from_utf8_lossy(&status.stdout).contains("squall.yaml:2:3"));
    send(&daemon.child, Signal::HUP);
    daemon.log_until("reloaded");
}

#[test]
fn the_variables_point_at_the_running_proxy() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &FREE);
    let output = sandbox.run(&["env", "--server", &daemon.api, "--scope", "job-7", "--json"]);
    let variables: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let authority = daemon.proxy.strip_prefix("http://").unwrap();
    assert_eq!(
        variables["https_proxy"],
        format!("http://job-7:x@{authority}")
    );
    assert_eq!(variables["NO_PROXY"], "");
    let bundle = variables["SSL_CERT_FILE"].as_str().unwrap();
    let certificate = std::fs::read_to_string(sandbox.path().join("home/ca.pem")).unwrap();
    assert!(
        std::fs::read_to_string(bundle)
            .unwrap()
            .ends_with(&certificate)
    );
}

/// The document at a path of a daemon's API, as text.
fn api(daemon: &Daemon, path: &str) -> String {
    ask(&daemon.api, path)
}

/// Asks for `target` at an address, and gives the whole answer.
fn ask(address: &str, target: &str) -> String {
    let address = address.strip_prefix("http://").unwrap();
    let mut agent = std::net::TcpStream::connect(address).unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    std::io::Write::write_all(&mut agent, request.as_bytes()).unwrap();
    let mut answer = String::new();
    agent.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_profile_file_is_put_with_its_variables_expanded() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &FREE);
    let text =
        "tool_faults: [{ mode: error, message: \"at ${SQUALL_TEST_UNSET:-home} for $${X}\" }]\n";
    sandbox.write("mine.yaml", text);
    sandbox.ends(
        &["profile", "put", "mine.yaml", "--server", &daemon.api],
        0,
        "",
    );
    sandbox.ends(&["profile", "use", "mine", "--server", &daemon.api], 0, "");
    let answer = ask(&daemon.proxy, "http://tool.test/");
    assert!(answer.contains("at home for ${X}"), "{answer}");
    let shown = sandbox.run(&["profile", "show", "mine", "--server", &daemon.api]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), text);
    sandbox.write("mine.yaml", "description: \"${SQUALL_TEST_UNSET}\"\n");
    for command in ["put", "validate"] {
        let error = "mine.yaml:1:14: the variable `SQUALL_TEST_UNSET` is not set";
        sandbox.ends(&["profile", command, "mine.yaml"], 2, error);
    }
}

#[test]
fn a_profile_file_is_taken_wherever_a_name_is() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("conf")).unwrap();
    let text = |answer: &str| {
        format!(
            "name: mine\nextends: [brownout]\ntool_faults: [{{ mode: error, message: {answer} }}]\n"
        )
    };
    sandbox.write("conf/mine.yaml", &text("first"));
    sandbox.write("conf/squall.yaml", "chaos: { profile: ./mine.yaml }\n");
    let mut daemon = Daemon::start(&sandbox, &[&FREE[..], &["-c", "conf/squall.yaml"]].concat());
    daemon.log_until("started");
    assert!(ask(&daemon.proxy, "http://tool.test/").contains("first"));
    sandbox.write("conf/mine.yaml", &text("second"));
    daemon.log_until("reloaded");
    assert!(ask(&daemon.proxy, "http://tool.test/").contains("second"));

    let shown = sandbox.run(&["profile", "show", "./conf/mine.yaml"]);
    assert_eq!(String::from_utf8_lossy(&shown.stdout), text("second"));

    let secret =
        "name: sent\nextends: [brownout]\ntool_faults: [{ mode: error, message: 'of ${KEY}' }]\n";
    sandbox.write("sent.yaml", secret);
    let mut used = sandbox.squall(&["profile", "use", "./sent.yaml", "--server", &daemon.api]);
    let used = used.env("KEY", "t0ken-42").output().unwrap();
    assert_eq!(used.status.code(), Some(0), "{}", stderr(&used));
    assert!(ask(&daemon.proxy, "http://tool.test/").contains("of t0ken-42"));
    assert!(!api(&daemon, "/v1/profiles").contains("\"sent\""));
    assert!(!api(&daemon, "/v1/chaos").contains("t0ken"));
}

/// Answers everything that is asked of it alike, as long as the test runs.
fn foreign_server(head: &'static str, body: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else {
                return;
            };
            let mut reader = BufReader::new(connection.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok() && line.trim() != "" {
                line.clear();
            }
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 {head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            // A client that has read enough may be gone.
            let _ = std::io::Write::write_all(&mut connection, answer.as_bytes());
        }
    });
    address
}

#[test]
fn another_server_is_not_taken_for_a_daemon() {
    let sandbox = Sandbox::new();
    for (head, body) in [
        ("200 OK\r\ncontent-type: text/html", "<html>hello</html>"),
        ("200 OK\r\ncontent-type: application/json", "{\"ok\": true}"),
        ("200 OK\r\ncontent-type: application/json", "[]"),
        ("404 Not Found\r\ncontent-type: application/json", "{}"),
    ] {
        let server = foreign_server(head, body);
        let error = format!(
            "squall: http://{server} answers, but it is not Squall's control API; pass the address \
             that `squall serve` prints as `api on http://…` with `--server`\n"
        );
        for command in [
            "status",
            "tail",
            "explain 1",
            "env",
            "profile list",
            "profile show brownout",
        ] {
            let words: Vec<_> = command.split(' ').chain(["--server", &server]).collect();
            let output = sandbox.ends(&words, 3, &error);
            assert_eq!(stderr(&output), error, "{command} {head}");
        }
    }
}

#[test]
fn chaos_that_goes_too_far_is_ended_and_logged_once() {
    let sandbox = Sandbox::new();
    let text = "chaos: { profile: api_outage }\nsafety: { halt: { faults: 1 } }\n";
    sandbox.write("squall.yaml", text);
    let mut daemon = Daemon::start(&sandbox, &FREE);
    // The profile has tools fail every time: the second fault is one too many.
    for _ in 0..2 {
        let answer = ask(&daemon.proxy, "http://tool.test/");
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }
    let line = daemon.log_until("chaos was ended");
    assert!(line.contains("WARN"), "{line}");
    assert!(line.contains("scopes=\"default\""), "{line}");
    assert!(line.contains("safety.halt: 2 faults within 60 s"), "{line}");
    send(&daemon.child, Signal::TERM);
    let rest = daemon.lines.by_ref().map_while(Result::ok);
    assert_eq!(rest.filter(|line| line.contains("WARN")).count(), 0);
}

#[test]
fn what_a_variable_stands_for_reaches_the_agent_and_nobody_else() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("profiles")).unwrap();
    let text = "description: knows ${KEY}
tool_faults:
  - { mode: error, message: 'no ${KEY}', match_url: 'http://*/${KEY}/*' }
  - { mode: slow, delay_ms: '${MS}', match_url: 'http://other.test/${KEY}', headers: { x: '${KEY}' } }
";
    sandbox.write("profiles/local.yaml", text);
    sandbox.write("sent.yaml", text);
    sandbox.write("squall.yaml", "profiles: ./profiles\n");
    let with_key = |arguments: &[&str]| {
        let mut command = sandbox.squall(arguments);
        command.env("KEY", "t0ken-42").env("MS", "30000");
        command
    };
    let mut daemon = Daemon::spawn(with_key(&[&FREE[..], &["--log-level", "debug"]].concat()));
    let put = ["profile", "put", "sent.yaml", "--server", &daemon.api];
    let put = with_key(&put).output().unwrap();
    assert_eq!(put.status.code(), Some(0), "{}", stderr(&put));
    for profile in ["local", "sent"] {
        sandbox.ends(&["profile", "use", profile, "--server", &daemon.api], 0, "");
        let answer = ask(&daemon.proxy, "http://tool.test/t0ken-42/x");
        assert!(answer.contains("no t0ken-42"), "{profile}: {answer}");
        let exchanges = api(&daemon, "/v1/exchanges");
        assert!(
            exchanges.contains("http://tool.test/REDACTED/x"),
            "{exchanges}"
        );
        assert!(exchanges.contains("no REDACTED"), "{exchanges}");
        let id = exchanges.split("\"id\":\"").nth(1).unwrap();
        let id = id.split('"').next().unwrap();
        for path in [
            "/v1/exchanges".to_owned(),
            format!("/v1/exchanges/{id}"),
            "/v1/profiles".to_owned(),
            format!("/v1/profiles/{profile}"),
            "/v1/chaos".to_owned(),
            "/readyz".to_owned(),
            "/metrics".to_owned(),
        ] {
            let shown = api(&daemon, &path);
            assert!(shown.starts_with("HTTP/1.1 200 "), "{path}: {shown}");
            assert!(!shown.contains("t0ken"), "{path}: {shown}");
        }
    }
    send(&daemon.child, Signal::TERM);
    for line in daemon.lines.by_ref().map_while(Result::ok) {
        assert!(!line.contains("t0ken"), "{line}");
    }
}

#[test]
fn audit_verify_prints_whether_the_log_is_intact() {
    let sandbox = Sandbox::new();
    let daemon = Daemon::start(&sandbox, &FREE);
    let run = |server: &str, arguments: &[&str]| {
        let server = ["--server", server];
        sandbox.run(&[&["audit"], arguments, &server].concat())
    };
    let server = ["--server", &daemon.api];
    sandbox.run(&[&["profile", "use", "brownout"], &server[..]].concat());
    let whole = run(&daemon.api, &["verify"]);
    let said = String::from_utf8_lossy(&whole.stdout).into_owned();
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    assert!(said.starts_with("the audit log is intact: "), "{said}");
    let head = said
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("head "))
        .unwrap();
    let known = run(&daemon.api, &["verify", "--head", head]);
    assert_eq!(known.status.code(), Some(0), "{}", stderr(&known));
    let lost = run(&daemon.api, &["verify", "--head", &"f".repeat(64)]);
    assert_eq!(lost.status.code(), Some(1), "{}", stderr(&lost));
    let listed = run(&daemon.api, &["list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("profile brownout, seed 42"), "{listed}");
    let broken = foreign_server(
        "200 OK\r\ncontent-type: application/json",
        r#"{"valid":false,"entries":6,"head":"00","problem":{"entry":7,"what":"it was edited"}}"#,
    );
    let found = run(&broken, &["verify"]);
    assert_eq!(found.status.code(), Some(1));
    assert!(
        stderr(&found).contains("entry 7: it was edited"),
        "{}",
        stderr(&found)
    );
}

#[test]
fn a_home_that_others_can_change_is_not_used() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    let sandbox = Sandbox::new();
    let home = sandbox.path().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let mode = |mode| {
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o777);
    let refused = sandbox.run(&FREE);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("has mode 0777"),
        "{}",
        stderr(&refused)
    );

    mode(0o755);
    let elsewhere = sandbox.path().join("elsewhere");
    std::fs::write(&elsewhere, "theirs").unwrap();
    symlink(&elsewhere, home.join("daemon-id")).unwrap();
    let refused = sandbox.run(&FREE);
    assert_eq!(refused.status.code(), Some(3), "{}", stderr(&refused));
    assert!(
        stderr(&refused).contains("daemon-id is a symbolic link"),
        "{}",
        stderr(&refused)
    );
    assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "theirs");
}
