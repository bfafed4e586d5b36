//! `squall tail`: exchanges as they happen, resumed when the connection breaks.

use squall_journal::activation::{Change, ChaosEvent};
use squall_journal::record::ExchangeRecord;

use crate::args::TailArgs;
use crate::client::{Client, Following, ServerEvent, path};
use crate::failure::Failure;
use crate::render::paint::Paint;
use crate::render::{exchange, output};

pub(super) async fn run(tail: TailArgs) -> Result<(), Failure> {
    let client = Client::new(&tail.remote)?;
    let paint = Paint::stdout();
    let faults = tail.faults.then(|| "true".to_owned());
    let filters = [("scope", tail.scope.clone()), ("faults", faults)];
    let mut following = Following::begin(&client, path(&["/v1/events"], &filters)).await?;
    loop {
        show(&tail, &following.next().await?, paint)?;
    }
}

/// Prints an event.
fn show(tail: &TailArgs, event: &ServerEvent, paint: Paint) -> Result<(), Failure> {
    match event.name.as_str() {
        "exchange" if tail.remote.json => output::json_line(&event.data),
        "exchange" => output::line(&exchange::line(&document::<ExchangeRecord>(event)?, paint)),
        "chaos" if !tail.remote.json => output::line(&chaos_line(&document(event)?, paint)),
        "gap" => {
            output::report_line("squall: some exchanges were missed");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn document<T: serde::de::DeserializeOwned>(event: &ServerEvent) -> Result<T, Failure> {
    serde_json::from_str(&event.data)
        .map_err(|error| Failure::could_not("an event of the daemon", error))
}

/// A change of the active profile.
fn chaos_line(event: &ChaosEvent, paint: Paint) -> String {
    let what = match event.change {
        Change::Started => "active",
        Change::Edited => "edited",
        Change::Ended => "active again",
    };
    let now = &event.now;
    let reason = event
        .reason
        .as_ref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    format!(
        "{} {} {what} in scope {}, seed {}{reason}",
        paint.faint(event.at.get(11..23).unwrap_or(&event.at)),
        paint.name(&now.profile),
        now.scope,
        now.seed,
    )
}
