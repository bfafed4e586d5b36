//! `html_error`: a gateway's HTML page, 502, where JSON is expected.

use http::StatusCode;

use super::answers::typed;
use crate::dice::Dice;
use crate::fault::ResultChange;
use crate::faults::mode::{FaultMode, Fields, Told, Tools};
use crate::plan::{Answer, Plan, VerdictIndex};

const BAD_GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n\
    <center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n";

/// The page of a reverse proxy that lost its backend.
#[derive(Debug, Clone, PartialEq)]
pub struct HtmlError;

impl FaultMode for HtmlError {
    const NAME: &'static str = "html_error";
    const TOLD: Option<Told<Self>> =
        Some(|_, _, _, _| ResultChange::Failure(BAD_GATEWAY.to_owned()));

    fn read(_: &mut Fields<'_, '_>, _: &Tools) -> Option<Self> {
        Some(Self)
    }

    fn apply(&self, plan: &mut Plan, verdict: VerdictIndex, _: &mut Dice) -> Result<(), String> {
        let reply = typed(StatusCode::BAD_GATEWAY, "text/html", BAD_GATEWAY);
        plan.answer(verdict, Answer::Reply(reply))
    }
}
