use bytes::Buf as _;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::http1::FramingError as E;

const LIMITS: HeadLimits = HeadLimits {
    header_bytes: 200,
    header_count: 5,
};

/// What is read of an answer.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    head: Option<String>,
    body: Vec<u8>,
    trailers: Option<String>,
    over: bool,
    refused: Option<E>,
    left: usize,
}

/// Reads the answer to `method` when it comes in pieces that end at `cuts`.
fn read(method: &Method, input: &[u8], cuts: &[usize]) -> Seen {
    let mut answers = Answers::new(LIMITS, Rc::default());
    answers.expect(method);
    let (mut seen, mut buffer, mut from) = (Seen::default(), BytesMut::new(), 0);
    for end in cuts.iter().copied().chain([input.len()]) {
        buffer.extend_from_slice(&input[from..end.max(from)]);
        from = end.max(from);
        if let Err(error) = take(&mut answers, &mut buffer, &mut seen) {
            seen.refused = Some(error);
            return seen;
        }
    }
    seen.over = answers.is_over();
    seen.left = buffer.remaining();
    seen
}

fn take(answers: &mut Answers, buffer: &mut BytesMut, seen: &mut Seen) -> Result<(), E> {
    while seen.head.is_none() {
        match answers.head(buffer)? {
            None => return Ok(()),
            Some(ParsedHead::Interim(_)) => {}
            Some(ParsedHead::Final(response)) => seen.head = Some(written(&response)),
        }
    }
    loop {
        match answers.body(buffer)? {
            None | Some(BodyPart::End) => break,
            Some(BodyPart::Data(bytes)) => seen.body.extend_from_slice(&bytes),
            Some(BodyPart::Trailers(fields)) => seen.trailers = Some(listed(&fields)),
        }
    }
    // What is behind the answer.
    answers.head(buffer).map(|_| ())
}

fn written(response: &Response<()>) -> String {
    let reason = response.extensions().get::<ReasonPhrase>();
    let reason = reason.map(|reason| String::from_utf8_lossy(reason.as_bytes()).into_owned());
    format!(
        "{:?} {} {reason:?} {}",
        response.version(),
        response.status().as_u16(),
        listed(response.headers())
    )
}

fn listed(fields: &HeaderMap) -> String {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        format!("{name}={};", String::from_utf8_lossy(value.as_bytes()))
    };
    fields.iter().map(line).collect()
}

fn one_by_one(input: &[u8]) -> Vec<usize> {
    (0..=input.len()).collect()
}

#[test]
#[rustfmt::skip]
fn a_head_says_what_it_says() {
    for (input, head) in [
        ("HTTP/1.1 200 OK\r\nA:  b \r\n\r\n", "HTTP/1.1 200 None a=b;"),
        (
            "\r\nHTTP/1.0 404 Gone Fishing\r\nX: \r\nY:z\r\n\r\n",
            "HTTP/1.0 404 Some(\"Gone Fishing\") x=;y=z;",
        ),
        ("HTTP/1.1 200\r\nA: 1\r\n\r\n", "HTTP/1.1 200 Some(\"\") a=1;"),
        ("HTTP/1.1 200 \r\n\r\n", "HTTP/1.1 200 Some(\"\") "),
        ("HTTP/1.1 299 Odd\r\n\r\n", "HTTP/1.1 299 Some(\"Odd\") "),
        ("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nA: 3\r\nB: 4\r\n\r\n", "HTTP/1.1 200 None a=1;a=3;b=2;b=4;"),
        (
            "HTTP/1.1 103 Early Hints\r\nL: x\r\n\r\nHTTP/1.1 204 No Content\r\nC: d\r\n\r\n",
            "HTTP/1.1 204 None c=d;",
        ),
    ] {
        for cuts in [vec![], one_by_one(input.as_bytes())] {
            let seen = read(&Method::GET, input.as_bytes(), &cuts);
            assert_eq!(seen.head.as_deref(), Some(head), "{input:?}");
        }
    }
}

#[test]
#[rustfmt::skip]
fn answers_end_where_method_and_status_say() {
    let (get, head) = (&Method::GET, &Method::HEAD);
    for (method, input, body, over) in [
        (get, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", true),
        (get, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "ok", false),
        (get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "", true),
        (get, "HTTP/1.0 200 OK\r\n\r\nuntil close", "until close", false),
        (
            get,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nok\r\n01\r\n!\r\n0\r\n\r\n",
            "ok!",
            true,
        ),
        (get, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "ok", false),
        (get, "HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n", "", true),
        (get, "HTTP/1.1 304 No\r\nContent-Length: 9\r\n\r\n", "", true),
        (head, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "", true),
        (head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "", true),
        (get, "HTTP/1.1 103 Early Hints\r\n\r\n", "", false),
        (
            get,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\
             HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "ok",
            true,
        ),
    ] {
        for cuts in [vec![], one_by_one(input.as_bytes())] {
            let seen = read(method, input.as_bytes(), &cuts);
            assert_eq!((seen.refused, seen.over), (None, over), "{input:?}");
            assert_eq!(seen.body, body.as_bytes(), "{input:?}");
        }
    }
}

#[test]
fn behind_a_101_bytes_are_nobodys_business_here() {
    let input = b"HTTP/1.1 101 Switching Protocols\r\n\r\n\0any\nthing";
    let seen = read(&Method::GET, input, &[]);
    assert_eq!((seen.refused, seen.left), (None, b"\0any\nthing".len()));
}

#[test]
fn trailers_are_read_behind_the_last_chunk() {
    let input = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 2\r\nok\r\n0\r\nX-Sum: 1\r\nx-sum: 2\r\nContent-Length: 9\r\n\r\n";
    for cuts in [vec![], one_by_one(input.as_bytes())] {
        let seen = read(&Method::GET, input.as_bytes(), &cuts);
        let trailers = "x-sum=1;x-sum=2;content-length=9;";
        assert_eq!(seen.trailers.as_deref(), Some(trailers));
        assert!(seen.over);
    }
}

#[test]
#[rustfmt::skip]
fn ambiguous_answers_are_refused() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    for (input, error) in [
        ("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n".to_owned(), E::BARE_LF),
        ("HTTP/1.1 2000 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        ("HTTP/1.1 20 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        ("HTTP/1.1 099 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        ("HTTP/1.1  200 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        ("HTTP/1.1\t200 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        ("ICY 200 OK\r\n\r\n".to_owned(), E::STATUS_LINE),
        (head("Content-Length: 2\r\nTransfer-Encoding: chunked"), E::LENGTH_AND_ENCODING),
        (head("Content-Length: 2\r\nContent-Length: 3"), E::UNEQUAL_CONTENT_LENGTHS),
        (head("Transfer-Encoding: gzip"), E::TRANSFER_ENCODING),
        ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), E::TRANSFER_ENCODING),
        (head("Transfer-Encoding: chunked") + "x", E::CHUNK_SIZE),
        (head("Transfer-Encoding: chunked") + "1\r\nab", E::CHUNK_END),
        (head("Transfer-Encoding: chunked") + "0\r\nX : y\r\n\r\n", E::SPACE_BEFORE_COLON),
        (head("Content-Length: 2") + "ok!", E::UNSOLICITED),
        (head("X: a\0b"), E::CONTROL_CHARACTER),
        (head("A:\r\nB:\r\nC:\r\nD:\r\nE:\r\nF:"), E::TooManyFields { limit: 5 }),
        (head(&format!("A: {}", "a".repeat(200))), E::HeadTooLarge { limit: 200 }),
        ("HTTP/1.1 204 No\r\n\r\nHTTP/1.1".to_owned(), E::UNSOLICITED),
    ] {
        for cuts in [vec![], one_by_one(input.as_bytes())] {
            let seen = read(&Method::GET, input.as_bytes(), &cuts);
            assert_eq!(seen.refused, Some(error), "{input:?}");
        }
    }
}

#[test]
fn bytes_that_nobody_asked_for_are_refused() {
    let mut answers = Answers::new(LIMITS, Rc::default());
    let mut buffer = BytesMut::from("HTTP/1.1 408 Request Timeout\r\n\r\n");
    let refused = answers.head(&mut buffer).unwrap_err();
    assert_eq!(refused, E::UNSOLICITED);
}

#[test]
fn a_fin_completes_only_a_body_that_lasts_until_then() {
    for (input, complete) in [
        ("HTTP/1.1 200 OK\r\n\r\nsome", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome", false),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome",
            false,
        ),
        ("HTTP/1.1 200 OK\r\nCont", false),
        ("", false),
    ] {
        let mut answers = Answers::new(LIMITS, Rc::default());
        answers.expect(&Method::GET);
        let mut buffer = BytesMut::from(input);
        take(&mut answers, &mut buffer, &mut Seen::default()).unwrap();
        assert_eq!(answers.close(), complete, "{input:?}");
    }
}

#[test]
fn another_request_follows_only_where_both_sides_can_tell() {
    for (head, follows) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true),
        (
            "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
            false,
        ),
        ("HTTP/1.1 200 OK\r\n\r\n", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false),
        (
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
            true,
        ),
    ] {
        let mut answers = Answers::new(LIMITS, Rc::default());
        answers.expect(&Method::GET);
        answers.head(&mut BytesMut::from(head)).unwrap().unwrap();
        assert_eq!(answers.may_go_on(), follows, "{head:?}");
    }
}

proptest! {
    #[test]
    fn every_chunking_gives_the_same_answer(
        status in prop::sample::select(vec!["100", "101", "200", "204", "304", "500", "20", "2 0"]),
        fields in prop::collection::vec(prop::sample::select(vec![
            "Content-Length: 3\r\n", "Content-Length: 4\r\n", "Transfer-Encoding: chunked\r\n",
            "X: y\r\n", "x: \t z \r\n", "X : y\r\n", "X: y\n",
        ]), 0..3),
        body in "[0-9a-f\r\n;x]{0,30}|3\r\nabc\r\n(0\r\n(T: x\r\n)?\r\n)?x?",
        head: bool,
        mut cuts in prop::collection::vec(0usize..150, 0..20),
    ) {
        let method = if head { Method::HEAD } else { Method::GET };
        let input = format!("HTTP/1.1 {status} Reason\r\n{}\r\n{body}", fields.concat());
        let input = input.as_bytes();
        cuts.retain(|cut| *cut <= input.len());
        cuts.sort_unstable();
        let whole = read(&method, input, &[]);
        prop_assert_eq!(&read(&method, input, &cuts), &whole);
        prop_assert_eq!(&read(&method, input, &one_by_one(input)), &whole);
    }
}
