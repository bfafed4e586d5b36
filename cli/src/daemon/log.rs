//! The log, on stderr.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogFormat;
use crate::config::unknown;
use crate::failure::Failure;
use crate::render::paint::Paint;

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Starts the log. `level` is one word for Squall's own messages, or directives per module.
pub(crate) fn start(level: &str, format: LogFormat) -> Result<(), Failure> {
    let registry = tracing_subscriber::registry().with(targets(level)?);
    let layer = tracing_subscriber::fmt::layer();
    let started = match format {
        LogFormat::Json => registry
            .with(
                layer
                    .json()
                    .flatten_event(true)
                    .with_writer(|| LogFormat::Json),
            )
            .try_init(),
        LogFormat::Text => {
            let layer = layer.with_ansi(Paint::stderr().is_on()).with_target(false);
            registry
                .with(layer.with_writer(|| LogFormat::Text))
                .try_init()
        }
    };
    started.map_err(|error| Failure::could_not("the log", error))
}

/// The messages to write.
fn targets(level: &str) -> Result<Targets, Failure> {
    if level.contains(['=', ',']) {
        return level.parse().map_err(|error| {
            Failure::Usage(format!(
                "--log-level: `{level}`: {error}; write `info,squall_proxy=debug`"
            ))
        });
    }
    if let Ok(level) = level.to_ascii_lowercase().parse::<LevelFilter>() {
        // Messages of other crates matter only as warnings or errors.
        let others = LevelFilter::WARN.min(level);
        return Ok(Targets::new()
            .with_target("squall", level)
            .with_default(others));
    }
    Err(Failure::Usage(format!(
        "--log-level: {}",
        unknown("level", level, &LEVELS)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_word_or_directives() {
        for (written, complaint) in [
            ("info", None),
            ("DEBUG", None),
            ("info,squall_proxy=trace", None),
            ("inof", Some("did you mean `info`?")),
            ("loud", Some("expected one of `error`")),
            ("squall=loud", Some("squall=loud")),
        ] {
            match (targets(written), complaint) {
                (Ok(_), None) => {}
                (Err(found), Some(expected)) => {
                    assert!(found.to_string().contains(expected), "{found}");
                }
                (found, expected) => panic!("{written}: {found:?}, not {expected:?}"),
            }
        }
    }
}
