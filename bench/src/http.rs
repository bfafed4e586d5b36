//! Just enough HTTP/1.1 to read an answer: no allocation, no headers kept.

use anyhow::{Result, bail};

/// Length the head announces, if it does.
pub fn content_length(head: &[u8]) -> Option<usize> {
    header(head, b"content-length")?
        .trim_ascii()
        .utf8()?
        .parse()
        .ok()
}

/// Value of the first header of that (lower-case) name.
fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    head.split(|&byte| byte == b'\n').skip(1).find_map(|line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        (found.eq_ignore_ascii_case(name) && rest.first() == Some(&b':')).then(|| &rest[1..])
    })
}

trait Utf8 {
    fn utf8(&self) -> Option<&str>;
}

impl Utf8 for [u8] {
    fn utf8(&self) -> Option<&str> {
        std::str::from_utf8(self).ok()
    }
}

/// Reads one answer, fed in pieces.
#[derive(Debug)]
pub struct Answer {
    state: State,
    /// Status code; 0 until the head is read.
    pub status: u16,
    /// Body bytes so far, without chunk framing.
    pub body: usize,
    head: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Head,
    Sized(usize),
    ChunkSize(usize),
    ChunkData(usize),
    /// Line ends still to skip after a chunk, and whether it was the last chunk.
    ChunkEnd(usize, bool),
    Done,
}

impl Answer {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self {
            state: State::Head,
            status: 0,
            body: 0,
            head: Vec::new(),
        }
    }

    /// Takes what has arrived; true once the answer is whole. Bytes beyond it are an error, since
    /// the load generator never pipelines.
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<bool> {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Head => bytes = self.feed_head(bytes)?,
                State::Sized(left) | State::ChunkData(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    self.body += taken;
                    bytes = &bytes[taken..];
                    if *left == 0 {
                        self.state = match self.state {
                            State::Sized(_) => State::Done,
                            _ => State::ChunkEnd(2, false),
                        };
                    }
                }
                State::ChunkSize(size) => {
                    let digit = (bytes[0] as char).to_digit(16);
                    match (digit, bytes[0]) {
                        (Some(digit), _) => *size = *size * 16 + digit as usize,
                        (None, b'\r') => {}
                        (None, b'\n') if *size == 0 => self.state = State::ChunkEnd(2, true),
                        (None, b'\n') => self.state = State::ChunkData(*size),
                        (None, other) => bail!("byte {other:#x} in a chunk size"),
                    }
                    bytes = &bytes[1..];
                }
                State::ChunkEnd(left, last) => {
                    *left -= 1;
                    if *left == 0 {
                        self.state = if *last {
                            State::Done
                        } else {
                            State::ChunkSize(0)
                        };
                    }
                    bytes = &bytes[1..];
                }
                State::Done => bail!("{} bytes after the end of the answer", bytes.len()),
            }
        }
        Ok(matches!(self.state, State::Done))
    }

    /// Takes bytes up to the end of the head; what is left belongs to the body.
    fn feed_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let from = before.saturating_sub(3);
        let Some(end) = self.head[from..]
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
        else {
            return Ok(&[]);
        };
        let end = from + end + 4;
        self.head.truncate(end);
        let status = self.head.get(9..12).and_then(Utf8::utf8);
        self.status = status.and_then(|text| text.parse().ok()).unwrap_or(0);
        let chunked = header(&self.head, b"transfer-encoding")
            .is_some_and(|value| value.ends_with(b"chunked\r"));
        self.state = match content_length(&self.head) {
            _ if chunked => State::ChunkSize(0),
            Some(0) => State::Done,
            Some(length) => State::Sized(length),
            None => bail!(
                "an answer without length: {:?}",
                String::from_utf8_lossy(&self.head)
            ),
        };
        Ok(&bytes[end - before..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_the_same_however_it_is_cut() {
        for (wire, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 5),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", 0),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\na\r\n0123456789\r\n0\r\n\r\n",
                15,
            ),
        ] {
            for cut in 1..wire.len() {
                let mut answer = Answer::new();
                let mut done = false;
                for piece in wire.as_bytes().chunks(cut) {
                    assert!(!done);
                    done = answer.feed(piece).unwrap();
                }
                assert!(done);
                assert_eq!(answer.body, body);
            }
        }
    }
}
