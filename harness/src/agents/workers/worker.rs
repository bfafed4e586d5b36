//! A child process that runs a Python agent, with one line for each question and answer.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::interpreter::interpreter;
use crate::agents::group::{Group, Tail};
use crate::agents::pointing::Variable;

/// The program for the interpreter.
const PROGRAM: &str = include_str!("worker.py");

/// Longest answer, in bytes.
const LONGEST: usize = 8 << 20;

/// How long loading the agent's module may take.
const LOADING: Duration = Duration::from_mins(1);

/// What a worker loads.
#[derive(Debug, Clone)]
pub(in crate::agents) struct WorkerSpec {
    /// `module:attribute`; `None`: the worker only calls functions.
    pub(in crate::agents) target: Option<String>,
    /// Whether it is declared as a `LangChain` Runnable.
    pub(in crate::agents) langchain: bool,
    /// The suite's folder, the first place to search for modules.
    pub(in crate::agents) folder: PathBuf,
}

/// A running worker.
#[derive(Debug)]
pub(in crate::agents) struct Worker {
    child: Child,
    group: Group,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    complaints: Tail,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::agents) enum WorkerError {
    /// The agent raised this exception.
    Raised(String),
    /// The time-out expired; the worker is unusable.
    TooSlow,
    /// The answer is longer than the limit; the worker is unusable.
    TooLong,
    /// The worker has ended, or its output is invalid.
    Ended(String),
}

#[derive(Deserialize)]
struct WorkerLine {
    ready: Option<String>,
    failed: Option<String>,
    answer: Option<Value>,
}

impl Worker {
    /// Starts a worker and waits until the agent is loaded. The error is why it did not load.
    pub(super) async fn start(
        spec: &WorkerSpec,
        environment: Vec<Variable>,
    ) -> Result<Self, String> {
        let python = interpreter(&spec.folder);
        let mut command = Command::new(&python);
        command
            .args(["-c", PROGRAM])
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let named = python.display();
        let (mut child, group) = Group::spawn(&mut command).map_err(|error| {
            format!(
                "`{named}` could not be started: {error}; put `python3` on the PATH, or name it by \
                 SQUALL_PYTHON"
            )
        })?;
        let mut complaints = Tail::default();
        complaints.follow(child.stderr.take());
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("`{named}` has no pipes"));
        };
        let mut worker = Self {
            child,
            group,
            questions,
            answers: BufReader::new(answers),
            complaints,
        };
        let begin = json!({
            "target": spec.target,
            "langchain": spec.langchain,
            "folders": folders(spec),
        });
        match worker.exchange(&begin, LOADING).await {
            Ok(WorkerLine { ready: Some(_), .. }) => Ok(worker),
            Ok(line) => Err(line.failed.unwrap_or_else(|| "it says nothing".to_owned())),
            Err(WorkerError::Raised(what)) => Err(what),
            Err(WorkerError::TooSlow) => Err(format!(
                "it was not loaded within {} s{}",
                LOADING.as_secs(),
                worker.complaints.last_lines()
            )),
            Err(WorkerError::TooLong) => Err(format!("`{named}` said more than 8 MiB")),
            Err(WorkerError::Ended(why)) => Err(format!("`{named}` {why}")),
        }
    }

    /// Sends a question and waits for the answer.
    pub(in crate::agents) async fn ask(
        &mut self,
        question: &Value,
        within: Duration,
    ) -> Result<Value, WorkerError> {
        let line = self.exchange(question, within).await?;
        match (line.answer, line.failed) {
            (Some(answer), _) => Ok(answer),
            (None, Some(what)) => Err(WorkerError::Raised(what)),
            (None, None) => Err(WorkerError::Ended("gave no answer".to_owned())),
        }
    }

    async fn exchange(
        &mut self,
        question: &Value,
        within: Duration,
    ) -> Result<WorkerLine, WorkerError> {
        let talked = tokio::time::timeout(within, self.talk(question)).await;
        let line = match talked {
            Err(_) => return Err(WorkerError::TooSlow),
            Ok(Err(error)) => {
                return Err(WorkerError::Ended(format!("cannot be talked to: {error}")));
            }
            Ok(Ok(line)) => line,
        };
        if line.len() > LONGEST {
            return Err(WorkerError::TooLong);
        }
        if !line.ends_with(b"\n") {
            return Err(WorkerError::Ended(self.end().await));
        }
        serde_json::from_slice(&line)
            .map_err(|error| WorkerError::Ended(format!("gave an answer that is no JSON: {error}")))
    }

    async fn talk(&mut self, question: &Value) -> std::io::Result<Vec<u8>> {
        let mut line = question.to_string();
        line.push('\n');
        // If the worker has ended, the missing answer shows it.
        let _ = self.questions.write_all(line.as_bytes()).await;
        let mut answer = Vec::new();
        let mut bounded = (&mut self.answers).take(LONGEST as u64 + 1);
        bounded.read_until(b'\n', &mut answer).await?;
        Ok(answer)
    }

    /// Describes how a worker ended that has closed its pipe.
    async fn end(&mut self) -> String {
        self.group.end();
        let status = self.child.wait().await;
        let complaints = self.complaints.last_lines_at_the_end().await;
        match status {
            Ok(status) => format!("ended with {status}{complaints}"),
            Err(error) => format!("ended, nobody knows how: {error}{complaints}"),
        }
    }
}

/// Folders to search for modules: the suite's, then the working directory.
fn folders(spec: &WorkerSpec) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let suite = here.join(&spec.folder);
    let mut folders = vec![suite];
    if !folders.contains(&here) {
        folders.push(here);
    }
    folders
}
