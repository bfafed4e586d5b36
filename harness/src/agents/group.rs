//! Child processes that are ended together with all their descendants.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use squall_journal::redact::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The variables with Squall's API token, and with its file. Agents do not inherit them.
pub const TOKEN_VARIABLES: [&str; 2] = ["SQUALL_TOKEN", "SQUALL_TOKEN_FILE"];

/// What a guard kills.
#[derive(Debug, Clone, Copy)]
pub enum Guarded {
    /// Its own process group.
    Group,
    /// The process whose id is the first line on its stdin.
    Process,
}

/// A shell that kills its target when its stdin ends. Squall holds the other end of that pipe, so this works even
/// if Squall itself is killed. Dropping the guard ends it without killing anything.
pub fn guard(whom: Guarded, stdin: impl Into<Stdio>, shell: &mut Command) -> io::Result<Child> {
    let whom = match whom {
        Guarded::Group => "0",
        Guarded::Process => "$process",
    };
    shell
        .arg("-c")
        .arg(format!(
            "trap '' HUP INT TERM; read -r process; read -r _; kill -9 \"{whom}\""
        ))
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// The process group of a program and its descendants. The group leader is a guard. It keeps the group id from
/// being reused, and ends the group when Squall ends in any way.
#[derive(Debug)]
pub(super) struct Group(Child);

impl Group {
    /// Starts a program in its own process group.
    pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let guard = guard(
            Guarded::Group,
            Stdio::piped(),
            Command::new("/bin/sh").process_group(0),
        )?;
        let group = Self(guard);
        let leader = group
            .leader()
            .ok_or_else(|| io::Error::other("the process group has ended"))?;
        for name in TOKEN_VARIABLES {
            command.env_remove(name);
        }
        command.kill_on_drop(true);
        let child = command
            .process_group(leader.as_raw_nonzero().get())
            .spawn()?;
        Ok((child, group))
    }

    /// Sends SIGTERM to the group.
    pub(super) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGKILL to the group.
    pub(super) fn end(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(leader) = self.leader() {
            // Fails harmlessly if all processes have already ended.
            let _ = kill_process_group(leader, signal);
        }
    }

    fn leader(&self) -> Option<Pid> {
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        id.and_then(Pid::from_raw)
    }
}

/// Dropping a group kills its processes.
impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Most output bytes of a long-lived program that are kept.
const KEPT: usize = 16 << 10;

/// How long Squall waits for the remaining output of a program that has ended.
const REST: Duration = Duration::from_secs(1);

/// The last output of a long-lived program, for error messages.
#[derive(Debug, Default)]
pub(super) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Tail {
    /// Reads a pipe to its end in the background.
    pub(super) fn follow(&mut self, pipe: Option<impl AsyncRead + Unpin + Send + 'static>) {
        let Some(mut pipe) = pipe else { return };
        let kept = self.kept.clone();
        self.readers.push(tokio::spawn(async move {
            let mut buffer = vec![0; 4 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
                add(&kept, &buffer[..count]);
            }
        }));
    }

    /// Like [`last_lines`](Self::last_lines), after all output is read: for a program that has ended.
    pub(super) async fn last_lines_at_the_end(&mut self) -> String {
        let readers = futures_util::future::join_all(self.readers.drain(..));
        // A process that has left the group may hold the pipe open for ever.
        let _ = tokio::time::timeout(REST, readers).await;
        self.last_lines()
    }

    /// The last non-blank lines, as the suffix of an error message: `: line; line`.
    pub(super) fn last_lines(&self) -> String {
        last_lines(&self.text(), 3)
    }

    /// All that is kept.
    pub(super) fn text(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&kept).into_owned()
    }
}

fn add(kept: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend_from_slice(bytes);
    let too_many = kept.len().saturating_sub(KEPT);
    kept.drain(..too_many);
}

/// The last non-blank lines of a text, after a colon.
pub(super) fn last_lines(text: &str, most: usize) -> String {
    let said = text.lines().rev().map(str::trim);
    let mut lines: Vec<_> = said.filter(|line| !line.is_empty()).take(most).collect();
    lines.reverse();
    match lines[..] {
        [] => String::new(),
        _ => format!(": {}", without_secrets(lines.join("; "))),
    }
}

/// Longest part of a program's error output that is reported, in bytes.
const TOLD: usize = 2000;

/// Removes secrets from a program's error output.
pub(super) fn without_secrets(mut text: String) -> String {
    Redactor::default().text(&mut text, TOLD);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_told_and_no_more_is_kept() {
        let tail = Tail::default();
        assert_eq!(tail.last_lines(), "");
        for number in 0..10_000 {
            add(&tail.kept, format!("line {number}\n\n").as_bytes());
        }
        assert_eq!(tail.last_lines(), ": line 9997; line 9998; line 9999");
        assert!(tail.kept.lock().expect("not poisoned").len() <= KEPT);
    }
}
