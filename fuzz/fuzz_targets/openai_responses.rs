//! OpenAI's responses' requests, answers and streams from anybody; see [`squall_fuzz::dialect`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| squall_fuzz::dialect(
    "openai-responses",
    "/v1/responses",
    input
));
