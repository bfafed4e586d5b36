//! `mutations:`: how golden prompts are changed before the agent is invoked. Runs do not carry them out, so they are
//! only checked.

use squall_documents::Fields;

/// The types; `custom` are the suite's own templates.
const TYPES: [&str; 24] = [
    "paraphrase",
    "noise",
    "tone_shift",
    "prompt_injection",
    "encoding_attacks",
    "context_manipulation",
    "length_extremes",
    "custom",
    "multi_turn_attack",
    "advanced_jailbreak",
    "semantic_similarity_attack",
    "format_poisoning",
    "language_mixing",
    "token_manipulation",
    "temporal_attack",
    "http_header_injection",
    "payload_size_attack",
    "content_type_confusion",
    "query_parameter_poisoning",
    "request_method_attack",
    "protocol_level_attack",
    "resource_exhaustion",
    "concurrent_request_pattern",
    "timeout_manipulation",
];

pub(super) fn read(fields: &mut Fields<'_, '_>) {
    let words = TYPES.map(|name| (name, name));
    let about = "How many per golden prompt; default 10.";
    fields.whole("count", about, 1..=50, " per golden prompt");
    let types = fields.field("types", "Which kinds.", |value| {
        let empty = "the list is empty; leave it out for the default types";
        value.some("a list of mutation types", empty, |value| {
            value.word("mutation type", &words)
        })
    });
    fields.field("weights", "Weight of a kind in the score.", |value| {
        let what = "a map from mutation type to weight";
        value.pairs_of(what, "mutation type", &words, |_, value| {
            value.real(0.0..=1000.0, "")
        })
    });
    let about = "Templates of the suite's own, with `{prompt}` in them.";
    templates(fields, "custom_templates", about);
    templates(fields, "templates", "The same as `custom_templates`.");
    let are_custom = types.is_some_and(|types| types.contains(&"custom"));
    if are_custom && !fields.has("custom_templates") && !fields.has("templates") {
        let message = "type `custom` needs `custom_templates`, a map from name to text with \
                       `{prompt}` in it";
        fields.error("types", message);
    }
}

fn templates(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) {
    fields.field(name, about, |value| {
        value.pairs("a map from name to text with `{prompt}` in it", |_, value| {
            if !value.words()?.value.contains("{prompt}") {
                let message = "the template has no `{prompt}` in it; the agent would be asked the same \
                               whatever the golden prompt";
                value.error(message);
            }
            Some(())
        })
    });
}
