//! The small blocks of a suite: scoring, output, advanced, tools, prices.

use squall_profiles::document::{At, Tree};
use squall_profiles::error;
use squall_profiles::glob::Glob;
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::no_url_matches;

use super::reader::{Fields, Reader};
use crate::scores::least_of;

/// What the components of the overall score count; together 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scoring {
    /// Mutation robustness. Default 0.20.
    pub mutation: f64,
    /// Chaos resilience. Default 0.35.
    pub chaos: f64,
    /// Contract compliance. Default 0.35.
    pub contract: f64,
    /// Replay regression. Default 0.10.
    pub replay: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            mutation: 0.20,
            chaos: 0.35,
            contract: 0.35,
            replay: 0.10,
        }
    }
}

/// How far from 1 the weights may be.
const ROUNDING: f64 = 0.001;

pub(super) fn scoring(reader: &mut Reader<'_>, node: &At<Tree>) -> Option<Scoring> {
    let (mut scoring, mut nested) = (Scoring::default(), false);
    reader.fields(node, "a map of weights", |fields| {
        nested = fields.has("weights");
        if let Some(inner) = fields.read("weights", |reader, node| {
            reader.fields(node, "a map of weights", weights)
        }) {
            scoring = inner;
        }
        let beside = ["mutation", "chaos", "contract", "replay"];
        let both = beside.into_iter().find(|name| nested && fields.has(name));
        let direct = weights(fields);
        if let Some(name) = both {
            fields.error(
                name,
                format!("`{name}` stands beside `weights`; move it in"),
            );
        } else if !nested {
            scoring = direct;
        }
    })?;
    let sum = scoring.mutation + scoring.chaos + scoring.contract + scoring.replay;
    if (sum - 1.0).abs() > ROUNDING {
        let message = format!(
            "the weights make {sum:.3} together, and must make 1: mutation {}, chaos {}, contract \
             {}, replay {} (what is not written has its default)",
            scoring.mutation, scoring.chaos, scoring.contract, scoring.replay
        );
        reader.error(node.position, message);
    }
    Some(scoring)
}

fn weights(fields: &mut Fields<'_, '_, '_>) -> Scoring {
    let default = Scoring::default();
    let mut weight = |name, default| fields.real(name, 0.0..=1.0, "").unwrap_or(default);
    Scoring {
        mutation: weight("mutation", default.mutation),
        chaos: weight("chaos", default.chaos),
        contract: weight("contract", default.contract),
        replay: weight("replay", default.replay),
    }
}

/// Where reports go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Which report is written. Default HTML.
    pub format: Format,
    /// Directory, relative to where the command runs. Default `./reports`.
    pub path: String,
    /// Name of the file, with the [`PLACEHOLDERS`] in it; absent: the command's own.
    pub filename_template: Option<String>,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            format: Format::Html,
            path: "./reports".to_owned(),
            filename_template: None,
        }
    }
}

/// A form of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page for people.
    Html,
    /// A document for programs.
    Json,
    /// For CI systems.
    Junit,
    /// For pull requests.
    Markdown,
    /// Nothing but what is printed.
    Terminal,
}

pub(super) const FORMATS: [(&str, Format); 5] = [
    ("html", Format::Html),
    ("json", Format::Json),
    ("junit", Format::Junit),
    ("markdown", Format::Markdown),
    ("terminal", Format::Terminal),
];

/// What a name of reports may hold: the end of the run, as `20261122T120003Z`, as `2026-11-22` and as `120003`,
/// and the form's ending.
pub(super) const PLACEHOLDERS: [&str; 4] = ["timestamp", "date", "time", "format"];

/// Tells of placeholders that nothing is put in the place of.
fn known_placeholders(fields: &mut Fields<'_, '_, '_>, template: &At<String>) {
    let mut rest = template.value.as_str();
    while let Some((_, from)) = rest.split_once('{') {
        let Some((name, behind)) = from.split_once('}') else {
            return;
        };
        if !PLACEHOLDERS.contains(&name) {
            let allowed = error::allowed(name, PLACEHOLDERS.into_iter());
            let message = format!("nothing is put in the place of `{{{name}}}`{allowed}");
            let position = template.position;
            fields.reader.below("filename_template", |reader| {
                reader.note(position, message);
            });
        }
        rest = behind;
    }
}

/// What certificates of the suite's runs say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Certificate {
    /// Who signs; `None`: not said.
    pub tester: Option<String>,
    /// The score from which on the agent has passed, 0 to 100; `None`: the run says.
    pub pass_threshold: Option<f64>,
    /// `html` or `pdf`; `None`: the file's name says.
    pub format: Option<&'static str>,
}

pub(super) fn certificate(fields: &mut Fields<'_, '_, '_>) -> Certificate {
    let what = "a map with `tester_name`, `pass_threshold` and `output_format`";
    let read = fields.read("certificate", |reader, node| {
        reader.fields(node, what, |fields| Certificate {
            tester: tester(fields),
            pass_threshold: fields.real("pass_threshold", 0.0..=100.0, "").map(least_of),
            format: certificate_format(fields),
        })
    });
    read.unwrap_or_default()
}

fn certificate_format(fields: &mut Fields<'_, '_, '_>) -> Option<&'static str> {
    let named = fields.text("output_format")?.value.to_ascii_lowercase();
    let format = ["html", "pdf"].into_iter().find(|one| *one == named);
    if format.is_none() {
        without_effect(fields, "output_format", "certificates are `html` or `pdf`");
    }
    format
}

/// What variables stand for is not kept with a run, and a tester is.
fn tester(fields: &mut Fields<'_, '_, '_>) -> Option<String> {
    let name = fields.words("tester_name")?;
    if fields.reader.has_variable(name.position) {
        let instead = "what variables stand for is not kept with runs; name the tester with `squall certificate --tester`";
        without_effect(fields, "tester_name", instead);
        return None;
    }
    Some(name.value)
}

fn without_effect(fields: &mut Fields<'_, '_, '_>, name: &'static str, why: &str) {
    if fields.has(name) {
        let place = fields.place_of(name);
        let message = format!("`{name}` changes nothing here: {why}");
        fields
            .reader
            .below(name, |reader| reader.note(place, message));
    }
}

pub(super) fn output(fields: &mut Fields<'_, '_, '_>) -> Output {
    let default = Output::default();
    let template = fields.words("filename_template");
    if let Some(template) = &template {
        known_placeholders(fields, template);
    }
    Output {
        format: fields
            .word("format", "format", &FORMATS)
            .unwrap_or(default.format),
        path: fields.words("path").map_or(default.path, |path| path.value),
        filename_template: template.map(|name| name.value),
    }
}

/// How runs go about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced {
    /// Invocations at the same time, 1 to 100. Default 10.
    pub concurrency: u64,
    /// How often an invocation is tried again that never reached the agent, or whose answer broke off before any
    /// fault was applied, 0 to 5. Default 2.
    pub retries: u64,
    /// Seed of every draw; absent: 42.
    pub seed: Option<u64>,
    /// Whether a single cell that was not exercised makes the run inconclusive. Default false.
    pub strict: bool,
    /// With what rules' counters begin.
    pub counters: Counters,
    /// The bar of a run, 0 to 100; absent: none.
    pub min_score: Option<f64>,
}

impl Default for Advanced {
    fn default() -> Self {
        Self {
            concurrency: 10,
            retries: 2,
            seed: None,
            strict: false,
            counters: Counters::Invocation,
            min_score: None,
        }
    }
}

/// When rules' counters begin at zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// With every invocation. The default.
    Invocation,
    /// With every scenario: its invocations share them.
    Run,
}

pub(super) const COUNTERS: [(&str, Counters); 2] =
    [("invocation", Counters::Invocation), ("run", Counters::Run)];

/// `output_dir` is what `output.path` is too.
pub(super) fn advanced(fields: &mut Fields<'_, '_, '_>, output: &mut Output) -> Advanced {
    let default = Advanced::default();
    if let Some(path) = fields.words("output_dir") {
        output.path = path.value;
    }
    if fields.node("skip_rules").is_some() {
        let place = fields.place_of("skip_rules");
        let message = "`skip_rules` changes nothing, nor does it in flakestorm; leave the invariants out that are not \
                       to be judged, or narrow them by `when` and `prompt_filter`";
        fields
            .reader
            .below("skip_rules", |reader| reader.note(place, message));
    }
    // Up to 1 it is a share, as on the command line.
    let min_score = fields.real("min_score", 0.0..=100.0, "");
    Advanced {
        concurrency: fields
            .whole("concurrency", 1..=100, "")
            .unwrap_or(default.concurrency),
        retries: fields
            .whole("retries", 0..=5, "")
            .unwrap_or(default.retries),
        seed: fields.whole("seed", 0..=u64::MAX, ""),
        strict: fields.flag("strict").unwrap_or(default.strict),
        counters: fields
            .word("counters", "choice", &COUNTERS)
            .unwrap_or(default.counters),
        min_score: min_score.map(least_of),
    }
}

/// Names for upstreams.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    /// Name, and the URLs it stands for, in order.
    pub written: Vec<(String, Vec<String>)>,
    /// The same, compiled.
    pub names: ToolNames,
}

pub(super) fn tools(fields: &mut Fields<'_, '_, '_>) -> Tools {
    let what = "a map from tool name to `match_url`";
    let pairs = fields.pairs("tools", what, |reader, _, node| {
        reader
            .fields(node, "a map with `match_url`", |fields| {
                if !fields.has("match_url") {
                    fields.missing("match_url", "a glob over URLs, or a list of them");
                }
                let globs = fields.texts("match_url", "a glob over URLs")?;
                for glob in &globs {
                    let written = [glob.value.clone()];
                    let position = glob.position;
                    let limits = &fields.reader.limits;
                    let read = ToolNames::within([("match_url", &written[..])], limits);
                    if let Err(error) = read {
                        fields.reader.error(position, error.message);
                    } else if let Some(why) = no_url_matches(&glob.value) {
                        fields.reader.note(position, why);
                    }
                }
                Some(globs.into_iter().map(|glob| glob.value).collect())
            })
            .flatten()
    });
    let pairs = pairs.unwrap_or_default().into_iter();
    let written: Vec<(String, Vec<String>)> =
        pairs.map(|(name, globs)| (name.value, globs)).collect();
    let all = written
        .iter()
        .map(|(name, globs)| (name.as_str(), &globs[..]));
    // What is wrong with a glob was said above, with its place.
    let names = ToolNames::new(all).unwrap_or_default();
    Tools { written, names }
}

/// What models' tokens cost, by a glob over their names; the first that matches counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prices(Vec<(Glob, Price)>);

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// In.
    pub input: f64,
    /// Out.
    pub output: f64,
}

impl Prices {
    /// What a model's tokens cost; `None`: the suite does not say.
    pub fn of(&self, model: &str) -> Option<Price> {
        let found = self.0.iter().find(|(glob, _)| glob.matches(model));
        found.map(|(_, price)| *price)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

pub(super) fn prices(fields: &mut Fields<'_, '_, '_>) -> Prices {
    let what = "a map from model to `{input: 2.5, output: 10}`, dollars for a million tokens";
    let pairs = fields.pairs("prices", what, |reader, name, node| {
        let glob = reader.glob(name);
        let price = reader.fields(node, "`{input: 2.5, output: 10}`", |fields| {
            for side in ["input", "output"] {
                if !fields.has(side) {
                    fields.missing(side, "US dollars for a million tokens");
                }
            }
            let input = fields.real("input", 0.0..=f64::MAX, " US dollars");
            let output = fields.real("output", 0.0..=f64::MAX, " US dollars");
            Some(Price {
                input: input?,
                output: output?,
            })
        });
        Some((glob?, price.flatten()?))
    });
    let pairs = pairs.unwrap_or_default().into_iter();
    Prices(pairs.map(|(_, price)| price).collect())
}
