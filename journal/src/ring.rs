//! The exchanges of late, newest first, bounded in number and in bytes.
//!
//! A ring holds whatever its owner keeps of an exchange ([`Entry`]), so that nothing is formatted
//! before somebody reads it. Entries sort by id, which is by start: an exchange that ends late takes
//! its place among those it began with, and a cursor stays where it is whatever comes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::id::ExchangeId;
use crate::record::{Kind, Outcome};
use crate::scopes::Scopes;

/// What a ring holds of one exchange.
pub trait Entry {
    /// Its id.
    fn id(&self) -> ExchangeId;
    /// About how many bytes of memory it takes.
    fn size(&self) -> usize;
    /// What filters look at.
    fn traits(&self) -> Traits<'_>;
    /// Whether a rule of this id or mode was applied; `*` stands for any.
    fn had_fault(&self, name: &str) -> bool;
    /// Whether a rule changed what a model is told of this tool's results.
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

/// What filters look at in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits<'a> {
    /// The scope it fell into.
    pub scope: &'a str,
    /// What it is.
    pub kind: Kind,
    /// Tool name, when one is known.
    pub tool: Option<&'a str>,
    /// Other tools that were called in the same request.
    pub more_tools: &'a [Arc<str>],
    /// Tools that a model's answer asks for.
    pub tool_calls: &'a [String],
    /// Upstream URL.
    pub url: &'a str,
    /// What the agent got.
    pub status: Option<u16>,
    /// How it ended, or that it is open.
    pub outcome: Outcome,
}

impl Traits<'_> {
    fn is_of(&self, tool: &str) -> bool {
        self.tool == Some(tool)
            || self.more_tools.iter().any(|more| **more == *tool)
            || self.tool_calls.iter().any(|call| call == tool)
    }
}

/// Bounds of a ring; when either is passed, the oldest entries go.
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

/// Which exchanges are wanted; every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// The scopes that whoever asks sees.
    pub scopes: Scopes,
    /// The scope's name.
    pub scope: Option<String>,
    /// The kind.
    pub kind: Option<Kind>,
    /// The upstream's host, or host and port, the scheme's own included; case does not matter.
    pub host: Option<String>,
    /// The tool's name: of the exchange, one that a model's answer asks for, or one of whose results a
    /// rule told the model something else.
    pub tool: Option<String>,
    /// Id or mode of a rule that was applied; `*` for any.
    pub fault: Option<String>,
    /// What the agent got.
    pub status: Option<StatusFilter>,
    /// Begun at or after this point, milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// Which statuses are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusFilter {
    /// Exactly this one: `503`.
    Exactly(u16),
    /// A hundred of them, by the first digit: `5xx`.
    Class(u8),
    /// No answer at all: `none`.
    NoAnswer,
}

impl StatusFilter {
    /// Reads `503`, `5xx` or `none`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.as_bytes() {
            b"none" => Some(Self::NoAnswer),
            [class @ b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => Some(Self::Class(class - b'0')),
            [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => text.parse().ok().map(Self::Exactly),
            _ => None,
        }
    }

    fn holds(self, status: Option<u16>, outcome: Outcome) -> bool {
        match self {
            Self::Exactly(wanted) => status == Some(wanted),
            Self::Class(class) => status.is_some_and(|s| s / 100 == u16::from(class)),
            Self::NoAnswer => status.is_none() && outcome != Outcome::Open,
        }
    }
}

impl Filter {
    /// Whether `entry` is wanted.
    pub fn holds(&self, entry: &impl Entry) -> bool {
        let it = entry.traits();
        self.since_ms
            .is_none_or(|since| entry.id().started_ms() >= since)
            && self.scopes.hold(it.scope)
            && self.scope.as_ref().is_none_or(|scope| scope == it.scope)
            && self.kind.is_none_or(|kind| kind == it.kind)
            && self
                .tool
                .as_ref()
                .is_none_or(|tool| it.is_of(tool) || entry.told_of(tool))
            && self
                .status
                .is_none_or(|status| status.holds(it.status, it.outcome))
            && self
                .host
                .as_ref()
                .is_none_or(|host| is_at_host(it.url, host))
            && self
                .fault
                .as_ref()
                .is_none_or(|fault| entry.had_fault(fault))
    }
}

fn is_at_host(url: &str, wanted: &str) -> bool {
    let (host, port) = host_and_port(url);
    if wanted.eq_ignore_ascii_case(host) {
        return true;
    }
    let named = port.and_then(|port| wanted.strip_suffix(port)?.strip_suffix(':'));
    named.is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// The host of a URL, or of `host:port`, and its port: the scheme's own where the URL names none.
pub fn host_and_port(url: &str) -> (&str, Option<&str>) {
    let (scheme, after_scheme) = url.split_once("://").unwrap_or(("", url));
    let authority = after_scheme
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => {
            (&authority[..colon], Some(&authority[colon + 1..]))
        }
        _ => {
            let is =
                |schemes: [&str; 2]| schemes.iter().any(|one| scheme.eq_ignore_ascii_case(one));
            let port = if is(["http", "ws"]) {
                Some("80")
            } else if is(["https", "wss"]) {
                Some("443")
            } else {
                None
            };
            (authority, port)
        }
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries, newest first.
    pub items: Vec<T>,
    /// Where the next page begins: after this one. `None` when there is nothing more.
    pub next: Option<ExchangeId>,
}

/// The exchanges of late.
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

    /// Puts an exchange in, in place of what was there under its id; the oldest make room.
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

    /// At most `limit` exchanges that `filter` wants, newest first, all older than `after`.
    ///
    /// Pages that follow one another by [`Page::next`] show every exchange that was there at the
    /// first page and still is, once, whatever came in between.
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

    /// How many exchanges are held.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// About how many bytes are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Seen {
        id: ExchangeId,
        size: usize,
        scope: &'static str,
        kind: Kind,
        tool: Option<&'static str>,
        more_tools: Vec<Arc<str>>,
        tool_calls: Vec<String>,
        url: &'static str,
        status: Option<u16>,
        outcome: Outcome,
        fault: Option<&'static str>,
        told_of: Option<&'static str>,
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
            }
        }
        fn had_fault(&self, name: &str) -> bool {
            self.fault.is_some_and(|fault| name == "*" || name == fault)
        }
        fn told_of(&self, tool: &str) -> bool {
            self.told_of == Some(tool)
        }
    }

    fn seen(at: u64) -> Seen {
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

    #[test]
    fn every_part_of_a_filter_must_hold() {
        let entry = Seen {
            scope: "blue",
            kind: Kind::Llm,
            tool: Some("search"),
            url: "https://API.example:8443/v1?q=x",
            status: Some(503),
            fault: Some("error"),
            ..seen(1000)
        };
        let all = Filter {
            scopes: Scopes::Of("blue".into()),
            scope: Some("blue".into()),
            kind: Some(Kind::Llm),
            host: Some("api.EXAMPLE".into()),
            tool: Some("search".into()),
            fault: Some("error".into()),
            status: Some(StatusFilter::Class(5)),
            since_ms: Some(1000),
        };
        assert!(all.holds(&entry));
        let among_others = Seen {
            tool: Some("mail"),
            more_tools: vec!["book".into(), "search".into()],
            ..entry.clone()
        };
        assert!(all.holds(&among_others));
        let asked_for_by_a_model = Seen {
            tool: None,
            tool_calls: vec!["mail".to_owned(), "search".to_owned()],
            ..entry.clone()
        };
        assert!(all.holds(&asked_for_by_a_model));
        let told_of_otherwise = Seen {
            tool: None,
            told_of: Some("search"),
            ..entry.clone()
        };
        assert!(all.holds(&told_of_otherwise));
        for (part, filter) in [
            (
                "scope",
                Filter {
                    scope: Some("green".into()),
                    ..all.clone()
                },
            ),
            (
                "kind",
                Filter {
                    kind: Some(Kind::Tool),
                    ..all.clone()
                },
            ),
            (
                "host",
                Filter {
                    host: Some("example".into()),
                    ..all.clone()
                },
            ),
            (
                "tool",
                Filter {
                    tool: Some("mail".into()),
                    ..all.clone()
                },
            ),
            (
                "fault",
                Filter {
                    fault: Some("slow".into()),
                    ..all.clone()
                },
            ),
            (
                "status",
                Filter {
                    status: Some(StatusFilter::Exactly(500)),
                    ..all.clone()
                },
            ),
            (
                "since",
                Filter {
                    since_ms: Some(1001),
                    ..all.clone()
                },
            ),
        ] {
            assert!(!filter.holds(&entry), "{part}");
        }
    }

    #[test]
    fn a_host_is_named_with_or_without_its_port() {
        for (url, host, is_there) in [
            ("https://api.example/v1", "api.example", true),
            ("https://api.example:8443/v1", "api.example", true),
            ("https://api.example:8443/v1", "api.example:8443", true),
            ("https://api.example:8443/v1", "api.example:443", false),
            ("http://[::1]:80/", "[::1]", true),
            ("http://u:p@h/", "h", true),
            ("https://other/api.example", "api.example", false),
            ("tunnel.example:443", "tunnel.example", true),
            ("http://api.example/v1", "API.example:80", true),
            ("http://api.example/v1", "api.example:443", false),
            ("https://api.example", "api.example:443", true),
            ("wss://api.example/live", "api.example:443", true),
            ("http://[::1]/v1", "[::1]:80", true),
            ("http://api.example:8080/v1", "api.example:80", false),
            ("tunnel.example", "tunnel.example:443", false),
        ] {
            assert_eq!(is_at_host(url, host), is_there, "{url} at {host}");
        }
    }

    #[test]
    fn statuses_are_named_alone_or_by_class() {
        for (text, expected) in [
            ("503", Some(StatusFilter::Exactly(503))),
            ("5xx", Some(StatusFilter::Class(5))),
            ("none", Some(StatusFilter::NoAnswer)),
            ("50", None),
            ("5x", None),
            ("abc", None),
            ("0xx", None),
            ("6xx", None),
            ("9xx", None),
        ] {
            assert_eq!(StatusFilter::parse(text), expected, "{text}");
        }
        assert!(
            !StatusFilter::NoAnswer.holds(None, Outcome::Open),
            "it may still get one"
        );
        assert!(StatusFilter::NoAnswer.holds(None, Outcome::Injected));
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
            // A page that ends the list says so before what comes in after it; all older were shown.
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
