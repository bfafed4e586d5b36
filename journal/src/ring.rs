//! The latest exchanges, newest first, bounded in number and in bytes.
//!
//! A ring holds its owner's own type ([`Entry`]), so that nothing is formatted before it is read. Entries sort by
//! id, and so by start: a cursor stays valid while exchanges are added.

mod filter;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use self::filter::{Filter, StatusFilter, Traits, host_and_port};
use crate::id::ExchangeId;

/// An exchange in a ring.
pub trait Entry {
    /// Its id.
    fn id(&self) -> ExchangeId;
    /// Its approximate size in memory, bytes.
    fn size(&self) -> usize;
    /// The parts that filters read.
    fn traits(&self) -> Traits<'_>;
    /// Whether a rule of this id or mode was applied; `*` matches any.
    fn had_fault(&self, name: &str) -> bool;
    /// Whether a rule changed this tool's results for a model.
    fn told_of(&self, tool: &str) -> bool;
}

impl<T: Entry> Entry for Arc<T> {
    fn id(&self) -> ExchangeId {
        (**self).id()
    }
    fn size(&self) -> usize {
        (**self).size()
    }
    fn traits(&self) -> Traits<'_> {
        (**self).traits()
    }
    fn had_fault(&self, name: &str) -> bool {
        (**self).had_fault(name)
    }
    fn told_of(&self, tool: &str) -> bool {
        (**self).told_of(tool)
    }
}

/// Bounds of a ring; above either of them the oldest entries are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Greatest number of entries. Default 100 000.
    pub entries: usize,
    /// Greatest sum of their sizes in bytes. Default 64 MiB.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            entries: 100_000,
            bytes: 64 << 20,
        }
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, newest first.
    pub items: Vec<T>,
    /// Cursor of the next page; `None` on the last page.
    pub next: Option<ExchangeId>,
}

/// The latest exchanges.
#[derive(Debug)]
pub struct Ring<T> {
    entries: BTreeMap<ExchangeId, T>,
    bounds: Bounds,
    bytes: usize,
}

impl<T: Entry> Ring<T> {
    /// An empty ring.
    pub fn new(bounds: Bounds) -> Self {
        Self {
            entries: BTreeMap::new(),
            bounds,
            bytes: 0,
        }
    }

    /// Adds an exchange, replaces one with the same id, and drops the oldest ones above the bounds.
    pub fn put(&mut self, entry: T) {
        self.bytes += entry.size();
        if let Some(former) = self.entries.insert(entry.id(), entry) {
            self.bytes -= former.size();
        }
        while self.entries.len() > self.bounds.entries || self.bytes > self.bounds.bytes {
            let Some((_, oldest)) = self.entries.pop_first() else {
                break;
            };
            self.bytes -= oldest.size();
        }
    }

    /// The exchange with this id.
    pub fn find(&self, id: ExchangeId) -> Option<&T> {
        self.entries.get(&id)
    }

    /// At most `limit` exchanges that pass `filter`, newest first, all older than `after`.
    ///
    /// Successive pages show each exchange once that is stored from the first page to the last.
    pub fn page(&self, filter: &Filter, after: Option<ExchangeId>, limit: usize) -> Page<T>
    where
        T: Clone,
    {
        let older = match after {
            Some(after) => self.entries.range(..after),
            None => self.entries.range(..),
        };
        let since = filter.since_ms.unwrap_or(0);
        let mut wanted = older
            .rev()
            .take_while(|(id, _)| id.started_ms() >= since)
            .filter(|(_, entry)| filter.holds(*entry));
        let items: Vec<T> = wanted
            .by_ref()
            .take(limit)
            .map(|(_, entry)| entry.clone())
            .collect();
        let next = match items.last() {
            Some(last) if wanted.next().is_some() => Some(last.id()),
            _ => None,
        };
        Page { items, next }
    }

    /// Number of exchanges.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no exchanges.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Kind, Outcome};

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub(super) struct Seen {
        pub(super) id: ExchangeId,
        pub(super) size: usize,
        pub(super) scope: &'static str,
        pub(super) kind: Kind,
        pub(super) tool: Option<&'static str>,
        pub(super) more_tools: Vec<Arc<str>>,
        pub(super) tool_calls: Vec<String>,
        pub(super) url: &'static str,
        pub(super) status: Option<u16>,
        pub(super) outcome: Outcome,
        pub(super) fault: Option<&'static str>,
        pub(super) told_of: Option<&'static str>,
        pub(super) run: Option<&'static str>,
    }

    impl Entry for Seen {
        fn id(&self) -> ExchangeId {
            self.id
        }
        fn size(&self) -> usize {
            self.size
        }
        fn traits(&self) -> Traits<'_> {
            let Self {
                scope,
                kind,
                tool,
                url,
                status,
                outcome,
                run,
                ..
            } = *self;
            Traits {
                scope,
                kind,
                tool,
                more_tools: &self.more_tools,
                tool_calls: &self.tool_calls,
                url,
                status,
                outcome,
                run,
            }
        }
        fn had_fault(&self, name: &str) -> bool {
            self.fault.is_some_and(|fault| name == "*" || name == fault)
        }
        fn told_of(&self, tool: &str) -> bool {
            self.told_of == Some(tool)
        }
    }

    pub(super) fn seen(at: u64) -> Seen {
        Seen {
            id: ExchangeId::new(at, 0, 0),
            size: 1,
            scope: "default",
            kind: Kind::Tool,
            tool: None,
            more_tools: Vec::new(),
            tool_calls: Vec::new(),
            url: "https://api.example/v1",
            status: Some(200),
            outcome: Outcome::Ok,
            fault: None,
            told_of: None,
            run: None,
        }
    }

    fn ids(ring: &Ring<Seen>) -> Vec<u64> {
        let all = ring.page(&Filter::default(), None, usize::MAX);
        all.items.iter().map(|e| e.id.started_ms()).collect()
    }

    #[test]
    fn the_oldest_make_room_when_there_are_too_many_or_they_are_too_big() {
        let mut ring = Ring::new(Bounds {
            entries: 3,
            bytes: 100,
        });
        for at in [1, 2, 3, 4] {
            ring.put(seen(at));
        }
        assert_eq!(ids(&ring), [4, 3, 2]);
        ring.put(Seen {
            size: 99,
            ..seen(5)
        });
        assert_eq!((ids(&ring), ring.bytes()), (vec![5, 4], 100));
        ring.put(Seen {
            size: 101,
            ..seen(6)
        });
        assert_eq!(
            (ring.len(), ring.bytes()),
            (0, 0),
            "one that is too big by itself is not kept"
        );
    }

    #[test]
    fn an_exchange_that_ends_takes_the_place_of_the_open_one() {
        let mut ring = Ring::new(Bounds::default());
        ring.put(Seen {
            outcome: Outcome::Open,
            size: 7,
            ..seen(1)
        });
        ring.put(seen(2));
        ring.put(seen(1));
        assert_eq!((ids(&ring), ring.bytes()), (vec![2, 1], 2));
        assert_eq!(ring.find(seen(1).id).map(|e| e.outcome), Some(Outcome::Ok));
    }

    proptest! {
        #[test]
        fn pages_lose_nothing_and_repeat_nothing_while_exchanges_come_in(
            before in prop::collection::btree_set(0_u64..1000, 0..60),
            during in prop::collection::vec(0_u64..1000, 0..60),
            limit in 1_usize..8,
        ) {
            let mut ring = Ring::new(Bounds::default());
            for at in &before {
                ring.put(seen(*at));
            }
            let mut during = during.into_iter();
            let (mut shown, mut cursor) = (Vec::new(), None);
            loop {
                let page = ring.page(&Filter::default(), cursor, limit);
                prop_assert!(page.items.len() <= limit);
                shown.extend(page.items.iter().map(|e| e.id.started_ms()));
                for at in during.by_ref().take(3) {
                    ring.put(seen(at));
                }
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            prop_assert!(shown.is_sorted_by(|a, b| a > b), "newest first, none twice: {:?}", shown);
            let lost: Vec<_> = before.iter().filter(|at| !shown.contains(at)).collect();
            // A last page may miss later exchanges only; all older ones were shown.
            prop_assert!(lost.is_empty(), "lost {:?}", lost);
        }

        #[test]
        fn a_filtered_list_is_the_whole_list_filtered(
            statuses in prop::collection::vec(prop::sample::select(vec![200_u16, 404, 500, 503]), 0..50),
            limit in 1_usize..6,
        ) {
            let mut ring = Ring::new(Bounds::default());
            for (at, status) in (0_u64..).zip(&statuses) {
                ring.put(Seen { status: Some(*status), ..seen(at) });
            }
            let filter = Filter { status: Some(StatusFilter::Class(5)), ..Filter::default() };
            let (mut shown, mut cursor) = (Vec::new(), None);
            loop {
                let page = ring.page(&filter, cursor, limit);
                prop_assert!(page.next.is_none() || page.items.len() == limit);
                shown.extend(page.items.iter().map(|e| e.id.started_ms()));
                cursor = page.next;
                if cursor.is_none() {
                    break;
                }
            }
            let mut expected: Vec<u64> = (0_u64..)
                .zip(&statuses)
                .filter_map(|(at, status)| (*status >= 500).then_some(at))
                .collect();
            expected.reverse();
            prop_assert_eq!(shown, expected);
        }
    }
}
