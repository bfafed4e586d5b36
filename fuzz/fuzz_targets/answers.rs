//! What an upstream says on HTTP/1.1, in any chunks: nothing panics, and neither head nor body nor
//! trailers, nor what is refused, hangs on the chunking.
//!
//! The first byte chooses the chunk size and whether HEAD was asked; the rest is the answer.

#![no_main]

use std::rc::Rc;

use bytes::BytesMut;
use http::Method;
use libfuzzer_sys::fuzz_target;
use squall_proxy::http1::answers::{Answers, BodyPart, ParsedHead};
use squall_proxy::http1::{FramingError, HeadLimits};

const LIMITS: HeadLimits = HeadLimits {
    header_bytes: 4096,
    header_count: 50,
};

fuzz_target!(|input: &[u8]| {
    let [choice, answer @ ..] = input else {
        return;
    };
    let method = if choice & 1 == 0 {
        Method::GET
    } else {
        Method::HEAD
    };
    let size = usize::from(choice >> 1).max(1);
    assert_eq!(
        read(&method, answer, size),
        read(&method, answer, usize::MAX)
    );
});

/// What was read, and how it ended.
fn read(
    method: &Method,
    answer: &[u8],
    size: usize,
) -> (String, Vec<u8>, Result<bool, FramingError>) {
    let mut answers = Answers::new(LIMITS, Rc::default());
    answers.expect(method);
    let (mut told, mut body, mut buffer) = (String::new(), Vec::new(), BytesMut::new());
    for chunk in answer.chunks(size) {
        buffer.extend_from_slice(chunk);
        if let Err(error) = take(&mut answers, &mut buffer, &mut told, &mut body) {
            return (told, body, Err(error));
        }
    }
    (told, body, Ok(answers.close()))
}

fn take(
    answers: &mut Answers,
    buffer: &mut BytesMut,
    told: &mut String,
    body: &mut Vec<u8>,
) -> Result<(), FramingError> {
    loop {
        while let Some(answered) = answers.head(buffer)? {
            if let ParsedHead::Final(response) = answered {
                *told = format!("{:?} {:?}", response.status(), response.headers());
            }
        }
        match answers.body(buffer)? {
            None => return Ok(()),
            Some(BodyPart::Data(bytes)) => body.extend_from_slice(&bytes),
            Some(BodyPart::Trailers(fields)) => told.push_str(&format!("{fields:?}")),
            Some(BodyPart::End) => return answers.head(buffer).map(|_| ()),
        }
    }
}
