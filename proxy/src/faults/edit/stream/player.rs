//! Sends the steps of an edit to the agent, for responses that are edited live or as a whole.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::HeaderMap;
use http_body::Frame;
use http_body_util::BodyExt as _;
use squall_dialects::codec::{Decoder, Encoder, NotInCoding};
use squall_profiles::faults::editing::{EventsEditor, Step};
use squall_profiles::plan::Ending;

use crate::abort::Abort;
use crate::body::AgentBody;
use crate::body::agent::{AgentSide, FlushReceipt};
use crate::body::buffer::Lease;
use crate::body::scripted::FrameSink;
use crate::faults::VerdictReport;
use crate::faults::edit::whole::not_encoded;
use crate::faults::hold::hold;

/// Most bytes of steps that are combined in one frame.
const FRAME: usize = 64 << 10;

/// Most decoded bytes per edit.
const PIECE: usize = 16 << 10;

/// Sends steps.
pub(super) struct Player {
    pub(super) encoder: Option<Encoder>,
    pub(super) agent: AgentSide,
    pub(super) report: VerdictReport,
    pub(super) out: FrameSink,
}

impl Player {
    /// Executes steps in order. Returns whether more may follow; an error is the abort that ends
    /// them.
    ///
    /// `are_last`: no further steps follow.
    async fn play(&mut self, steps: &mut VecDeque<Step>, are_last: bool) -> Result<bool, Abort> {
        while let Some(step) = steps.pop_front() {
            match step {
                Step::Emit(bytes) => {
                    let bytes = self.encoded(with_what_follows(bytes, steps)).await?;
                    if bytes.is_empty() {
                        continue;
                    }
                    if let Some(Step::End(ending)) = steps.front() {
                        self.report.applied();
                        let (gone, bytes) = self.agent.watch(bytes);
                        self.out.data(bytes, false).await;
                        return Err(self.break_off(broken(*ending), gone).await);
                    }
                    let is_last = are_last && !steps.iter().any(gives_something);
                    self.out.data(bytes, is_last).await;
                }
                Step::Wait(duration) => hold(duration, self.report.ledger()).await,
                Step::End(ending) => {
                    self.report.applied();
                    return Err(self
                        .break_off(broken(ending), FlushReceipt::default())
                        .await);
                }
                Step::Finish => {
                    self.finish_coding().await?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    async fn encoded(&mut self, bytes: Bytes) -> Result<Bytes, Abort> {
        match self.encoder.as_mut().map(|encoder| encoder.push(&bytes)) {
            None => Ok(bytes),
            Some(Ok(bytes)) => Ok(bytes.into()),
            Some(Err(error)) => Err(self.cannot_encode(error).await),
        }
    }

    async fn finish_coding(&mut self) -> Result<(), Abort> {
        match self.encoder.take().map(Encoder::finish) {
            Some(Ok(end)) if !end.is_empty() => self.out.data(end.into(), false).await,
            Some(Err(error)) => return Err(self.cannot_encode(error).await),
            Some(Ok(_)) | None => {}
        }
        Ok(())
    }

    async fn cannot_encode(&mut self, error: std::io::Error) -> Abort {
        let why = not_encoded(error);
        self.report.bypassed(why.as_str());
        self.break_off(Abort::close(why), FlushReceipt::default())
            .await
    }

    async fn break_off(&self, broken: Abort, gone: FlushReceipt) -> Abort {
        self.agent.clone().break_off(broken, gone).await
    }
}

/// Combines simultaneous bytes in one frame, because each frame costs a chunk in hyper.
fn with_what_follows(first: Bytes, steps: &mut VecDeque<Step>) -> Bytes {
    let (mut frames, mut length) = (0, first.len());
    while let Some(Step::Emit(bytes)) = steps.get(frames)
        && length + bytes.len() <= FRAME
    {
        (frames, length) = (frames + 1, length + bytes.len());
    }
    if frames == 0 {
        return first;
    }
    let mut frame = BytesMut::with_capacity(length);
    frame.extend_from_slice(&first);
    for step in steps.drain(..frames) {
        if let Step::Emit(bytes) = step {
            frame.extend_from_slice(&bytes);
        }
    }
    frame.freeze()
}

fn gives_something(step: &Step) -> bool {
    match step {
        Step::Emit(bytes) => !bytes.is_empty(),
        Step::Finish => false,
        Step::Wait(_) | Step::End(_) => true,
    }
}

fn broken(ending: Ending) -> Abort {
    match ending {
        Ending::Close => Abort::close("closed in the middle of an answer by a rule").by_rule(),
        Ending::Reset => Abort::reset("reset in the middle of an answer by a rule").by_rule(),
    }
}

/// Sends encoded steps that are all known; their memory is released meanwhile.
pub(super) async fn whole(
    steps: Vec<Step>,
    trailers: Option<HeaderMap>,
    lease: Lease,
    mut player: Player,
) -> Result<(), Abort> {
    player.play(&mut steps.into(), trailers.is_none()).await?;
    drop(lease);
    if let Some(trailers) = trailers {
        player.out.trailers(trailers).await;
    }
    Ok(())
}

/// A response that is edited while it arrives.
pub(super) struct LiveEdit {
    pub(super) body: AgentBody,
    pub(super) editor: Box<dyn EventsEditor>,
    pub(super) coded: Option<Coded>,
    pub(super) player: Player,
    /// Not played yet.
    pub(super) steps: VecDeque<Step>,
    /// Decoded bytes that became these steps.
    pub(super) unplayed: usize,
}

/// A coding that is decoded for the editor.
pub(super) struct Coded {
    decoder: Decoder,
    piece: Box<[u8]>,
}

impl Coded {
    pub(super) fn new(decoder: Decoder) -> Self {
        Self {
            decoder,
            piece: vec![0; PIECE].into(),
        }
    }

    /// The next decoded piece of `input`; `None` if more input is needed.
    fn next(&mut self, input: &mut Bytes) -> Result<Option<Bytes>, NotInCoding> {
        loop {
            let progress = self.decoder.step(input, &mut self.piece)?;
            input.advance(progress.read);
            if progress.written > 0 {
                let piece = &self.piece[..progress.written];
                return Ok(Some(Bytes::copy_from_slice(piece)));
            }
            if progress.is_stuck() {
                return Ok(None);
            }
        }
    }
}

impl LiveEdit {
    /// Edits the body. What has arrived together leaves together.
    pub(super) async fn run(mut self) -> Result<(), Abort> {
        loop {
            let frame = match self.body.frame().now_or_never() {
                Some(frame) => frame,
                None if self.play().await? => self.body.frame().await,
                None => return Ok(()),
            };
            let trailers = match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => {
                    let may_follow = match self.coded {
                        None => self.edit(&data).await?,
                        Some(_) => self.decode(data).await?,
                    };
                    if may_follow {
                        continue;
                    }
                    return Ok(());
                }
                Some(Ok(Err(trailers))) => Some(trailers),
                None => None,
                Some(Err(broken)) => return self.broke_off(broken).await,
            };
            return self.end(trailers).await;
        }
    }

    /// Edits decoded bytes; plays the result if it is enough for a frame. Returns whether more may
    /// follow.
    async fn edit(&mut self, plain: &[u8]) -> Result<bool, Abort> {
        self.unplayed += plain.len();
        self.steps.extend(self.editor.push(plain));
        self.report();
        Ok(self.unplayed < FRAME || self.play().await?)
    }

    /// Plays the steps so far. Returns whether more may follow.
    async fn play(&mut self) -> Result<bool, Abort> {
        self.unplayed = 0;
        self.player.play(&mut self.steps, false).await
    }

    /// [`Self::edit`] for encoded bytes. A body that is not in its coding breaks off.
    async fn decode(&mut self, mut data: Bytes) -> Result<bool, Abort> {
        while let Some(coded) = &mut self.coded {
            match coded.next(&mut data) {
                Ok(None) => break,
                Ok(Some(plain)) => {
                    if self.player.encoder.is_none() {
                        match coded.decoder.encoder() {
                            Ok(encoder) => self.player.encoder = Some(encoder),
                            Err(error) => return Err(self.player.cannot_encode(error).await),
                        }
                    }
                    if !self.edit(&plain).await? {
                        return Ok(false);
                    }
                }
                Err(why) => {
                    let broken = Abort::close(format!("the upstream's answer broke: {why}"));
                    return self.broke_off(broken).await.map(|()| false);
                }
            }
        }
        Ok(true)
    }

    /// Breaks off, unless the steps so far finish the response.
    async fn broke_off(&mut self, broken: Abort) -> Result<(), Abort> {
        self.steps.extend(self.editor.broke_off());
        self.report();
        self.note_untouched("the upstream broke off");
        if !self.play().await? {
            return Ok(());
        }
        let broken = self.player.break_off(broken, FlushReceipt::default());
        Err(broken.await)
    }

    async fn end(mut self, trailers: Option<Frame<Bytes>>) -> Result<(), Abort> {
        let coded = self.coded.as_ref();
        let is_complete = coded.is_none_or(|coded| coded.decoder.is_complete());
        self.steps.extend(self.editor.finish());
        self.report();
        self.note_untouched("the fault changed nothing");
        if let Some(tally) = self.editor.tally() {
            self.player.report.tallied(tally);
        }
        if !self.play().await? {
            return Ok(());
        }
        // If the upstream's encoded body was incomplete, the agent's is too.
        if is_complete {
            self.player.finish_coding().await?;
        }
        if let Some(trailers) = trailers {
            self.player.out.pass(trailers, &self.body).await;
        }
        Ok(())
    }

    fn report(&mut self) {
        if self.editor.touched() {
            self.player.report.applied();
        }
        if self.editor.counts_anew() {
            self.player.report.counted_anew();
        }
    }

    fn note_untouched(&mut self, otherwise: &str) {
        if !self.editor.touched() {
            let why = self.editor.untouched_because();
            let why = why.unwrap_or_else(|| otherwise.into());
            self.player.report.bypassed(why);
        }
    }
}
