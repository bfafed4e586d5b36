//! Pace, slices, cuts and late ends, in memory and on the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use proptest::prelude::*;
use squall_profiles::changes::{Slices, Throttle};
use squall_profiles::plan::{Cut, Ending, Shape};
use tokio::io::AsyncWriteExt as _;

use super::{apply, upload};
use crate::abort::Abort;
use crate::body;
use crate::faults::testing::{
    context, dechunk, drain, http1, http2, let_others_run, on_the_wire, paused, pieces,
    read_to_end, split,
};
use crate::upstream::Outgoing;

fn down(bytes_per_second: u64) -> Shape {
    Shape {
        down: Some((3, Throttle { bytes_per_second })),
        ..Shape::default()
    }
}

fn slices(average_size: u64, size_variation: u64, delay: Duration) -> Shape {
    let slices = Slices {
        average_size,
        size_variation,
        delay,
    };
    Shape {
        slices: Some((4, slices)),
        ..Shape::default()
    }
}

fn cut(after_bytes: u64, ending: Ending) -> Shape {
    Shape {
        cut: Some((
            5,
            Cut {
                after_bytes,
                ending,
            },
        )),
        ..Shape::default()
    }
}

fn slow_close(wait: Duration) -> Shape {
    Shape {
        slow_close: Some((6, wait)),
        ..Shape::default()
    }
}

#[test]
fn no_shape_gives_back_the_same_body() {
    paused(async {
        let (context, ledger) = context();
        let response = Response::new(body::full("abc"));
        let shaped = apply(&Shape::default(), response, &context);
        assert_eq!(drain(shaped.into_body()).await.bytes, b"abc");
        assert!(ledger.applied.borrow().is_empty());
    });
}

#[test]
fn a_body_takes_its_length_divided_by_the_bandwidth() {
    for (rate, sizes, expected) in [
        (1000, vec![1000], Duration::from_secs(1)),
        (1000, vec![500, 250, 250], Duration::from_secs(1)),
        (125, vec![1; 10], Duration::from_millis(80)),
        (1 << 40, vec![1 << 16], Duration::ZERO),
    ] {
        paused(async {
            let (context, ledger) = context();
            let body = pieces(sizes.iter().map(|&size| vec![b'x'; size])).with_turns();
            let drained = drain(apply(&down(rate), body.response(), &context).into_body()).await;
            // tokio's own timer, which counts in milliseconds, stands in under a paused clock.
            let late = drained.took.checked_sub(expected).expect("never early");
            assert!(
                late <= Duration::from_millis(2),
                "{rate} {sizes:?}: {late:?} late"
            );
            assert_eq!(drained.bytes.len(), sizes.iter().sum::<usize>());
            ledger.only_applied(3);
            assert!(ledger.waited() >= expected);
        });
    }
}

#[test]
fn bandwidth_is_steady_within_a_body() {
    paused(async {
        let (context, _) = context();
        let body = pieces([vec![b'x'; 100_000]]);
        let drained = drain(apply(&down(100_000), body.response(), &context).into_body()).await;
        let mut passed = 0;
        for (at, length) in drained.pieces {
            passed += length;
            assert!(
                at >= Duration::from_micros(10 * passed as u64),
                "{passed} bytes at {at:?}"
            );
        }
    });
}

#[test]
fn an_upstream_that_is_slower_than_the_line_is_not_slowed_twice() {
    paused(async {
        let (context, _) = context();
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let body = body::boxed(crate::faults::testing::Late::new(receiver, "0123456789"));
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(5)).await;
            sender.send(()).unwrap();
        });
        let drained = drain(apply(&down(10), Response::new(body), &context).into_body()).await;
        assert!(drained.took >= Duration::from_secs(6), "{:?}", drained.took);
        assert!(
            drained.took <= Duration::from_millis(6010),
            "{:?}",
            drained.took
        );
    });
}

fn outgoing(body: impl http_body::Body<Data = Bytes, Error = Abort> + 'static) -> Outgoing {
    Box::pin(body.map_err(Into::into))
}

#[test]
fn uploads_are_paced_and_keep_their_length() {
    paused(async {
        let (context, ledger) = context();
        let shape = Shape {
            up: Some((
                2,
                Throttle {
                    bytes_per_second: 1000,
                },
            )),
            ..Shape::default()
        };
        let body = upload(
            &shape,
            outgoing(pieces([vec![b'x'; 2000]]).with_length()),
            &context,
        );
        assert_eq!(http_body::Body::size_hint(&body).exact(), Some(2000));
        let drained = drain(body.map_err(|error| *error.downcast().unwrap())).await;
        assert!(drained.took >= Duration::from_secs(2));
        ledger.only_applied(2);
    });
}

#[test]
#[rustfmt::skip]
fn an_upload_without_a_body_is_left_to_the_answer_to_report() {
    for (down, bypassed) in [
        (None, 1),
        (Some((2, Throttle { bytes_per_second: 9, })), 0),
    ] {
        let (context, ledger) = context();
        let up = Some((
            2,
            Throttle {
                bytes_per_second: 9,
            },
        ));
        let shape = Shape {
            up,
            down,
            ..Shape::default()
        };
        drop(upload(&shape, outgoing(body::empty()), &context));
        assert_eq!(ledger.bypassed.borrow().len(), bypassed);
    }
}

#[test]
fn slices_have_their_size_and_pauses_between_them() {
    paused(async {
        let (context, ledger) = context();
        let shape = slices(100, 20, Duration::from_millis(50));
        let body = pieces([vec![b'x'; 1000]]).with_length();
        let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
        let count = drained.pieces.len();
        for (_, length) in &drained.pieces[..count - 1] {
            assert!((80..=120).contains(length), "{length}");
        }
        assert!((9..=13).contains(&count), "{count} pieces");
        let pauses = u32::try_from(count - 1).unwrap() * Duration::from_millis(50);
        assert!(drained.took >= pauses, "{:?} for {count}", drained.took);
        ledger.only_applied(4);
    });
}

#[test]
fn slices_hang_on_the_draw_not_on_how_the_upstream_wrote() {
    // Where pauses were, counted in bytes.
    let pauses = |seed, chunks: Vec<usize>| {
        paused(async {
            let (mut context, _) = context();
            context.seed = seed;
            let shape = slices(10, 9, Duration::from_millis(10));
            let body = pieces(chunks.iter().map(|&size| vec![b'x'; size]));
            let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
            let mut before = Duration::ZERO;
            let mut passed = 0;
            let mut pauses = Vec::new();
            for (at, length) in drained.pieces {
                if at > before {
                    pauses.push(passed);
                }
                (before, passed) = (at, passed + length);
            }
            pauses
        })
    };
    let whole = pauses(1, vec![200]);
    assert_eq!(whole, pauses(1, vec![1; 200]));
    assert_eq!(whole, pauses(1, vec![33, 33, 33, 101]));
    assert_ne!(whole, pauses(2, vec![200]));
}

#[test]
fn a_body_that_fits_one_slice_is_reported_as_not_sliced() {
    for body in [pieces(["tiny"]), pieces(["tiny"]).with_length()] {
        paused(async {
            let (context, ledger) = context();
            let shape = slices(100, 0, Duration::from_secs(1));
            let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
            assert_eq!(drained.took, Duration::ZERO);
            ledger.only_bypassed(4, "the body of 4 bytes fits one slice");
        });
    }
}

#[test]
fn a_message_ends_late_and_with_its_trailers() {
    paused(async {
        let (context, ledger) = context();
        let body = pieces(["data"]).then_trailers("grpc-status", "0");
        let shape = slow_close(Duration::from_millis(700));
        let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
        assert_eq!(drained.pieces, [(Duration::ZERO, 4)]);
        assert_eq!(drained.took, Duration::from_millis(700));
        assert_eq!(drained.trailers.unwrap()["grpc-status"], "0");
        ledger.only_applied(6);
    });
}

#[test]
fn a_cut_behind_the_end_is_bypassed_with_the_length() {
    for (body, after) in [
        (pieces(["0123456789", "ab"]).with_length(), 12),
        (pieces(["0123456789", "ab"]).with_length(), 13),
        (pieces(["0123456789", "ab"]), 13),
        (pieces(["0123456789", "ab"]).then_trailers("t", "v"), 13),
    ] {
        paused(async {
            let (context, ledger) = context();
            let shape = cut(after, Ending::Close);
            let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
            assert_eq!(drained.bytes, b"0123456789ab");
            assert!(drained.error.is_none());
            ledger.only_bypassed(5, "the body ended after 12 bytes");
        });
    }
}

#[test]
fn answers_without_a_body_bypass_every_shape() {
    for (method, status, why) in [
        (Method::HEAD, StatusCode::OK, "the answer has no body"),
        (
            Method::GET,
            StatusCode::NO_CONTENT,
            "the answer has no body",
        ),
        (Method::GET, StatusCode::OK, "the body is empty"),
    ] {
        for (verdict, shape) in [
            (3, down(1)),
            (4, slices(1, 0, Duration::ZERO)),
            (5, cut(0, Ending::Reset)),
            (6, slow_close(Duration::from_secs(1))),
        ] {
            let (mut context, ledger) = context();
            context.method = method.clone();
            let mut response = Response::new(body::empty());
            *response.status_mut() = status;
            apply(&shape, response, &context);
            ledger.only_bypassed(verdict, why);
        }
    }
}

#[test]
fn an_upstream_that_breaks_off_first_is_not_a_cut() {
    paused(async {
        let (context, ledger) = context();
        let body = pieces(["abc"]).then_breaks();
        let shape = cut(5, Ending::Reset);
        let drained = drain(apply(&shape, body.response(), &context).into_body()).await;
        assert_eq!(drained.error.unwrap().why(), "the upstream left");
        ledger.only_bypassed(5, "the upstream broke off after 3 bytes");
    });
}

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";

/// What the agent reads of a body of `length` bytes in pieces of 30,000 under `shape`, and how its
/// connection ends. The agent does not read before everything that may pass has been written.
fn read_shaped(shape: Shape, length: usize, known: bool) -> (String, Vec<u8>, std::io::Result<()>) {
    on_the_wire(async move {
        let mut agent = http1(move |_, side| {
            let (mut context, _) = context();
            context.agent = side;
            let body = vec![b'x'; length];
            let mut script = pieces(body.chunks(30_000));
            if known {
                script = script.with_length();
            }
            let mut response = script.response();
            if known {
                response
                    .headers_mut()
                    .insert(header::CONTENT_LENGTH, length.into());
            }
            std::future::ready(Ok(apply(&shape, response, &context)))
        })
        .await;
        agent.write_all(REQUEST).await.unwrap();
        let_others_run().await;
        let (answer, end) = read_to_end(&mut agent).await;
        let (head, body) = split(&answer);
        (head, body, end)
    })
}

#[test]
fn a_cut_lets_exactly_that_many_bytes_arrive_and_closes_with_the_framing_open() {
    for after in [0, 1, 29_999, 30_000, 30_001, 250_000] {
        let (head, body, end) = read_shaped(cut(after as u64, Ending::Close), 300_000, true);
        assert!(head.contains("content-length: 300000\r\n"), "{head}");
        assert_eq!(body.len(), after);
        end.expect("a FIN, not an RST");

        let (head, body, end) = read_shaped(cut(after as u64, Ending::Close), 300_000, false);
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        let (data, ended) = dechunk(&body);
        assert_eq!((data.len(), ended), (after, false));
        end.expect("a FIN, not an RST");
    }
}

#[test]
fn a_body_that_is_not_cut_arrives_whole() {
    let (_, body, end) = read_shaped(Shape::default(), 1000, false);
    assert_eq!(dechunk(&body), (vec![b'x'; 1000], true));
    end.expect("a FIN");
}

#[test]
fn a_cut_with_a_reset_is_an_rst() {
    let (_, body, end) = read_shaped(cut(5, Ending::Reset), 300_000, true);
    assert_eq!(body, b"xxxxx");
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn a_slow_close_gives_the_end_of_a_message_a_place_of_its_own() {
    let (head, body, _) = read_shaped(slow_close(Duration::from_millis(1)), 40_000, true);
    assert!(!head.contains("content-length"), "{head}");
    let (data, ended) = dechunk(&body);
    assert_eq!((data.len(), ended), (40_000, true));
}

#[test]
fn on_http2_a_cut_resets_its_stream_alone() {
    on_the_wire(async {
        let mut client = http2(20_000, |request| {
            let (context, _) = context();
            let body = vec![b'x'; 300_000];
            let shape = match request.uri().path() {
                "/cut" => cut(145_000, Ending::Reset),
                "/head" => cut(0, Ending::Close),
                _ => Shape::default(),
            };
            let response = pieces(body.chunks(30_000)).response();
            std::future::ready(Ok(apply(&shape, response, &context)))
        })
        .await;
        let mut ask = |path: &str| {
            let url = format!("http://x{path}");
            client.send_request(
                http::Request::get(url)
                    .body(http_body_util::Empty::new())
                    .unwrap(),
            )
        };
        let (sibling, cut, head) = (ask("/whole"), ask("/cut"), ask("/head"));
        let (sibling, cut, head) = tokio::join!(sibling, cut, head);
        let_others_run().await;

        for (response, expected) in [(cut, 145_000), (head, 0)] {
            let mut body = response.unwrap().into_body();
            let mut arrived = 0;
            let error = loop {
                match body.frame().await.expect("no clean end") {
                    Ok(frame) => arrived += frame.into_data().unwrap().len(),
                    Err(error) => break error,
                }
            };
            assert_eq!(arrived, expected);
            let source = std::error::Error::source(&error).unwrap();
            let reason = source.downcast_ref::<h2::Error>().unwrap().reason();
            assert_eq!(reason, Some(h2::Reason::INTERNAL_ERROR));
        }
        let whole = sibling.unwrap().into_body().collect().await.unwrap();
        assert_eq!(whole.to_bytes().len(), 300_000);
    });
}

fn chunks() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..12)
}

proptest! {
    #[test]
    fn pace_and_slices_never_change_a_byte(
        chunks in chunks(),
        rate in 1_u64..5000,
        average in 1_u64..50,
        known: bool,
        turns: bool,
    ) {
        let all = chunks.concat();
        let mut body = pieces(&chunks);
        if known { body = body.with_length() }
        if turns { body = body.with_turns() }
        let shape = Shape {
            down: down(rate).down,
            slices: slices(average, average - 1, Duration::from_micros(10)).slices,
            ..slow_close(Duration::from_millis(1))
        };
        let drained = paused(async {
            let (context, _) = context();
            drain(apply(&shape, body.response(), &context).into_body()).await
        });
        prop_assert_eq!(drained.bytes, all);
        prop_assert!(drained.error.is_none());
    }

    #[test]
    fn a_cut_yields_exactly_the_first_bytes(
        chunks in chunks(),
        after in 0_usize..300,
        known: bool,
        sliced: bool,
    ) {
        let all = chunks.concat();
        let mut body = pieces(&chunks);
        if known { body = body.with_length() }
        let mut shape = cut(after as u64, Ending::Close);
        if sliced {
            shape.slices = slices(7, 6, Duration::from_micros(5)).slices;
        }
        let (drained, ledger) = paused(async {
            let (context, ledger) = context();
            (drain(apply(&shape, body.response(), &context).into_body()).await, ledger)
        });
        // A body of unknown length that would end just there lacks its end, so it is cut.
        let is_cut = if known { after < all.len() } else { after <= all.len() };
        prop_assert_eq!(drained.error.is_some(), is_cut);
        prop_assert_eq!(&drained.bytes[..], &all[..after.min(all.len())]);
        prop_assert_eq!(ledger.applied.borrow().contains(&5), is_cut);
    }
}
