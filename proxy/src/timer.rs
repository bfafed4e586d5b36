//! Waits that end at most about 0.1 ms after their deadline on Linux, and never before it.
//!
//! tokio's timer has a resolution of a millisecond, and its poller rounds up once more. So a
//! `timerfd` does the last stretch of a wait. Other systems, and tests with a paused clock, use
//! tokio's timer only.

use tokio::time::Instant;

/// Waits until `deadline`; one that has passed returns at once.
pub(crate) async fn sleep_until(deadline: Instant) {
    #[cfg(target_os = "linux")]
    if !cfg!(test) && precise::sleep_until(deadline).await.is_ok() {
        return;
    }
    if deadline > Instant::now() {
        tokio::time::sleep_until(deadline).await;
    }
}

#[cfg(target_os = "linux")]
mod precise {
    use std::io;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;
    use tokio::sync::Semaphore;
    use tokio::time::Instant;

    /// The part that the timerfd does; longer than the largest delay of tokio's timer.
    const LAST_STRETCH: Duration = Duration::from_millis(3);

    /// Most timers at one time, to bound their file descriptors.
    static TIMERS: Semaphore = Semaphore::const_new(256);

    /// An error means that no timer is free, or the system provides none.
    #[expect(
        deprecated,
        reason = "`AsyncFd::new` is unsound only for descriptors that close while registered; this one is owned"
    )]
    pub(super) async fn sleep_until(deadline: Instant) -> io::Result<()> {
        if let Some(coarse) = deadline.checked_sub(LAST_STRETCH)
            && coarse > Instant::now()
        {
            tokio::time::sleep_until(coarse).await;
        }
        let _permit = TIMERS.try_acquire().map_err(io::Error::other)?;
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            timerfd_settime(timer.get_ref(), TimerfdTimerFlags::empty(), &once(left))?;
            timer.readable().await?.clear_ready();
        }
    }

    fn once(after: Duration) -> Itimerspec {
        Itimerspec {
            it_interval: Timespec::default(),
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn a_wait_is_never_too_short() {
            for micros in [0, 1, 50, 999, 1000, 2999, 3001, 5300] {
                let duration = Duration::from_micros(micros);
                let began = Instant::now();
                sleep_until(began + duration).await.unwrap();
                assert!(began.elapsed() >= duration, "{duration:?}");
            }
        }
    }
}
