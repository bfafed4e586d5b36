//! Determines how much of a model's output may stay, and cuts it.

use squall_dialects::json::{Document, Edits, JsonKind, raw_length};
use squall_dialects::model::{Delta, DeltaKind, Reading, Source, Usage};

/// Remaining tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: u64,
    spent: u64,
    /// Thinking tokens that passed, even beyond the limit.
    thought: u64,
    overdrawn: bool,
}

/// The part of a delta that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it.
    All,
    /// The first bytes of its text.
    Part(usize),
    /// Nothing.
    Nothing,
}

impl Budget {
    pub(super) fn new(tokens: u64) -> Self {
        Self {
            left: tokens,
            spent: 0,
            thought: 0,
            overdrawn: false,
        }
    }

    /// Remaining tokens.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Tokens that passed, without thinking.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// Tokens of thinking that passed.
    pub(super) fn thought(&self) -> u64 {
        self.thought
    }

    /// Whether more tokens passed than permitted.
    pub(super) fn is_overdrawn(&self) -> bool {
        self.overdrawn
    }

    /// Spends what thinking costs, which passes whole, whatever is left.
    pub(super) fn think(&mut self, delta: &Delta<'_>) {
        let cost = delta.tokens;
        self.overdrawn |= cost > self.left;
        self.left = self.left.saturating_sub(cost);
        self.thought += cost;
    }

    /// Spends the cost of `delta`; returns how much of it stays. A tool's name, and arguments that
    /// are no string, stay whole or not at all.
    pub(super) fn spend(&mut self, delta: &Delta<'_>, document: &Document<'_>) -> Share {
        let cost = delta.tokens;
        if cost <= self.left {
            self.left -= cost;
            self.spent += cost;
            return Share::All;
        }
        let bought = std::mem::take(&mut self.left);
        if bought == 0 || !can_be_cut(delta, document) {
            return Share::Nothing;
        }
        self.spent += bought;
        Share::Part(delta.take(bought).len())
    }
}

/// Makes `delta` as short as its share. A tool call of which not even the name stays is taken out.
pub(super) fn cut(edits: &mut Edits<'_>, document: &Document<'_>, delta: &Delta<'_>, share: Share) {
    match share {
        Share::All => {}
        Share::Part(bytes) => {
            let raw = document.value(delta.place).raw();
            let kept = &raw[..raw_length(raw, bytes)];
            edits.replace(delta.place, format!("{kept}\""));
        }
        Share::Nothing if is_text_of_a_call(delta, document) => {
            edits.replace(delta.place, "\"\"");
        }
        Share::Nothing => match (delta.removed_with, delta.goes_with_list) {
            (Some(container), Some(outer)) => edits.prune(container, outer),
            (Some(container), None) => edits.remove(container),
            (None, _) if can_be_cut(delta, document) => edits.replace(delta.place, "\"\""),
            (None, _) => edits.remove(delta.place),
        },
    }
}

/// Says of a part that is kept in part that it was cut short, where the provider does.
pub(super) fn mark_cut(
    edits: &mut Edits<'_>,
    document: &Document<'_>,
    delta: &Delta<'_>,
    share: Share,
) {
    if matches!(share, Share::Part(_)) || is_text_of_a_call(delta, document) {
        delta.mark_cut(edits);
    }
}

/// Sets to null what repeats the words of choices that were cut.
pub(super) fn forget_mirrors(
    edits: &mut Edits<'_>,
    reading: &Reading<'_>,
    was_cut: impl Fn(u64) -> bool,
) {
    for (_, mirror) in reading
        .mirrors
        .iter()
        .filter(|(choice, _)| was_cut(*choice))
    {
        edits.replace(*mirror, "null");
    }
}

/// Removes citations of text that was cut.
pub(super) fn forget_sources(
    edits: &mut Edits<'_>,
    reading: &Reading<'_>,
    is_gone: impl Fn(u64, u64) -> bool,
) {
    let gone = |source: &&Source| is_gone(source.choice, source.part);
    for source in reading.sources.iter().filter(gone) {
        if source.may_be_empty {
            edits.replace(source.place, "[]");
        } else {
            edits.remove(source.place);
        }
    }
}

/// Limits token counts to the received visible tokens, plus hidden ones.
pub(super) fn count_anew(edits: &mut Edits<'_>, usage: &Usage, received: ReceivedTokens) {
    let most = usage.output.unwrap_or_default();
    count(edits, usage, most.min(received.counted(usage)));
}

/// Sets token counts to exactly the received visible tokens.
pub(super) fn count_instead(edits: &mut Edits<'_>, usage: &Usage, received: ReceivedTokens) {
    count(edits, usage, received.counted(usage));
}

/// Tokens that the agent received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ReceivedTokens {
    /// Of words and calls.
    pub(super) words: u64,
    /// Of thinking.
    pub(super) thought: u64,
}

impl ReceivedTokens {
    /// With hidden tokens; a provider that counts thinking apart has counted what it shows of it.
    fn counted(self, usage: &Usage) -> u64 {
        let thought = match usage.hidden {
            0 => self.thought,
            hidden => hidden,
        };
        self.words.saturating_add(thought)
    }
}

fn count(edits: &mut Edits<'_>, usage: &Usage, output: u64) {
    if usage.output.is_none() {
        return;
    }
    if let Some(place) = usage.output_place {
        edits.replace(place, output.saturating_sub(usage.apart).to_string());
    }
    if let (Some(input), Some(place)) = (usage.input, usage.total_place) {
        edits.replace(place, input.saturating_add(output).to_string());
    }
}

/// Whether without it the part that it belongs to is taken out.
pub(super) fn takes_part_out(delta: &Delta<'_>, document: &Document<'_>) -> bool {
    delta.removed_with.is_some() && !is_text_of_a_call(delta, document)
}

/// Arguments that are a string: their call stays as long as its name does.
fn is_text_of_a_call(delta: &Delta<'_>, document: &Document<'_>) -> bool {
    delta.kind == DeltaKind::ToolArguments && can_be_cut(delta, document)
}

fn can_be_cut(delta: &Delta<'_>, document: &Document<'_>) -> bool {
    let whole = matches!(
        delta.kind,
        DeltaKind::ToolName | DeltaKind::ToolId | DeltaKind::Signature
    );
    !whole && !delta.is_thinking() && document.value(delta.place).kind() == JsonKind::String
}
