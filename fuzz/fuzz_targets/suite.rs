//! Suites from anybody: reading never panics, every error has a message and the file's name, and what
//! can be read judges an answer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_documents::Variables;
use squall_harness::answer::AgentAnswer;
use squall_harness::invariants::{Active, Subject};
use squall_harness::outside::Replies;
use squall_harness::prompt::Prompt;
use squall_harness::suite::{self, Suite};
use squall_harness::trace::Trace;

fuzz_target!(|text: &str| {
    match suite::parse("fuzz.yaml", text, Variables::Refused) {
        Ok(suite) => use_it(&suite),
        Err(errors) => {
            assert!(!errors.is_empty());
            for error in errors {
                assert!(!error.message.is_empty());
                assert!(error.to_string().starts_with("fuzz.yaml"));
            }
        }
    }
});

fn use_it(suite: &Suite) {
    let prompt = Prompt::single("hello");
    let answer = AgentAnswer::of(suite.text.to_string());
    let subject = Subject {
        prompt: &prompt,
        answer: &answer,
        trace: &Trace::default(),
        baseline: None,
        active: Active::default(),
        prices: &suite.prices,
        replies: &Replies::default(),
        repeats: &[],
        conversations: &[],
    };
    for invariant in &suite.invariants {
        invariant.judge(&subject);
    }
}
