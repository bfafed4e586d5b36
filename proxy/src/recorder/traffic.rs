//! What is kept of an exchange's bytes until the collector reads them.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{Capture, ModelTraffic};

/// What reads an exchange's bytes as they pass, if anything does.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    /// It is a model call, and the journal reads it.
    pub(crate) model: Option<ModelTraffic>,
    /// It is recorded.
    pub(crate) capture: Option<Box<Capture>>,
}

impl Traffic {
    /// More of the request's body; a model call's is kept up to `most` bytes.
    pub(crate) fn request(&mut self, bytes: &Bytes, most: usize) {
        if let Some(model) = &mut self.model {
            model.request(bytes, most);
        }
        if let Some(capture) = &mut self.capture {
            capture.request(bytes);
        }
    }

    /// The head of the answer that the agent gets.
    pub(crate) fn captured_head(&mut self, status: StatusCode, headers: &HeaderMap) {
        if let Some(capture) = &mut self.capture {
            capture.answer_head(status, headers);
        }
    }

    /// More of the answer's body; a model call's is kept up to `most` bytes.
    pub(crate) fn answer(&mut self, bytes: &Bytes, most: usize) {
        if let Some(model) = &mut self.model {
            model.answer(bytes, most);
        }
        if let Some(capture) = &mut self.capture {
            capture.answer(bytes);
        }
    }
}
