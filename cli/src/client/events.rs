//! Server-sent events, parsed as they arrive.

use std::collections::VecDeque;

use squall_dialects::stream::{Frame, Framing, Splitter};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerEvent {
    /// `exchange`, `chaos`, …; `message` if the server sends no name.
    pub(crate) name: String,
    /// The document.
    pub(crate) data: String,
}

/// Parses events from the bytes of a stream.
#[derive(Debug)]
pub(super) struct EventParser {
    splitter: Splitter,
    frames: VecDeque<Frame>,
    last_id: Option<String>,
}

impl Default for EventParser {
    fn default() -> Self {
        Self {
            splitter: Splitter::new(Framing::Sse, usize::MAX),
            frames: VecDeque::new(),
            last_id: None,
        }
    }
}

impl EventParser {
    /// A parser for the stream that continues after the last event.
    pub(super) fn after_last(&mut self) -> Self {
        Self {
            last_id: self.last_id.take(),
            ..Self::default()
        }
    }

    /// The id to resume after. The server also updates it between events.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.frames.extend(self.splitter.push(chunk));
    }

    pub(super) fn next(&mut self) -> Option<ServerEvent> {
        while let Some(frame) = self.frames.pop_front() {
            let text = String::from_utf8_lossy(frame.bytes());
            let id = text.lines().find_map(|line| line.strip_prefix("id:"));
            if let Some(id) = id {
                self.last_id = Some(id.trim_start().to_owned());
            }
            if let Some(data) = frame.data() {
                return Some(ServerEvent {
                    name: frame.name().unwrap_or("message").to_owned(),
                    data: String::from_utf8_lossy(&data).into_owned(),
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_however_the_bytes_are_cut() {
        let text = ": hello\nid: 7-0\n\nid: 7-1\nevent: exchange\ndata: {\ndata: }\n\ndata:x\r\n\r\n\
                    id: 7-9\n: alive\n\n";
        for size in 1..text.len() {
            let mut reading = EventParser::default();
            let mut events = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                reading.push(chunk);
                events.extend(std::iter::from_fn(|| reading.next()));
            }
            let expected = [
                ServerEvent {
                    name: "exchange".into(),
                    data: "{\n}".into(),
                },
                ServerEvent {
                    name: "message".into(),
                    data: "x".into(),
                },
            ];
            assert_eq!(events, expected, "in chunks of {size}");
            assert_eq!(
                reading.last_id.as_deref(),
                Some("7-9"),
                "in chunks of {size}"
            );
        }
    }
}
