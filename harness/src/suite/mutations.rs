//! `mutations:`: how golden prompts are changed before the agent is invoked.

use squall_documents::Fields;

/// How golden prompts are changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Mutations {
    /// Mutations for each golden prompt, 1 to 50. Default 10.
    pub count: u64,
    /// The types to generate, at least one.
    pub types: Vec<MutationType>,
    /// The weight of each type in the score, by its index in [`MutationType::ALL`].
    weights: Vec<f64>,
    /// The suite's own templates by name, each with `{prompt}`.
    pub templates: Vec<(String, String)>,
}

impl Default for Mutations {
    fn default() -> Self {
        Self {
            count: 10,
            types: MutationType::ALL[..7].to_vec(),
            weights: MutationType::ALL.map(MutationType::weight).to_vec(),
            templates: Vec::new(),
        }
    }
}

impl Mutations {
    /// The weight of a type in the score.
    pub fn weight(&self, kind: MutationType) -> f64 {
        let place = MutationType::ALL.iter().position(|one| *one == kind);
        place.map_or(1.0, |place| self.weights[place])
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident $word:literal $weight:literal,)*) => {
        /// A kind of mutation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MutationType { $($(#[$doc])* $name,)* }

        impl MutationType {
            /// Every kind; the first seven are the default.
            pub const ALL: [Self; 24] = [$(Self::$name,)*];

            /// The word in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The default weight.
            pub fn weight(self) -> f64 {
                match self { $(Self::$name => $weight,)* }
            }
        }
    };
}

types! {
    /// Same intent, other words.
    Paraphrase "paraphrase" 1.0,
    /// Slips of the fingers and abbreviations.
    Noise "noise" 0.8,
    /// Hurried, frustrated, in capitals.
    ToneShift "tone_shift" 0.9,
    /// An instruction to disobey is appended.
    PromptInjection "prompt_injection" 1.5,
    /// Base64, escapes, percent-encoding.
    EncodingAttacks "encoding_attacks" 1.3,
    /// Irrelevant or contradicting context.
    ContextManipulation "context_manipulation" 1.1,
    /// Very short or very long.
    LengthExtremes "length_extremes" 1.2,
    /// The suite's own templates.
    Custom "custom" 1.0,
    /// Turns that never happened.
    MultiTurnAttack "multi_turn_attack" 1.4,
    /// Personas, hypothetical worlds, developer mode.
    AdvancedJailbreak "advanced_jailbreak" 2.0,
    /// Looks alike and means something else.
    SemanticSimilarityAttack "semantic_similarity_attack" 1.3,
    /// JSON, XML, Markdown or YAML in the prompt.
    FormatPoisoning "format_poisoning" 1.6,
    /// Languages, scripts and emoji.
    LanguageMixing "language_mixing" 1.2,
    /// Special tokens and odd spacing.
    TokenManipulation "token_manipulation" 1.5,
    /// Impossible or conflicting dates.
    TemporalAttack "temporal_attack" 1.1,
    /// Headers of the request to the agent.
    HttpHeaderInjection "http_header_injection" 1.7,
    /// Large bodies and headers.
    PayloadSizeAttack "payload_size_attack" 1.4,
    /// Another `Content-Type`.
    ContentTypeConfusion "content_type_confusion" 1.5,
    /// Parameters, doubled or hostile.
    QueryParameterPoisoning "query_parameter_poisoning" 1.6,
    /// Another method.
    RequestMethodAttack "request_method_attack" 1.3,
    /// Framing and transfer codings.
    ProtocolLevelAttack "protocol_level_attack" 1.8,
    /// Deep nesting and patterns that explode.
    ResourceExhaustion "resource_exhaustion" 1.5,
    /// The same request at once, several times.
    ConcurrentRequestPattern "concurrent_request_pattern" 1.4,
    /// Sent slowly.
    TimeoutManipulation "timeout_manipulation" 1.3,
}

fn words() -> [(&'static str, MutationType); 24] {
    MutationType::ALL.map(|kind| (kind.as_str(), kind))
}

pub(super) fn read(fields: &mut Fields<'_, '_>) -> Mutations {
    let mut mutations = Mutations::default();
    let about = "How many per golden prompt; default 10.";
    if let Some(count) = fields.whole("count", about, 1..=50, " per golden prompt") {
        mutations.count = count;
    }
    let types = fields.field("types", "Which kinds.", |value| {
        let empty = "the list is empty; leave it out for the default types";
        value.some("a list of mutation types", empty, |value| {
            value.word("mutation type", &words())
        })
    });
    if let Some(types) = types {
        mutations.types = types;
    }
    let weights = fields.field("weights", "Weight of a kind in the score.", |value| {
        let what = "a map from mutation type to weight";
        value.pairs_of(what, "mutation type", &words(), |kind, value| {
            Some((kind, value.real(0.0..=1000.0, "")?))
        })
    });
    for (kind, weight) in weights.unwrap_or_default() {
        if let Some(place) = MutationType::ALL.iter().position(|one| *one == kind) {
            mutations.weights[place] = weight;
        }
    }
    let about = "Templates of the suite's own, with `{prompt}` in them.";
    mutations
        .templates
        .extend(templates(fields, "custom_templates", about));
    let about = "The same as `custom_templates`.";
    mutations
        .templates
        .extend(templates(fields, "templates", about));
    if mutations.types.contains(&MutationType::Custom) && mutations.templates.is_empty() {
        let message = "type `custom` needs `custom_templates`, a map from name to text with \
                       `{prompt}` in it";
        fields.error("types", message);
    }
    mutations
}

fn templates(
    fields: &mut Fields<'_, '_>,
    name: &'static str,
    about: &str,
) -> Vec<(String, String)> {
    let templates = fields.field(name, about, |value| {
        value.pairs("a map from name to text with `{prompt}` in it", |_, value| {
            let text = value.words()?.value;
            if !text.contains("{prompt}") {
                let message = "the template has no `{prompt}` in it; the agent would be asked the same \
                               whatever the golden prompt";
                value.error(message);
            }
            Some(text)
        })
    });
    let templates = templates.unwrap_or_default().into_iter();
    templates
        .map(|(name, text)| (name.value.clone(), text))
        .collect()
}
