//! The daemons of the fleet.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;
use squall_journal::timestamp;

use crate::access::Caller;
use crate::fleet::DaemonReport;
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;
use crate::store::{FleetChaos, FleetDaemonRow};

/// The fleet.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct FleetState {
    /// Number of the last switch.
    generation: i64,
    /// The chaos that was put in force for the fleet.
    chaos: Vec<FleetScope>,
    /// The daemons.
    daemons: Vec<FleetDaemon>,
}

/// Chaos in force for a scope in every daemon.
#[derive(Debug, Serialize, JsonSchema)]
struct FleetScope {
    /// The scope.
    scope: String,
    /// Name of its profile, or `inline`.
    profile: String,
    /// Number of the switch.
    generation: i64,
    /// Name of the token that switched; `-` without tokens.
    by: String,
    /// Remaining time to live, milliseconds; `null` without one.
    left_ms: Option<u64>,
}

/// A daemon of the fleet.
#[derive(Debug, Serialize, JsonSchema)]
struct FleetDaemon {
    /// Its id.
    id: String,
    #[serde(flatten)]
    report: DaemonReport,
    /// When it started, RFC 3339, by the clock of the database.
    started_at: String,
    /// When it reported last.
    seen_at: String,
    /// It has not reported for 15 seconds.
    away: bool,
    /// It has not applied the last switch, or could not apply the fleet's chaos.
    behind: bool,
    /// The last switch that it has applied.
    generation: i64,
}

/// Shows the fleet.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
) -> Result<Json<FleetState>, ApiProblem> {
    params.finish()?;
    let Some(fleet) = &state.fleet else {
        return Err(ApiProblem::conflict(
            "daemons that share a PostgreSQL form a fleet; this one has a store of its own",
        ));
    };
    let (generation, chaos, daemons) = fleet.daemons().await?;
    let scopes = caller.scopes();
    let chaos = chaos.into_iter().filter(|row| scopes.hold(&row.scope));
    let daemons = daemons.into_iter().map(|row| {
        let mut daemon = FleetDaemon::of(row, generation);
        let report = &mut daemon.report;
        report.in_force.retain(|one| scopes.hold(&one.scope));
        report.problems.retain(|problem| {
            let scope = problem.split(':').next().unwrap_or_default();
            scopes.hold(scope)
        });
        daemon
    });
    Ok(Json(FleetState {
        generation,
        chaos: chaos.filter_map(FleetScope::of).collect(),
        daemons: daemons.collect(),
    }))
}

impl FleetScope {
    /// `None` for chaos that was ended.
    fn of(row: FleetChaos) -> Option<Self> {
        let body: serde_json::Value = serde_json::from_str(&row.body?).ok()?;
        let profile = &body["profile"];
        let profile = profile.as_str().or(profile["name"].as_str());
        Some(Self {
            scope: row.scope,
            profile: profile.unwrap_or("inline").to_owned(),
            generation: row.generation,
            by: row.actor,
            left_ms: row
                .left
                .map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        })
    }
}

impl FleetDaemon {
    fn of(row: FleetDaemonRow, newest: i64) -> Self {
        let (report, away) = (DaemonReport::of(&row), row.is_away());
        Self {
            id: row.id,
            started_at: timestamp::rfc3339(row.started_at),
            seen_at: timestamp::rfc3339(row.seen_at),
            away,
            behind: row.generation != newest || !report.problems.is_empty(),
            generation: row.generation,
            report,
        }
    }
}
