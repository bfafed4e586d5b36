//! Recorded exchanges.

use axum::Json;
use axum::extract::State;
use squall_journal::id::ExchangeId;
use squall_journal::record::{ExchangeRecord, ExplainedRecord, Kind};
use squall_journal::ring::{Filter, StatusFilter};
use squall_journal::timestamp;

use super::path::Name;
use crate::access::Caller;
use crate::page::{self, ListPage};
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;

/// The filters that lists and streams of exchanges share.
pub(super) fn filter(caller: &Caller, params: &mut Params) -> Filter {
    Filter {
        scopes: caller.scopes(),
        scope: params.scope(),
        kind: params.read("kind", "llm, tool, mcp, agent or other", Kind::parse),
        host: params.take("host"),
        tool: params.take("tool"),
        fault: params.take("fault"),
        status: params.read(
            "status",
            "a status like 503, 5xx or none",
            StatusFilter::parse,
        ),
        run: params.take("run"),
        since_ms: None,
    }
}

/// Exchanges, newest first. A cursor stays valid while new exchanges arrive.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    mut params: Params,
) -> Result<Json<ListPage<ExchangeRecord>>, ApiProblem> {
    let filter = Filter {
        since_ms: params.read("since", "a time like 2026-11-21T23:01:40Z", |text| {
            timestamp::parse(text).ok()
        }),
        ..filter(&caller, &mut params)
    };
    let limit = page::limit(&mut params);
    let after = page::before_id(&mut params);
    params.finish()?;
    state.settled().await;
    if let Some(journal) = &state.journal {
        let page = journal.page(&filter, after, limit).await;
        let page = page?;
        return Ok(Json(ListPage {
            items: page.items,
            next_cursor: page.next.map(|id| id.to_string()),
        }));
    }
    let page = state.recorder.exchanges(&filter, after, limit);
    Ok(Json(ListPage {
        items: page.items.iter().map(|note| note.to_record()).collect(),
        next_cursor: page.next.map(|id| id.to_string()),
    }))
}

/// One exchange, with why each rule did or did not fire.
pub(super) async fn show(
    State(state): State<ApiState>,
    caller: Caller,
    Name(id): Name,
    params: Params,
) -> Result<Json<ExplainedRecord>, ApiProblem> {
    params.finish()?;
    let id: ExchangeId = id
        .parse()
        .map_err(|error| ApiProblem::not_found(format!("there is no such exchange: {error}")))?;
    state.settled().await;
    let (seen, missing) = (caller.scopes(), || {
        ApiProblem::not_found(format!("exchange {id} is not held any more, or never was"))
    });
    if let Some(note) = state.recorder.exchange(id) {
        if !seen.hold(&note.scope) {
            return Err(missing());
        }
        return Ok(Json(ExplainedRecord {
            exchange: note.to_record(),
            nearest_misses: note.near_misses(),
        }));
    }
    let stored = match &state.journal {
        Some(journal) => journal.exchange(id).await,
        None => Ok(None),
    };
    let exchange = stored?
        .filter(|exchange| seen.hold(&exchange.scope))
        .ok_or_else(missing)?;
    // The rules were another daemon's, or are no longer in force.
    Ok(Json(ExplainedRecord {
        exchange,
        nearest_misses: None,
    }))
}
