//! File descriptors: how many the process may have open, and who gets how many of them.
//!
//! Where they run out nothing can be accepted, not even the call that ends chaos. So the control API and the
//! proxy have a share each, and the rest is for the store, files, and agents that Squall starts.

use std::sync::LazyLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as are ever asked for: programs that Squall starts inherit the limit, and some close every number up to it.
const MOST: u64 = 1 << 16;

/// For everything that is neither a connection of the API's nor one of the proxy's.
const RESERVE: usize = 128;

/// Descriptors that the process may have open. The first call raises the soft limit, to the hard one at most.
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

/// Connections that the control API may have open, of so many descriptors.
pub fn of_api(limit: usize) -> usize {
    (limit / 8).clamp(4, 256)
}

/// Connections that the proxy may have open, of so many descriptors: each may need another one upstream.
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
