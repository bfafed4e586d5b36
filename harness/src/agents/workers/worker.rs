//! A child process with a Python agent in it, asked line by line.

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

/// The program that the interpreter runs.
const PROGRAM: &str = include_str!("worker.py");

/// Longest answer, bytes.
const LONGEST: usize = 8 << 20;

/// How long the agent's module may take to load; an answer does not wait for it twice.
const LOADING: Duration = Duration::from_mins(1);

/// What a worker loads.
#[derive(Debug, Clone)]
pub(in crate::agents) struct WorkerSpec {
    /// `module:attribute`; `None`: nothing but functions is called.
    pub(in crate::agents) target: Option<String>,
    /// Whether it was declared a `LangChain` Runnable.
    pub(in crate::agents) langchain: bool,
    /// The suite's folder, where modules are looked for before anywhere else.
    pub(in crate::agents) folder: PathBuf,
}

/// A worker at work.
#[derive(Debug)]
pub(in crate::agents) struct Worker {
    child: Child,
    group: Group,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    complaints: Tail,
}

/// What came of a question, where it is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::agents) enum WorkerError {
    /// The agent raised this.
    Raised(String),
    /// It took too long, and the worker is of no more use.
    TooSlow,
    /// It answered with more than is read, and the worker is of no more use.
    TooLong,
    /// The worker is gone, or talks nonsense.
    Ended(String),
}

#[derive(Deserialize)]
struct WorkerLine {
    ready: Option<String>,
    failed: Option<String>,
    answer: Option<Value>,
}

impl Worker {
    /// Starts a worker, and waits until the agent is loaded; an error tells why it is not.
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
                worker.complaints.told()
            )),
            Err(WorkerError::TooLong) => Err(format!("`{named}` said more than 8 MiB")),
            Err(WorkerError::Ended(why)) => Err(format!("`{named}` {why}")),
        }
    }

    /// Asks, and waits for the answer.
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
        // One that has ended is noticed by what it does not answer.
        let _ = self.questions.write_all(line.as_bytes()).await;
        let mut answer = Vec::new();
        let mut bounded = (&mut self.answers).take(LONGEST as u64 + 1);
        bounded.read_until(b'\n', &mut answer).await?;
        Ok(answer)
    }

    /// It has closed its pipe: how it ended.
    async fn end(&mut self) -> String {
        self.group.end();
        let status = self.child.wait().await;
        let complaints = self.complaints.told_at_the_end().await;
        match status {
            Ok(status) => format!("ended with {status}{complaints}"),
            Err(error) => format!("ended, nobody knows how: {error}{complaints}"),
        }
    }
}

/// Where modules are looked for: beside the suite, then where the command runs.
fn folders(spec: &WorkerSpec) -> Vec<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let suite = here.join(&spec.folder);
    let mut folders = vec![suite];
    if !folders.contains(&here) {
        folders.push(here);
    }
    folders
}
