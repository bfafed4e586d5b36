//! Runs a user's program with our stdin and stdout. Signals are forwarded, and its exit code becomes ours.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process};
use squall_harness::agents::group::{Guarded, TOKEN_VARIABLES, guard};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::pointing::Variable;

/// Runs the program to its end; returns its exit code, or 128 + n if signal n ended it.
pub(crate) async fn run(command: &[OsString], variables: &[Variable]) -> Result<u8, Failure> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| Failure::Usage("no program to run".to_owned()))?;
    // Listens first, so that a signal during the start is forwarded too.
    let mut signals = Signals::listen()?;
    let not_guarded = |error| Failure::could_not("the guard of the program", error);
    // The program stays in the terminal's process group, so the guard covers the program itself only.
    let (reader, mut pipe) = std::io::pipe().map_err(not_guarded)?;
    let guarding = guard(Guarded::Process, reader, &mut Command::new("/bin/sh"));
    let _guard = guarding.map_err(not_guarded)?;
    let mut child = Command::new(program)
        .args(arguments)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .env_remove(TOKEN_VARIABLES[0])
        .env_remove(TOKEN_VARIABLES[1])
        .spawn()
        .map_err(|error| not_started(program, &error))?;
    if let Some(id) = child.id() {
        writeln!(pipe, "{id}").map_err(not_guarded)?;
    }
    loop {
        tokio::select! {
            status = child.wait() => {
                let status = status.map_err(|error| Failure::could_not("the program", error))?;
                return Ok(code(status));
            }
            signal = signals.next() => pass_on(&child, signal),
        }
    }
}

/// Why a program could not be started, with the exit codes of shells.
fn not_started(program: &OsString, error: &std::io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        ErrorKind::NotFound => Failure::NotStarted {
            code: 127,
            message: format!("`{program}` was not found; is it on the PATH?"),
        },
        ErrorKind::PermissionDenied => Failure::NotStarted {
            code: 126,
            message: format!(
                "`{program}` is there but may not be executed; try `chmod +x {program}`"
            ),
        },
        _ => Failure::NotStarted {
            code: 126,
            message: format!("`{program}` could not be started: {error}"),
        },
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Forwards a signal to the child.
fn pass_on(child: &Child, signal: Signal) {
    // A terminal sends Ctrl-C to all foreground processes, so the child has received it already.
    if signal == Signal::INT && std::io::stdin().is_terminal() {
        return;
    }
    let Some(pid) = child
        .id()
        .and_then(|id| Pid::from_raw(i32::try_from(id).ok()?))
    else {
        return;
    };
    if let Err(error) = kill_process(pid, signal) {
        // It has just ended; its exit code is reported.
        tracing::debug!(%error, ?signal, "not passed on");
    }
}

/// The forwarded signals.
struct Signals(Vec<(tokio::signal::unix::Signal, Signal)>);

impl Signals {
    fn listen() -> Result<Self, Failure> {
        let pairs = [
            (SignalKind::interrupt(), Signal::INT),
            (SignalKind::terminate(), Signal::TERM),
            (SignalKind::hangup(), Signal::HUP),
            (SignalKind::quit(), Signal::QUIT),
            (SignalKind::user_defined1(), Signal::USR1),
            (SignalKind::user_defined2(), Signal::USR2),
        ];
        let listening = pairs.into_iter().map(|(kind, number)| {
            let signal = signal(kind).map_err(|error| Failure::could_not("signals", error))?;
            Ok((signal, number))
        });
        Ok(Self(listening.collect::<Result<_, Failure>>()?))
    }

    async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (signal, number) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
