//! What formats of secrets have to tell them by: check digits and sums.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Digits of base 62 as GitHub and npm write it.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Whether the last six characters are the CRC-32 of the thirty before, in base 62. Source: GitHub,
/// "Behind GitHub's new authentication token formats".
pub(super) fn has_crc(body: &str) -> bool {
    let Some((random, sum)) = body.split_at_checked(30) else {
        return false;
    };
    let mut rest = crc32(random.as_bytes());
    let mut expected = [b'0'; 6];
    for digit in expected.iter_mut().rev() {
        *digit = BASE62[(rest % 62) as usize];
        rest /= 62;
    }
    sum.as_bytes() == expected
}

/// CRC-32 as in zip, bit by bit: it is asked of few bytes.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !crc
}

/// Whether the first part of a JSON Web Token is a header that names an algorithm.
pub(super) fn is_jwt_header(part: &str) -> bool {
    let header = URL_SAFE_NO_PAD.decode(part.trim_end_matches('='));
    let header = header
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    header.is_some_and(|header: serde_json::Value| header["alg"].is_string())
}

/// Whether digits are the number of a payment card: of a length and with a beginning that a network
/// gives out, and with Luhn's check digit (ISO/IEC 7812-1).
pub(super) fn is_card(digits: &[u8]) -> bool {
    let number = |count: usize| {
        let first = digits.iter().take(count);
        first.fold(0_u32, |number, digit| number * 10 + u32::from(*digit))
    };
    let known = match digits.len() {
        14 => matches!(number(3), 300..=305 | 309) || matches!(number(2), 36 | 38 | 39),
        15 => matches!(number(2), 34 | 37),
        16 => {
            number(1) == 4
                || matches!(number(2), 51..=55 | 65)
                || matches!(number(4), 2221..=2720 | 3528..=3589 | 6011)
                || matches!(number(3), 644..=649)
        }
        _ => false,
    };
    known && has_luhn(digits)
}

fn has_luhn(digits: &[u8]) -> bool {
    let places = digits.iter().rev().enumerate();
    let sum: u32 = places
        .map(|(place, digit)| match (place % 2, u32::from(*digit) * 2) {
            (0, double) => double / 2,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_formats() {
        assert_eq!(
            crc32(b"123456789"),
            0xcbf4_3926,
            "the check value of CRC-32"
        );
        // A token of GitHub's documentation, revoked; others made by the rule in another language.
        for body in [
            "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17",
            "Ky9Pf34qY6Nb3wWD25RQ4F5ZR3qa7y3gm1IL",
            "CN6Zj4a3dDVhYRnKTbxTNJFoBinF5a42GyMy",
        ] {
            assert!(has_crc(body), "{body}");
            for at in 0..body.len() {
                let mut other = body.as_bytes().to_vec();
                other[at] = if other[at] == b'x' { b'y' } else { b'x' };
                let other = String::from_utf8(other).expect("ascii");
                assert!(!has_crc(&other), "{other}");
            }
        }
        for body in ["", "short", "é".repeat(30).as_str()] {
            assert!(!has_crc(body));
        }
    }

    #[test]
    fn cards_have_a_network_a_length_and_a_check_digit() {
        let digits = |text: &str| -> Vec<u8> { text.bytes().map(|byte| byte - b'0').collect() };
        for (number, is) in [
            // Numbers that networks and payment services publish for tests.
            ("4242424242424242", true),
            ("5555555555554444", true),
            ("2223003122003222", true),
            ("378282246310005", true),
            ("6011111111111117", true),
            ("3566002020360505", true),
            ("36227206271667", true),
            ("4242424242424243", false),
            ("1763812345678901", false),
            ("4242424242424", false),
            ("9999999999999995", false),
            ("", false),
        ] {
            assert_eq!(is_card(&digits(number)), is, "{number}");
        }
    }

    #[test]
    fn a_token_s_header_names_an_algorithm() {
        assert!(is_jwt_header("eyJhbGciOiJIUzI1NiJ9"));
        assert!(!is_jwt_header("eyJhIjoxfQ"));
        assert!(!is_jwt_header("eyJhbGciOiJIUzI1NiJ"));
    }
}
