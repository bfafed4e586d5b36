//! Texts that drift while they come.
//!
//! Of a text of which only the beginning is there, some of what it becomes is settled: whatever
//! follows, it stays. [`Coming`] tells it as soon as it is. What a text becomes in the end is what
//! [`drifted`] makes of the whole of it; this only tells how much of that is known already.

use squall_dialects::json::quote;
use squall_dialects::tokens::{self, Counter, Counting};

use super::drifted;
use super::length::scaled;
use super::phrases::{casual_words, refused};
use crate::fault::{ResponseDrift, Severity, TextDrift};

/// Characters of the longest phrase that refuses, and one behind it.
const LONGEST_PHRASE: usize = 16;

/// Words with which phrases of two words begin.
const FIRST_WORDS: [&str; 5] = ["thank", "i", "you", "it", "do"];

/// A text as far as it has come.
#[derive(Debug)]
pub(crate) struct Coming {
    drift: ResponseDrift,
    text: String,
    /// Bytes of the text of which it is settled what they become.
    at: usize,
    /// Bytes of the drifted text that were told.
    told: usize,
    /// What was told is not what the text says.
    differs: bool,
    /// Nothing more is settled before the end.
    stuck: bool,
    counter: Counter,
    /// Of a text that is to be shorter, so many bytes and tokens stay.
    kept: (usize, u64),
}

impl Coming {
    /// Nothing of it yet.
    pub(crate) fn new(drift: ResponseDrift) -> Self {
        Self {
            drift,
            text: String::new(),
            at: 0,
            told: 0,
            differs: false,
            stuck: false,
            counter: Counter::new(Counting::Estimate),
            kept: (0, 0),
        }
    }

    /// The next piece of it; what is settled by it, behind what was before.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.text.push_str(piece);
        let settled = match self.drift.kind {
            TextDrift::FieldNames => self.before_json(),
            TextDrift::Length {
                factor,
                compress: true,
            } => self.surely_kept(piece, factor),
            TextDrift::Length { .. } => self.same_to(self.text.len()),
            TextDrift::Format => self.listed(),
            TextDrift::Refusal => self.before_refusal(),
            TextDrift::Tone => self.casual(),
        };
        self.told += settled.len();
        settled
    }

    /// Whether what was told so far is another text than what has come.
    pub(crate) fn differs(&self) -> bool {
        self.differs
    }

    /// Bytes of the text of which it is settled what they become.
    pub(crate) fn settled(&self) -> usize {
        self.at
    }

    /// Whether something may be told at its end that belongs to no piece that waits.
    pub(crate) fn may_trail(&self) -> bool {
        match self.drift.kind {
            TextDrift::Length { compress, .. } => !compress,
            TextDrift::Format | TextDrift::Tone => true,
            TextDrift::FieldNames | TextDrift::Refusal => false,
        }
    }

    /// It is complete: the rest of what it becomes; or why it does not drift.
    pub(crate) fn end(&self) -> Result<String, String> {
        let drifted = drifted(&self.drift, &self.text)?;
        let rest = drifted.get(self.told..);
        debug_assert!(rest.is_some(), "{drifted:?} is shorter than {}", self.told);
        Ok(rest.unwrap_or_default().to_owned())
    }

    /// The text from what was settled to there stays as it is.
    fn same_to(&mut self, to: usize) -> String {
        let same = self.text[self.at..to.max(self.at)].to_owned();
        self.at = to.max(self.at);
        same
    }

    /// What stands before the first brace is no JSON object, and no part of one.
    fn before_json(&mut self) -> String {
        if self.stuck {
            return String::new();
        }
        let brace = self.text[self.at..].find('{');
        self.stuck = brace.is_some();
        self.same_to(brace.map_or(self.text.len(), |brace| self.at + brace))
    }

    /// The longer a text gets, the more of it stays: three quarters of that may be taken for granted,
    /// since it may end with a sentence, whose last mark may be half a token.
    fn surely_kept(&mut self, piece: &str, factor: f64) -> String {
        self.counter.push(piece);
        let target = scaled(self.counter.tokens(), 1.0 / factor).max(1);
        let (bytes, tokens) = self.kept;
        let sure = (target * 3 / 4).saturating_sub(1);
        if sure > tokens {
            let more = tokens::take(Counting::Estimate, &self.text[bytes..], sure - tokens);
            self.kept = (bytes + more.len(), sure);
        }
        let kept = self.text[..self.kept.0].trim_end().len();
        self.same_to(kept)
    }

    /// A text that does not begin as JSON does is made a list, or JSON, as it comes.
    fn listed(&mut self) -> String {
        let begins = self.text.trim_start();
        if begins.is_empty() || begins.starts_with(['{', '`']) {
            return String::new();
        }
        let end = self.text.trim_end().len();
        let mut settled = String::new();
        let mut begun = self.at > 0;
        if !begun {
            settled.push_str(match self.drift.severity {
                Severity::Subtle => "",
                Severity::Moderate => "## Answer\n\n",
                Severity::Significant => "{\"answer\": \"",
            });
            self.at = self.text.len() - begins.len();
        }
        let more = &self.text[self.at..end.max(self.at)];
        if self.drift.severity == Severity::Significant {
            let quoted = quote(more);
            settled.push_str(&quoted[1..quoted.len() - 1]);
        } else {
            let mut gap = String::new();
            for c in more.chars() {
                if c.is_whitespace() {
                    gap.push(c);
                    continue;
                }
                if !begun {
                    settled.push_str("- ");
                } else if gap.contains('\n') {
                    settled.push_str("\n- ");
                } else {
                    settled.push_str(&gap);
                }
                begun = true;
                gap.clear();
                settled.push(c);
            }
        }
        self.at = end.max(self.at);
        self.differs = true;
        settled
    }

    /// What cannot be part of a refusal stays; behind one everything does.
    fn before_refusal(&mut self) -> String {
        let severity = self.drift.severity;
        if self.differs {
            return self.same_to(self.text.len());
        }
        if severity == Severity::Significant {
            return String::new();
        }
        // One character back, to see whether a word begins.
        let from = self.text[..self.at].char_indices().next_back();
        let from = from.map_or(0, |(at, _)| at);
        let text = &self.text[from..];
        if let Some((place, other)) = refused(text).filter(|(place, _)| place.end < text.len()) {
            let place = from + place.start..from + place.end;
            if severity == Severity::Subtle {
                let before = self.same_to(place.start);
                self.at = self.text.len();
                self.differs = true;
                return [&before, other, &self.text[place.end..]].concat();
            }
            let ends = self.text[place.end..].find(['.', '!', '?', '\n']);
            if ends.is_none() {
                return String::new();
            }
            // The whole text says it: what comes after the sentence stays.
            let drifted = drifted(&self.drift, &self.text).unwrap_or_default();
            self.at = self.text.len();
            self.differs = true;
            return drifted[self.told..].to_owned();
        }
        let undecided = self.undecided();
        self.same_to(match severity {
            Severity::Subtle => undecided,
            Severity::Moderate | Severity::Significant => {
                let ends = self.text[..undecided].rfind(['.', '!', '?', '\n']);
                ends.map_or(0, |end| end + 1)
            }
        })
    }

    /// Where what may become a phrase that refuses begins, or the end of the text.
    fn undecided(&self) -> usize {
        let mut places = self.text.char_indices().rev().take(LONGEST_PHRASE);
        let mut found = self.text.len();
        let mut behind = places.next();
        while let Some((at, c)) = behind {
            let before = self.text[..at].chars().next_back();
            if matches!(c, 'i' | 'I') && before.is_none_or(|before| !before.is_alphanumeric()) {
                found = at;
            }
            behind = places.next();
        }
        found
    }

    /// Words become casual up to the last of which it is known how it goes on.
    fn casual(&mut self) -> String {
        if self.text.trim().is_empty() {
            return String::new();
        }
        let mut settled = String::new();
        let begun = self.differs;
        if !begun && self.drift.severity > Severity::Subtle {
            settled.push_str("Hey! ");
            self.differs = true;
        }
        let rest = &self.text[self.at..];
        let ends = rest.char_indices().rev().filter(|(_, c)| c.is_whitespace());
        let end = ends.map(|(at, _)| at).find(|at| {
            let before = &rest[..*at];
            let word = before.rsplit(|c: char| !c.is_alphanumeric()).next();
            let goes_on = |first: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(first));
            !before.ends_with('.') && !FIRST_WORDS.iter().any(|first| goes_on(first))
        });
        let Some(end) = end else { return settled };
        let words = &rest[..end];
        let mut casual = casual_words(words);
        // Where no word is formal the text begins in another way, which only its end tells.
        if !self.differs && casual == words {
            return settled;
        }
        if self.drift.severity == Severity::Significant {
            casual = casual.replace(". ", "! ");
        }
        settled.push_str(&casual);
        self.at += end;
        self.differs = true;
        settled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KINDS: [TextDrift; 6] = [
        TextDrift::FieldNames,
        TextDrift::Length {
            factor: 2.0,
            compress: true,
        },
        TextDrift::Length {
            factor: 1.5,
            compress: false,
        },
        TextDrift::Format,
        TextDrift::Refusal,
        TextDrift::Tone,
    ];

    const SEVERITIES: [Severity; 3] = [Severity::Subtle, Severity::Moderate, Severity::Significant];

    fn told_first(kind: TextDrift, severity: Severity, pieces: &[&str]) -> Vec<String> {
        let mut coming = Coming::new(ResponseDrift {
            kind,
            severity,
            choice: 0,
        });
        pieces.iter().map(|piece| coming.push(piece)).collect()
    }

    #[test]
    fn what_is_settled_is_told_at_once() {
        let shorter = KINDS[1];
        for (kind, severity, pieces, told) in [
            (
                TextDrift::FieldNames,
                Severity::Moderate,
                ["Here: ", "{\"a\":", "1}"],
                ["Here: ", "", ""],
            ),
            (
                KINDS[2],
                Severity::Moderate,
                ["One", " two", " three"],
                ["One", " two", " three"],
            ),
            (
                shorter,
                Severity::Moderate,
                ["One two three four", " five six", " seven eight"],
                ["", "One", " two"],
            ),
            (
                TextDrift::Format,
                Severity::Moderate,
                [" One", "\n", "two"],
                ["## Answer\n\n- One", "", "\n- two"],
            ),
            (
                TextDrift::Format,
                Severity::Significant,
                ["One\"", " ", "two"],
                ["{\"answer\": \"One\\\"", "", " two"],
            ),
            (
                TextDrift::Format,
                Severity::Subtle,
                ["{", "\"a\":1", "}"],
                ["", "", ""],
            ),
            (
                TextDrift::Refusal,
                Severity::Subtle,
                ["Well. I", " can't", " say."],
                ["Well. ", "", "I'm unable to say."],
            ),
            (
                TextDrift::Refusal,
                Severity::Moderate,
                ["One. Two", " three", ". Four"],
                ["One.", "", " Two three."],
            ),
            (
                TextDrift::Tone,
                Severity::Moderate,
                ["Yes", ", it", " is"],
                ["Hey! ", "Yep,", ""],
            ),
            (
                TextDrift::Tone,
                Severity::Subtle,
                ["One", " yes", " two"],
                ["", "", "One yep"],
            ),
        ] {
            assert_eq!(
                told_first(kind, severity, &pieces),
                told,
                "{kind:?} {pieces:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_told_is_what_the_text_becomes_however_it_comes(
            pieces in prop::collection::vec(
                prop_oneof![
                    any::<String>(),
                    "[a-zI'’ \\.{}\":`\n!]{0,12}",
                    prop::sample::select(&[
                        " I", " can", "'t", " i am", " not able", " to", "Thank", " you", " are", ". ",
                        " It is", "yes", " no", "cannot", "\n", " approximately", "{\"a\":", " 1}", "```",
                    ][..]).prop_map(str::to_owned),
                ],
                0..20,
            ),
            choice: u64,
            kind in prop::sample::select(&KINDS[..]),
            severity in prop::sample::select(&SEVERITIES[..]),
        ) {
            let drift = ResponseDrift { kind, severity, choice };
            let mut coming = Coming::new(drift);
            let mut told = String::new();
            let mut text = String::new();
            for piece in &pieces {
                text.push_str(piece);
                told.push_str(&coming.push(piece));
                if !coming.differs() {
                    prop_assert_eq!(&told, &text[..coming.settled()]);
                }
            }
            match drifted(&drift, &text) {
                Ok(drifted) => {
                    told.push_str(&coming.end().expect("it drifts"));
                    prop_assert_eq!(told, drifted);
                }
                Err(why) => {
                    prop_assert_eq!(coming.end(), Err(why));
                    prop_assert!(!coming.differs());
                }
            }
        }
    }
}
