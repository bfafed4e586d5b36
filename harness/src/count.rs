//! Numbers with nouns.

/// A number with its noun: `1 retry`, `2 retries`.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// How often: `once`, `2 times`.
pub(crate) fn times(number: usize) -> String {
    match number {
        1 => "once".to_owned(),
        more => format!("{more} times"),
    }
}

/// An ordinal number: `1st`, `2nd`, `11th`.
pub(crate) fn nth(number: usize) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::{count, nth};

    #[test]
    fn an_ordinal_has_its_ending() {
        let told = [1, 2, 3, 4, 11, 12, 13, 21, 112].map(nth).join(" ");
        assert_eq!(told, "1st 2nd 3rd 4th 11th 12th 13th 21st 112th");
    }

    #[test]
    fn a_noun_follows_its_number() {
        let told = [
            count(1_u64, "retry"),
            count(0_u64, "retry"),
            count(2_usize, "fault"),
        ];
        assert_eq!(told, ["1 retry", "0 retries", "2 faults"]);
    }
}
