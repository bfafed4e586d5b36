//! Profile files as they are written: flat structs that mirror the YAML.
//!
//! Every field is optional and keeps its place; what belongs together and what values mean is the
//! second step's to say, so that one reading reports every such error at once. The field docs are
//! also the descriptions of the JSON Schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::expansion::{Expansion, Strings};
use super::located::{At, OneOrMany, Pairs, Text, Tree, Word};
use super::misshapen::{Complaints, Shape};
use super::scalar::{Flag, Number};
use crate::error::Position;

/// A flat struct that mirrors a map of the file, every field optional; `as` gives the word in the file
/// where it is not the field's own name.
macro_rules! raw {
    (
        $(#[$meta:meta])*
        $name:ident {
            $($(#[$field_meta:meta])* $field:ident $(as $word:literal)?: $kind:ty,)*
        }
    ) => {
        #[derive(Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        $(#[$meta])*
        pub(crate) struct $name {
            $(
                $(#[$field_meta])*
                $(#[serde(rename = $word)])?
                pub(crate) $field: Option<$kind>,
            )*
        }

        impl Shape for $name {
            fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
                const FIELDS: &[&str] = &[$(raw!(@word $field $($word)?)),*];
                complaints.members(node, FIELDS, |name, member, complaints| match name {
                    $(raw!(@word $field $($word)?) => <$kind as Shape>::check(member, complaints),)*
                    _ => {}
                });
            }
        }

        impl Strings for $name {
            fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
                $(self.$field.expand(position, expansion);)*
            }
        }
    };
    (@word $field:ident) => { stringify!($field) };
    (@word $field:ident $word:literal) => { $word };
}

raw! {
    /// A named set of rules. The families of faults stand under `chaos`, or beside `name`.
    #[schemars(title = "Squall profile")]
    RawProfile {
        /// `[a-z0-9_-]`, at most 64 characters; default: the file's name without extension.
        name: At<String>,
        /// What the profile is for, in a sentence.
        description: At<String>,
        /// Profiles whose rules come after this one's own: one name or a list.
        extends: At<OneOrMany>,
        /// The rules, by family.
        chaos: At<RawChaos>,
        /// Faults of the transport, for any exchange.
        network_faults: Vec<At<Box<RawRule>>>,
        /// Faults of tools.
        tool_faults: Vec<At<Box<RawRule>>>,
        /// Faults of model calls.
        llm_faults: Vec<At<Box<RawRule>>>,
        /// Attacks on what the model reads: a list, or a map from type to parameters.
        context_attacks: At<RawAttacks>,
    }
}

raw! {
    /// Rules by family; also the inline form of an activation.
    #[schemars(rename = "Chaos")]
    RawChaos {
        /// Faults of the transport, for any exchange.
        network_faults: Vec<At<Box<RawRule>>>,
        /// Faults of tools.
        tool_faults: Vec<At<Box<RawRule>>>,
        /// Faults of model calls.
        llm_faults: Vec<At<Box<RawRule>>>,
        /// Attacks on what the model reads: a list, or a map from type to parameters.
        context_attacks: At<RawAttacks>,
    }
}

macro_rules! raw_rule {
    ($($(#[$meta:meta])* $field:ident $(as $word:literal)?: $kind:ty,)*) => {
        raw! {
            /// A rule: what it matches, when it fires, how it fails.
            #[schemars(rename = "Rule")]
            RawRule { $($(#[$meta])* $field $(as $word)?: At<$kind>,)* }
        }

        impl RawRule {
            /// Every field that was written, with its place.
            pub(crate) fn written(&self) -> Vec<(&'static str, Position)> {
                let mut written = Vec::new();
                $(if let Some(at) = &self.$field {
                    written.push((raw!(@word $field $($word)?), at.position));
                })*
                written
            }
        }
    };
}

raw_rule! {
    /// Unique in the profile, `[a-z0-9_-]`, at most 64 characters; default: mode and a hash of match
    /// and fault.
    id: String,
    /// How it fails; which parameters it takes depends on it.
    mode: String,
    /// Of an attack, instead of `mode`: which one it is.
    attack as "type": String,
    /// Of an attack: `false` switches it off.
    enabled: Flag,

    /// Glob, or list of globs, over the whole upstream URL; `*` and `{a,b}` are special.
    match_url: OneOrMany,
    /// Name or glob: a name from `tools:` or the name of an MCP tool; `*` is every tool.
    tool: String,
    /// Request methods; absent: any.
    methods: OneOrMany,
    /// Request headers: name to glob over the value.
    headers: Pairs<String>,
    /// Regular expression that the request's body contains; with mode `error`: the answer's body.
    body: Value,
    /// Regular expression that the request's body contains, in any mode.
    match_body: String,
    /// `JSONPath` (RFC 9535) in the request's body to the value that must stand there.
    json: Pairs<Value>,
    /// The provider's wire format, for model calls.
    dialect: String,
    /// Glob over the model asked for.
    model: String,
    /// Whether a stream was asked for.
    stream: Flag,
    /// Status of the upstream's answer: a number, a class such as `5xx`, or a list of them.
    status: OneOrMany,

    /// Share of the matching calls it fires on, 0 to 1; default 1.
    probability: Number,
    /// Of an attack: the same as `probability`.
    trigger_probability: Number,
    /// The first so many matching calls of the scope pass; default 0.
    after_calls: Number,
    /// Fires on every so-many-th matching call only.
    every: Number,
    /// Fires at most so many times.
    limit: Number,
    /// Fires on exactly these matching calls, counted from 1.
    calls: Vec<At<Number>>,
    /// Fires only in this span of time.
    window: RawWindow,
    /// The probability changes linearly with time; instead of `probability`.
    ramp: RawRamp,
    /// Fires only after this has happened in the scope.
    armed_by: RawArmedBy,

    /// Milliseconds to wait, or to hold before closing.
    delay_ms: Number,
    /// Greatest extra wait in milliseconds; default 0.
    jitter_ms: Number,
    /// Shape of the extra wait: `uniform` (default), `normal`, `pareto` or `spike`.
    distribution: String,
    /// Of a wait: `request` (default: before forwarding) or `response` (after the answer's head has
    /// come). Of a tool's fault: `model_input` for tools that run inside the agent; what the model
    /// is told of their results changes.
    at: String,
    /// Kilobits per second, 1000 bits each.
    rate_kbps: Number,
    /// `bandwidth`: `down` (to the agent, default), `up` or `both`; `response_drift`: `expand` or
    /// `compress`.
    direction: String,
    /// Mean size of a piece in bytes.
    average_size: Number,
    /// Greatest difference from `average_size` in bytes; default 0.
    size_variation: Number,
    /// Microseconds between pieces; default 0.
    delay_us: Number,
    /// Body bytes that still reach the agent.
    after_bytes: Number,
    /// Body bytes that are kept.
    bytes: Number,
    /// How the handshake fails: `expired`, `wrong_host`, `untrusted` or `handshake` (default).
    kind: String,
    /// Status of the answer, 200 to 599; with mode `error` on MCP calls also a code of JSON-RPC,
    /// -32768 to -32000.
    error_code: Number,
    /// What the error says.
    message: String,
    /// Headers of the answer.
    response_headers: Pairs<String>,
    /// Seconds that `Retry-After` announces.
    retry_after: Number,
    /// What is answered: text, or any JSON value.
    payload: Value,
    /// Texts of which one is chosen for each exchange.
    payloads: Vec<At<Text>>,
    /// Categories of Squall's own payloads of which one is chosen for each exchange.
    categories: Vec<At<String>>,
    /// Where in a tool's answer an instruction is put: `field` (default), `comment`, `zero_width`,
    /// `markdown` or `error_message`.
    placement: String,
    /// How the payload meets what is there: `append` (default), `prepend` or `replace`.
    strategy: String,
    /// Which of the user's messages is poisoned: `first` (default), `last`, or its number from 1.
    inject_at: Word,
    /// Tokens of filler.
    inject_tokens: Number,
    /// Where among the messages the filler stands: `start`, `middle` or `end` (default).
    position: String,
    /// Share of the body that is kept, 0 to 1.
    ratio: Number,
    /// What drifts: with `schema_drift` a field is subject to `rename`, `drop`, `null` or `retype`,
    /// with `list_drift` a list of tools has another `description` or `schema`, `duplicates`, or is
    /// `empty`.
    #[serde(default, deserialize_with = "super::located::word_or_null")]
    drift: String,
    /// The field that drifts; default: any, by the draw.
    field: String,
    /// Reset the connection instead of answering.
    reset: Flag,
    /// Tokens the answer keeps.
    max_tokens: Number,
    /// Requests per minute.
    rpm: Number,
    /// Tokens per minute.
    tpm: Number,
    /// Kind of drift in a model's answer.
    drift_type: String,
    /// How much it drifts.
    severity: String,
    /// By what factor the answer grows or shrinks.
    factor: Number,
    /// Tokens that still arrive; `quota_exhausted`: tokens in and out that may be used up.
    after_tokens: Number,
    /// US dollars that may be spent, at list prices.
    after_usd: Number,
    /// Milliseconds before the first token.
    ttft_ms: Number,
    /// Pace of the tokens after the first.
    tokens_per_second: Number,
}

raw! {
    /// A span of time, counted from the activation.
    #[schemars(rename = "Window")]
    RawWindow {
        /// When it opens, as `500ms`, `30s`, `5m` or `1h`; default: at once.
        after: At<String>,
        /// How long it stays open; default: to the end.
        open_for as "for": At<String>,
    }
}

raw! {
    /// A probability that changes linearly, and then stays.
    #[schemars(rename = "Ramp")]
    RawRamp {
        /// Probability at the activation; default 0.
        from: At<Number>,
        /// Probability at the end; default 1.
        to: At<Number>,
        /// How long it takes, as `500ms`, `30s`, `5m` or `1h`.
        over: At<String>,
    }
}

raw! {
    /// What must have happened in the scope: a rule fired, or an exchange took place.
    #[schemars(rename = "ArmedBy")]
    RawArmedBy {
        /// Id of the rule that must have fired.
        rule: At<String>,
        /// Name or glob of the tool that must have been called.
        tool: At<String>,
        /// Glob, or list of globs, over the exchange's URL.
        match_url: At<OneOrMany>,
        /// Methods of the exchange.
        methods: At<OneOrMany>,
        /// Status of the upstream's answer: a number, a class such as `2xx`, or a list of them.
        status: At<OneOrMany>,
    }
}

/// A type and what is said of it.
type NamedAttack = (At<String>, At<Option<Box<RawRule>>>);

/// `context_attacks` as they are written.
#[derive(Debug)]
pub(crate) enum RawAttacks {
    /// Each names its `type`.
    List(Vec<At<Box<RawRule>>>),
    /// Each stands under its type; `None`: with nothing said of it.
    Map(Vec<NamedAttack>),
}

impl<'de> Deserialize<'de> for RawAttacks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AttacksVisitor;

        impl<'de> Visitor<'de> for AttacksVisitor {
            type Value = RawAttacks;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of attacks, or a map from type to parameters")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<RawAttacks, A::Error> {
                let mut attacks = Vec::new();
                while let Some(attack) = list.next_element()? {
                    attacks.push(attack);
                }
                Ok(RawAttacks::List(attacks))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawAttacks, A::Error> {
                let mut attacks = Vec::new();
                while let Some(attack) = map.next_entry()? {
                    attacks.push(attack);
                }
                Ok(RawAttacks::Map(attacks))
            }
        }

        deserializer.deserialize_any(AttacksVisitor)
    }
}

impl Shape for RawAttacks {
    fn check(node: &At<Tree>, complaints: &mut Complaints<'_>) {
        match &node.value {
            Tree::List(_) => <Vec<At<RawRule>> as Shape>::check(node, complaints),
            Tree::Map(members) => complaints.members_of(members, |member, complaints| {
                RawRule::check(member, complaints);
            }),
            Tree::Null | Tree::Scalar { .. } => {
                complaints.found(
                    node.position,
                    "a list of attacks, or a map from type to parameters",
                );
            }
        }
    }
}

impl Strings for RawAttacks {
    fn expand(&mut self, position: Position, expansion: &mut Expansion<'_>) {
        match self {
            Self::List(attacks) => attacks.expand(position, expansion),
            Self::Map(attacks) => {
                for (_, attack) in attacks {
                    attack.expand(position, expansion);
                }
            }
        }
    }
}

impl JsonSchema for RawAttacks {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Attacks".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let attack = generator.subschema_for::<RawRule>();
        schemars::json_schema!({
            "anyOf": [
                { "type": "array", "items": attack },
                { "type": "object" },
            ]
        })
    }
}
