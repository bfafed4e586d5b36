//! Edits that need the whole of a body: collected within bounds, decoded, changed, put back.

use bytes::Bytes;
use http::{HeaderMap, Response};
use squall_dialects::codec::Coding;

use super::plain::Plain;
use super::{correct_length, drop_digests};
use crate::carry_out::body::AgentBody;
use crate::carry_out::flush::Breaking;
use crate::carry_out::whole::{Collected, Lease};
use crate::carry_out::{Context, Report};

/// Changes a body by `change`, which is given it without its coding and says why where it cannot.
pub(super) async fn apply(
    response: Response<AgentBody>,
    mut report: Report,
    context: &Context,
    change: impl FnOnce(&HeaderMap, &[u8]) -> Result<Vec<u8>, String>,
) -> Response<AgentBody> {
    let (mut head, body) = response.into_parts();
    let coding = match Coding::of(&head.headers) {
        Ok(coding) => coding,
        Err(why) => {
            report.bypassed(why.to_string());
            return Response::from_parts(head, body);
        }
    };
    let mut whole = match context.collect(body).await {
        Collected::Whole(whole) => whole,
        Collected::Partly(rejoined, why) => {
            report.bypassed(why.to_string());
            let body = AgentBody::boxed(Breaking::new(rejoined, context.agent.clone()));
            return Response::from_parts(head, body);
        }
    };
    let encoded = whole.bytes();
    let limit = context.inspect.limit();
    let change = |plain: &[u8]| change(&head.headers, plain);
    let body = match changed(&encoded, coding, &mut whole.lease, limit, change) {
        Ok(edited) => {
            report.applied();
            drop_digests(&mut head.headers);
            correct_length(&mut head.headers, edited.len() as u64);
            AgentBody::boxed(whole.replaced_by(edited))
        }
        Err(why) => {
            report.bypassed(why);
            AgentBody::boxed(whole.unchanged())
        }
    };
    Response::from_parts(head, body)
}

/// The body changed, in its coding; or why it is not.
fn changed(
    body: &Bytes,
    coding: Option<Coding>,
    lease: &mut Lease,
    limit: u64,
    change: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Bytes, String> {
    let plain = Plain::of(body, coding, lease, limit)?;
    let edited = change(&plain.bytes)?;
    match plain.encoder {
        None => Ok(edited.into()),
        Some(encoder) => encoder
            .whole(&edited)
            .map(Bytes::from)
            .map_err(|error| format!("the body cannot be compressed again: {error}")),
    }
}
