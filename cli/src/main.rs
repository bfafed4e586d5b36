//! The `squall` binary. A binary waits for every crate below it, so its code is a library, which does not.

use std::process::ExitCode;

// mimalloc is fast when a thread frees its own allocations, and returns memory to the system. It replaces
// `malloc` at link time; as Rust's global allocator it would use slower calls with an alignment.
use mimalloc as _;

fn main() -> ExitCode {
    squall::run()
}
