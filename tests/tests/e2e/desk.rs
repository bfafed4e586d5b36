//! Where a command is run on a suite: a directory, a home, an agent in a process of its own and its tool.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use squall_tests::Upstream;
use squall_tests::daemon::squall;
use squall_tests::program::{python, script};
use squall_tests::upstream::standard;
use tempfile::TempDir;

/// A directory with a suite in it, and a home.
pub(crate) struct Desk {
    /// Where commands run.
    pub(crate) directory: TempDir,
    /// The agent's tool.
    pub(crate) tool: Upstream,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
            tool: Upstream::start(None, standard::serve),
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// What the agent is started with: it asks the tool at `path`.
    pub(crate) fn agent(&self, path: &str, more: &[&str]) -> Value {
        let tool = format!("http://{}{path}", self.tool.address);
        let mut command = vec![
            python().display().to_string(),
            script("weather_agent.py").display().to_string(),
            tool,
        ];
        command.extend(more.iter().map(|one| (*one).to_owned()));
        json!({ "type": "command", "command": command })
    }

    /// An agent that is this program in Python.
    pub(crate) fn program(&self, code: &str) -> Value {
        let mut agent = self.agent("/", &[]);
        agent["command"] = json!([python(), "-c", code]);
        agent
    }

    /// Writes `suite.yaml`; its path.
    pub(crate) fn write(&self, suite: &Value) -> PathBuf {
        let file = self.directory.path().join("suite.yaml");
        // JSON is YAML.
        std::fs::write(&file, serde_json::to_string_pretty(suite).unwrap()).unwrap();
        file
    }

    /// A command of the binary's, in the directory.
    pub(crate) fn squall(&self, arguments: &[&str]) -> Command {
        let mut command = squall(&self.home());
        command.current_dir(self.directory.path()).args(arguments);
        command
    }

    /// Runs a command on a suite.
    pub(crate) fn run(&self, arguments: &[&str], suite: &Path) -> CommandResult {
        let mut command = self.squall(arguments);
        command.arg("-c").arg(suite);
        command.output().unwrap().into()
    }
}

/// A suite whose contract wants `said` of the agent while its tool is down.
pub(crate) fn suite_of(agent: &Value, said: &str) -> Value {
    let outage = json!([{ "tool": "*", "mode": "error", "error_code": 503 }]);
    json!({
        "agent": agent,
        "golden_prompts": ["Weather?"],
        "invariants": [{ "id": "says-so", "type": "contains", "value": said }],
        "chaos": { "tool_faults": outage },
        "contract": {
            "name": "weather",
            "invariants": [
                { "id": "completes", "type": "completes", "severity": "critical" },
                { "id": "says-so", "type": "contains", "value": said, "when": "any_chaos_active",
                  "severity": "critical" },
            ],
            "chaos_matrix": [{ "name": "clean" }, { "name": "outage", "tool_faults": outage }],
        },
        "output": { "format": "terminal" },
    })
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct CommandResult {
    /// Its exit code.
    pub(crate) code: Option<i32>,
    /// Its stdout.
    pub(crate) out: String,
    /// Its stderr.
    pub(crate) err: String,
}

impl From<Output> for CommandResult {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl CommandResult {
    #[track_caller]
    pub(crate) fn ended(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:#?}");
    }

    #[track_caller]
    pub(crate) fn out_has(&self, part: &str) {
        assert!(self.out.contains(part), "{part}: {self:#?}");
    }

    #[track_caller]
    pub(crate) fn err_has(&self, part: &str) {
        assert!(self.err.contains(part), "{part}: {self:#?}");
    }

    /// The line that closes it.
    pub(crate) fn closing(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}
