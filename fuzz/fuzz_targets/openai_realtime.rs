//! OpenAI's Realtime requests and events from anybody; see [`squall_fuzz::dialect`].

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| squall_fuzz::dialect(
    "openai-realtime",
    "/v1/realtime?model=m",
    input
));
