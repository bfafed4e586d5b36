//! What people read: colour, tables, one line per exchange.

pub(crate) mod exchange;
pub(crate) mod output;
pub(crate) mod paint;
pub(crate) mod progress;
pub(crate) mod run;
pub(crate) mod summary;
pub(crate) mod table;

/// Text from outside, fit for a terminal: on one line, no control characters (a colour code among them),
/// at most so many characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(most));
    for (count, character) in text.trim().chars().enumerate() {
        if count == most {
            shown.push('…');
            break;
        }
        shown.push(if character.is_control() {
            ' '
        } else {
            character
        });
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn nothing_from_outside_moves_a_cursor() {
        assert_eq!(clean(" a\x1b[31mb\r\nc ", 9), "a [31mb  …");
        assert_eq!(clean("whole", 5), "whole");
    }
}
