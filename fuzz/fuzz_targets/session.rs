//! Replay sessions from anybody: reading never panics, every error has a message, and what can be
//! read can be written, read again as it was, and played.

#![no_main]

use http::Method;
use libfuzzer_sys::fuzz_target;
use squall_harness::session;
use squall_journal::tape::{Session, Tape, TapeQuestion};

fuzz_target!(|text: &str| {
    match session::parse("fuzz.yaml", text) {
        Ok(session) => use_it(&session),
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.message.is_empty());
                assert!(error.to_string().starts_with("fuzz.yaml"));
            }
        }
    }
});

fn use_it(session: &Session) {
    let written = session.to_yaml();
    let again = session::parse("again.yaml", &written).expect("what was written can be read");
    assert_eq!(again.to_yaml(), written);
    let mut tape = Tape::new(&again, &|_, _, body| body.len() as u64);
    let (all, left) = tape.answers();
    assert_eq!(all, left);
    let tools: Vec<String> = session
        .tool_responses
        .iter()
        .map(|response| response.tool.clone())
        .collect();
    for exchange in &again.exchanges {
        let url = exchange.matching.url.as_deref().unwrap_or_default();
        tape.ask(&TapeQuestion {
            method: &Method::POST,
            url,
            fingerprint: exchange.matching.fingerprint.unwrap_or_default(),
            tools: &tools,
            dialect: Some("openai-chat"),
            model: Some("gpt-4o"),
        });
    }
    assert!(tape.answers().1 <= left);
}
