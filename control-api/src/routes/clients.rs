//! The programs that have sent requests to the proxy.

use axum::Json;
use axum::extract::State;

use crate::access::Caller;
use crate::clients::ClientLine;
use crate::page::ListPage;
use crate::problem::ApiProblem;
use crate::query::Params;
use crate::state::ApiState;

/// The programs of the caller's workspace, the latest first, on one page.
pub(super) async fn list(
    State(state): State<ApiState>,
    caller: Caller,
    params: Params,
) -> Result<Json<ListPage<ClientLine>>, ApiProblem> {
    params.finish()?;
    state.settled().await;
    Ok(Json(ListPage {
        items: state.clients.list(caller.workspace()),
        next_cursor: None,
    }))
}
