//! What MCP servers list of their tools, as it passes: the structure of the results they promise.
//!
//! Clients hold a result against it, so answers that Squall makes up are given it
//! ([`mcp::Output`]). A list is read while a rule about tools is in force, which is what has the
//! request read ahead. Nothing is changed.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use squall_dialects::json::{Document, Kind};
use squall_dialects::mcp::{self, Message, Output};
use squall_dialects::stream::{FrameKind, Framing, Splitter};

use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::whole::{Inspect, Lease};
use crate::upstream::Origin;

/// What is kept in all, bytes of names and schemas.
const MEMORY: usize = 8 << 20;
/// Servers that are known at most; the one that was idle longest is forgotten.
const SERVERS: usize = 1024;

/// An MCP server, as those of one scope see it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct McpServer {
    /// Where it is.
    pub(crate) origin: Origin,
    /// Path of the endpoint, without the query.
    pub(crate) path: String,
    /// Whose list it was.
    pub(crate) scope: Arc<str>,
}

/// The tools of all servers; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolLists(Arc<Mutex<ToolTable>>);

#[derive(Debug, Default)]
struct ToolTable {
    known: HashMap<McpServer, ServerTools>,
    taken: usize,
    /// Counts uses: tells which server was idle longest.
    clock: u64,
}

#[derive(Debug, Default)]
struct ServerTools {
    outputs: HashMap<String, Output>,
    taken: usize,
    used: u64,
}

impl ToolLists {
    /// What is known of a tool's results.
    pub(crate) fn output(&self, server: &McpServer, tool: &str) -> Output {
        let mut table = self.table();
        table.clock += 1;
        let used = table.clock;
        let Some(known) = table.known.get_mut(server) else {
            return Output::Unknown;
        };
        known.used = used;
        known.outputs.get(tool).cloned().unwrap_or_default()
    }

    /// Keeps what a message lists; most list nothing.
    fn learn(&self, server: &McpServer, message: Message<'_>) {
        let Some((_, items)) = message.tools() else {
            return;
        };
        let mut table = self.table();
        for item in items {
            let schema = item.tool.get("outputSchema");
            let schema = schema.filter(|schema| schema.kind() == Kind::Object);
            let output = schema.map_or(Output::Free, |it| Output::Schema(it.raw().into()));
            table.keep(server, item.name, output);
        }
        table.make_room(server);
    }

    /// Keeps what a document lists, as one message or in a list of them.
    fn read(&self, server: &McpServer, json: &[u8]) {
        if let Ok(document) = Document::parse(json) {
            for message in mcp::messages(&document) {
                self.learn(server, message);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, ToolTable> {
        // Each change leaves it whole, so a panic elsewhere is no reason to stop.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolTable {
    fn keep(&mut self, server: &McpServer, tool: String, output: Output) {
        self.clock += 1;
        let known = self.known.entry(server.clone()).or_default();
        known.used = self.clock;
        let added = weight(&tool, &output);
        let before = known.outputs.get(&tool).map(|output| weight(&tool, output));
        known.outputs.insert(tool, output);
        let before = before.unwrap_or_default();
        known.taken = known.taken + added - before;
        self.taken = self.taken + added - before;
    }

    /// Forgets others until the rest fits; at last this one.
    fn make_room(&mut self, latest: &McpServer) {
        while self.taken > MEMORY || self.known.len() > SERVERS {
            let others = self.known.iter().filter(|(server, _)| *server != latest);
            let oldest = others.min_by_key(|(_, known)| known.used);
            let oldest = oldest.map_or(latest, |(server, _)| server).clone();
            let Some(known) = self.known.remove(&oldest) else {
                return;
            };
            self.taken -= known.taken;
        }
    }
}

fn weight(tool: &str, output: &Output) -> usize {
    // What a table keeps beside.
    const BESIDE: usize = 64;
    let schema = match output {
        Output::Schema(schema) => schema.len(),
        Output::Unknown | Output::Free => 0,
    };
    BESIDE + tool.len() + schema
}

/// An answer to `tools/list` that is read as it passes, JSON or events without content coding.
pub(crate) struct ToolListReader {
    body: AgentBody,
    tools: ToolLists,
    server: McpServer,
    form: ListForm,
}

enum ListForm {
    Json {
        held: Vec<u8>,
        most: u64,
        lease: Lease,
    },
    Events(Splitter),
    /// It was read, or is too long.
    Read,
}

impl ToolListReader {
    /// An answer of JSON, of which at most `inspect` allows is held as a copy.
    pub(crate) fn json(
        body: AgentBody,
        tools: ToolLists,
        server: McpServer,
        inspect: &Inspect,
    ) -> Self {
        let form = ListForm::Json {
            held: Vec::new(),
            most: inspect.limit(),
            lease: inspect.lease(),
        };
        Self {
            body,
            tools,
            server,
            form,
        }
    }

    /// An answer of events of at most `longest` bytes each.
    pub(crate) fn events(
        body: AgentBody,
        tools: ToolLists,
        server: McpServer,
        longest: usize,
    ) -> Self {
        Self {
            body,
            tools,
            server,
            form: ListForm::Events(Splitter::new(Framing::Sse, longest)),
        }
    }

    fn see(&mut self, data: Option<&Bytes>) {
        match &mut self.form {
            ListForm::Read => {}
            ListForm::Events(splitter) => {
                // Before the agent has them: it may call a tool at once.
                for frame in data.map_or_else(Vec::new, |data| splitter.push(data)) {
                    let data = frame.data().filter(|_| frame.kind() == FrameKind::Event);
                    if let Some(data) = data.filter(|data| !data.is_empty()) {
                        self.tools.read(&self.server, &data);
                    }
                }
            }
            ListForm::Json { held, most, lease } => {
                if let Some(data) = data {
                    let more = data.len() as u64;
                    if held.len() as u64 + more > *most || lease.grow(more).is_err() {
                        self.form = ListForm::Read;
                        return;
                    }
                    held.extend_from_slice(data);
                }
                // hyper does not ask again for the end of a body whose length it knows.
                if data.is_none() || self.body.is_end_stream() {
                    self.tools.read(&self.server, held);
                    self.form = ListForm::Read;
                }
            }
        }
    }
}

impl Body for ToolListReader {
    type Data = Bytes;
    type Error = Abort;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Abort>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => self.see(frame.data_ref()),
            None => self.see(None),
            Some(Err(_)) => self.form = ListForm::Read,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Scheme;

    fn server(scope: &str) -> McpServer {
        McpServer {
            origin: Origin::new(Scheme::Http, "server", 80),
            path: "/mcp".to_owned(),
            scope: Arc::from(scope),
        }
    }

    fn list(schema: &str) -> Vec<u8> {
        format!(r#"{{"id":1,"result":{{"tools":[{{"name":"t","outputSchema":{schema}}}]}}}}"#)
            .into_bytes()
    }

    #[test]
    fn the_servers_idle_longest_are_forgotten_over_the_bounds() {
        let tools = ToolLists::default();
        let known = |scope: usize| tools.output(&server(&scope.to_string()), "t");
        for scope in 0..=SERVERS {
            tools.read(&server(&scope.to_string()), &list("{}"));
        }
        assert_eq!(known(0), Output::Unknown);
        assert_eq!(known(1), Output::Schema("{}".into()));
        let large = format!(r#"{{"title":"{}"}}"#, "x".repeat(MEMORY / 2));
        for scope in 0..3 {
            tools.read(&server(&scope.to_string()), &list(&large));
        }
        assert_eq!([0, 1, 3].map(known), [const { Output::Unknown }; 3]);
        assert!(matches!(known(2), Output::Schema(_)));
        assert!(tools.table().taken <= MEMORY);
        // What is listed anew counts once.
        tools.read(&server("2"), &list("{}"));
        assert_eq!(known(2), Output::Schema("{}".into()));
        let table = tools.table();
        let taken: usize = table.known.values().map(|known| known.taken).sum();
        assert_eq!(table.taken, taken);
    }
}
