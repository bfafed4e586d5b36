//! Waiting, never too short and hardly too long.
//!
//! tokio's timer has steps of a millisecond and the poller below it rounds up once more, so a wait
//! may end two milliseconds late. On a thread that called [`precise`] the last stretch of a wait
//! is left to a Linux `timerfd`, which is good to about 0.1 ms. Elsewhere, and under the paused
//! clock of tests, waits are tokio's.
//!
//! ```text
//! now ──────────── tokio's timer ────────────▶│── timerfd ──▶ deadline
//!                                             └ LAST_STRETCH before it
//! ```
//!
//! Dropping the future ends the wait. Nothing runs and no descriptor is held while nobody waits,
//! but for a few idle ones kept for reuse.

use std::time::Duration;

use tokio::time::Instant;

#[cfg(target_os = "linux")]
use linux as last_stretch;
#[cfg(not(target_os = "linux"))]
use portable as last_stretch;

pub use last_stretch::{Precise, precise};

/// What is left to the precise timer: more than tokio's timer can be late.
#[cfg(target_os = "linux")]
const LAST_STRETCH: Duration = Duration::from_millis(3);

/// Waits for `duration`; zero returns at once.
pub async fn sleep(duration: Duration) {
    if !duration.is_zero() {
        sleep_until(Instant::now() + duration).await;
    }
}

/// Waits until `deadline`; one that has passed returns at once.
pub async fn sleep_until(deadline: Instant) {
    last_stretch::sleep_until(deadline).await;
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;
    use tokio::time::Instant;

    use super::LAST_STRETCH;

    /// Most precise waits at one time on one thread; those beyond it are tokio's. Bounds the
    /// descriptors that a storm of delayed exchanges can take.
    const MOST: usize = 64;

    thread_local! {
        static TIMERS: RefCell<Option<Timers>> = const { RefCell::new(None) };
    }

    /// The timers of one thread.
    struct Timers {
        idle: Vec<Timer>,
        /// Those made and not dropped, idle ones included.
        made: usize,
    }

    type Timer = AsyncFd<OwnedFd>;

    /// Keeps the waits of this thread precise while it lives.
    #[must_use = "waits are precise only while this lives"]
    #[derive(Debug)]
    pub struct Precise(std::marker::PhantomData<*const ()>);

    /// Makes the waits of this thread precise from now on; for threads that run one tokio runtime
    /// on the real clock. The guard goes before that runtime does.
    pub fn precise() -> Precise {
        TIMERS.with_borrow_mut(|timers| {
            *timers = Some(Timers {
                idle: Vec::new(),
                made: 0,
            });
        });
        Precise(std::marker::PhantomData)
    }

    impl Drop for Precise {
        fn drop(&mut self) {
            TIMERS.with_borrow_mut(|timers| *timers = None);
        }
    }

    pub(super) async fn sleep_until(deadline: Instant) {
        let remaining = deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return;
        }
        if !is_precise() {
            return tokio::time::sleep_until(deadline).await;
        }
        if remaining > LAST_STRETCH {
            tokio::time::sleep_until(deadline - LAST_STRETCH).await;
        }
        if let Some(lent) = Lent::take()
            && lent.until(deadline).await.is_ok()
        {
            return;
        }
        tokio::time::sleep_until(deadline).await;
    }

    fn is_precise() -> bool {
        TIMERS.with_borrow(Option::is_some)
    }

    /// A timer lent to one wait.
    struct Lent(Option<Timer>);

    impl Lent {
        fn take() -> Option<Self> {
            TIMERS.with_borrow_mut(|timers| {
                let timers = timers.as_mut()?;
                if let Some(timer) = timers.idle.pop() {
                    return Some(Self(Some(timer)));
                }
                if timers.made == MOST {
                    return None;
                }
                // Out of descriptors: tokio's timer is a little late, which beats not waiting.
                let timer = make().ok()?;
                timers.made += 1;
                Some(Self(Some(timer)))
            })
        }

        async fn until(mut self, deadline: Instant) -> io::Result<()> {
            let Some(timer) = self.0.as_ref() else {
                return Ok(());
            };
            let waited = wait(timer, deadline).await;
            if waited.is_err() {
                // A timer that failed once is not lent again.
                self.0 = None;
            }
            waited
        }
    }

    impl Drop for Lent {
        fn drop(&mut self) {
            let timer = self.0.take();
            TIMERS.with_borrow_mut(|timers| {
                let Some(timers) = timers.as_mut() else {
                    return;
                };
                match timer {
                    Some(timer) => timers.idle.push(timer),
                    None => timers.made -= 1,
                }
            });
        }
    }

    #[expect(
        deprecated,
        reason = "unsound only for descriptors that close while registered; this one is owned, \
                  and the way that replaces it is unsafe code"
    )]
    fn make() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        AsyncFd::new(timerfd_create(TimerfdClockId::Monotonic, flags)?)
    }

    async fn wait(timer: &Timer, deadline: Instant) -> io::Result<()> {
        loop {
            let remaining = deadline.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(());
            }
            // Setting it also takes back an expiry that an abandoned wait left behind.
            timerfd_settime(
                timer.get_ref(),
                TimerfdTimerFlags::empty(),
                &once(remaining),
            )?;
            let mut ready = timer.readable().await?;
            let mut expiries = [0; 8];
            match rustix::io::read(timer.get_ref(), &mut expiries) {
                // Nothing to read: the readiness was that of an abandoned wait.
                Ok(_) | Err(rustix::io::Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
            ready.clear_ready();
        }
    }

    fn once(after: Duration) -> Itimerspec {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: after.subsec_nanos().into(),
            },
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use tokio::time::Instant;

    /// Keeps the waits of this thread as precise as this system allows.
    #[must_use = "waits are precise only while this lives"]
    #[derive(Debug)]
    pub struct Precise(std::marker::PhantomData<*const ()>);

    /// Does nothing here: waits are tokio's.
    pub fn precise() -> Precise {
        Precise(std::marker::PhantomData)
    }

    pub(super) async fn sleep_until(deadline: Instant) {
        if deadline > Instant::now() {
            tokio::time::sleep_until(deadline).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    /// Runs a test's future on the real clock, on a thread whose waits are precise.
    fn precisely<T>(test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _precise = precise();
        runtime.block_on(test)
    }

    #[test]
    fn a_wait_is_never_too_short() {
        precisely(async {
            for micros in [1, 50, 999, 1000, 2999, 3001, 5300] {
                let duration = Duration::from_micros(micros);
                let began = Instant::now();
                sleep(duration).await;
                assert!(began.elapsed() >= duration, "{duration:?}");
            }
        });
    }

    #[test]
    fn no_wait_returns_at_once() {
        precisely(async {
            let past = Instant::now();
            poll_fn(|cx| {
                let mut none = std::pin::pin!(sleep(Duration::ZERO));
                let mut over = std::pin::pin!(sleep_until(past));
                assert!(none.as_mut().poll(cx).is_ready());
                assert!(over.as_mut().poll(cx).is_ready());
                Poll::Ready(())
            })
            .await;
        });
    }

    #[test]
    fn an_abandoned_wait_does_not_shorten_the_next() {
        precisely(async {
            for _ in 0..20 {
                // Abandoned when it has just begun, armed and all.
                let short = sleep(Duration::from_micros(300));
                tokio::select! {
                    biased;
                    () = short => {}
                    () = tokio::task::yield_now() => {}
                }
                let duration = Duration::from_micros(900);
                let began = Instant::now();
                sleep(duration).await;
                assert!(began.elapsed() >= duration);
            }
        });
    }

    #[test]
    fn more_waits_than_timers_all_end() {
        precisely(async {
            let duration = Duration::from_millis(2);
            let began = Instant::now();
            let waits = (0..200).map(|_| sleep(duration));
            futures_util::future::join_all(waits).await;
            assert!(began.elapsed() >= duration);
        });
    }

    #[test]
    fn under_a_paused_clock_waits_are_as_long_as_they_say() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let began = Instant::now();
            sleep(Duration::from_hours(1)).await;
            assert_eq!(began.elapsed(), Duration::from_hours(1));
        });
    }
}
