use super::super::testing::{driver_in, folder_with, surroundings_in};
use super::*;
use crate::prompt::Prompt;

const AGENT: &str = r#"
import http.server, os, socket, sys, time

class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, "ready")

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["content-length"])).decode()
        if "die" in asked:
            os._exit(1)
        self.answer(200, f"{os.getpid()} {os.environ['HTTP_PROXY']}")
        if "last" in asked:
            # Nobody listens any more; the process goes a little later.
            self.server.socket.close()
            time.sleep(0.2)
            os._exit(0)

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

class Server(http.server.HTTPServer):
    def server_bind(self):
        # The test holds the port.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()

Server.allow_reuse_address = True
Server(("127.0.0.1", int(sys.argv[1])), Agent).serve_forever()
"#;

/// A reserved port for an agent. Without the reservation, a readiness check could reach the server of another test.
fn free_port() -> (tokio::net::TcpSocket, u16) {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.set_reuseport(true).expect("an option");
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(any).expect("a port");
    let port = socket.local_addr().expect("an address").port();
    (socket, port)
}

fn driver(folder: &tempfile::TempDir, port: u16, program: &str) -> Box<dyn Driver> {
    let endpoint = format!("http://127.0.0.1:{port}");
    driver_in(
        folder.path(),
        &format!(
            "endpoint: '{endpoint}/ask', start: {{command: {program}, ready_url: '{endpoint}/ready'}}"
        ),
    )
}

fn served(folder: &tempfile::TempDir, port: u16) -> String {
    let server = folder.path().join("server.py");
    format!("[python3, '{}', '{port}']", server.display())
}

async fn asked(driver: &dyn Driver, prompt: &str) -> Result<AgentAnswer, AskError> {
    let invocation = Invocation {
        prompt: Prompt::single(prompt),
        change: None,
        place: InvocationPlace::shared("a"),
        traceparent: "00-00-00-01".into(),
        conversation: "c".into(),
    };
    driver.ask(&invocation).await
}

fn is_gone(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status.is_empty() || status.contains(") Z ")
}

#[tokio::test]
async fn it_is_started_asked_and_stopped() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let driver = driver(&folder, port, &served(&folder, port));
    let answer = asked(&*driver, "hi").await.expect("an answer");
    let (id, proxy) = answer.text.split_once(' ').expect("two words");
    // One process serves all scopes, so its calls carry no scope.
    assert_eq!(proxy, "http://nobody:x@127.0.0.1:1");
    let again = asked(&*driver, "hi").await.expect("an answer");
    assert!(again.text.starts_with(id), "{again:?}");
    driver.stop().await;
    assert!(is_gone(id));
}

#[tokio::test]
async fn it_is_started_again_after_a_crash_and_ends_when_it_is_dropped() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let driver = driver(&folder, port, &served(&folder, port));
    let died = asked(&*driver, "die").await.expect("an answer");
    let error = died.error.expect("an error");
    assert!(error.starts_with("the answer broke off"), "{error}");
    let again = asked(&*driver, "hi").await.expect("an answer");
    assert_eq!(again.error, None);
    let (id, _) = again.text.split_once(' ').expect("two words");
    drop(driver);
    while !is_gone(id) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn one_that_ends_within_a_conversation_has_failed() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let driver = driver(&folder, port, &served(&folder, port));
    let turns = ["last", "And?"].map(str::to_owned).to_vec();
    let invocation = Invocation {
        prompt: Prompt::conversation(turns).expect("turns"),
        change: None,
        place: InvocationPlace::shared("a"),
        traceparent: "00-00-00-01".into(),
        conversation: "c".into(),
    };
    let answer = driver.ask(&invocation).await.expect("an answer");
    assert!(answer.error.is_some() && answer.broke_off, "{answer:?}");
    driver.stop().await;
}

#[tokio::test]
async fn one_that_crashes_while_it_answers_has_failed_and_takes_nobody_along() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let driver = driver(&folder, port, &served(&folder, port));
    let others = async {
        let mut failures = Vec::new();
        for _ in 0..20 {
            failures.push(asked(&*driver, "hi").await);
        }
        failures
    };
    let (died, others) = tokio::join!(asked(&*driver, "die"), others);
    let died = died.expect("an answer");
    assert!(died.error.is_some() && died.broke_off, "{died:?}");
    // Requests that the process had accepted were aborted with it; the others are not charged with that.
    for other in others {
        let other = other.expect("an answer");
        assert!(other.error.is_none() || other.broke_off, "{other:?}");
    }
    driver.stop().await;
}

#[tokio::test]
async fn one_that_does_not_come_up_says_why() {
    let folder = folder_with("server.py", AGENT);
    for (program, expected) in [
        (
            "[sh, -c, 'echo first; echo the disk is full >&2; exit 3']",
            "it ended with exit status: 3",
        ),
        (
            "[sh, -c, 'echo the disk is full >&2; exit 3']",
            "the disk is full",
        ),
        ("[/no/such/program]", "No such file"),
    ] {
        let (_held, port) = free_port();
        let driver = driver(&folder, port, program);
        let failed = asked(&*driver, "hi").await;
        let failed = failed.expect_err("it is not there").to_string();
        assert!(failed.contains(expected), "{failed}");
        // A reset at this time gets the same error, not a reset error.
        let reset = driver
            .reset(&InvocationPlace::shared("a"))
            .await
            .expect_err("it is not there");
        let reset = reset.to_string();
        assert!(
            reset.starts_with("the agent could not be started by"),
            "{reset}"
        );
    }
}

#[tokio::test]
async fn what_answers_already_is_not_taken_for_it() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let first = driver(&folder, port, &served(&folder, port));
    asked(&*first, "hi").await.expect("an answer");
    let second = driver(&folder, port, &served(&folder, port));
    let failed = asked(&*second, "hi").await.expect_err("it is another's");
    assert!(
        failed.to_string().contains("before the agent was started"),
        "{failed}"
    );
}

#[tokio::test]
async fn one_that_is_never_ready_is_waited_for_once() {
    let folder = folder_with("server.py", AGENT);
    let (_held, port) = free_port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let start = Start {
        command: ["sleep", "60"].map(str::to_owned).to_vec(),
        ready_url: format!("{endpoint}/ready"),
    };
    let inner = driver_in(folder.path(), &format!("endpoint: '{endpoint}/ask'"));
    let mut agent = Started::new(inner, start, &surroundings_in(folder.path()));
    agent.launcher.ready_within = Duration::ZERO;
    let failed = asked(&agent, "hi").await.expect_err("it is not ready");
    assert!(
        failed.to_string().contains("was not answered with 2xx"),
        "{failed}"
    );
    // Would it be started again, this would stand in its way.
    let other = driver(&folder, port, &served(&folder, port));
    asked(&*other, "hi").await.expect("an answer");
    let again = asked(&agent, "hi").await.expect_err("it is not ready");
    assert_eq!(again, failed);
}
