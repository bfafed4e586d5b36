//! Server-sent events, read as they come.

use bytes::{Buf, BytesMut};

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `exchange`, `chaos`, …; `message` when the server names none.
    pub(crate) name: String,
    /// The document.
    pub(crate) data: String,
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    response: reqwest::Response,
    buffer: BytesMut,
    event: Event,
    last_id: Option<String>,
}

impl Events {
    pub(crate) fn new(response: reqwest::Response) -> Self {
        Self {
            response,
            buffer: BytesMut::new(),
            event: Event::default(),
            last_id: None,
        }
    }

    /// What to resume after. The server also moves it on between events.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The next event; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, reqwest::Error> {
        loop {
            while let Some(line) = take_line(&mut self.buffer) {
                if let Some(event) = feed(&mut self.event, &mut self.last_id, &line) {
                    return Ok(Some(event));
                }
            }
            match self.response.chunk().await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

/// A whole line without its end, once it is there. Our server ends lines with LF.
fn take_line(buffer: &mut BytesMut) -> Option<String> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    let line = buffer.split_to(end);
    buffer.advance(1);
    Some(String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(&line)).into_owned())
}

/// Adds a line to the event under construction; an empty line completes it.
fn feed(event: &mut Event, last_id: &mut Option<String>, line: &str) -> Option<Event> {
    if line.is_empty() {
        let mut whole = std::mem::take(event);
        if whole.data.is_empty() {
            return None;
        }
        if whole.name.is_empty() {
            "message".clone_into(&mut whole.name);
        }
        return Some(whole);
    }
    let (field, value) = line.split_once(':').unwrap_or((line, ""));
    let value = value.strip_prefix(' ').unwrap_or(value);
    match field {
        "event" => value.clone_into(&mut event.name),
        "id" => *last_id = Some(value.to_owned()),
        "data" => {
            if !event.data.is_empty() {
                event.data.push('\n');
            }
            event.data.push_str(value);
        }
        // Comments (an empty field name) keep the connection alive; `retry` is ours to choose.
        _ => {}
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_however_the_bytes_are_cut() {
        let text = ": hello\nid: 7-0\n\nid: 7-1\nevent: exchange\ndata: {\ndata: }\n\ndata:x\r\n\r\n\
                    id: 7-9\n: alive\n\n";
        for size in 1..text.len() {
            let (mut buffer, mut event, mut last_id) = (BytesMut::new(), Event::default(), None);
            let mut events = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                buffer.extend_from_slice(chunk);
                while let Some(line) = take_line(&mut buffer) {
                    events.extend(feed(&mut event, &mut last_id, &line));
                }
            }
            let expected = [
                Event {
                    name: "exchange".into(),
                    data: "{\n}".into(),
                },
                Event {
                    name: "message".into(),
                    data: "x".into(),
                },
            ];
            assert_eq!(events, expected, "in chunks of {size}");
            assert_eq!(last_id.as_deref(), Some("7-9"), "in chunks of {size}");
        }
    }
}
