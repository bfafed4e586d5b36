//! Tool lists of MCP servers, read as they pass: the output schemas of tools.
//!
//! Clients validate results against them, so synthetic responses must match ([`mcp::Output`]). A
//! list is read only while a rule about tools is in force, because the request must be read ahead.
//! Nothing is changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use squall_dialects::json::{Document, JsonKind};
use squall_dialects::mcp::{self, Message, Output};
use squall_dialects::stream::{FrameKind, Framing, Splitter};

use crate::body::AgentBody;
use crate::body::buffer::{Buffer, Inspect};
use crate::body::tapped::{Passed, tapped};
use crate::bounded_map::BoundedMap;
use crate::lock::lock;
use crate::upstream::UpstreamOrigin;

/// Most memory in total, bytes of names and schemas.
const MEMORY: usize = 8 << 20;
/// Most servers; the least recently used one is dropped.
const SERVERS: usize = 1024;

/// An MCP server, as seen in one scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct McpServer {
    /// Its origin.
    pub(crate) origin: UpstreamOrigin,
    /// Path of the endpoint, without the query.
    pub(crate) path: String,
    /// The scope of the list.
    pub(crate) scope: Arc<str>,
}

/// Output schemas, by tool name.
type Outputs = HashMap<String, Output>;

/// The tools of all servers; clones share them.
#[derive(Debug, Clone)]
pub(crate) struct ToolLists(Arc<Mutex<BoundedMap<McpServer, Outputs>>>);

impl Default for ToolLists {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(BoundedMap::new(SERVERS, MEMORY))))
    }
}

impl ToolLists {
    /// The known structure of a tool's results.
    pub(crate) fn output(&self, server: &McpServer, tool: &str) -> Output {
        let mut lists = self.lists();
        let known = lists.get(server);
        known.map_or(Output::Unknown, |outputs| {
            outputs.get(tool).cloned().unwrap_or_default()
        })
    }

    /// Stores the tools that a message lists, if any.
    fn learn(&self, server: &McpServer, message: Message<'_>) {
        let Some((_, items)) = message.tools() else {
            return;
        };
        let listed = items.into_iter().map(|item| {
            let schema = item.tool.get("outputSchema");
            let schema = schema.filter(|schema| schema.kind() == JsonKind::Object);
            let output = schema.map_or(Output::Free, |it| Output::Schema(it.raw().into()));
            (item.name, output)
        });
        let learn = |outputs: &mut Outputs| outputs.extend(listed);
        let weigh = |outputs: &Outputs| outputs.iter().map(|(tool, it)| weight(tool, it)).sum();
        self.lists().update(server, learn, weigh);
    }

    /// Stores the tools in a document: one message or a list of them.
    fn read(&self, server: &McpServer, json: &[u8]) {
        if let Ok(document) = Document::parse(json) {
            for message in mcp::messages(&document) {
                self.learn(server, message);
            }
        }
    }

    fn lists(&self) -> MutexGuard<'_, BoundedMap<McpServer, Outputs>> {
        lock(&self.0)
    }

    /// Reads a JSON response to `tools/list` as it passes, if it is not encoded. It copies at most
    /// as much as `inspect` allows.
    pub(crate) fn read_json(
        self,
        body: AgentBody,
        server: McpServer,
        inspect: &Inspect,
    ) -> AgentBody {
        let mut held = Buffer::within(inspect);
        tapped(body, move |passed| {
            match passed {
                Passed::Data(data) => {
                    held.push(data);
                }
                Passed::Trailers(_) => {}
                Passed::End => self.read(&server, &held.whole()),
            }
            !held.is_cut()
        })
    }

    /// [`Self::read_json`] for events of at most `longest` bytes each.
    pub(crate) fn read_events(
        self,
        body: AgentBody,
        server: McpServer,
        longest: usize,
    ) -> AgentBody {
        let mut splitter = Splitter::new(Framing::Sse, longest);
        tapped(body, move |passed| {
            let Passed::Data(data) = passed else {
                return true;
            };
            // Before the agent has them, because it may call a tool immediately.
            for frame in splitter.push(data) {
                let data = frame.data().filter(|_| frame.kind() == FrameKind::Event);
                if let Some(data) = data.filter(|data| !data.is_empty()) {
                    self.read(&server, &data);
                }
            }
            true
        })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Scheme;

    fn server(scope: &str) -> McpServer {
        McpServer {
            origin: UpstreamOrigin::new(Scheme::Http, "server", 80),
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
        // What is listed anew counts once.
        tools.read(&server("2"), &list("{}"));
        assert_eq!(known(2), Output::Schema("{}".into()));
    }
}
