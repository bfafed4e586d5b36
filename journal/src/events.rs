//! The latest events, in order, for streams that resume where they were cut.
//!
//! Readers are not registered: each one passes the id of its last event. If later events were dropped, it gets a
//! gap.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

/// The id of an event: its log, and its number there, `1f3a-42`.
///
/// The log differs from daemon to daemon, so that the id of another daemon's event is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventId {
    log: u32,
    number: u64,
}

impl EventId {
    /// An id that no log assigns: events after it begin with a gap.
    pub const ELSEWHERE: Self = Self { log: 0, number: 0 };
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{}", self.log, self.number)
    }
}

/// A text that is not an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of an event; ids look like `1f3a-42`")]
pub struct NotAnEventId;

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, NotAnEventId> {
        let (log, number) = text.split_once('-').ok_or(NotAnEventId)?;
        let log = u32::from_str_radix(log, 16).map_err(|_| NotAnEventId)?;
        let number = number.parse().map_err(|_| NotAnEventId)?;
        Ok(Self { log, number })
    }
}

/// Bounds of a log; above either of them the oldest events are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Greatest number of events. Default 10 000.
    pub events: usize,
    /// Greatest sum of their sizes in bytes. Default 16 MiB.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            events: 10_000,
            bytes: 16 << 20,
        }
    }
}

/// The events after a given event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<E> {
    /// The events with their ids, oldest first.
    pub events: Vec<(EventId, E)>,
    /// Whether events between were dropped.
    pub gap: Option<EventGap>,
    /// The id to pass next.
    pub last: EventId,
}

/// Events that were dropped before they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventGap {
    /// Their number; `None` if the last event was another daemon's.
    pub missed: Option<u64>,
}

/// The latest events.
#[derive(Debug)]
pub struct EventLog<E> {
    log: u32,
    bounds: Bounds,
    /// Number of the newest event; 0 before the first.
    newest: u64,
    events: VecDeque<(usize, E)>,
    bytes: usize,
}

impl<E: Clone> EventLog<E> {
    /// An empty log; `log`, at least 1, differs from that of other daemons.
    pub fn new(log: u32, bounds: Bounds) -> Self {
        Self {
            log: log.max(1),
            bounds,
            newest: 0,
            events: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Adds an event that takes about `size` bytes, and drops the oldest ones above the bounds.
    pub fn push(&mut self, event: E, size: usize) -> EventId {
        self.newest += 1;
        self.bytes += size;
        self.events.push_back((size, event));
        while self.events.len() > self.bounds.events || self.bytes > self.bounds.bytes {
            let Some((size, _)) = self.events.pop_front() else {
                break;
            };
            self.bytes -= size;
        }
        self.newest()
    }

    /// Id of the newest event; before the first event, an id that every event follows.
    pub fn newest(&self) -> EventId {
        EventId {
            log: self.log,
            number: self.newest,
        }
    }

    /// At most `limit` events that follow `last`, with a gap if some of them were dropped.
    ///
    /// An id that this log did not assign gets all events and a gap.
    pub fn after(&self, last: EventId, limit: usize) -> Batch<E> {
        let held_before = self.newest - self.events.len() as u64;
        let is_ours = last.log == self.log && last.number <= self.newest;
        let from = held_before.max(if is_ours { last.number } else { 0 });
        let missed = is_ours.then(|| from - last.number);
        let id = |number| EventId {
            log: self.log,
            number,
        };
        let skip = usize::try_from(from - held_before).unwrap_or(usize::MAX);
        let events = self.events.iter().skip(skip).take(limit).zip(from + 1..);
        let events: Vec<_> = events
            .map(|((_, event), number)| (id(number), event.clone()))
            .collect();
        Batch {
            gap: (missed != Some(0)).then_some(EventGap { missed }),
            last: id(from + events.len() as u64),
            events,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn log_of(events: u64, bound: usize) -> EventLog<u64> {
        let mut log = EventLog::new(
            7,
            Bounds {
                events: bound,
                bytes: usize::MAX,
            },
        );
        for event in 1..=events {
            log.push(event, 1);
        }
        log
    }

    fn id(log: u32, number: u64) -> EventId {
        EventId { log, number }
    }

    #[test]
    #[rustfmt::skip]
    fn a_reader_that_comes_back_too_late_is_told() {
        let log = log_of(10, 4);
        for (seen, expected, gap) in [
            (id(7, 10), vec![], None),
            (id(7, 8), vec![9, 10], None),
            (id(7, 6), vec![7, 8, 9, 10], None),
            (id(7, 5), vec![7, 8, 9, 10], Some(EventGap { missed: Some(1) })),
            (id(7, 0), vec![7, 8, 9, 10], Some(EventGap { missed: Some(6) })),
            (id(6, 9), vec![7, 8, 9, 10], Some(EventGap { missed: None })),
            (EventId::ELSEWHERE, vec![7, 8, 9, 10], Some(EventGap { missed: None })),
            (id(7, 11), vec![7, 8, 9, 10], Some(EventGap { missed: None })),
        ] {
            let batch = log.after(seen, 100);
            let events: Vec<u64> = batch.events.iter().map(|(_, e)| *e).collect();
            assert_eq!((events, batch.gap), (expected, gap), "{seen}");
            assert_eq!(batch.last, id(7, 10), "{seen}");
        }
    }

    #[test]
    fn big_events_make_room_by_bytes() {
        let mut log = EventLog::new(
            1,
            Bounds {
                events: 100,
                bytes: 10,
            },
        );
        for event in ["a", "b", "c"] {
            log.push(event, 4);
        }
        let held: Vec<_> = log
            .after(id(1, 0), 9)
            .events
            .into_iter()
            .map(|(_, e)| e)
            .collect();
        assert_eq!(held, ["b", "c"]);
    }

    #[test]
    fn ids_are_read_back_and_nothing_else_is() {
        assert_eq!("1f3a-42".parse(), Ok(id(0x1f3a, 42)));
        assert_eq!(id(0x1f3a, 42).to_string(), "1f3a-42");
        for text in ["", "42", "-", "1f3a-", "1f3a-x", "zz-1", "1-2-3"] {
            assert_eq!(text.parse::<EventId>(), Err(NotAnEventId), "{text}");
        }
    }

    proptest! {
        /// A reader that resumes by its last id sees every event once and in order, or gets the exact number of
        /// missed ones.
        #[test]
        fn resuming_loses_nothing_and_repeats_nothing(
            steps in prop::collection::vec((0_u64..12, 0_usize..6), 1..60),
            bound in 1_usize..20,
        ) {
            let mut log = log_of(0, bound);
            let (mut pushed, mut accounted, mut last) = (0_u64, 0_u64, log.newest());
            for (push, read) in steps {
                for _ in 0..push {
                    pushed += 1;
                    log.push(pushed, 1);
                }
                let batch = log.after(last.to_string().parse().expect("an id"), read);
                accounted += batch.gap.map_or(0, |gap| gap.missed.expect("ours"));
                for (id, event) in &batch.events {
                    accounted += 1;
                    prop_assert_eq!(*event, accounted, "in order, none twice, none unannounced");
                    prop_assert_eq!(id.number, *event);
                }
                last = batch.last;
            }
            let rest = log.after(last, usize::MAX);
            accounted += rest.gap.map_or(0, |gap| gap.missed.expect("ours"));
            prop_assert_eq!(accounted + rest.events.len() as u64, pushed);
        }
    }
}
