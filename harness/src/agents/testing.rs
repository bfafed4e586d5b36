//! A small HTTP server for tests of agents.

use std::sync::{Arc, Mutex, PoisonError};

use squall_documents::Variables;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{Driver, Surroundings, driver};
use crate::dial::Dialler;
use crate::suite;

/// The driver of an agent with these fields, with defaults for everything else and without a proxy.
pub(super) fn driver_of(fields: &str) -> Box<dyn Driver> {
    driver_in(".", fields)
}

/// The driver of an agent in a suite in this folder.
pub(super) fn driver_in(folder: impl Into<std::path::PathBuf>, fields: &str) -> Box<dyn Driver> {
    let text = format!(
        "agent: {{{fields}}}\ngolden_prompts: [x, 'nothing: x']\ninvariants: [{{type: completes}}]\n"
    );
    let suite = suite::parse("s", &text, Variables::Refused).expect("valid");
    driver(&suite.agent, &surroundings_in(folder))
}

/// The surroundings of agents in suites in this folder.
pub(crate) fn surroundings_in(folder: impl Into<std::path::PathBuf>) -> Surroundings {
    let variables = |scope: Option<&str>| {
        let scope = scope.unwrap_or("nobody");
        vec![("HTTP_PROXY", format!("http://{scope}:x@127.0.0.1:1"))]
    };
    Surroundings {
        variables: Arc::new(variables),
        slots: 2,
        retries: 2,
        dialler: Dialler::default(),
        folder: folder.into(),
    }
}

/// A server that answers requests with prepared replies.
pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<Asked>>>,
}

/// A received request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// A prepared reply.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Status, media type, body.
    With(u16, &'static str, String),
    /// Fields of the head, and any body.
    Raw(String, Vec<u8>),
    /// These bytes without a head.
    Text(&'static str),
    /// No response; the connection stays open.
    Never,
    /// No response; the connection is closed.
    Nothing,
    /// The connection is closed in the middle of the response.
    Half,
    /// The connection is closed after this part of a longer body: media type, part.
    Cut(&'static str, String),
}

pub(crate) fn json(body: &str) -> Reply {
    Reply::With(200, "application/json", body.to_owned())
}

impl Server {
    /// Sends the replies in order, then repeats the last one.
    pub(crate) async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let reply = replies[number.min(replies.len() - 1)].clone();
                number += 1;
                tokio::spawn(serve(socket, reply, seen.clone()));
            }
        });
        Self {
            url: format!("http://{address}"),
            requests,
        }
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut socket: TcpStream, reply: Reply, seen: Arc<Mutex<Vec<Asked>>>) {
    let asked = read(&mut socket).await;
    seen.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(asked);
    let sent = match reply {
        Reply::Never => {
            // Waits until the client closes the connection.
            let _ = socket.read(&mut [0; 1]).await;
            return;
        }
        Reply::Nothing => return,
        Reply::Text(text) => text.into(),
        Reply::Raw(head, body) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nconnection: close\r\n{head}\r\ncontent-length: {}\r\n\r\n",
                body.len()
            );
            [head.into_bytes(), body].concat()
        }
        Reply::Half => "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".into(),
        Reply::Cut(media_type, body) => format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len() + 1
        )
        .into_bytes(),
        Reply::With(status, media_type, body) => format!(
            "HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes(),
    };
    let _ = socket.write_all(&sent).await;
    let _ = socket.shutdown().await;
}

async fn read(socket: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let line = lines.next().unwrap_or_default().to_owned();
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            let length = headers.iter().find(|(name, _)| name == "content-length");
            let length = length
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or(0);
            if body.len() >= length {
                return Asked {
                    line,
                    headers,
                    body: body.to_owned(),
                };
            }
        }
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return Asked::default(),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A folder with one file in it.
pub(super) fn folder_with(name: &str, text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(name), text).expect("a file");
    folder
}
