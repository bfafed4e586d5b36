//! What takes longer than a test run may: see `scripts/soak` and `scripts/kill`.

mod kill;
mod soak;
