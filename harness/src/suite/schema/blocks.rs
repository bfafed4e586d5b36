//! How the agent is reached, who helps, and the small blocks.

use serde_json::Value;

use super::shapes::{Field, block, flag, named, number, some, text, texts, whole, words};
use crate::suite::mutations::MutationType;
use crate::suite::settings::{COUNTERS, FORMATS};
use crate::suite::{agent, model};

pub(super) fn agent_block() -> Value {
    let program = || texts();
    block(
        "The agent under test, and how it is asked.",
        &[],
        vec![
            (
                "type",
                "How it is reached; default `http`.",
                words(agent::TYPES.map(|(name, _)| name)),
            ),
            (
                "endpoint",
                "Its URL; of type `python` and `langchain`: `module:attribute`.",
                text(),
            ),
            (
                "command",
                "Of type `command`: the program, prompt on stdin, answer on stdout.",
                program(),
            ),
            ("model", "Of type `openai`: the model to ask for.", text()),
            (
                "timeout",
                "How long one invocation may take, milliseconds; default 30000.",
                whole(1_000, Some(300_000)),
            ),
            (
                "method",
                "Request method; default POST.",
                words(agent::METHODS.map(|(name, _)| name)),
            ),
            (
                "request_template",
                "What is sent, with `{prompt}` in it.",
                text(),
            ),
            (
                "response_path",
                "Where the answer stands: a dot path, or a JSONPath that begins with `$`.",
                text(),
            ),
            (
                "query_params",
                "Parameters added to the URL.",
                named(text()),
            ),
            (
                "headers",
                "Headers added to the request; secrets as `${VAR}`.",
                named(text()),
            ),
            (
                "parse_structured_input",
                "Whether lines like `name: value` give names for the template; default true.",
                flag(),
            ),
            (
                "reset_endpoint",
                "POST to this URL makes it forget.",
                text(),
            ),
            (
                "reset_function",
                "This Python function makes it forget: `module:attribute`.",
                text(),
            ),
            ("reset_command", "This program makes it forget.", program()),
            ("reset", "What a reset concerns.", reset_block()),
            (
                "start",
                "How an agent with an endpoint is started.",
                block(
                    "A program and when it is ready.",
                    &["command", "ready_url"],
                    vec![
                        (
                            "command",
                            "The program; it gets the proxy variables.",
                            program(),
                        ),
                        (
                            "ready_url",
                            "GET answers 2xx when the agent is ready.",
                            text(),
                        ),
                    ],
                ),
            ),
        ],
    )
}

fn reset_block() -> Value {
    let isolated = "Whether it concerns only the invocation whose scope it names; default false.";
    block(
        "What a reset concerns.",
        &[],
        vec![("isolated", isolated, flag())],
    )
}

pub(super) fn model_block() -> Value {
    block(
        "A model that Squall asks for help.",
        &[],
        vec![
            (
                "provider",
                "Who serves it; default `ollama`.",
                words(model::PROVIDERS.map(|(name, _)| name)),
            ),
            ("name", "Its name there.", text()),
            ("api_key", "Key of the provider: `${VAR}`.", text()),
            ("base_url", "Where the provider is.", text()),
            ("model", "Another word for `name`.", text()),
            ("host", "Another word for `base_url`.", text()),
            ("temperature", "Default 0.8.", number(0.0, Some(2.0))),
        ],
    )
}

pub(super) fn mutations_block() -> Value {
    let types = MutationType::ALL.map(MutationType::as_str);
    block(
        "How golden prompts are changed.",
        &[],
        vec![
            (
                "count",
                "Per golden prompt; default 10.",
                whole(1, Some(50)),
            ),
            ("types", "Which kinds.", some(words(types))),
            (
                "weights",
                "What a kind counts in the score.",
                named(number(0.0, None)),
            ),
            (
                "custom_templates",
                "Templates of one's own, with `{prompt}` in them.",
                named(text()),
            ),
            (
                "templates",
                "Another word for `custom_templates`.",
                named(text()),
            ),
        ],
    )
}

pub(super) fn weights() -> Vec<Field> {
    vec![
        ("mutation", "Default 0.2.", number(0.0, Some(1.0))),
        ("chaos", "Default 0.35.", number(0.0, Some(1.0))),
        ("contract", "Default 0.35.", number(0.0, Some(1.0))),
        ("replay", "Default 0.1.", number(0.0, Some(1.0))),
    ]
}

pub(super) fn scoring_block() -> Value {
    let mut fields = weights();
    fields.push((
        "weights",
        "The same, one level deeper.",
        block("Weights.", &[], weights()),
    ));
    block("What the parts of the overall score count.", &[], fields)
}

pub(super) fn advanced_block() -> Value {
    block(
        "How runs go about it.",
        &[],
        vec![
            (
                "concurrency",
                "Invocations at once; default 10.",
                whole(1, Some(100)),
            ),
            (
                "retries",
                "How often an invocation is tried again that never reached the agent, or whose answer broke off without a fault; default 2.",
                whole(0, Some(5)),
            ),
            (
                "seed",
                "What every draw hangs on; default 42.",
                whole(0, None),
            ),
            (
                "strict",
                "A single cell that proves nothing makes a run inconclusive; default false.",
                flag(),
            ),
            (
                "counters",
                "When rules' counters begin at zero; default with every invocation.",
                words(COUNTERS.map(|(name, _)| name)),
            ),
            (
                "min_score",
                "The score to reach, 0 to 100; up to 1 it is a share.",
                number(0.0, Some(100.0)),
            ),
            ("output_dir", "Another word for `output.path`.", text()),
            (
                "skip_rules",
                "Who signs certificates.",
                serde_json::json!({}),
            ),
        ],
    )
}

/// Names for upstreams.
pub(super) fn tools_block() -> Value {
    let globs = ("match_url", "A glob over URLs, or several.", texts());
    named(block("Where the tool is.", &["match_url"], vec![globs]))
}

pub(super) fn embeddings_block() -> Value {
    let fields = vec![
        ("name", "Name of the model.", text()),
        ("base_url", "The API that it belongs to.", text()),
        ("api_key", "Key of the provider: `${VAR}`.", text()),
    ];
    let what = "By what texts are compared: an endpoint that gives embeddings, as OpenAI's does.";
    block(what, &["name", "base_url"], fields)
}

pub(super) fn output_block() -> Value {
    let formats = words(FORMATS.map(|(name, _)| name));
    let fields = vec![
        ("format", "Which report; default `html`.", formats),
        ("path", "Directory; default `./reports`.", text()),
        (
            "filename_template",
            "With `{timestamp}`, `{date}`, `{time}`, `{format}`.",
            text(),
        ),
    ];
    block("Where reports go.", &[], fields)
}

pub(super) fn certificate_block() -> Value {
    let fields = vec![
        (
            "tester_name",
            "Who signs certificates of runs, where the command names nobody.",
            text(),
        ),
        (
            "pass_threshold",
            "Score from which on a certificate says that the agent passed; up to 1 it is a share.",
            number(0.0, Some(100.0)),
        ),
        (
            "output_format",
            "Form of a certificate whose file's name says none; default `html`.",
            words(["html", "pdf"]),
        ),
    ];
    block("What certificates of runs say.", &[], fields)
}

pub(super) fn prices_block() -> Value {
    let fields = vec![
        ("input", "In.", number(0.0, None)),
        ("output", "Out.", number(0.0, None)),
    ];
    named(block(
        "US dollars for a million tokens.",
        &["input", "output"],
        fields,
    ))
}
