//! Gemini's requests, answers and streams from anybody; see [`squall_fuzz::dialect`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| squall_fuzz::dialect(
    "gemini",
    "/v1beta/models/m:streamGenerateContent",
    input
));
