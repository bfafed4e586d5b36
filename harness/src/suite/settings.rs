//! The small blocks of a suite: scoring, output, advanced, tools, prices.

use squall_documents::{Fields, ValueReader};
use squall_profiles::tools::ToolNames;
use squall_profiles::validate::no_url_matches;

use crate::report::ReportFormat;
use crate::report::certificate::CertificateFormat;
use crate::scores::{Scoring, least_of};
use squall_documents::named;

/// Allowed deviation of the sum of the weights from 1.
const ROUNDING: f64 = 0.001;

pub(super) fn scoring(value: &mut ValueReader<'_, '_>) -> Option<Scoring> {
    let scoring = value.fields("a map of weights", |fields| {
        let about = "The same, one level deeper.";
        let nested = fields.block("weights", about, "a map of weights", |fields| {
            Some(weights(fields))
        });
        let direct = weights(fields);
        let beside = ["mutation", "chaos", "contract", "replay"];
        if fields.has("weights")
            && let Some(name) = beside.into_iter().find(|name| fields.has(name))
        {
            fields.error(
                name,
                format!("`{name}` belongs inside `weights`; move it there"),
            );
        }
        Some(nested.unwrap_or(direct))
    })?;
    let sum = scoring.mutation + scoring.chaos + scoring.contract + scoring.replay;
    if (sum - 1.0).abs() > ROUNDING {
        let message = format!(
            "the weights make {sum:.3} together, and must make 1: mutation {}, chaos {}, contract \
             {}, replay {} (what is not written has its default)",
            scoring.mutation, scoring.chaos, scoring.contract, scoring.replay
        );
        value.error(message);
    }
    Some(scoring)
}

fn weights(fields: &mut Fields<'_, '_>) -> Scoring {
    let default = Scoring::default();
    let mut weight = |name, default: f64| {
        let about = format!("Default {default}.");
        fields.real(name, &about, 0.0..=1.0, "").unwrap_or(default)
    };
    Scoring {
        mutation: weight("mutation", default.mutation),
        chaos: weight("chaos", default.chaos),
        contract: weight("contract", default.contract),
        replay: weight("replay", default.replay),
    }
}

/// Where reports are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportOutput {
    /// The report format; `None`: only the terminal output. Default HTML.
    pub format: Option<ReportFormat>,
    /// Directory, relative to the working directory. Default `./reports`.
    pub path: String,
    /// File name with `{timestamp}`, `{date}`, `{time}` and `{format}`; absent: the command's default.
    pub filename_template: Option<String>,
}

impl Default for ReportOutput {
    fn default() -> Self {
        Self {
            format: Some(ReportFormat::Html),
            path: "./reports".to_owned(),
            filename_template: None,
        }
    }
}

/// The contents of certificates for the suite's runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CertificateSettings {
    /// The signer; `None`: not configured.
    pub tester: Option<String>,
    /// The score from which the agent passes, 0 to 100; `None`: the run decides.
    pub pass_threshold: Option<f64>,
    /// The format; `None`: the file's extension decides.
    pub format: Option<CertificateFormat>,
}

pub(super) fn certificate(fields: &mut Fields<'_, '_>) -> CertificateSettings {
    let tester = tester(fields);
    let about =
        "Score from which on a certificate says that the agent passed; up to 1 it is a share.";
    let threshold = fields.real("pass_threshold", about, 0.0..=100.0, "");
    let about = "Form of a certificate whose file's name says none; default `html`.";
    let format = fields.word("output_format", about, "format", CertificateFormat::NAMES);
    CertificateSettings {
        tester,
        pass_threshold: threshold.map(least_of),
        format,
    }
}

/// A run does not store values of variables, but it stores the tester.
fn tester(fields: &mut Fields<'_, '_>) -> Option<String> {
    let about = "Who signs certificates of runs, where the command names nobody.";
    let name = fields.words("tester_name", about)?;
    if fields.reader.has_variable(name.position) {
        let instead = "what variables stand for is not kept with runs; name the tester with `squall certificate --tester`";
        fields.note(
            "tester_name",
            format!("`tester_name` changes nothing here: {instead}"),
        );
        return None;
    }
    Some(name.value)
}

pub(super) fn output(fields: &mut Fields<'_, '_>) -> ReportOutput {
    let default = ReportOutput::default();
    let formats = ReportFormat::NAMES.iter();
    let formats = formats.map(|(name, format)| (*name, Some(*format)));
    let formats: Vec<_> = formats.chain([("terminal", None)]).collect();
    let about = "Which report; default `html`.";
    let format = fields.word("format", about, "format", &formats);
    let path = fields.words("path", "Directory; default `./reports`.");
    let about = "Name of the file, with `{timestamp}`, `{date}`, `{time}` and `{format}` in it.";
    let template = fields.words("filename_template", about);
    ReportOutput {
        format: format.unwrap_or(default.format),
        path: path.map_or(default.path, |path| path.value),
        filename_template: template.map(|name| name.value),
    }
}

/// Settings for how runs are executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Advanced {
    /// Concurrent invocations, 1 to 100. Default 10.
    pub concurrency: u64,
    /// Retries of an invocation that did not reach the agent, 0 to 5. Default 2.
    pub retries: u64,
    /// Seed of every draw; absent: 42.
    pub seed: Option<u64>,
    /// Whether a single cell that was not exercised makes the run inconclusive. Default false.
    pub strict: bool,
    /// When the counters of rules are reset.
    pub counters: Counters,
    /// The minimum score of a run, 0 to 100; absent: none.
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

named! {
    /// When the counters of rules are reset.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Counters {
        /// For every invocation. The default.
        Invocation = "invocation",
        /// For every scenario: its invocations share the counters.
        Run = "run",
    }
}

/// `output_dir` is an alias of `output.path`.
pub(super) fn advanced(fields: &mut Fields<'_, '_>, output: &mut ReportOutput) -> Advanced {
    let default = Advanced::default();
    if let Some(path) = fields.words("output_dir", "The same as `output.path`.") {
        output.path = path.value;
    }
    if fields.any("skip_rules", "Ignored.").is_some() {
        let message = "`skip_rules` changes nothing, nor does it in flakestorm; leave the invariants out that are not \
                       to be judged, or narrow them by `when` and `prompt_filter`";
        fields.note("skip_rules", message);
    }
    let about = "Minimum score, 0 to 100; up to 1 it is a share.";
    let min_score = fields.real("min_score", about, 0.0..=100.0, "");
    let about = "Invocations at once; default 10.";
    let concurrency = fields.whole("concurrency", about, 1..=100, "");
    let about = "Retries of an invocation that did not reach the agent; default 2.";
    let retries = fields.whole("retries", about, 0..=5, "");
    let about = "Random seed: the same seed injects the same faults; default 42.";
    let seed = fields.whole("seed", about, 0..=u64::MAX, "");
    let about =
        "Whether a single cell that was not exercised makes a run inconclusive; default false.";
    let strict = fields.flag("strict", about);
    let about = "When rules' counters begin at zero; default with every invocation.";
    let counters = fields.word("counters", about, "choice", Counters::NAMES);
    Advanced {
        concurrency: concurrency.unwrap_or(default.concurrency),
        retries: retries.unwrap_or(default.retries),
        seed,
        strict: strict.unwrap_or(default.strict),
        counters: counters.unwrap_or(default.counters),
        min_score: min_score.map(least_of),
    }
}

/// Names for upstreams, tools and agents.
#[derive(Debug, Clone, Default)]
pub struct SuiteTools {
    /// Each name with its URL globs, in order; agents last.
    pub written: Vec<(String, Vec<String>)>,
    /// The same names, compiled.
    pub names: ToolNames,
}

pub(super) fn tools(fields: &mut Fields<'_, '_>) -> SuiteTools {
    let mut tools = upstreams(fields, "tools", "Names for upstreams.");
    let about = "Names for agents of a crew, for `to` and `from`.";
    let agents = upstreams(fields, "agents", about);
    tools.names = tools.names.with_agents(agents.names);
    tools.written.extend(agents.written);
    tools
}

fn upstreams(fields: &mut Fields<'_, '_>, name: &'static str, about: &str) -> SuiteTools {
    let pairs = fields.field(name, about, |value| {
        value.pairs("a map from names to `match_url`", |_, value| {
            value.fields("a map with `match_url`", tool)
        })
    });
    let pairs = pairs.unwrap_or_default().into_iter();
    let written: Vec<(String, Vec<String>)> = pairs
        .map(|(name, globs)| (name.value.clone(), globs))
        .collect();
    let all = written
        .iter()
        .map(|(name, globs)| (name.as_str(), &globs[..]));
    // Invalid globs are already reported.
    let names = ToolNames::new(all).unwrap_or_default();
    SuiteTools { written, names }
}

fn tool(fields: &mut Fields<'_, '_>) -> Option<Vec<String>> {
    fields.require("match_url", "a glob over URLs, or a list of them");
    let globs = fields.texts(
        "match_url",
        "A glob over URLs, or several.",
        "a glob over URLs",
    )?;
    for glob in &globs {
        let written = [glob.value.clone()];
        let read = ToolNames::within([("match_url", &written[..])], &fields.reader.limits);
        if let Err(error) = read {
            fields.reader.error(glob.position, error.message);
        } else if let Some(why) = no_url_matches(&glob.value) {
            fields.reader.note(glob.position, why);
        }
    }
    Some(globs.into_iter().map(|glob| glob.value).collect())
}
