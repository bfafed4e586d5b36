//! Where in a stream of events its bytes have come to, without reading them.

/// The end of what has come.
#[derive(Debug, Default)]
pub(super) struct Tail {
    bytes: [u8; 4],
    length: usize,
}

impl Tail {
    /// More has come.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if bytes.len() >= self.bytes.len() {
            self.bytes.copy_from_slice(&bytes[bytes.len() - 4..]);
            self.length = 4;
            return;
        }
        for byte in bytes {
            if self.length == self.bytes.len() {
                self.bytes.rotate_left(1);
                self.length -= 1;
            }
            self.bytes[self.length] = *byte;
            self.length += 1;
        }
    }

    /// Whether an event has ended, and no other has begun. So it is before the first, too.
    pub(super) fn is_between_events(&self) -> bool {
        let tail = &self.bytes[..self.length];
        let line = tail
            .strip_suffix(b"\r\n")
            .or_else(|| tail.strip_suffix(b"\n"))
            .or_else(|| tail.strip_suffix(b"\r"));
        match line {
            None => tail.is_empty(),
            Some(line) => matches!(line.last(), None | Some(b'\r' | b'\n')),
        }
    }
}

/// Whether an event has an id that says something.
pub(super) fn has_id(event: &[u8]) -> bool {
    let lines = event.split(|byte| matches!(byte, b'\r' | b'\n'));
    lines
        .filter_map(|line| line.strip_prefix(b"id:"))
        .any(|id| !id.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_ended_behind_an_empty_line() {
        for (stream, expected) in [
            ("", true),
            ("data: x", false),
            ("data: x\n", false),
            ("data: x\r\n", false),
            ("data: x\r", false),
            ("data: x\n\n", true),
            ("data: x\r\n\r\n", true),
            ("data: x\r\r", true),
            ("data: x\n\nd", false),
        ] {
            for size in 1..=5 {
                let mut tail = Tail::default();
                for chunk in stream.as_bytes().chunks(size) {
                    tail.push(chunk);
                }
                assert_eq!(tail.is_between_events(), expected, "{stream:?} by {size}");
            }
        }
    }

    #[test]
    fn an_id_that_says_something_can_be_asked_for() {
        for (event, expected) in [
            ("id: 7\ndata: x\n\n", true),
            ("data: x\r\nid:a\r\n\r\n", true),
            ("id:\ndata: id: 7\n\n", false),
            ("data: {\"id\":7}\n\n", false),
        ] {
            assert_eq!(has_id(event.as_bytes()), expected, "{event}");
        }
    }
}
