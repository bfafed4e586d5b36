//! File descriptors: the process limit, and its division among the parts of Squall.
//!
//! Without free descriptors nothing can be accepted, not even the call that ends chaos. So the
//! control API and the proxy each have a share. The rest is for the store, files, and agents that
//! Squall starts.

use std::sync::LazyLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Highest limit that is requested. Child processes inherit it, and some of them close every number
/// up to it.
const MOST: u64 = 1 << 16;

/// Descriptors for everything except connections of the API and the proxy.
const RESERVE: usize = 128;

/// Most open descriptors of the process. The first call raises the soft limit, at most to the hard
/// one.
pub fn limit() -> usize {
    static LIMIT: LazyLock<usize> = LazyLock::new(|| {
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(MOST).min(MOST);
        let now = limit.current.unwrap_or(MOST);
        let raised = Rlimit {
            current: Some(most),
            maximum: limit.maximum,
        };
        let limit = if now >= most || setrlimit(Resource::Nofile, raised).is_err() {
            now
        } else {
            most
        };
        usize::try_from(limit).unwrap_or(usize::MAX)
    });
    *LIMIT
}

/// Most connections of the control API, for a limit of descriptors.
pub fn of_api(limit: usize) -> usize {
    (limit / 8).clamp(4, 256)
}

/// Most connections of the proxy, for a limit of descriptors. Each may need a second one upstream.
pub(crate) fn of_proxy(limit: usize) -> usize {
    (limit.saturating_sub(of_api(limit) + RESERVE) / 2).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_leave_a_reserve() {
        for (limit, api, proxy) in [
            (256, 32, 48),
            (1024, 128, 384),
            (20_000, 256, 9_808),
            (65_536, 256, 32_576),
        ] {
            assert_eq!((of_api(limit), of_proxy(limit)), (api, proxy), "{limit}");
            assert!(of_api(limit) + 2 * of_proxy(limit) + RESERVE <= limit);
        }
    }
}
