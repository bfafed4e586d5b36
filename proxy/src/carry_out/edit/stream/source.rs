//! An upstream's answer on its way through a stream editor.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame};
use squall_dialects::Tally;
use squall_dialects::codec::{Coding, Decoder, Encoder, NotInCoding};
use squall_profiles::faults::editing::AnswerEditor;
use squall_profiles::faults::llm_stream::Step;

use crate::broken::Broken;
use crate::carry_out::body::AgentBody;

/// Plain bytes that are edited at a time.
const PIECE: usize = 16 << 10;

/// What may come of a compressed body before it decodes to a first byte. A header is a few bytes;
/// what needs more is not what it says it is.
const LONGEST_BEGINNING: usize = 64 << 10;

/// An upstream's body, its coding, and the editor it goes through.
pub(super) struct Source {
    body: AgentBody,
    editor: Box<dyn AnswerEditor>,
    recoding: Option<Recoding>,
}

/// What the source has next.
pub(super) enum Sourced {
    /// What the agent gets of what came.
    Steps(Vec<Step>),
    /// The body ended; these are the last steps, and whether its coding ended too.
    End {
        steps: Vec<Step>,
        trailers: Option<Frame<Bytes>>,
        complete: bool,
    },
    /// The body broke off, or ceased to be in its coding.
    Broken(Vec<Step>, Broken),
    /// It never was in its coding: it passes as it is, from its beginning.
    Unreadable(VecDeque<Bytes>, NotInCoding),
}

struct Recoding {
    coding: Coding,
    /// `None`: it could not be made.
    decoder: Option<Decoder>,
    /// What is not decoded yet.
    input: Bytes,
    /// What came before anything was decoded.
    beginning: VecDeque<Bytes>,
    began: bool,
    piece: Box<[u8]>,
}

impl Source {
    pub(super) fn new(
        body: AgentBody,
        coding: Option<Coding>,
        editor: Box<dyn AnswerEditor>,
    ) -> Self {
        let recoding = coding.map(|coding| Recoding {
            coding,
            decoder: Decoder::new(coding).ok(),
            input: Bytes::new(),
            beginning: VecDeque::new(),
            began: false,
            piece: vec![0; PIECE].into(),
        });
        Self {
            body,
            editor,
            recoding,
        }
    }

    /// The editor, for what it says of itself.
    pub(super) fn editor(&self) -> &dyn AnswerEditor {
        &*self.editor
    }

    /// What the answer said, once it has passed as it came.
    pub(super) fn heard(&mut self) -> Option<Box<Tally>> {
        self.editor.heard()
    }

    /// An encoder into the answer's coding, once something was decoded.
    pub(super) fn encoder(&self) -> Option<std::io::Result<Encoder>> {
        let recoding = self.recoding.as_ref()?;
        let decoder = recoding.decoder.as_ref().filter(|_| recoding.began)?;
        Some(decoder.encoder())
    }

    /// The body alone, when it is to pass as it is.
    pub(super) fn into_body(self) -> AgentBody {
        self.body
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Sourced> {
        loop {
            if let Some(decoded) = self.decode() {
                return Poll::Ready(decoded);
            }
            let sourced = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match (frame.into_data(), &mut self.recoding) {
                    (Ok(data), None) => Sourced::Steps(self.editor.push(data)),
                    (Ok(data), Some(recoding)) => {
                        recoding.take(data);
                        continue;
                    }
                    (Err(trailers), _) => self.end(Some(trailers)),
                },
                None => self.end(None),
                Some(Err(broken)) => Sourced::Broken(self.editor.broke_off(), broken),
            };
            return Poll::Ready(sourced);
        }
    }

    /// Decodes and edits a piece of what came, if there is any.
    fn decode(&mut self) -> Option<Sourced> {
        let recoding = self.recoding.as_mut()?;
        match recoding.step() {
            Ok(0) => None,
            Ok(length) => {
                let piece = Bytes::copy_from_slice(&recoding.piece[..length]);
                Some(Sourced::Steps(self.editor.push(piece)))
            }
            Err(why) if recoding.began => {
                let broken = Broken::close(format!("the upstream's answer broke: {why}"));
                Some(Sourced::Broken(self.editor.broke_off(), broken))
            }
            Err(why) => {
                let beginning = std::mem::take(&mut recoding.beginning);
                Some(Sourced::Unreadable(beginning, why))
            }
        }
    }

    fn end(&mut self, trailers: Option<Frame<Bytes>>) -> Sourced {
        if let Some(recoding) = &mut self.recoding
            && !recoding.began
            && !recoding.beginning.is_empty()
            && !recoding.is_complete()
        {
            let beginning = std::mem::take(&mut recoding.beginning);
            return Sourced::Unreadable(beginning, NotInCoding(recoding.coding));
        }
        let complete = self.recoding.as_ref().is_none_or(Recoding::is_complete);
        Sourced::End {
            steps: self.editor.finish(),
            trailers,
            complete,
        }
    }
}

impl Recoding {
    fn take(&mut self, data: Bytes) {
        if !self.began {
            self.beginning.push_back(data.clone());
        }
        self.input = data;
    }

    /// Fills the piece with what can be decoded now; 0: more must come.
    fn step(&mut self) -> Result<usize, NotInCoding> {
        let decoder = self.decoder.as_mut().ok_or(NotInCoding(self.coding))?;
        loop {
            let progress = decoder.step(&self.input, &mut self.piece)?;
            let _used = self.input.split_to(progress.read);
            if progress.written > 0 {
                self.began = true;
                self.beginning.clear();
                return Ok(progress.written);
            }
            if progress.is_stuck() {
                break;
            }
        }
        let held: usize = self.beginning.iter().map(Bytes::len).sum();
        if held > LONGEST_BEGINNING {
            return Err(NotInCoding(self.coding));
        }
        Ok(0)
    }

    fn is_complete(&self) -> bool {
        self.decoder.as_ref().is_some_and(Decoder::is_complete)
    }
}
