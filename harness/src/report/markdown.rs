//! Markdown for a pull request comment.
//!
//! Texts from outside are always code: a `<code>` element with character references, or a fence that is longer than
//! any in the text. They can therefore not become headings, links, images, mentions or
//! HTML. The worst cells come first, and the text is cut at GitHub's limit for comments (65,536 characters).

#![expect(
    clippy::format_push_string,
    reason = "a few kilobytes, once: what is written should be seen"
)]

use super::advice::advice;
use super::exploration::{FAILED_PAIRS, exploration_lines, heat_map};
use super::shown::cut;
use super::story::Wire;
use super::{LOAD, Report, axes, load_levels, load_lines, next_step, rank, severity_rank, words};
use crate::count::count;
use crate::run::{CellRecord, CellState, DivergenceState, ExplorationRecord, RunRecord};

/// Longest report, in characters.
pub(super) const MOST: usize = 65_000;

/// Longest prompt, answer or reason, in characters.
const MOST_TEXT: usize = 1_200;

/// Longest name in tables and headings, in characters.
const MOST_NAME: usize = 120;

/// Longest matrix, in characters.
const MOST_MATRIX: usize = 20_000;

/// Longest table of groups, in characters.
const MOST_GROUPS: usize = 8_000;

/// Maximum number of calls of a session in which the agent differs.
const MOST_CALLS: usize = 20;

/// Maximum number of invocations of a cell.
const MOST_INVOCATIONS: usize = 2;

/// The report as Markdown.
pub(super) fn document(report: &Report) -> String {
    let run = &report.run;
    let mut text = format!(
        "## {} Squall: {} {}\n\n{}\n\n",
        mark_of_the_run(report),
        html(&run.name),
        words::verdict(run),
        plain(&words::why(run)),
    );
    if let Some(step) = next_step(run) {
        // This text contains nothing from outside.
        text += &format!("{step}\n\n");
    }
    text += &scores(report);
    for warning in &run.warnings {
        text += &format!("> ⚠️ {}\n\n", plain(warning));
    }
    for line in load_lines(run) {
        text += &format!("- {}\n", plain(&line));
    }
    text += &table(&LOAD, &load_levels(run));
    text += &match &run.exploration {
        Some(exploration) => heat(run, exploration),
        None => matrix(report),
    };
    text += &table(&words::DISTRIBUTION, &words::distributions(run));
    text += &table(&words::CREW, &words::crew(run));
    text += &replays(report);
    text += &comparison(report);
    let end = last_line(report);
    text += &failures(report, MOST.saturating_sub(length(&text) + length(&end)));
    text + &end
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn mark_of_the_run(report: &Report) -> &'static str {
    match report.run.passed {
        Some(true) => "✅",
        Some(false) => "❌",
        None => "⚠️",
    }
}

fn mark(cell: &CellRecord) -> &'static str {
    match cell.state {
        CellState::Passed => "✅",
        CellState::Failed if cell.baseline_failed => "🟥",
        CellState::Failed => "❌",
        CellState::Error => "⚠️",
        CellState::NotExercised => "⬜",
        CellState::NotApplicable => "–",
    }
}

fn scores(report: &Report) -> String {
    let run = &report.run;
    let mut text = format!(
        "**Score {}** · {}\n\n",
        words::score_or_none(run.score),
        words::coverage(run)
    );
    let components: Vec<_> = words::components(&run.scores)
        .into_iter()
        .map(|(name, score)| format!("{name} {}", words::score(score)))
        .collect();
    if !components.is_empty() {
        text += &format!("{}\n\n", components.join(" · "));
    }
    for line in words::repeats(run) {
        text += &format!("- {}\n", plain(&line));
    }
    if !text.ends_with("\n\n") {
        text.push('\n');
    }
    text
}

/// The figures and the heat map of an exploration.
fn heat(run: &RunRecord, exploration: &ExplorationRecord) -> String {
    let map = heat_map(exploration);
    let mut text = String::new();
    for line in exploration_lines(run) {
        text += &format!("- {}\n", plain(&line));
    }
    let numbers = (1..=map.calls.len()).map(|number| format!(" {number} |"));
    text += &format!(
        "\n| fault |{}\n|---|{}\n",
        numbers.collect::<String>(),
        "---|".repeat(map.calls.len())
    );
    let rows = map.rows.iter().map(|(fault, cells)| {
        let cells = cells
            .iter()
            .map(|cell| format!(" {} |", cell.unwrap_or_default()));
        format!("| {fault} |{}\n", cells.collect::<String>())
    });
    append(&mut text, rows.collect(), MOST_MATRIX);
    text.push('\n');
    let calls = (1..)
        .zip(&map.calls)
        .map(|(number, call)| format!("{number}. {}\n", html(call)));
    append(&mut text, calls.collect(), MOST_MATRIX);
    if !map.failed_pairs.is_empty() {
        text += &format!("\n{FAILED_PAIRS}\n\n");
        let pairs = map.failed_pairs.iter();
        let pairs = pairs.map(|pair| format!("- {}\n", html(pair)));
        append(&mut text, pairs.collect(), MOST_MATRIX);
    }
    text + "\n"
}

/// The matrix of invariants × scenarios, worst rows first.
fn matrix(report: &Report) -> String {
    let cells = &report.run.cells;
    let (columns, mut rows) = axes(cells);
    if rows.is_empty() {
        return String::new();
    }
    let of_row = |row: (&str, &str), column: Option<&str>| {
        let of_it = move |cell: &&CellRecord| {
            (cell.invariant.as_str(), cell.severity.as_str()) == row
                && column.is_none_or(|column| cell.scenario == column)
        };
        cells.iter().filter(of_it).collect::<Vec<_>>()
    };
    rows.sort_by_key(|row| of_row(*row, None).iter().map(|cell| rank(cell.state)).min());
    let names: Vec<_> = columns.iter().map(|name| html(name)).collect();
    let mut text = format!(
        "| invariant | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(columns.len())
    );
    let lines = rows.iter().map(|row| {
        let cells = columns.iter().map(|column| {
            let marks: Vec<_> = of_row(*row, Some(column)).into_iter().map(mark).collect();
            format!(" {} |", marks.join(" "))
        });
        let cells: String = cells.collect();
        format!("| {} ({}) |{cells}\n", html(row.0), html(row.1))
    });
    append(&mut text, lines.collect(), MOST_MATRIX);
    text + "\n✅ passed · ❌ failed · 🟥 fails without chaos too · ⚠️ could not be judged · ⬜ not exercised · – not \
            applicable\n\n"
}

/// A table of texts.
fn table<const N: usize>(columns: &[&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("| {} |\n{}|\n", columns.join(" | "), "|---".repeat(N));
    let lines = rows.iter().map(|row| {
        let cells = row.each_ref().map(|cell| html(cell));
        format!("| {} |\n", cells.join(" | "))
    });
    append(&mut text, lines.collect(), MOST_GROUPS);
    text + "\n"
}

fn comparison(report: &Report) -> String {
    let Some(comparison) = &report.run.comparison else {
        return String::new();
    };
    let mut text = format!(
        "**Beside run {}**: score {} → {}\n\n",
        html(&comparison.baseline),
        words::score_or_none(comparison.score_before),
        words::score_or_none(report.run.score)
    );
    for (what, changes) in [
        ("newly failing", &comparison.newly_failing),
        ("fixed", &comparison.fixed),
        ("changed", &comparison.changed),
    ] {
        for change in changes.iter().take(20) {
            text += &format!(
                "- {what}: {} in {}\n",
                html(&change.invariant),
                html(&change.scenario)
            );
        }
        if changes.len() > 20 {
            text += &format!("- {what}: {} more\n", changes.len() - 20);
        }
    }
    if let Some(tests) = words::tests(comparison) {
        text += &format!("- {tests}\n");
    }
    let shifts = table(&words::SHIFT, &words::shifts(comparison));
    text.trim_end().to_owned() + "\n\n" + &shifts
}

/// The failed cells, worst first, limited to this many characters.
fn failures(report: &Report, room: usize) -> String {
    let cells = report.run.cells.iter();
    let mut bad: Vec<_> = cells
        .filter(|cell| matches!(cell.state, CellState::Failed | CellState::Error))
        .collect();
    bad.sort_by_key(|cell| {
        (
            rank(cell.state),
            cell.baseline_failed,
            severity_rank(&cell.severity),
        )
    });
    if bad.is_empty() {
        return String::new();
    }
    let wire = Wire::of(report);
    let mut text = format!("### What went wrong\n\n{}", groups(report));
    let told = bad.into_iter().map(|cell| failure(cell, &wire));
    append(&mut text, told.collect(), room);
    text
}

/// The failed invocations in groups, the largest first.
fn groups(report: &Report) -> String {
    let groups = &report.failure_groups;
    if groups.is_empty() {
        return String::new();
    }
    let mut text =
        "| failed | invariant | cause | scenario | example |\n|---|---|---|---|---|\n".to_owned();
    let lines = groups.iter().map(|group| {
        let scenarios = match &*group.scenarios {
            [] => String::new(),
            [one] => html(one),
            [first, others @ ..] => format!("{} and {} more", html(first), others.len()),
        };
        format!(
            "| {} | {} ({}) | {} | {scenarios} | {} |\n",
            group.invocations,
            html(&group.invariant),
            html(&group.severity),
            html(&group.cause()),
            html(&group.example.prompt),
        )
    });
    append(&mut text, lines.collect(), MOST_GROUPS);
    text.push('\n');
    let shrunk = words::shrunk(&report.run);
    text.extend(
        shrunk
            .iter()
            .map(|one| format!("- <code>{}</code>\n", numbered(&line(one, MOST_TEXT)))),
    );
    text + "\n"
}

/// Appends as many parts as the text has room for, in characters, and the number of omitted ones.
fn append(text: &mut String, parts: Vec<String>, room: usize) {
    let all = parts.len();
    for (number, part) in parts.into_iter().enumerate() {
        // Leaves room for the line about omitted parts, and for what follows.
        if length(text) + length(&part) + 120 > room {
            let left = all - number;
            *text += &format!("\n{left} more in the other forms of this report.\n\n");
            return;
        }
        *text += &part;
    }
}

fn failure(cell: &CellRecord, wire: &Wire<'_>) -> String {
    let mutation = cell.mutation.as_deref();
    let mutation = mutation.map_or_else(String::new, |kind| format!(" ({})", html(kind)));
    let mut text = format!(
        "<details><summary>{} {} in {}{mutation}, {}</summary>\n\n",
        mark(cell),
        html(&cell.invariant),
        html(&cell.scenario),
        html(&cell.severity)
    );
    let stories = wire.stories(cell);
    if let Some(reason) = &cell.reason {
        text += &format!("<code>{}</code>\n\n", numbered(&line(reason, MOST_TEXT)));
    }
    for story in stories.iter().take(MOST_INVOCATIONS) {
        let invocation = story.invocation;
        text += &format!(
            "{}\n{}",
            words::prompt_of(invocation),
            fence(&invocation.prompt, MOST_TEXT)
        );
        for made in words::mutation_of(invocation) {
            text += &format!("<code>{}</code>  \n", numbered(&line(&made, MOST_TEXT)));
        }
        text += &match &invocation.answer {
            Some(answer) => format!("Answer\n{}", fence(answer, MOST_TEXT)),
            None => "No answer.\n\n".to_owned(),
        };
        for injection in story.injections().iter().take(10) {
            text += &format!(
                "- injected: {} ({}) into {}, {}×; the agent got {}\n",
                html(&injection.rule.rule),
                html(&injection.rule.mode),
                html(&injection.on),
                injection.times,
                html(&injection.got)
            );
        }
        text.push('\n');
    }
    if stories.len() > MOST_INVOCATIONS {
        let invocations = count(stories.len() - MOST_INVOCATIONS, "more invocation");
        text += &format!("{invocations} alike.\n\n");
    }
    if let Some(advice) = advice(wire, cell, &stories) {
        text += &format!("**To do:** {}\n\n", plain(&advice));
    }
    if let Some(command) = wire.replay_command(cell) {
        text += &format!("Replay\n{}", fence(&command, MOST_TEXT));
    }
    text + "</details>\n\n"
}

/// The replayed sessions, and the calls in which the agent differs from them.
fn replays(report: &Report) -> String {
    let replays = &report.run.replays;
    if replays.is_empty() {
        return String::new();
    }
    let mut text = "### Replays\n\n".to_owned();
    let sessions = replays.iter().map(|replay| {
        let mut lines = format!("- {}\n", plain(&words::replayed(replay)));
        let other = replay.calls.iter();
        let other = other.filter(|call| call.state != DivergenceState::Same);
        for call in other.take(MOST_CALLS) {
            lines += &format!("  - {}: {}\n", call.state.as_str(), html(&call.call));
            for change in &call.changes {
                let value = |value: &Option<String>| value.as_deref().map_or("–".into(), html);
                lines += &format!(
                    "    - {}: {} → {}\n",
                    html(&change.pointer),
                    value(&change.recorded),
                    value(&change.made)
                );
            }
        }
        lines
    });
    append(&mut text, sessions.collect(), MOST_GROUPS);
    text + "\n"
}

fn last_line(report: &Report) -> String {
    let run = &report.run;
    format!(
        "<sub>Squall {} · {} · run {} · seed {}</sub>\n",
        report.squall_version,
        run.kind.as_str(),
        html(&run.id),
        run.seed
    )
}

/// One line, limited to this many characters.
fn line(text: &str, most: usize) -> String {
    let one_line = text.replace(char::is_whitespace, " ");
    let (kept, left) = cut(one_line.trim(), most);
    if left == 0 {
        kept.to_owned()
    } else {
        format!("{kept}…")
    }
}

/// Code as an HTML element, inside which Markdown is inactive, also in tables, where a `|` ends a cell.
fn html(text: &str) -> String {
    format!("<code>{}</code>", numbered(&line(text, MOST_NAME)))
}

/// A sentence with parts from outside, as text. An invisible joiner prevents that names and numbers become mentions
/// and issue links.
fn plain(text: &str) -> String {
    let text = line(text, MOST_TEXT);
    let quiet = text.replace('@', "@\u{2060}").replace('#', "#\u{2060}");
    numbered(&quiet)
}

/// The text with all special characters of Markdown, HTML and GitHub as character references.
fn numbered(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let ends_word = characters.peek().is_none_or(|next| *next == ' ');
        match character {
            ' ' | '-' | ',' | ';' | '?' | '%' | '"' | '\'' | '(' | ')' | '/' | '+' => {
                escaped.push(character);
            }
            ':' if ends_word => escaped.push(character),
            // After a digit it would start a list item.
            '.' if ends_word && before.is_alphabetic() => escaped.push(character),
            mark if mark.is_ascii_punctuation() => {
                escaped.push_str(&format!("&#{};", u32::from(mark)));
            }
            other => escaped.push(other),
        }
        before = character;
    }
    escaped
}

/// A fenced block, limited to this many characters. Its fence is longer than any in the text.
fn fence(text: &str, most: usize) -> String {
    let (kept, left) = cut(text, most);
    let ticks = "`".repeat(longest_run(kept).max(2) + 1);
    let more = if left == 0 {
        String::new()
    } else {
        format!("({left} bytes more)\n\n")
    };
    format!("\n{ticks}text\n{kept}\n{ticks}\n\n{more}")
}

/// The longest sequence of backticks.
fn longest_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}
