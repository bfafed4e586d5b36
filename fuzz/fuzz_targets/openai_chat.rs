//! OpenAI's chat requests, answers and streams from anybody; see [`squall_fuzz::dialect`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| squall_fuzz::dialect(
    "openai-chat",
    "/v1/chat/completions",
    input
));
