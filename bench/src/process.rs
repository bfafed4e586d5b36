//! Child processes: started, asked what they cost, killed when dropped.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// How long a child may take to say that it is ready.
const READY_WITHIN: Duration = Duration::from_secs(20);

/// How long a child may go on after the last request.
const SETTLES_WITHIN: Duration = Duration::from_secs(20);

/// How long its work is watched at a time, and what of it is none.
const LOOK: Duration = Duration::from_millis(50);
const IDLE: Duration = Duration::from_millis(1);

/// A running child; killed when dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// What it said when it was ready.
    pub ready: Vec<String>,
}

impl Process {
    /// Starts `command` and reads its standard output or error until each of `words` has begun a
    /// line. What it says afterwards is thrown away.
    pub fn start(command: &mut Command, from: Said, words: &[&str]) -> Result<Self> {
        let (out, err) = match from {
            Said::Stdout => (Stdio::piped(), Stdio::inherit()),
            Said::Stderr => (Stdio::null(), Stdio::piped()),
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()?;
        let pipe: Box<dyn Read + Send> = match from {
            Said::Stdout => Box::new(child.stdout.take().context("no standard output")?),
            Said::Stderr => Box::new(child.stderr.take().context("no standard error")?),
        };
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Nobody listens once the child is ready; the pipe is still drained for it.
                let _ = send.send(line);
            }
        });
        let mut process = Self {
            child,
            ready: Vec::new(),
        };
        let deadline = Instant::now() + READY_WITHIN;
        let ready = |lines: &[String]| {
            words
                .iter()
                .all(|word| lines.iter().any(|line| line.contains(word)))
        };
        while !ready(&process.ready) {
            let left = deadline.saturating_duration_since(Instant::now());
            match receive.recv_timeout(left) {
                Ok(line) => process.ready.push(line),
                Err(_) => bail!(
                    "{command:?} was not ready within {READY_WITHIN:?}; it said: {:#?}",
                    process.ready
                ),
            }
        }
        Ok(process)
    }

    /// The text that follows `word` on a ready line, up to the next space.
    pub fn said(&self, word: &str) -> Result<&str> {
        self.ready
            .iter()
            .find_map(|line| line.split_once(word))
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .with_context(|| format!("no `{word}` among {:?}", self.ready))
    }

    /// Time all its threads have spent on a core.
    pub fn on_cpu(&self) -> Result<Duration> {
        let mut nanoseconds = 0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            // A thread may end between the listing and the reading.
            let Ok(line) = fs::read_to_string(task?.path().join("schedstat")) else {
                continue;
            };
            nanoseconds += line.split(' ').next().unwrap_or("0").parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// The same, once it has nothing left to do.
    pub fn settled(&self) -> Result<Duration> {
        let deadline = Instant::now() + SETTLES_WITHIN;
        let mut before = self.on_cpu()?;
        loop {
            std::thread::sleep(LOOK);
            let now = self.on_cpu()?;
            if now.saturating_sub(before) <= IDLE {
                return Ok(now);
            }
            if Instant::now() > deadline {
                bail!("it is still busy {SETTLES_WITHIN:?} after the last request");
            }
            before = now;
        }
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        Ok(kilobytes.context("no VmRSS line")?.parse::<u64>()? * 1024)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be gone already; that is what is wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where a child says that it is ready.
#[derive(Debug, Clone, Copy)]
pub enum Said {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}
