//! Check digits and other tests that reject numbers that only look like personal data.

use crate::patterns::{digits, has_luhn};

/// The test of a candidate.
#[derive(Clone, Copy)]
pub(super) enum NumberCheck {
    /// No test: the shape is sufficient.
    Any,
    /// Its last digit is Luhn's (ISO/IEC 7812-1).
    Luhn,
    /// Check digits: the weights of the preceding characters, and the digit for each remainder of their sum. The
    /// modulus is the number of remainders.
    Digits(&'static [(&'static [u32], &'static str)]),
    By(fn(&str) -> bool),
}

impl NumberCheck {
    pub(super) fn holds(self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Luhn => has_luhn(&digits(text)) && !is_one_digit(text),
            Self::Digits(checks) => has_check_digits(text, checks) && !is_one_digit(text),
            Self::By(check) => check(text),
        }
    }
}

/// Whether a number is one digit repeated.
fn is_one_digit(text: &str) -> bool {
    digits(text).windows(2).all(|pair| pair[0] == pair[1])
}

fn weighted(values: &[u32], weights: &[u32]) -> u32 {
    values
        .iter()
        .zip(weights)
        .map(|(value, weight)| value * weight)
        .sum()
}

fn number(text: &str) -> u64 {
    let digits = digits(text).into_iter();
    digits.fold(0, |number, digit| number * 10 + u64::from(digit))
}

/// A number shorter than the weights uses the last ones.
fn has_check_digits(text: &str, checks: &[(&[u32], &str)]) -> bool {
    // In numbers of foreigners X, Y and Z mean 0, 1 and 2 (Spain), T and G mean 4 (Singapore).
    let value = |c: &char| match c {
        'Y' => 1,
        'Z' => 2,
        'T' | 'G' => 4,
        c => c.to_digit(10).unwrap_or(0),
    };
    let plain: Vec<char> = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let values: Vec<u32> = plain.iter().map(value).collect();
    checks.iter().all(|(weights, remainders)| {
        let place = weights.len().min(plain.len().saturating_sub(1));
        let sum = weighted(&values[..place], &weights[weights.len() - place..]) as usize;
        let expected = remainders.chars().nth(sum % remainders.len());
        expected == plain.get(place).map(char::to_ascii_uppercase)
    })
}

pub(super) fn is_email(text: &str) -> bool {
    let (name, host) = text.rsplit_once('@').unwrap_or_default();
    // Domains reserved by RFC 2606 belong to no person.
    let reserved = [".example", ".test", ".invalid", ".localhost"];
    let host = host.to_ascii_lowercase();
    !name.starts_with('.')
        && !name.ends_with('.')
        && !reserved.iter().any(|end| host.ends_with(end))
}

/// ISO 13616: modulus 97.
pub(super) fn is_iban(text: &str) -> bool {
    let plain: Vec<u64> = (text.chars().filter_map(|c| c.to_digit(36)))
        .map(u64::from)
        .collect();
    let rest = |rest: u64, value: &u64| (rest * if *value < 10 { 10 } else { 100 } + value) % 97;
    let (begin, end) = plain.split_at(plain.len().min(4));
    (15..=34).contains(&plain.len()) && end.iter().chain(begin).fold(0, rest) == 1
}

/// An identifier has letters and at least three digits; ordinary words and numbers do not.
pub(super) fn mixes_letters_and_digits(text: &str) -> bool {
    digits(text).len() >= 3 && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

pub(super) fn has_a_digit(text: &str) -> bool {
    !digits(text).is_empty()
}

/// Rejects numbers that the Social Security Administration never assigns.
pub(super) fn is_ssn(text: &str) -> bool {
    let number = number(text);
    let (area, group, serial) = (number / 1_000_000, number / 10_000 % 100, number % 10_000);
    !matches!(area, 0 | 666 | 900..) && group != 0 && serial != 0 && number != 78_051_120
}

pub(super) fn is_nino(text: &str) -> bool {
    !["BG", "GB", "KN", "NK", "NT", "TN", "ZZ"].contains(&&text[..2])
}

/// Verhoeff's check digit, from the dihedral group of order ten.
pub(super) fn is_verhoeff(text: &str) -> bool {
    const STEP: [u32; 10] = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4];
    let multiplied = |a: u32, b: u32| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a + 5 - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let digits = digits(text);
    let check = digits
        .iter()
        .rev()
        .enumerate()
        .fold(0, |check, (place, digit)| {
            let stepped = (0..place % 8).fold(*digit, |digit, _| STEP[digit as usize]);
            multiplied(check, stepped)
        });
    check == 0 && !is_one_digit(text)
}

pub(super) fn is_insee(text: &str) -> bool {
    let plain = text
        .replace(' ', "")
        .replacen("2A", "19", 1)
        .replacen("2B", "18", 1);
    let number = number(&plain);
    97 - number / 100 % 97 == number % 100
}

pub(super) fn is_codice_fiscale(text: &str) -> bool {
    #[rustfmt::skip]
    const ODD: [u32; 26] =
        [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23];
    let values = text.chars().filter_map(|c| c.to_digit(36));
    let values: Vec<u32> = values.map(|it| it.checked_sub(10).unwrap_or(it)).collect();
    let places = values[..15].iter().enumerate();
    let sum: u32 = places
        .map(|(place, value)| {
            if place % 2 == 0 {
                ODD[*value as usize]
            } else {
                *value
            }
        })
        .sum();
    sum % 26 == values[15]
}

pub(super) fn is_belgian(text: &str) -> bool {
    let number = number(text);
    let (body, check) = (number / 100, number % 100);
    97 - body % 97 == check || 97 - (2_000_000_000 + body) % 97 == check
}

pub(super) fn is_henkilotunnus(text: &str) -> bool {
    let letters = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let number = number(&text[..6]) * 1000 + number(&text[7..10]);
    text.as_bytes()[10] == letters[(number % 31) as usize]
}

pub(super) fn is_nric(text: &str) -> bool {
    const WEIGHTS: &[u32] = &[1, 2, 7, 6, 5, 4, 3, 2];
    let is_citizen = text.starts_with(['S', 'T']);
    let letters = if is_citizen {
        "JZIHGFEDCBA"
    } else {
        "XWUTRQPNMLK"
    };
    has_check_digits(text, &[(WEIGHTS, letters)])
}

pub(super) fn is_hkid(text: &str) -> bool {
    let mut values: Vec<u32> = text.chars().filter_map(|c| c.to_digit(36)).collect();
    if values.len() == 8 {
        values.insert(0, 36);
    }
    weighted(&values, &[9, 8, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)
}

pub(super) fn is_taiwanese(text: &str) -> bool {
    let place = "ABCDEFGHJKLMNPQRSTUVXYWZIO".find(&text[..1]).unwrap_or(0) + 10;
    let sum = weighted(&digits(text), &[8, 7, 6, 5, 4, 3, 2, 1, 1]) as usize;
    (place / 10 + place % 10 * 9 + sum).is_multiple_of(10)
}

/// ISO 7064, modulus 11 and 10.
pub(super) fn is_steuer_id(text: &str) -> bool {
    let digits = digits(text);
    let product = digits[..10].iter().fold(10, |product, digit| {
        let sum = (digit + product) % 10;
        if sum == 0 { 20 % 11 } else { sum * 2 % 11 }
    });
    (11 - product) % 10 == digits[10]
}

/// Luhn's digit, with the prefix of United States health numbers.
pub(super) fn is_npi(text: &str) -> bool {
    has_luhn(&digits(&format!("80840{text}")))
}

/// Letters of the surname come before a birth date.
pub(super) fn is_uk_licence(text: &str) -> bool {
    let date = number(&text[5..11]);
    let (month, day) = (date / 1000 % 100 % 50, date / 10 % 100);
    !text.starts_with('9') && (1..=12).contains(&month) && (1..=31).contains(&day)
}

pub(super) fn is_mac(text: &str) -> bool {
    let plain: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    plain.windows(2).any(|pair| pair[0] != pair[1])
}

/// An address in public use: not private, local, reserved or for documentation.
pub(super) fn is_public_v4(text: &str) -> bool {
    let Ok(address) = text.parse::<std::net::Ipv4Addr>() else {
        return false;
    };
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    // Version numbers look like 1.2.3.4: all of their parts are small.
    let is_version = address.octets().iter().all(|part| *part < 20);
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || is_shared
        || is_version
        || matches!(first, 0 | 224..))
}

pub(super) fn is_public_v6(text: &str) -> bool {
    let Ok(address) = text.parse::<std::net::Ipv6Addr>() else {
        return false;
    };
    let [first, second, ..] = address.segments();
    // 2000::/3 is assigned; 2001:db8::/32 is for documentation.
    (first & 0xe000) == 0x2000 && (first, second) != (0x2001, 0xdb8)
}

pub(super) fn are_coordinates(text: &str) -> bool {
    let (latitude, longitude) = text.split_once(',').unwrap_or_default();
    let degrees = |text: &str| text.trim().parse::<f64>().unwrap_or(f64::NAN).abs();
    degrees(latitude) <= 90.0 && degrees(longitude) <= 180.0
}

/// ISO 3779, with the check digit of North America.
pub(super) fn is_vin(text: &str) -> bool {
    const VALUES: &[u8; 23] = b"12345678123457923456789";
    let letter = |c: char| {
        "ABCDEFGHJKLMNPRSTUVWXYZ"
            .find(c)
            .map(|at| VALUES[at] - b'0')
    };
    let value = |c: char| c.to_digit(10).or_else(|| letter(c).map(u32::from));
    let values: Vec<u32> = text.chars().filter_map(value).collect();
    let weights = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    let check = b"0123456789X"[(weighted(&values, &weights) % 11) as usize];
    text.as_bytes().get(8) == Some(&check) && text.bytes().any(|it| it.is_ascii_alphabetic())
}

/// E.164: at most fifteen digits.
pub(super) fn is_international(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}

/// No area or exchange code ends in 11.
pub(super) fn is_nanp(text: &str) -> bool {
    let digits = digits(text);
    digits[1..3] != [1, 1] && digits[4..6] != [1, 1] && !is_one_digit(text)
}

pub(super) fn is_phone_length(text: &str) -> bool {
    (7..=15).contains(&digits(text).len())
}
