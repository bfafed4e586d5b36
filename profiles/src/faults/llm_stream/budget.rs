//! How much of what a model wrote may stay, and cutting it there.

use squall_dialects::json::{Document, Edits, Kind, raw_length};
use squall_dialects::model::{Delta, DeltaKind, Reading, Usage};

/// Tokens that may still pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    left: u64,
    spent: u64,
}

/// How much of one delta stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// All of it.
    All,
    /// The first so many bytes of what it says.
    Part(usize),
    /// Nothing.
    Nothing,
}

impl Budget {
    pub(super) fn new(tokens: u64) -> Self {
        Self {
            left: tokens,
            spent: 0,
        }
    }

    /// Tokens that may still pass.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Tokens that passed.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    /// Spends what `delta` costs; tells how much of it that buys. What cannot be cut short (a
    /// tool's name, arguments that are no string) is bought whole or not at all.
    pub(super) fn spend(&mut self, delta: &Delta<'_>, document: &Document<'_>) -> Share {
        let cost = delta.tokens();
        let fits = cost < self.left || cost == self.left && !delta.ends_with_blank();
        if fits {
            self.left -= cost;
            self.spent += cost;
            return Share::All;
        }
        let bought = std::mem::take(&mut self.left);
        if !can_be_cut(delta, document) {
            return Share::Nothing;
        }
        let kept = delta.take(bought).len();
        if bought == 0 && kept == 0 {
            return Share::Nothing;
        }
        self.spent += bought;
        Share::Part(kept)
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
            (Some(container), Some(outer)) => edits.prune_with(container, outer),
            (Some(container), None) if delta.list_goes => edits.prune(container),
            (Some(container), None) => edits.remove(container),
            (None, _) if can_be_cut(delta, document) => edits.replace(delta.place, "\"\""),
            (None, _) => edits.remove(delta.place),
        },
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

/// Makes token counts say that at most `kept` tokens were written; hidden ones were, too.
pub(super) fn count_anew(edits: &mut Edits<'_>, usage: &Usage, kept: u64) {
    let most = usage.output.unwrap_or_default();
    count(edits, usage, most.min(kept.saturating_add(usage.hidden)));
}

/// Makes token counts say that exactly `said` tokens were written where the agent sees them.
pub(super) fn count_instead(edits: &mut Edits<'_>, usage: &Usage, said: u64) {
    count(edits, usage, said.saturating_add(usage.hidden));
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

/// Arguments that are a string: their call stays as long as its name does.
fn is_text_of_a_call(delta: &Delta<'_>, document: &Document<'_>) -> bool {
    delta.kind == DeltaKind::ToolArguments && can_be_cut(delta, document)
}

fn can_be_cut(delta: &Delta<'_>, document: &Document<'_>) -> bool {
    let whole = matches!(
        delta.kind,
        DeltaKind::ToolName | DeltaKind::ToolId | DeltaKind::Signature
    );
    !whole && !delta.signed && document.value(delta.place).kind() == Kind::String
}
