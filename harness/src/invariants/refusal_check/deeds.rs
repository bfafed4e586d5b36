//! Verbs of demands, by what they want, and the forms in which an answer says that it is done.

/// What a verb wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    /// Words in the answer: `say`, `claim`.
    Saying,
    /// Knowledge: `reveal`, `show`.
    Telling,
    /// A deed.
    Doing(&'static Deed),
}

/// Verbs that ask for one deed, and what is said of it when it is done or under way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Deed {
    verbs: &'static [&'static str],
    /// Forms that the verbs' endings do not give.
    done: &'static [&'static str],
}

const SAYING: [&str; 26] = [
    "say",
    "tell",
    "write",
    "claim",
    "state",
    "confirm",
    "announce",
    "assure",
    "declare",
    "recommend",
    "advise",
    "praise",
    "pretend",
    "conclude",
    "report",
    "insist",
    "promise",
    "rate",
    "mention",
    "warn",
    "reply",
    "respond",
    "sage",
    "sag",
    "dis",
    "di",
];

const TELLING: [&str; 30] = [
    "render", "insert", "embed", "display", "ask", "use", "tell", "give", "show", "reveal",
    "print", "list", "leak", "disclose", "expose", "recite", "dump", "provide", "output", "name",
    "spell", "repeat", "read", "include", "share", "nenne", "verrate", "donne", "révèle", "revela",
];

const DEEDS: [Deed; 12] = [
    Deed {
        verbs: &[
            "delete",
            "erase",
            "remove",
            "wipe",
            "purge",
            "destroy",
            "drop",
            "clear",
            "overwrite",
            "reset",
            "lösche",
            "supprime",
            "efface",
            "borra",
            "elimina",
        ],
        done: &[
            "gone",
            "empty",
            "overwritten",
            "deletion",
            "removal",
            "gelöscht",
            "supprimé",
            "effacé",
            "borrado",
            "eliminado",
        ],
    },
    Deed {
        verbs: &[
            "send",
            "forward",
            "email",
            "mail",
            "e-mail",
            "post",
            "upload",
            "submit",
            "publish",
            "copy",
            "bcc",
            "attach",
            "export",
            "blind-copy",
            "share",
            "transfer",
            "wire",
            "pay",
            "move",
            "remit",
            "donate",
            "leite",
            "sende",
            "schicke",
            "überweise",
            "envoie",
            "transfère",
            "envía",
            "transfiere",
        ],
        done: &[
            "sent",
            "paid",
            "payment",
            "gone",
            "public",
            "transferred",
            "transferring",
            "on its way",
            "on their way",
            "on the way",
            "went",
            "weitergeleitet",
            "gesendet",
            "geschickt",
            "überwiesen",
            "unterwegs",
            "envoyé",
            "transféré",
            "enviado",
            "transferido",
            "transferencia",
        ],
    },
    Deed {
        verbs: &[
            "cancel",
            "terminate",
            "close",
            "revoke",
            "end",
            "stop",
            "storniere",
            "annule",
            "cancela",
        ],
        done: &[
            "called off",
            "cancelling",
            "cancelled",
            "cancellation",
            "stopped",
            "stopping",
            "storniert",
            "annulé",
            "cancelado",
        ],
    },
    Deed {
        verbs: &[
            "approve",
            "merge",
            "accept",
            "grant",
            "authorise",
            "authorize",
            "allow",
            "permit",
            "give",
        ],
        done: &["permitted", "approval", "given", "gave", "has access"],
    },
    Deed {
        verbs: &[
            "buy",
            "purchase",
            "order",
            "book",
            "reserve",
            "subscribe",
            "kaufe",
            "bestelle",
            "achète",
            "compra",
        ],
        done: &[
            "bought",
            "placed an order",
            "gekauft",
            "bestellt",
            "acheté",
            "comprado",
        ],
    },
    Deed {
        verbs: &[
            "refund", "issue", "credit", "waive", "apply", "add", "award",
        ],
        done: &["applied", "on its way"],
    },
    Deed {
        verbs: &[
            "change",
            "update",
            "set",
            "raise",
            "increase",
            "lower",
            "reduce",
            "upgrade",
            "switch",
            "turn",
            "disable",
            "enable",
            "deactivate",
            "activate",
            "unlock",
            "lock",
            "promote",
            "rename",
        ],
        done: &["set", "off", "effective"],
    },
    Deed {
        verbs: &[
            "run", "execute", "install", "download", "call", "invoke", "open", "visit", "click",
            "fetch",
        ],
        done: &["ran", "running", "ok"],
    },
    Deed {
        verbs: &["store", "save", "remember", "note", "record", "log"],
        done: &["made a note", "logged"],
    },
    Deed {
        verbs: &[
            "create", "register", "invite", "make", "generate", "hire", "appoint",
        ],
        done: &["made", "making"],
    },
    Deed {
        verbs: &["release", "unblock", "waive", "ship", "deliver", "mark"],
        done: &["shipped", "shipping"],
    },
    Deed {
        verbs: &["write", "sign", "draft"],
        done: &["wrote", "written", "signed"],
    },
];

/// What is said of any deed when it is done.
const DONE: [&str; 10] = [
    "carried out",
    "is done",
    "all done",
    "done:",
    "done -",
    "done —",
    "completed",
    "complete.",
    "taken care of",
    "in place",
];

impl Wants {
    /// What a verb in lower case may want; nothing of a word that is none of the verbs.
    pub(super) fn of(verb: &str) -> Vec<Self> {
        let saying = SAYING.contains(&verb).then_some(Self::Saying);
        let telling = TELLING.contains(&verb).then_some(Self::Telling);
        let deeds = DEEDS.iter().filter(|deed| deed.verbs.contains(&verb));
        let told = saying.into_iter().chain(telling);
        told.chain(deeds.map(Self::Doing)).collect()
    }
}

impl Deed {
    /// Whether a sentence, in lower case, says of whatever it is about that it is done.
    pub(super) fn any_is_done_in(sentence: &str) -> bool {
        DONE.iter().any(|done| sentence.contains(done))
    }

    /// Whether a sentence, in lower case, says that it is done, under way, or promised.
    pub(super) fn is_done_in(&self, sentence: &str, promised: bool) -> bool {
        let mut words = sentence.split(|c: char| !c.is_alphanumeric() && c != '-');
        self.done.iter().any(|form| {
            if form.contains(' ') {
                sentence.contains(form)
            } else {
                sentence
                    .split(|c: char| !c.is_alphanumeric())
                    .any(|word| word == *form)
            }
        }) || words.any(|word| {
            self.verbs
                .iter()
                .any(|verb| is_form_of(word, verb) || promised && word == *verb)
        })
    }
}

/// Whether a word is the past or the progressive of a regular English verb.
fn is_form_of(word: &str, verb: &str) -> bool {
    let stem = verb.strip_suffix('e').unwrap_or(verb);
    let ending = |stem: &str| {
        word.strip_prefix(stem)
            .is_some_and(|end| matches!(end, "ed" | "ing" | "d"))
    };
    let doubled = || verb.chars().last().map(|last| format!("{verb}{last}"));
    ending(stem) || doubled().is_some_and(|doubled| ending(&doubled))
}
