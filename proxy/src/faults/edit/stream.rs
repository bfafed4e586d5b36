//! Changes responses of models and MCP servers event by event.
//!
//! ```text
//! upstream ─▶ Decoder ─▶ AnswerEditor ─▶ Steps ─▶ Encoder ─▶ agent
//! ```
//!
//! An event stream passes without buffering. A JSON response is held until it is complete, because
//! its edits need it whole.

mod player;

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::SizeHint;
use squall_dialects::codec::{Coding, Decoder, Encoder};
use squall_profiles::changes::StreamFault;
use squall_profiles::faults::editing::{AnswerEditor, EditedAnswer, Step, WholeEditor};
use squall_profiles::faults::llm_stream::{self, AnsweredCall};

use self::player::{Coded, LiveEdit, Player};
use super::whole::{Plain, not_encoded};
use super::{Speaking, drop_digests};
use crate::body::scripted::Scripted;
use crate::body::{self, AgentBody};
use crate::faults::{FaultContext, VerdictReport};

pub(super) async fn apply(
    fault: &StreamFault,
    response: Response<AgentBody>,
    model: Option<Speaking<'_>>,
    mut report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    let (editor, coding) = match editor(fault, response.headers(), model, context) {
        Ok(found) => found,
        Err(why) => {
            report.bypassed(why);
            return response;
        }
    };
    play(editor, coding, response, report, context).await
}

/// Edits a response in any coding.
pub(super) async fn play(
    editor: AnswerEditor,
    coding: Option<Coding>,
    response: Response<AgentBody>,
    mut report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    let editor = match editor {
        AnswerEditor::Events(editor) => editor,
        AnswerEditor::Whole(edit) => return whole(edit, response, report, context).await,
    };
    let coded = match coding.map(Decoder::new).transpose() {
        Ok(decoder) => decoder.map(Coded::new),
        Err(why) => {
            report.bypassed(why.to_string());
            return response;
        }
    };
    let (mut head, body) = response.into_parts();
    drop_digests(&mut head.headers);
    head.headers.remove(header::CONTENT_LENGTH);
    let agent = context.agent.clone();
    let live = Scripted::new(SizeHint::new(), |out| {
        let live = LiveEdit {
            body,
            editor,
            coded,
            player: Player {
                encoder: None,
                agent,
                report,
                out,
            },
            steps: VecDeque::new(),
            unplayed: 0,
        };
        live.run()
    });
    Response::from_parts(head, body::boxed(live))
}

/// The editor for this response, and its coding; or why it cannot be edited.
fn editor(
    fault: &StreamFault,
    headers: &HeaderMap,
    model: Option<Speaking<'_>>,
    context: &FaultContext,
) -> Result<(AnswerEditor, Option<Coding>), String> {
    let model = model.ok_or("the exchange is in no dialect that can be edited")?;
    let form = model
        .dialect
        .form(model.target, headers)
        .ok_or("the answer's content-type is neither JSON nor a stream of events")?;
    let coding = Coding::of(headers).map_err(|why| why.to_string())?;
    let call = AnsweredCall::new(model.dialect).about(&model.error_context(fault.error(), context));
    let call = match model.request {
        Some(request) => call.for_request(request),
        None => call,
    };
    let editor = llm_stream::editor(fault, form, call);
    Ok((editor, coding))
}

/// Edits a response that must be held until it is complete.
async fn whole(
    edit: Box<WholeEditor>,
    response: Response<AgentBody>,
    mut report: VerdictReport,
    context: &FaultContext,
) -> Response<AgentBody> {
    let plain = match Plain::of(response, &mut report, context).await {
        Ok(plain) => plain,
        Err(response) => return response,
    };
    let (edited, steps) = match edited(edit, &plain) {
        Ok(edited) => edited,
        Err(why) => {
            report.bypassed(why);
            return plain.unchanged();
        }
    };
    report.applied();
    if edited.counts_anew {
        report.counted_anew();
    }
    let Plain {
        mut head, whole, ..
    } = plain;
    if let Some(media_type) = edited.media_type {
        let media_type = HeaderValue::from_static(media_type);
        head.headers.insert(header::CONTENT_TYPE, media_type);
    }
    let is_coded = Coding::of(&head.headers) != Ok(None);
    frame(&mut head.headers, &steps, is_coded);
    let trailers = whole.trailers().cloned();
    let is_empty = steps.iter().all(|step| match step {
        Step::Emit(bytes) => bytes.is_empty(),
        Step::Finish => true,
        Step::Wait(_) | Step::End(_) => false,
    });
    if is_empty && trailers.is_none() {
        return Response::from_parts(head, body::empty());
    }
    let agent = context.agent.clone();
    let played = Scripted::new(SizeHint::new(), |out| {
        let player = Player {
            encoder: None,
            agent,
            report,
            out,
        };
        player::whole(steps, trailers, whole.lease, player)
    });
    Response::from_parts(head, body::boxed(played))
}

/// The edited response with its encoded steps, or why it stays unchanged.
fn edited(edit: Box<WholeEditor>, plain: &Plain) -> Result<(EditedAnswer, Vec<Step>), String> {
    let edited = edit(&plain.bytes)?;
    let steps = match plain.encoder()? {
        None => edited.steps.clone(),
        Some(encoder) => encoded(edited.steps.clone(), encoder).map_err(not_encoded)?,
    };
    Ok((edited, steps))
}

fn encoded(steps: Vec<Step>, mut encoder: Encoder) -> std::io::Result<Vec<Step>> {
    let breaks = steps.iter().any(|step| matches!(step, Step::End(_)));
    let mut result = Vec::with_capacity(steps.len() + 1);
    for step in steps {
        result.push(match step {
            Step::Emit(bytes) => Step::Emit(encoder.push(&bytes)?.into()),
            Step::Wait(_) | Step::End(_) | Step::Finish => step,
        });
    }
    if !breaks {
        let end = encoder.finish()?;
        let at = result
            .iter()
            .position(|step| matches!(step, Step::Finish))
            .unwrap_or(result.len());
        result.insert(at, Step::Emit(Bytes::from(end)));
    }
    Ok(result)
}

/// Frames a response with known steps. If it breaks off, it still announces its full length.
/// Without a meaningful length, as after new compression, it breaks off in chunks.
fn frame(headers: &mut HeaderMap, steps: &[Step], is_coded: bool) {
    drop_digests(headers);
    if !steps.iter().any(|step| matches!(step, Step::End(_))) {
        super::correct_length(headers, length(steps));
    } else if is_coded {
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Bytes that the steps emit.
fn length(steps: &[Step]) -> u64 {
    let emitted = |step: &Step| match step {
        Step::Emit(bytes) => bytes.len() as u64,
        Step::Wait(_) | Step::End(_) | Step::Finish => 0,
    };
    steps.iter().map(emitted).sum()
}
