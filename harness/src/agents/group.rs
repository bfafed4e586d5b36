//! Child processes and all that they start, ended together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use squall_journal::redact::Redactor;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

/// The processes that a program has started, itself included.
#[derive(Debug)]
pub(super) struct Group(Option<u32>);

impl Group {
    /// Makes what a command starts a group of its own.
    pub(super) fn of_its_own(command: &mut Command) {
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        #[cfg(not(unix))]
        let _ = command;
    }

    /// The group of a child that was started so.
    pub(super) fn of(child: &Child) -> Self {
        Self(child.id())
    }

    /// Forgets it: its leader was waited for, and its number may be another's by now.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// Asks all to end.
    #[cfg(unix)]
    pub(super) fn ask_to_end(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    /// Asks all to end; here nobody can be asked.
    #[cfg(not(unix))]
    pub(super) fn ask_to_end(&self) {}

    /// Ends all.
    #[cfg(unix)]
    pub(super) fn end(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    /// Ends all; here only the leader, by its handle.
    #[cfg(not(unix))]
    pub(super) fn end(&self) {}

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        use rustix::process::{Pid, kill_process_group};
        let leader = self.0.and_then(|id| i32::try_from(id).ok());
        if let Some(leader) = leader.and_then(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = kill_process_group(leader, signal);
        }
    }
}

/// What is dropped leaves nothing running.
impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Most bytes that are kept of what a long-lived program says.
const KEPT: usize = 16 << 10;

/// How long the rest of what a program said is waited for once it has ended.
const REST: Duration = Duration::from_secs(1);

/// The end of what a long-lived program says, for the message when it fails.
#[derive(Debug, Default)]
pub(super) struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Tail {
    /// Reads a pipe to its end, whoever holds its other one.
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

    /// What [`told`](Self::told) gives once everything is read: for a program that has ended.
    pub(super) async fn told_at_the_end(&mut self) -> String {
        let readers = futures_util::future::join_all(self.readers.drain(..));
        // Something that has left the group may hold the pipe for ever.
        let _ = tokio::time::timeout(REST, readers).await;
        self.told()
    }

    /// The last lines that say something, as a person wants them behind a message: `: line; line`.
    pub(super) fn told(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        last_lines(&String::from_utf8_lossy(&kept), 3)
    }
}

fn add(kept: &Mutex<Vec<u8>>, bytes: &[u8]) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.extend_from_slice(bytes);
    let too_many = kept.len().saturating_sub(KEPT);
    kept.drain(..too_many);
}

/// The last lines of a text that say something, behind a colon.
pub(super) fn last_lines(text: &str, most: usize) -> String {
    let said = text.lines().rev().map(str::trim);
    let mut lines: Vec<_> = said.filter(|line| !line.is_empty()).take(most).collect();
    lines.reverse();
    match lines[..] {
        [] => String::new(),
        _ => format!(": {}", without_secrets(lines.join("; "))),
    }
}

/// Most that is told of what a program complained of, bytes.
const TOLD: usize = 2000;

/// What a program says of its own failure, fit to be kept and shown.
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
        assert_eq!(tail.told(), "");
        for number in 0..10_000 {
            add(&tail.kept, format!("line {number}\n\n").as_bytes());
        }
        assert_eq!(tail.told(), ": line 9997; line 9998; line 9999");
        assert!(tail.kept.lock().expect("not poisoned").len() <= KEPT);
    }
}
