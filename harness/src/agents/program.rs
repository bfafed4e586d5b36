//! Child processes: started with a text on stdin, bounded in time and in what they say.

use std::ffi::OsStr;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::group::{Group, last_lines};

/// Most bytes that are kept of what a program says; what it says more is read and forgotten.
const LONGEST: usize = 8 << 20;

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
    pub(crate) complained: String,
    /// It said more than is kept.
    pub(crate) too_long: bool,
}

impl Ended {
    /// What a person wants to know of a program that failed.
    pub(crate) fn why(&self) -> String {
        let last = last_lines(&self.complained, 1);
        format!("the program ended with {}{last}", self.status)
    }
}

/// Why a program did not end by itself.
#[derive(Debug)]
pub(crate) enum NotEnded {
    /// It could not be started.
    NotStarted(io::Error),
    /// It took too long, and was killed with all that it had started.
    TooSlow,
    /// It could not be talked to.
    Broken(io::Error),
}

/// Runs a program to its end, and ends what it has left running. `words` holds its name and its arguments, at least one.
pub(crate) async fn run<N: AsRef<OsStr>, V: AsRef<OsStr>>(
    words: &[String],
    environment: impl IntoIterator<Item = (N, V)>,
    input: &str,
    within: Duration,
) -> Result<Ended, NotEnded> {
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, group) = Group::spawn(&mut command).map_err(NotEnded::NotStarted)?;
    let talked = tokio::time::timeout(within, talk(&mut child, &group, input)).await;
    if let Ok(ended) = talked {
        return ended.map_err(NotEnded::Broken);
    }
    group.end();
    // Killed already, with its group or here.
    let _ = child.kill().await;
    Err(NotEnded::TooSlow)
}

/// How long the rest of what a program said is waited for once it has ended: what has left its group may hold its
/// pipes for ever.
const REST: Duration = Duration::from_millis(500);

async fn talk(child: &mut Child, group: &Group, input: &str) -> io::Result<Ended> {
    let stdin = child.stdin.take();
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut said, mut complained) = (Heard::default(), Heard::default());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not listen to the end, or at all.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let status = {
        let talking = async {
            let ((), out, err) = tokio::join!(write, said.hear(stdout), complained.hear(stderr));
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
        too_long: said.too_long,
        said: said.text(),
        complained: complained.text(),
    })
}

/// What a program has said so far.
#[derive(Default)]
struct Heard {
    kept: Vec<u8>,
    too_long: bool,
}

impl Heard {
    async fn hear(&mut self, pipe: Option<impl AsyncRead + Unpin>) -> io::Result<()> {
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
