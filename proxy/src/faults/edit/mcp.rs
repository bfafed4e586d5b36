//! Changes the responses to the MCP calls that a rule matches.

use http::{HeaderMap, Response, StatusCode};
use http_body::Body as _;
use squall_dialects::codec::Coding;
use squall_dialects::mcp::Call;
use squall_dialects::media_type;
use squall_profiles::faults::rpc_answer::{OUT_OF_BAND, RpcChange, RpcEditor, RpcForm};
use squall_profiles::plan::{Edit, VerdictIndex};

use super::stream;
use crate::body::AgentBody;
use crate::faults::{FaultContext, VerdictReport, has_body};

/// The change that an edit makes in the response to an MCP call; `None` if it does not change
/// single messages.
pub(crate) fn change(edit: &Edit) -> Option<RpcChange> {
    Some(match edit {
        Edit::Truncate(amount) => RpcChange::Truncate(*amount),
        Edit::Drift(drift) => RpcChange::Drift(drift.clone()),
        Edit::Mcp(edit) => RpcChange::Mcp(edit.clone()),
        Edit::Inject(injection) => RpcChange::Inject(injection.clone()),
        Edit::Stream(_) => return None,
    })
}

/// Changes the responses to `calls`.
///
/// It waits for the whole body of a JSON response; an event stream passes without delay.
pub(crate) async fn apply(
    change: RpcChange,
    calls: Vec<Call>,
    response: Response<AgentBody>,
    verdict: VerdictIndex,
    context: &FaultContext,
) -> Response<AgentBody> {
    let mut report = VerdictReport::new(context, verdict);
    let form = form(response.headers());
    let coding = Coding::of(response.headers());
    let why = match (form, coding) {
        _ if response.status() == StatusCode::ACCEPTED => OUT_OF_BAND.to_owned(),
        _ if !has_body(&context.method, response.status()) => "the answer has no body".to_owned(),
        _ if response.body().is_end_stream() => "the body is empty".to_owned(),
        (Some(form), Ok(coding)) => {
            let most = usize::try_from(context.inspect.limit()).unwrap_or(usize::MAX);
            let editor = RpcEditor::new(change, calls).in_form(form, most);
            return stream::play(editor, coding, response, report, context).await;
        }
        (None, _) => "the answer is neither JSON nor a stream of events".to_owned(),
        (_, Err(why)) => why.to_string(),
    };
    report.bypassed(why);
    response
}

/// The format of a response, by its media type.
fn form(headers: &HeaderMap) -> Option<RpcForm> {
    match &*media_type(headers)? {
        "text/event-stream" => Some(RpcForm::Events),
        "application/json" => Some(RpcForm::Json),
        _ => None,
    }
}
