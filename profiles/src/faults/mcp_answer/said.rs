//! What a tool's made-up answer says in MCP.

use squall_dialects::mcp::{self, Call, Says};

use crate::plan::ToolSays;

/// What a tool's made-up answer says, with the words that were left to the form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// As it is.
    Says(Says<'a>),
    /// The tool failed, in words that were made for it.
    Failure(String),
}

impl Said<'_> {
    /// In MCP's terms.
    pub fn as_says(&self) -> Says<'_> {
        match self {
            Said::Says(says) => *says,
            Said::Failure(text) => Says::Failure(text),
        }
    }
}

/// What a tool's made-up answer says to a call. An error of HTTP is, inside, one of the protocol.
pub fn said<'a>(says: &'a ToolSays, call: &Call) -> Said<'a> {
    Said::Says(match says {
        ToolSays::Text(text) => Says::Text(text),
        ToolSays::Failure(Some(message)) => Says::Failure(message),
        ToolSays::Failure(None) => {
            let tool = call.tool.as_deref();
            return Said::Failure(match tool {
                // The words of the reference servers.
                Some(tool) => format!("Error executing tool {tool}: Service Unavailable"),
                None => "Service Unavailable".to_owned(),
            });
        }
        ToolSays::Status(message) => Says::Error {
            code: mcp::INTERNAL_ERROR,
            message,
        },
        ToolSays::ProtocolError { code, message } => Says::Error {
            code: *code,
            message,
        },
        ToolSays::Nothing => Says::Nothing,
        ToolSays::Broken => Says::Broken,
    })
}
