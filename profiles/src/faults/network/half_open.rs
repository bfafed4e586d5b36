//! `half_open`: a WebSocket stays open, and nothing more reaches the agent.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::Tools;
use crate::fault::Fault;
use crate::faults::fixed::fixed;
use crate::plan::SocketChange;

pub(super) fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    fixed(json!({}), |plan, verdict| {
        plan.change_websocket(verdict, SocketChange::HalfOpen);
        Ok(())
    })
}
