use http::Method;
use proptest::prelude::*;

use super::*;
use crate::http1::FramingError as E;

const LIMITS: HeadLimits = HeadLimits {
    header_bytes: 200,
    header_count: 5,
};

/// What a tracker makes of `input` when it comes in pieces that end at `cuts`: the number of bytes
/// passed, and the last verdict.
fn run(
    input: &[u8],
    cuts: &[usize],
    mut advance: impl FnMut(&[u8]) -> FramingProgress,
) -> (usize, NextStep) {
    let mut passed = 0;
    let mut next = NextStep::More;
    for end in cuts.iter().copied().chain([input.len()]) {
        if end < passed {
            continue;
        }
        let progress = advance(&input[passed..end]);
        passed += progress.passed;
        next = progress.next;
    }
    (passed, next)
}

fn requests(input: &[u8], cuts: &[usize]) -> (usize, NextStep) {
    let mut tracker = Requests::new(LIMITS);
    run(input, cuts, |bytes| tracker.advance(bytes))
}

fn one_by_one(input: &[u8]) -> Vec<usize> {
    (0..=input.len()).collect()
}

#[test]
fn well_framed_requests_pass_whole() {
    for input in [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "BREW /pot HTTP/1.1\r\nhost:\r\nX-Empty:\r\nX-Obs: caf\u{e9}\r\nX-Tab:\ta\tb\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length:5 \r\n\r\nhello",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
         00a;x=\"y\";z\r\n0123456789\r\n5  \r\nhello\r\n000\r\nTrailer: t\r\nContent-Length: 9\r\n\r\n\
         GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n",
    ] {
        for cuts in [vec![], one_by_one(input.as_bytes())] {
            assert_eq!(
                requests(input.as_bytes(), &cuts),
                (input.len(), NextStep::More),
                "{input:?}"
            );
        }
    }
}

#[test]
#[rustfmt::skip]
fn ambiguous_fields_are_refused() {
    let head = |fields: &str| format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
    for (fields, error) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", E::LENGTH_AND_ENCODING),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", E::LENGTH_AND_ENCODING),
        ("Content-Length: 5\r\nContent-Length: 6", E::UNEQUAL_CONTENT_LENGTHS),
        ("Content-Length: 5, 5", E::CONTENT_LENGTH),
        ("Content-Length: +5", E::CONTENT_LENGTH),
        ("Content-Length: -1", E::CONTENT_LENGTH),
        ("Content-Length: 0x5", E::CONTENT_LENGTH),
        ("Content-Length:", E::CONTENT_LENGTH),
        ("Content-Length: 5 5", E::CONTENT_LENGTH),
        ("Content-Length: 18446744073709551616", E::CONTENT_LENGTH),
        ("Content-Length: 18446744073709551615", E::CONTENT_LENGTH),
        ("Transfer-Encoding: gzip", E::TRANSFER_ENCODING),
        ("Transfer-Encoding: chunked, gzip", E::TRANSFER_ENCODING),
        ("Transfer-Encoding: gzip, chunked", E::TRANSFER_ENCODING),
        ("Transfer-Encoding: xchunked", E::TRANSFER_ENCODING),
        ("Transfer-Encoding: \"chunked\"", E::TRANSFER_ENCODING),
        ("Transfer-Encoding:", E::TRANSFER_ENCODING),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", E::TRANSFER_ENCODING),
        ("X: a\r\n b", E::FOLDED_FIELD),
        ("X: a\r\n\tb", E::FOLDED_FIELD),
        ("Content-Length : 5", E::SPACE_BEFORE_COLON),
        ("X\t: 5", E::SPACE_BEFORE_COLON),
        (": 5", E::FIELD_NAME),
        ("no colon", E::SPACE_BEFORE_COLON),
        ("nocolon", E::FIELD_NAME),
        ("X(y): 5", E::FIELD_NAME),
        ("X\u{e9}: 5", E::FIELD_NAME),
        ("X: a\0b", E::CONTROL_CHARACTER),
        ("X: a\x0bb", E::CONTROL_CHARACTER),
        ("X: a\x7fb", E::CONTROL_CHARACTER),
        ("X: a\rb", E::BARE_CR),
        ("X: a\r\r\nY: b", E::BARE_CR),
        ("X: a\nY: b", E::BARE_LF),
        ("X: a\r\n\nGET / HTTP/1.1", E::BARE_LF),
        ("Host: h", E::REPEATED_HOST),
        ("A:\r\nB:\r\nC:\r\nD:\r\nE:", E::TooManyFields { limit: 5 }),
    ] {
        refused_behind_a_good_request(&head(fields), error);
    }
}

#[test]
fn bad_lines_and_heads_out_of_bounds_are_refused() {
    let long = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nX: {}\r\n\r\n",
        "x".repeat(200)
    );
    let target = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(70_000));
    for (input, error) in [
        (long.as_str(), E::HeadTooLarge { limit: 200 }),
        (target.as_str(), E::HeadTooLarge { limit: 200 }),
        ("GET / HTTP/1.1\r\n\r\n", E::MISSING_HOST),
        ("GET / HTTP/1.1\r\n Host: h\r\n\r\n", E::FOLDED_FIELD),
        ("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", E::BARE_LF),
        (
            "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            E::TRANSFER_ENCODING,
        ),
        ("GET /\r\n\r\n", E::REQUEST_LINE),
        ("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("GET / x HTTP/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        (" GET / HTTP/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("GET / http/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
        ("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", E::REQUEST_LINE),
    ] {
        refused_behind_a_good_request(input, error);
    }
}

/// Asserts that `input` is refused whole, and a good request before it passes all the same.
fn refused_behind_a_good_request(input: &str, error: E) {
    let good = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let input = format!("{good}{input}{good}");
    for cuts in [vec![], one_by_one(input.as_bytes())] {
        let verdict = requests(input.as_bytes(), &cuts);
        assert_eq!(verdict, (good.len(), NextStep::Refused(error)), "{input:?}");
    }
}

#[test]
fn a_target_longer_than_any_parser_takes_is_refused() {
    let limits = HeadLimits {
        header_bytes: 1 << 20,
        header_count: 5,
    };
    let input = format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(70_000));
    let progress = Requests::new(limits).advance(input.as_bytes());
    assert_eq!(
        progress.next,
        NextStep::Refused(E::TargetTooLong { limit: 65_534 })
    );
}

#[test]
fn a_bad_chunk_is_refused_where_it_is() {
    let much = format!("5;{}\r\n", "x".repeat(20_000));
    for (body, good, error) in [
        ("\r\n", 0, E::CHUNK_SIZE),
        ("x\r\n", 0, E::CHUNK_SIZE),
        (" 5\r\n", 0, E::CHUNK_SIZE),
        ("+5\r\n", 0, E::CHUNK_SIZE),
        ("0x5\r\n", 1, E::CHUNK_SIZE),
        ("5 5\r\n", 2, E::CHUNK_SIZE),
        ("5\nhello", 1, E::BARE_LF),
        ("5;x\nhello", 3, E::BARE_LF),
        ("5;\0\r\n", 2, E::CHUNK_EXTENSION),
        (much.as_str(), 2 + 16_384, E::CHUNK_EXTENSION),
        ("5\rhello", 2, E::BARE_CR),
        ("10000000000000000\r\n", 16, E::CHUNK_SIZE),
        ("5\r\nhello!\r\n", 8, E::CHUNK_END),
        ("5\r\nhello\n", 8, E::CHUNK_END),
        ("5\r\nhello\r5", 9, E::CHUNK_END),
        ("0\r\n\n", 3, E::BARE_LF),
        ("0\r\nX : y\r\n\r\n", 3, E::SPACE_BEFORE_COLON),
        ("0\r\nX: y\r\n z\r\n\r\n", 3, E::FOLDED_FIELD),
        ("0\r\nX: \0\r\n\r\n", 3, E::CONTROL_CHARACTER),
        (
            "0\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:\r\n\r\n",
            3,
            E::TooManyFields { limit: 5 },
        ),
    ] {
        let head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
        let input = format!("{head}{body}");
        let (passed, next) = requests(input.as_bytes(), &[]);
        assert_eq!(next, NextStep::Refused(error), "{body:?}");
        assert_eq!(passed, head.len() + good, "{body:?}");
        let stepwise = requests(input.as_bytes(), &one_by_one(input.as_bytes()));
        assert_eq!(stepwise, (passed, next), "{body:?}");
    }
}

#[test]
fn behind_an_upgrade_the_answer_decides() {
    for head in [
        "CONNECT h:443 HTTP/1.1\r\n\r\n",
        "CONNECT h:443 HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nok",
    ] {
        let input = format!("{head}GET / HTTP/1.1\n");
        let undecided = FramingProgress {
            passed: head.len(),
            next: NextStep::Undecided,
        };

        let mut granted = Requests::new(LIMITS);
        assert_eq!(granted.advance(input.as_bytes()), undecided, "{head:?}");
        granted.upgraded();
        let all = FramingProgress {
            passed: 15,
            next: NextStep::More,
        };
        assert_eq!(
            granted.advance(&input.as_bytes()[head.len()..]),
            all,
            "{head:?}"
        );

        let mut refused = Requests::new(LIMITS);
        assert_eq!(refused.advance(input.as_bytes()), undecided, "{head:?}");
        refused.not_upgraded();
        let none = FramingProgress {
            passed: 0,
            next: NextStep::Refused(E::BARE_LF),
        };
        assert_eq!(
            refused.advance(&input.as_bytes()[head.len()..]),
            none,
            "{head:?}"
        );
    }
}

/// One request that every strict parser takes.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let name = "[A-Za-z!#$%&'*+.^_`|~0-9-]{1,12}";
    let value = prop::collection::vec(prop_oneof![Just(b'\t'), 0x20u8..0x7f, 0x80u8..=0xff], 0..12);
    let body = prop_oneof![
        Just((String::new(), Vec::new())),
        prop::collection::vec(any::<u8>(), 0..40)
            .prop_map(|body| (format!("Content-Length: {}\r\n", body.len()), body)),
        prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 0..4).prop_map(|chunks| {
            let mut body = Vec::new();
            for chunk in chunks {
                body.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                body.extend_from_slice(&chunk);
                body.extend_from_slice(b"\r\n");
            }
            body.extend_from_slice(b"0\r\nX-Sum: 1\r\n\r\n");
            ("transfer-encoding: chunked\r\n".to_owned(), body)
        }),
    ];
    (
        "[A-Z-]{1,8}",
        "/[a-z0-9/?&=+.~_%!$'(),;:@|-]{0,20}",
        prop::collection::vec((name, value), 0..3),
        body,
    )
        .prop_filter_map(
            "a field with a meaning of its own",
            |(method, target, fields, (framing, body))| {
                if method == "CONNECT" {
                    return None;
                }
                let mut bytes =
                    format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{framing}").into_bytes();
                for (name, value) in fields {
                    if ["host", "upgrade"]
                        .iter()
                        .any(|own| name.eq_ignore_ascii_case(own))
                    {
                        return None;
                    }
                    bytes.extend_from_slice(name.as_bytes());
                    bytes.push(b':');
                    bytes.extend_from_slice(&value);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"\r\n");
                bytes.extend_from_slice(&body);
                Some(bytes)
            },
        )
}

proptest! {
    #[test]
    fn valid_requests_pass_for_every_chunking(
        messages in prop::collection::vec(request(), 1..4),
        mut cuts in prop::collection::vec(0usize..500, 0..20),
    ) {
        let input = messages.concat();
        cuts.retain(|cut| *cut <= input.len());
        cuts.sort_unstable();
        prop_assert_eq!(requests(&input, &cuts), (input.len(), NextStep::More));
    }

    #[test]
    fn damaged_requests_get_one_verdict_for_every_chunking(
        messages in prop::collection::vec(request(), 1..3),
        at in any::<prop::sample::Index>(),
        damage in prop::sample::select(b"\r\n \t:\0;x5GTH,".to_vec()),
        insert: bool,
        mut cuts in prop::collection::vec(0usize..300, 0..20),
    ) {
        let mut input = messages.concat();
        let at = at.index(input.len());
        if insert { input.insert(at, damage) } else { input[at] = damage }
        cuts.retain(|cut| *cut <= input.len());
        cuts.sort_unstable();
        let whole = requests(&input, &[]);
        prop_assert_eq!(requests(&input, &cuts), whole);
        prop_assert_eq!(requests(&input, &one_by_one(&input)), whole);
    }

    #[test]
    fn what_passes_as_a_head_is_one_to_the_parser_behind(
        message in request(),
        at in any::<prop::sample::Index>(),
        damage: u8,
    ) {
        let mut input = message;
        let at = at.index(input.len());
        input[at] = damage;
        let mut scan = HeadScan::<RequestLine>::new();
        let guarded = scan.advance(&input, LIMITS).ok().flatten().map(|(length, _)| length);
        let mut fields = [httparse::EMPTY_HEADER; 16];
        let parsed = httparse::Request::new(&mut fields).parse(&input);
        if let Some(length) = guarded {
            prop_assert_eq!(parsed, Ok(httparse::Status::Complete(length)));
            let mut words = input.trim_ascii_start().split(|b| *b == b' ');
            let (method, target) = (words.next().unwrap(), words.next().unwrap());
            prop_assert!(Method::from_bytes(method).is_ok());
            prop_assert!(http::Uri::try_from(target).is_ok());
        }
    }
}
