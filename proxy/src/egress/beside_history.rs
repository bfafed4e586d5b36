//! Finds the members of a model call that are outside of its history, such as user and metadata.
//!
//! The body of a model call may repeat tool results; members that no model reads must not. They are
//! identified by the members of the outermost object, as the bytes pass.

use squall_dialects::endpoint::{LONGEST_BESIDE_HISTORY, is_beside_history};

/// Finds those members in a JSON body. For other bodies the result is undefined, but it never
/// fails.
#[derive(Debug, Default)]
pub(super) struct BesideHistory {
    depth: usize,
    text: StringPosition,
    /// The outermost value is an object.
    in_object: bool,
    /// The next string is a member's name.
    awaits_name: bool,
    /// The name so far, if it is short enough to match.
    name: Vec<u8>,
    /// Inside the value of such a member.
    open: bool,
}

/// Position relative to a string.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum StringPosition {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

/// A piece of such a member.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MemberPiece<'a> {
    /// Part of the member's value.
    Of(&'a [u8]),
    /// The end of the member.
    End,
}

impl BesideHistory {
    /// Reads the next bytes of the body.
    pub(super) fn push<'a>(&mut self, bytes: &'a [u8], mut found: impl FnMut(MemberPiece<'a>)) {
        let mut begin = 0;
        for (at, byte) in bytes.iter().enumerate() {
            let was_open = self.open;
            self.step(*byte);
            match (was_open, self.open) {
                (false, true) => begin = at + 1,
                (true, false) => {
                    found(MemberPiece::Of(&bytes[begin..at]));
                    found(MemberPiece::End);
                }
                (true, true) | (false, false) => {}
            }
        }
        if self.open && begin < bytes.len() {
            found(MemberPiece::Of(&bytes[begin..]));
        }
    }

    fn step(&mut self, byte: u8) {
        match (self.text, byte) {
            (StringPosition::Escaped, _) => self.text = StringPosition::Inside,
            (StringPosition::Inside, b'\\') => self.text = StringPosition::Escaped,
            (StringPosition::Inside, b'"') => self.text = StringPosition::Outside,
            (StringPosition::Inside, _) => {}
            (StringPosition::Outside, _) => return self.structure(byte),
        }
        let of_name = self.awaits_name && self.depth == 1 && self.text == StringPosition::Inside;
        if of_name && self.name.len() <= LONGEST_BESIDE_HISTORY {
            self.name.push(byte);
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.text = StringPosition::Inside;
                if self.awaits_name && self.depth == 1 {
                    self.name.clear();
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                if self.depth == 1 {
                    self.in_object = byte == b'{';
                    self.awaits_name = self.in_object;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.open &= self.depth > 0;
            }
            b':' if self.depth == 1 && self.awaits_name => {
                self.awaits_name = false;
                self.open = is_beside_history(&self.name);
            }
            b',' if self.depth == 1 => {
                self.awaits_name = self.in_object;
                self.open = false;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(body: &str, size: usize) -> Vec<String> {
        let mut members = vec![Vec::new()];
        let mut beside = BesideHistory::default();
        for chunk in body.as_bytes().chunks(size) {
            beside.push(chunk, |piece| match piece {
                MemberPiece::Of(bytes) => members.last_mut().expect("one").extend_from_slice(bytes),
                MemberPiece::End => members.push(Vec::new()),
            });
        }
        let texts = members.into_iter().map(String::from_utf8);
        texts
            .map(|text| text.expect("cut between characters").trim().to_owned())
            .filter(|text| !text.is_empty())
            .collect()
    }

    #[test]
    fn only_what_no_model_reads_is_found_however_the_body_is_cut() {
        for (body, expected) in [
            (
                r#"{"messages":[{"content":"a","user":"b"}],"user" : "c"}"#,
                &[r#""c""#][..],
            ),
            (
                r#"{ "metadata": {"user":"a","b":["x",{"y":1}]}, "user":"d\",x","tools":[{"metadata":1}],"model":"m" }"#,
                &[r#"{"user":"a","b":["x",{"y":1}]}"#, r#""d\",x""#, r#""m""#],
            ),
            (r#"{"input":"\"user\":\"a\"","users":"b","use":"c"}"#, &[]),
            (r#"[{"user":"a"}]"#, &[]),
            (
                r#"{"a_name_that_is_longer_than_all_of_them_are":1,"user":"é"}"#,
                &["\"é\""],
            ),
            ("user", &[]),
            ("}}],:", &[]),
        ] {
            for size in [1, 2, 3, 1000] {
                assert_eq!(beside(body, size), expected, "{body} by {size}");
            }
        }
    }
}
