//! How an agent is told to speak against its rules, and whether it does.

use std::sync::LazyLock;

use regex::Regex;

/// A way to speak that is known by its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Whose it is.
    name: &'static str,
    /// Words that nobody says who speaks otherwise.
    words: &'static [&'static str],
}

const STYLES: [Style; 5] = [
    Style {
        name: "pirate",
        words: &[
            "arr",
            "arrr",
            "arrrr",
            "matey",
            "mateys",
            "ahoy",
            "avast",
            "hearties",
            "yer",
            "ye",
            "landlubber",
        ],
    },
    Style {
        name: "shakespeare",
        words: &["thou", "thee", "thy", "thine", "hath", "doth"],
    },
    Style {
        name: "cat",
        words: &["meow", "miaow", "purr", "nya"],
    },
    Style {
        name: "dog",
        words: &["woof", "bark", "arf"],
    },
    Style {
        name: "robot",
        words: &["beep", "boop", "bzzt"],
    },
];

/// How a text wants the agent to speak.
static WANTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:speak|talk|answer|reply|respond|write|act|behave)\b[^.!?\n]{0,30}\b(?:like|as|in the (?:style|voice) of) (?:an? |the )?(\w+)",
    )
    .expect("a constant pattern")
});

impl Style {
    /// The one that a text against the rules wants; none, where it wants none or one that nobody knows.
    pub(super) fn of(text: &str) -> Option<&'static Self> {
        let mut wanted = WANTED
            .captures_iter(text)
            .map(|found| found[1].to_lowercase());
        wanted.find_map(|wanted| STYLES.iter().find(|style| wanted == style.name))
    }

    /// Whether a sentence, in lower case, is spoken so.
    pub(super) fn is_spoken_in(&self, sentence: &str) -> bool {
        let mut said = sentence.split(|letter: char| !letter.is_alphanumeric());
        said.any(|word| self.words.contains(&word))
    }
}
