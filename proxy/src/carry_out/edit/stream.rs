//! Models' answers changed event by event.

use http::Response;
use squall_dialects::Dialect;
use squall_profiles::fault::StreamFault;

use crate::carry_out::body::AgentBody;
use crate::carry_out::{Context, Report};

#[expect(clippy::unused_async, reason = "whole answers are waited for")]
pub(super) async fn apply(
    _fault: &StreamFault,
    response: Response<AgentBody>,
    _dialect: Option<&'static dyn Dialect>,
    mut report: Report,
    _context: &Context,
) -> Response<AgentBody> {
    report.bypassed("the exchange speaks no dialect that can be edited");
    response
}
