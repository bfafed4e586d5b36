//! Changes fields of JSON responses.

use http::Response;
use squall_profiles::changes::SchemaDrift;
use squall_profiles::faults::schema_drift;

use super::whole;
use crate::body::AgentBody;
use crate::faults::{FaultContext, VerdictReport};

pub(super) async fn apply(
    drift: &SchemaDrift,
    response: Response<AgentBody>,
    report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    let change = |_: &_, plain: &[u8]| schema_drift::drifted(drift, plain);
    whole::apply(response, report, context, change).await
}
