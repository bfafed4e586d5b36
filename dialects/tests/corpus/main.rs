//! Every sample in `corpus/DIALECT/` through everything that reads and writes.

#![expect(clippy::disallowed_methods, reason = "the corpus is found, not listed")]

mod answers;
mod errors;
mod requests;
mod samples;
mod synthetic;

use samples::{Is, samples};
use squall_dialects::{ALL, AnswerForm};

#[test]
fn every_dialect_has_samples() {
    let samples = samples();
    for dialect in ALL {
        let name = dialect.name();
        let of = samples.iter().filter(|it| it.dialect.name() == name);
        let has = |is: fn(Is) -> bool| of.clone().any(|sample| is(sample.is));
        assert!(has(|is| is == Is::Request), "{name}: no request*.json");
        let whole = has(|is| is == Is::Answer(AnswerForm::Json));
        // Over WebSocket every answer is a stream.
        let is_socket = matches!(name, "openai-realtime" | "gemini-live");
        assert!(whole || is_socket, "{name}: no whole answer");
        let stream = has(|is| matches!(is, Is::Answer(AnswerForm::Stream(_))));
        assert!(stream, "{name}: no stream");
    }
}
