//! The content of a tool's synthetic response in MCP.

use squall_dialects::mcp::{self, Call, Says};

use crate::plan::ToolSays;

/// The content of a tool's synthetic response, including default messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said<'a> {
    /// The given content.
    Says(Says<'a>),
    /// A failure with a default message.
    Failure(String),
}

impl Said<'_> {
    /// The content for MCP.
    pub fn as_says(&self) -> Says<'_> {
        match self {
            Said::Says(says) => *says,
            Said::Failure(text) => Says::Failure(text),
        }
    }
}

/// The synthetic response's content for a call. An HTTP error becomes a protocol error.
pub fn said<'a>(says: &'a ToolSays, call: &Call) -> Said<'a> {
    Said::Says(match says {
        ToolSays::Text(text) => Says::Text(text),
        ToolSays::Failure(Some(message)) => Says::Failure(message),
        ToolSays::Failure(None) => {
            let tool = call.tool.as_deref();
            return Said::Failure(match tool {
                // The message of the reference servers.
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
