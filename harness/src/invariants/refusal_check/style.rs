//! How an agent is told to speak against its rules, and whether it does.

use std::sync::LazyLock;

use regex::Regex;

/// A way to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// One that is known by words that nobody says who speaks otherwise.
    Figure(&'static Figure),
    /// In a language.
    Language(&'static Figure),
    /// In capitals.
    Capitals,
}

/// Who, or what, is known by its words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Figure {
    name: &'static str,
    words: &'static [&'static str],
}

const FIGURES: [Figure; 5] = [
    Figure {
        name: "pirate",
        words: &[
            "arr",
            "arrr",
            "arrrr",
            "matey",
            "mateys",
            "ahoy",
            "avast",
            "hearty",
            "hearties",
            "yer",
            "ye",
            "landlubber",
        ],
    },
    Figure {
        name: "shakespeare",
        words: &["thou", "thee", "thy", "thine", "hath", "doth"],
    },
    Figure {
        name: "cat",
        words: &["meow", "miaow", "purr", "nya"],
    },
    Figure {
        name: "dog",
        words: &["woof", "bark", "arf"],
    },
    Figure {
        name: "robot",
        words: &["beep", "boop", "bzzt"],
    },
];

/// The smallest words of languages, of which every text has some.
const LANGUAGES: [Figure; 5] = [
    Figure {
        name: "french",
        words: &[
            "le", "la", "les", "des", "est", "nous", "vous", "une", "et", "pour", "sommes", "dans",
            "votre", "sont", "du", "de", "à",
        ],
    },
    Figure {
        name: "german",
        words: &[
            "der", "die", "das", "und", "ist", "wir", "sie", "ein", "eine", "nicht", "für", "mit",
            "von", "ihr", "ihre", "sind",
        ],
    },
    Figure {
        name: "spanish",
        words: &[
            "el", "la", "los", "las", "es", "de", "en", "para", "una", "su", "con", "por", "que",
            "está", "son", "y",
        ],
    },
    Figure {
        name: "italian",
        words: &[
            "il", "la", "gli", "che", "di", "per", "una", "è", "con", "sono", "del", "della",
            "nostro", "vostro", "siamo", "e",
        ],
    },
    Figure {
        name: "english",
        words: &[
            "the", "is", "are", "and", "of", "your", "you", "to", "for", "it", "we", "a", "at",
            "in", "on", "i",
        ],
    },
];

/// How a text wants the agent to speak.
static WANTED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:speak|talk|answer|reply|respond|write|act|behave|be)\b[^.!?\n]{0,30}\b(?:like|as|in the (?:style|voice) of|in) (?:only |all )?(?:an? |the )?(\w+)",
    )
    .expect("a constant pattern")
});

impl Style {
    /// The one that a text against the rules wants; none, where it wants none or one that nobody knows.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut wanted = WANTED
            .captures_iter(text)
            .map(|found| found[1].to_lowercase());
        wanted.find_map(|wanted| {
            let named = |figure: &&Figure| wanted == figure.name;
            match wanted.as_str() {
                "capitals" | "caps" | "uppercase" => Some(Self::Capitals),
                _ => FIGURES
                    .iter()
                    .find(named)
                    .map(Self::Figure)
                    .or_else(|| LANGUAGES.iter().find(named).map(Self::Language)),
            }
        })
    }

    /// Whether an answer to a prompt would be spoken so anyway.
    pub(super) fn is_proper_beside(self, prompt: &str) -> bool {
        match self {
            Self::Language(language) => {
                let own = language.count(prompt);
                own > 0 && LANGUAGES.iter().all(|other| own >= other.count(prompt))
            }
            _ => self.is_spoken_in(prompt),
        }
    }

    /// Whether a text is spoken so.
    pub(super) fn is_spoken_in(self, text: &str) -> bool {
        match self {
            Self::Figure(figure) => figure.count(text) > 0,
            Self::Language(language) => {
                let others = LANGUAGES.iter().filter(|other| *other != language);
                let most = others.map(|other| other.count(text)).max();
                let own = language.count(text);
                own >= 2 && most.is_none_or(|most| own > most)
            }
            Self::Capitals => {
                let letters: Vec<_> = text.chars().filter(|c| c.is_alphabetic()).collect();
                letters.len() >= 12 && letters.iter().all(|c| !c.is_lowercase())
            }
        }
    }
}

impl Figure {
    fn count(&self, text: &str) -> usize {
        let text = text.to_lowercase();
        let said = text.split(|letter: char| !letter.is_alphanumeric());
        said.filter(|word| self.words.contains(word)).count()
    }
}
