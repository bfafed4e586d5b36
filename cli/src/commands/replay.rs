//! `squall replay`: incidents, recorded and written down.

use std::path::Path;

use crate::args::{Record, Remote, Replay, Run};
use crate::client::Client;
use crate::commands::recordings::{self, Form, check_writable};
use crate::commands::run::run_in;
use crate::daemon::signals::{Signals, Told};
use crate::failure::Failure;

pub(super) async fn run(action: Replay) -> Result<(), Failure> {
    match action {
        Replay::Record(record) => {
            check_writable(&record.output)?;
            if record.command.is_empty() {
                here(&record).await
            } else {
                program(*record).await
            }
        }
        Replay::Export { id, output, remote } => {
            check_writable(&output)?;
            give_out(&remote, &id, &output).await
        }
    }
}

/// Records a program behind a private daemon.
async fn program(record: Record) -> Result<(), Failure> {
    let Record {
        scope,
        output,
        command,
        daemon,
        ..
    } = record;
    let run = Run {
        daemon,
        quiet: true,
        record: Some(output),
        command,
    };
    run_in(run, scope.as_deref()).await
}

/// Records a running daemon until somebody ends it.
async fn here(record: &Record) -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let client = Client::new(&record.remote)?;
    let begun = recordings::begin(&client, record.scope.as_deref(), None).await?;
    let id = begun["id"].as_str().unwrap_or_default().to_owned();
    eprintln!(
        "recording {id}; Ctrl-C ends it and writes {}",
        record.output.display()
    );
    while signals.next().await == Told::Reload {}
    let ended = recordings::end(&client, &id).await?;
    recordings::export(&client, &id, Some(&record.output)).await?;
    say(&record.output, &ended);
    Ok(())
}

async fn give_out(remote: &Remote, id: &str, file: &Path) -> Result<(), Failure> {
    let client = Client::new(remote)?;
    recordings::export(&client, id, Some(file)).await?;
    let what = match Form::of(Some(file)) {
        Form::Replay => "a replay session",
        Form::Har => "an HTTP archive",
    };
    eprintln!("{} is {what}", file.display());
    Ok(())
}

fn say(file: &Path, ended: &serde_json::Value) {
    let number = |name: &str| ended[name].as_u64().unwrap_or_default();
    eprintln!(
        "{}: {}",
        file.display(),
        recordings::holds(number("exchanges"), number("left_out"))
    );
}
