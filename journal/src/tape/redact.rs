//! Secrets taken out of what is recorded, and out of what is looked up, in the same way.

pub(super) mod stream;

use squall_dialects::stream::Framing;

use super::content::Content;
use super::recorded::Recorded;
use crate::redact::Redactor;

/// Takes secrets out of a whole exchange, request and answer. `framing`: how the answer's events are laid
/// out, where it is a stream.
pub fn recorded(redactor: &Redactor, framing: Option<Framing>, recorded: &mut Recorded) {
    let request = &mut recorded.request;
    redactor.url(&mut request.url, usize::MAX);
    headers(redactor, &mut request.headers);
    let sent = media_type(&request.headers);
    request.body.0 = redactor.body(sent, &request.body.0);
    if let Some(input) = &mut recorded.input {
        redactor.text(input, usize::MAX);
    }
    if let Some(answer) = &mut recorded.answer {
        headers(redactor, &mut answer.headers);
        let got = media_type(&answer.headers);
        match &mut answer.content {
            Content::Body(data) => data.0 = redactor.body(got, &data.0),
            Content::Stream(pieces) => {
                if let Some(framing) = framing {
                    stream::redact(redactor, framing, pieces);
                }
                for piece in pieces {
                    piece.data.0 = redactor.body(got, &piece.data.0);
                }
            }
        }
    }
}

pub(super) fn media_type(headers: &[(String, String)]) -> Option<&str> {
    let found = headers.iter().find(|(name, _)| name == "content-type");
    found.map(|(_, value)| value.as_str())
}

fn headers(redactor: &Redactor, headers: &mut [(String, String)]) {
    for (name, value) in headers {
        *value = redactor.header(name, value).into_owned();
    }
}
