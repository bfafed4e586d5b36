//! Gemini Live's messages and events from anybody; see [`squall_fuzz::dialect`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| squall_fuzz::dialect(
    "gemini-live",
    "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent",
    input
));
