//! Output for people: colours, tables, and one line per exchange.

pub(crate) mod exchange;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod summary;
pub(crate) mod table;

use squall_harness::report::shown;

/// Foreign text for a terminal: one line of at most `most` characters. Control characters and characters that
/// change the text direction are made visible.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most));
    for (count, character) in shown(text.trim()).chars().enumerate() {
        if count == most {
            line.push('…');
            break;
        }
        line.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    line
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn nothing_from_outside_moves_a_cursor() {
        assert_eq!(clean(" a\x1b[31mb\r\nc ", 10), "a␛[31mb c");
        assert_eq!(clean("whole", 5), "whole");
        assert_eq!(clean("\u{202e}evil", 20), "\\u{202e}evil");
    }
}
