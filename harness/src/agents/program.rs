//! Runs child processes with a text on stdin, and limits their time and output.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::group::{Group, last_lines};
use super::pointing::Variable;

/// Most output bytes of a program that are kept; the rest is discarded.
const LONGEST: usize = 8 << 20;

/// The result of a program that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout_text: String,
    pub(crate) stderr_text: String,
    /// Whether the output exceeded the limit.
    pub(crate) too_long: bool,
}

impl Ended {
    /// Describes the failure of a program.
    pub(crate) fn why(&self) -> String {
        let last = last_lines(&self.stderr_text, 1);
        format!("the program ended with {}{last}", self.status)
    }
}

/// Why a program did not end by itself.
#[derive(Debug)]
pub(crate) enum NotEnded {
    /// It could not be started.
    NotStarted(io::Error),
    /// It exceeded its time-out and was killed with all its descendants.
    TooSlow,
    /// Reading its output or waiting for it failed.
    Broken(io::Error),
}

/// Runs a program to its end, then kills its remaining descendants. `words` is the program and its arguments.
pub(crate) async fn run(
    words: &[String],
    environment: &[Variable],
    input: &str,
    within: Duration,
) -> Result<Ended, NotEnded> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .envs(environment.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, group) = Group::spawn(&mut command).map_err(NotEnded::NotStarted)?;
    let talked = tokio::time::timeout(within, talk(&mut child, &group, input)).await;
    if let Ok(ended) = talked {
        return ended.map_err(NotEnded::Broken);
    }
    group.end();
    // The process may be killed already, with its group.
    let _ = child.kill().await;
    Err(NotEnded::TooSlow)
}

/// How long Squall waits for the remaining output of a program that has ended. A process that has left its group
/// may hold the pipes open for ever.
const REST: Duration = Duration::from_millis(500);

async fn talk(child: &mut Child, group: &Group, input: &str) -> io::Result<Ended> {
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut stdout_text, mut stderr_text) = (PipeOutput::default(), PipeOutput::default());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program may exit without reading all of its stdin.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let status = {
        let talking = async {
            let ((), out, err) = tokio::join!(
                write,
                stdout_text.read_from(stdout),
                stderr_text.read_from(stderr)
            );
            out.and(err)
        };
        tokio::pin!(talking);
        let mut done = None;
        let status = loop {
            tokio::select! {
                heard = &mut talking, if done.is_none() => done = Some(heard),
                status = child.wait() => break status?,
            }
        };
        group.end();
        match done {
            Some(heard) => heard?,
            None => tokio::time::timeout(REST, talking)
                .await
                .unwrap_or(Ok(()))?,
        }
        status
    };
    Ok(Ended {
        status,
        too_long: stdout_text.too_long,
        stdout_text: stdout_text.text(),
        stderr_text: stderr_text.text(),
    })
}

/// The output of a program so far.
#[derive(Default)]
struct PipeOutput {
    kept: Vec<u8>,
    too_long: bool,
}

impl PipeOutput {
    async fn read_from(&mut self, pipe: Option<impl AsyncRead + Unpin>) -> io::Result<()> {
        let Some(mut pipe) = pipe else { return Ok(()) };
        let mut buffer = vec![0; 16 << 10];
        loop {
            let count = pipe.read(&mut buffer).await?;
            if count == 0 {
                return Ok(());
            }
            let room = LONGEST.saturating_sub(self.kept.len()).min(count);
            self.kept.extend_from_slice(&buffer[..room]);
            self.too_long |= room < count;
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
