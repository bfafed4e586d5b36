//! Light load: how long one exchange takes when nothing else is in its way.
//!
//! Every connection has a thread of its own that blocks, so that what is measured is the wire and
//! not the load generator's scheduler.

use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};

use crate::clock;
use crate::process::Process;
use crate::route::{Route, exchange_blocking};

/// Durations, sorted.
#[derive(Debug, Clone, Default)]
pub struct Delays(Vec<Duration>);

impl Delays {
    fn gather(threads: Vec<JoinHandle<Result<Vec<Duration>>>>) -> Result<Self> {
        let mut all = Vec::new();
        for thread in threads {
            all.extend(
                thread
                    .join()
                    .map_err(|_| anyhow!("a measuring thread panicked"))??,
            );
        }
        all.sort_unstable();
        ensure!(!all.is_empty(), "nothing was measured");
        Ok(Self(all))
    }

    /// Both together.
    pub fn merge(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self.0.sort_unstable();
        self
    }

    /// The shortest, in microseconds.
    pub fn least(&self) -> f64 {
        self.at(0)
    }

    /// The median, in microseconds.
    pub fn median(&self) -> f64 {
        self.at(500)
    }

    /// The 99th percentile, in microseconds.
    pub fn p99(&self) -> f64 {
        self.at(990)
    }

    /// The longest, in microseconds.
    pub fn greatest(&self) -> f64 {
        self.at(1000)
    }

    /// The delay that so many in a thousand do not exceed, in microseconds.
    fn at(&self, permille: usize) -> f64 {
        self.0[(self.0.len() - 1) * permille / 1000].as_secs_f64() * 1e6
    }
}

/// On-CPU microseconds of `process` for each exchange or event that `load` counts, with the work that
/// it puts off until later.
pub fn cpu_each(process: Option<&Process>, load: impl FnOnce() -> Result<Delays>) -> Result<f64> {
    let before = process.map_or(Ok(Duration::ZERO), Process::settled)?;
    let count = load()?.0.len();
    let after = process.map_or(Ok(Duration::ZERO), Process::settled)?;
    Ok(after.saturating_sub(before).as_secs_f64() * 1e6 / count as f64)
}

/// Sends `request` `rate` times a second in all, spread evenly over `threads` connections, and
/// times each from its first byte to the last byte of an answer of `expected` body bytes.
pub fn at_rate(
    route: &Route,
    request: &[u8],
    expected: usize,
    rate: u32,
    threads: u32,
    stretch: Duration,
) -> Result<Delays> {
    let begin = Instant::now() + Duration::from_millis(50) + Duration::from_millis(2) * threads;
    let between = Duration::from_secs(1) / rate;
    let workers = (0..threads).map(|index| {
        let (route, request) = (route.clone(), request.to_vec());
        std::thread::spawn(move || {
            let mut stream = route.open_blocking()?;
            let mut scratch = vec![0; 16 * 1024];
            let mut delays = Vec::new();
            // The first exchange pays for the proxy's own connection to the upstream.
            exchange_blocking(stream.as_mut(), &request, &mut scratch)?;
            let mut next = begin + between * index;
            while next < begin + stretch {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                let sent = Instant::now();
                let body = exchange_blocking(stream.as_mut(), &request, &mut scratch)?;
                delays.push(sent.elapsed());
                ensure!(body == expected, "{body} of {expected} body bytes arrived");
                next += between * threads;
            }
            Ok(delays)
        })
    });
    Delays::gather(workers.collect())
}

/// Sends `request` `rate` times a second in all, spread evenly over `threads` connections.
pub fn paced(
    route: &Route,
    request: &[u8],
    rate: u32,
    threads: u32,
    stretch: Duration,
) -> Result<()> {
    let begin = Instant::now() + Duration::from_millis(50) + Duration::from_millis(2) * threads;
    let between = Duration::from_secs(1) / rate.max(1);
    let workers = (0..threads).map(|index| {
        let (route, request) = (route.clone(), request.to_vec());
        std::thread::spawn(move || {
            let mut stream = route.open_blocking()?;
            let mut scratch = vec![0; 16 * 1024];
            let mut next = begin + between * index;
            while next < begin + stretch {
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                exchange_blocking(stream.as_mut(), &request, &mut scratch)?;
                next += between * threads;
            }
            Ok(())
        })
    });
    let workers: Vec<JoinHandle<Result<()>>> = workers.collect();
    for worker in workers {
        let ended = worker.join();
        ended.map_err(|_| anyhow!("a pacing thread panicked"))??;
    }
    Ok(())
}

/// Listens to the upstream's clock on `streams` connections and times each event from the moment
/// before it was written to the moment after it was read.
pub fn events(route: &Route, streams: usize, stretch: Duration) -> Result<Delays> {
    let workers = (0..streams).map(|_| {
        let route = route.clone();
        std::thread::spawn(move || {
            let mut stream = route.open_blocking()?;
            stream.write_all(&route.get("/sse"))?;
            stream.flush()?;
            listen(stream.as_mut(), stretch)
        })
    });
    Delays::gather(workers.collect())
}

/// The same over WebSocket on `sockets` connections, each with a model call that the upstream answers without end.
pub fn messages(route: &Route, sockets: usize, stretch: Duration) -> Result<Delays> {
    let workers = (0..sockets).map(|_| {
        let route = route.clone();
        std::thread::spawn(move || {
            let mut stream = route.open_blocking()?;
            stream.write_all(&route.upgrade())?;
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                head.push(byte[0]);
            }
            ensure!(head.starts_with(b"HTTP/1.1 101"), "no 101");
            let call = br#"{"type":"response.create","model":"m","input":"Write."}"#;
            // Masked with zeros.
            let length = u8::try_from(call.len())?;
            stream.write_all(&[&[0x81, 0x80 | length, 0, 0, 0, 0], &call[..]].concat())?;
            stream.flush()?;
            listen(stream.as_mut(), stretch)
        })
    });
    Delays::gather(workers.collect())
}

fn listen(
    stream: &mut dyn crate::route::BlockingDuplex,
    stretch: Duration,
) -> Result<Vec<Duration>> {
    let begun = Instant::now();
    let warm_up = Duration::from_millis(200);
    let mut delays = Vec::new();
    let mut buffer = Vec::new();
    let mut piece = [0; 4096];
    while begun.elapsed() < stretch + warm_up {
        let read = stream.read(&mut piece)?;
        let now = clock::nanoseconds();
        ensure!(read > 0, "the event stream ended");
        buffer.extend_from_slice(&piece[..read]);
        while let Some((told, end)) = next_event(&buffer) {
            buffer.drain(..end);
            if begun.elapsed() > warm_up {
                delays.push(Duration::from_nanos(now.saturating_sub(told)));
            }
        }
    }
    Ok(delays)
}

/// The time the first whole event in `buffer` tells, and where that event ends.
fn next_event(buffer: &[u8]) -> Option<(u64, usize)> {
    const DIGITS: usize = 20;
    let at = buffer.windows(6).position(|window| window == b"data: ")? + 6;
    let digits = buffer.get(at..at + DIGITS)?;
    buffer.get(at + DIGITS..at + DIGITS + 2)?;
    Some((
        std::str::from_utf8(digits).ok()?.parse().ok()?,
        at + DIGITS + 2,
    ))
}
