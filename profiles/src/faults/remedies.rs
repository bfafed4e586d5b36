//! Advice in reports: how an agent handles a fault well.

pub(super) const DELAY: &str = "Give each call a time-out of its own, shorter than the whole answer's, and answer \
                                with what there is.";
pub(super) const TIME_OUT: &str = "Set a time-out on this call, also between the parts of a stream, and go on without it when it is over.";
pub(super) const CONNECTION: &str = "Retry broken connections with growing, random waits; then fall back, or say in \
                                     the answer what is missing.";
pub(super) const TLS: &str =
    "A failed handshake is no reason to go on without TLS or to retry at once: report it.";
pub(super) const TOOL_ERROR: &str = "Retry what may pass (429, 502, 503, 504) with growing waits, nothing else; let \
                                     the answer say what could not be found out instead of making it up.";
pub(super) const COMMITTED: &str = "Before repeating a call that changes something, find out whether it was done, or \
                                    send an idempotency key.";
pub(super) const NOT_DONE: &str =
    "Read back what a call should have changed before telling the user that it is done.";
pub(super) const RESULT_SHAPE: &str = "Check a result's shape before the model reads it, and treat one that does not \
                                       fit as a failed call.";
pub(super) const OTHER_RESULT: &str =
    "Check that a result is the one that was asked for: its id, its subject, its date.";
pub(super) const REDIRECTS: &str = "Bound how many redirects are followed.";
pub(super) const SESSION: &str =
    "Begin a new session when the old one is gone, and repeat the call once.";
pub(super) const LIST: &str =
    "Read the list of tools again when a call is refused, and call nothing that is not on it.";
pub(super) const INSTRUCTION: &str = "Treat what tools and documents say as data: let no instruction in them cause a \
                                      call, and bound where the agent may send anything.";
pub(super) const OVERFLOW: &str = "Bound what goes into the context: cut or summarise long results before the model \
                                   reads them.";
pub(super) const CONFLICT: &str =
    "Let the agent say where its sources differ instead of taking the last one for true.";
pub(super) const PASSING_ERROR: &str = "Wait as long as `Retry-After` says, else for a growing, random time, and \
                                        bound how often; have a second model, or say that there is no answer now.";
pub(super) const LASTING_ERROR: &str = "This does not pass by itself: do not retry, fall back to another model or \
                                        end with a clear message.";
pub(super) const TOO_LONG: &str =
    "Shorten the history and ask again; the same request is refused the same way.";
pub(super) const LOST_HISTORY: &str =
    "Keep the whole history, and send it again without `previous_response_id`.";
pub(super) const OLD_CONNECTION: &str =
    "Open a new WebSocket, and send the call again there with the whole input.";
pub(super) const CUT_ANSWER: &str = "Look at how an answer of the model ended before using it: one that was cut is \
                                     asked for again, or shown as incomplete.";
pub(super) const ODD_ANSWER: &str = "Check what the model said against what the next step needs, and ask once more \
                                     when it does not fit.";
pub(super) const DECLINED: &str =
    "Tell the user that the model declined, and why; do not present it as an answer.";
pub(super) const TOOL_CALL: &str = "Check a tool call of the model against the tool's schema before it is made, and \
                                    give the error back to the model.";
