//! What reaches the agent from an upstream under faults, in paused time.

use proptest::prelude::*;
use squall_profiles::changes::{Slices, Throttle};
use squall_profiles::plan::Cut;
use tokio::io::AsyncWriteExt as _;

use super::*;
use crate::faults::testing::{Remembered, context, paused};
use crate::frames::tests::{cut, frame, messages, on_the_wire};

const VERDICT: VerdictIndex = 3;

fn text(payload: &str) -> Vec<u8> {
    frame(0x81, payload.as_bytes(), None)
}

/// What reached the agent, when each piece came, and how it ended.
struct Reached {
    pieces: Vec<(Duration, Vec<u8>)>,
    end: io::Result<()>,
    ledger: Rc<Remembered>,
}

impl Reached {
    fn bytes(&self) -> Vec<u8> {
        let pieces = self.pieces.iter().flat_map(|(_, bytes)| bytes);
        pieces.copied().collect()
    }
}

fn plan_of(message: Option<u64>, change: SocketChange) -> Plan {
    Plan {
        websocket: vec![(VERDICT, SocketFault { message, change })],
        ..Plan::default()
    }
}

/// The upstream sends each piece after its pause, and ends.
async fn reached(
    message: Option<u64>,
    change: SocketChange,
    sent: Vec<(Duration, Vec<u8>)>,
) -> Reached {
    let (context, ledger) = context();
    let mut plan = plan_of(message, change);
    let faults = SocketFaults::of(&mut plan, true, context).unwrap();
    let (near, mut far) = tokio::io::duplex(1 << 20);
    let mut upstream = faults.act_on(Box::new(near));
    let upstream_sends = async move {
        for (pause, bytes) in sent {
            tokio::time::sleep(pause).await;
            let _ = far.write_all(&bytes).await;
        }
        let _ = far.shutdown().await;
        far
    };
    let read = async {
        let (begun, mut pieces) = (Instant::now(), Vec::new());
        loop {
            let mut piece = vec![0; 1 << 20];
            match upstream.read(&mut piece).await {
                Ok(0) => return (pieces, Ok(())),
                Ok(length) => {
                    piece.truncate(length);
                    pieces.push((begun.elapsed(), piece));
                }
                Err(error) => return (pieces, Err(error)),
            }
        }
    };
    let (_far, (pieces, end)) = tokio::join!(upstream_sends, read);
    Reached {
        pieces,
        end,
        ledger,
    }
}

fn at_once(messages: &[&str]) -> Vec<(Duration, Vec<u8>)> {
    let messages = messages.iter();
    messages.map(|it| (Duration::ZERO, text(it))).collect()
}

fn cut_after(after_bytes: u64, ending: Ending) -> SocketChange {
    SocketChange::Shape(Shape {
        cut: Some((
            VERDICT,
            Cut {
                after_bytes,
                ending,
            },
        )),
        ..Shape::default()
    })
}

#[test]
fn a_connection_ends_at_the_message() {
    let (one, two) = (text("one"), text("two"));
    let close = frame(0x88, b"\x03\xf4", None);
    for (change, then, reset) in [
        (SocketChange::Close(1012), close, false),
        (SocketChange::Close(1006), vec![], false),
        (cut_after(0, Ending::Close), vec![], false),
        (cut_after(4, Ending::Close), two[..4].to_vec(), false),
        (cut_after(4, Ending::Reset), two[..4].to_vec(), true),
    ] {
        let sent = at_once(&["one", "two", "three"]);
        let reached = paused(reached(Some(2), change.clone(), sent));
        assert_eq!(reached.bytes(), [&one[..], &then].concat(), "{change:?}");
        assert_eq!(reached.end.is_err(), reset, "{change:?}");
        reached.ledger.only_applied(VERDICT);
    }
}

#[test]
fn a_rule_whose_message_never_came_says_so() {
    let delay = SocketChange::Delay(Duration::from_secs(1));
    for change in [
        delay,
        SocketChange::Close(1012),
        SocketChange::HalfOpen,
        cut_after(0, Ending::Close),
    ] {
        let sent = at_once(&["one", "two"]);
        let reached = paused(reached(Some(3), change, sent));
        assert_eq!(reached.bytes(), [text("one"), text("two")].concat());
        let why = "the WebSocket ended before message 3";
        reached.ledger.only_bypassed(VERDICT, why);
    }
}

#[test]
fn bytes_that_are_no_frames_pass() {
    for change in [
        SocketChange::Delay(Duration::from_secs(1)),
        SocketChange::Close(1012),
    ] {
        let sent = vec![(Duration::ZERO, b"SSH-2.0-OpenSSH\r\n".to_vec())];
        let reached = paused(reached(None, change, sent));
        assert_eq!(reached.bytes(), b"SSH-2.0-OpenSSH\r\n");
        let why = "the bytes are not WebSocket frames";
        reached.ledger.only_bypassed(VERDICT, why);
    }
}

#[test]
fn a_delay_holds_its_message_and_what_follows_but_not_each_after_the_other() {
    let second = Duration::from_secs(1);
    let ms = Duration::from_millis;
    for (message, expected) in [
        // The second message comes 100 ms after the first, the third 2 s after the second.
        (None, [1000, 1100, 3100]),
        (Some(1), [1000, 1000, 2100]),
        (Some(2), [0, 1100, 2100]),
    ] {
        let sent = vec![
            (Duration::ZERO, text("one")),
            (ms(100), text("two")),
            (2 * second, text("three")),
        ];
        let reached = paused(reached(message, SocketChange::Delay(second), sent));
        let whole = [text("one"), text("two"), text("three")].concat();
        assert_eq!(reached.bytes(), whole);
        let times: Vec<_> = reached
            .pieces
            .iter()
            .map(|(at, _)| at.as_millis())
            .collect();
        assert_eq!(times, expected, "{message:?}");
        reached.ledger.only_applied(VERDICT);
    }
}

#[test]
fn half_open_reads_on_until_the_agent_closes() {
    paused(async {
        let (context, ledger) = context();
        let mut plan = plan_of(Some(2), SocketChange::HalfOpen);
        let faults = SocketFaults::of(&mut plan, true, context).unwrap();
        let (near, mut far) = tokio::io::duplex(64);
        let (mut from, mut to) = tokio::io::split(faults.act_on(Box::new(near)));
        let upstream = async {
            far.write_all(&text("one")).await.unwrap();
            // Far more than fits on the way, so it is read.
            far.write_all(&text(&"two".repeat(1000))).await.unwrap();
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            got
        };
        let agent = async {
            let mut first = vec![0; text("one").len()];
            from.read_exact(&mut first).await.unwrap();
            let silence = tokio::time::timeout(Duration::from_hours(1), from.read_u8());
            assert!(silence.await.is_err());
            to.write_all(b"read on").await.unwrap();
            to.shutdown().await.unwrap();
            assert_eq!(from.read(&mut [0]).await.unwrap(), 0);
            drop((from, to));
        };
        let (got, ()) = tokio::join!(upstream, agent);
        assert_eq!(got, b"read on");
        ledger.only_applied(VERDICT);
    });
}

proptest! {
    #[test]
    fn no_fault_that_only_slows_changes_a_byte(
        messages in messages(),
        lengths in prop::collection::vec(1_usize..40_000, 1..4),
        message in prop::option::of(1_u64..4),
        kind in 0..4,
    ) {
        let change = match kind {
            0 => SocketChange::Delay(Duration::from_millis(5)),
            1 => SocketChange::Shape(Shape {
                slices: Some((VERDICT, Slices { average_size: 500, size_variation: 499, delay: Duration::from_micros(1) })),
                ..Shape::default()
            }),
            2 => SocketChange::Shape(Shape {
                down: Some((VERDICT, Throttle { bytes_per_second: 100_000 })),
                ..Shape::default()
            }),
            // Its message never comes.
            _ => SocketChange::Close(1011),
        };
        let message = if kind == 3 { Some(1000) } else { message };
        let (bytes, _) = on_the_wire(&messages, None);
        let pieces = cut(&bytes, &lengths).into_iter();
        let sent = pieces.map(|piece| (Duration::from_millis(1), piece.to_vec())).collect();
        let reached = paused(reached(message, change, sent));
        prop_assert!(reached.bytes() == bytes);
        prop_assert!(reached.end.is_ok());
    }
}
