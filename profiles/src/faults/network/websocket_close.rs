//! `websocket_close`: a WebSocket is closed with a code.

use serde_json::json;
use squall_documents::Fields;

use crate::changes::Tools;
use crate::fault::Fault;
use crate::faults::fixed::fixed;
use crate::plan::SocketChange;

/// Codes that a server closes with (RFC 6455 §7.4). 1006 cannot be sent: the connection ends without a
/// Close frame.
const CODES: &str = "1001, 1006, 1008, 1011, 1012, 1013 or 3000 to 4999";

pub(super) fn read(fields: &mut Fields<'_, '_>, _: &Tools) -> Fault {
    let about = "Close code; 1006: the connection ends without a Close frame. Default 1011.";
    let code = fields.whole("code", about, 1000..=4999, "");
    let code = u16::try_from(code.unwrap_or(1011)).unwrap_or(1011);
    if !matches!(code, 1001 | 1006 | 1008 | 1011..=1013 | 3000..) {
        fields.misplaced("code", CODES);
    }
    fixed(json!({ "code": code }), move |plan, verdict| {
        plan.change_websocket(verdict, SocketChange::Close(code));
        Ok(())
    })
}
