//! The rows of a run, as a table for people and as JSON for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// One demand and how it was met.
#[derive(Debug, Clone)]
pub struct Row {
    /// What is measured.
    pub metric: String,
    /// What the comparisons and Squall reached, by name, ready to read.
    pub reached: Vec<(&'static str, String)>,
    /// The judged figures: Squall's, put against their bars in the same order.
    pub judged: Vec<Judged>,
    /// The `must` column in words.
    pub must: &'static str,
    /// The `aim` column in words.
    pub aim: &'static str,
}

/// One figure and its two bars.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// The figure; absent when Squall was not measured.
    pub value: Option<f64>,
    /// What it has to be held against.
    pub must: Bar,
    /// What it should be held against.
    pub aim: Bar,
}

/// A bar to stay below or to reach.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// At most that much.
    AtMost(f64),
    /// At least that much.
    AtLeast(f64),
}

impl Bar {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(bar) => value <= bar,
            Self::AtLeast(bar) => value >= bar,
        }
    }
}

impl Row {
    /// Whether every figure is within its `must`; `None` without figures.
    pub fn met(&self) -> Option<bool> {
        self.all(|judged| judged.must)
    }

    fn aimed(&self) -> Option<bool> {
        self.all(|judged| judged.aim)
    }

    fn all(&self, bar: impl Fn(&Judged) -> Bar) -> Option<bool> {
        self.judged
            .iter()
            .map(|judged| judged.value.map(|value| bar(judged).holds(value)))
            .collect::<Option<Vec<_>>>()
            .map(|held| held.into_iter().all(|held| held))
    }

    fn verdict(&self) -> &'static str {
        match (self.met(), self.aimed()) {
            (None, _) => "–",
            (Some(false), _) => "missed",
            (Some(true), Some(true)) => "aim",
            (Some(true), _) => "must",
        }
    }

    fn figures(&self) -> String {
        let figure = |judged: &Judged| judged.value.map_or_else(|| "–".to_owned(), plain);
        self.judged
            .iter()
            .map(figure)
            .collect::<Vec<_>>()
            .join(" / ")
    }
}

/// A figure with as many digits as it deserves.
pub fn plain(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{:.1}k", value / 1000.0),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The whole table in Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = String::from(
        "| metric | judged | must | aim | reached | measured |\n|---|--:|--:|--:|---|---|\n",
    );
    for row in rows {
        let reached: Vec<String> = row
            .reached
            .iter()
            .map(|(name, figures)| format!("{name} {figures}"))
            .collect();
        let (metric, must, aim) = (&row.metric, row.must, row.aim);
        let (figures, verdict, reached) = (row.figures(), row.verdict(), reached.join(" · "));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {metric} | {figures} | {must} | {aim} | {verdict} | {reached} |"
        );
    }
    text
}

/// The same as JSON.
pub fn json(rows: &[Row]) -> Value {
    rows.iter()
        .map(|row| {
            json!({
                "metric": row.metric,
                "judged": row.judged.iter().map(|judged| judged.value).collect::<Vec<_>>(),
                "must": row.must,
                "aim": row.aim,
                "met": row.met(),
                "measured": row.reached.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            })
        })
        .collect()
}
