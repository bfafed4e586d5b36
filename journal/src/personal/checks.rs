//! Check digits and other tests that tell a number from one that only looks like it.

/// The digits of a text, in order.
fn digits(text: &str) -> Vec<u32> {
    text.chars().filter_map(|c| c.to_digit(10)).collect()
}

fn weighted(digits: &[u32], weights: &[u32]) -> u32 {
    digits.iter().zip(weights).map(|(d, w)| d * w).sum()
}

fn all_alike(digits: &[u32]) -> bool {
    digits.windows(2).all(|pair| pair[0] == pair[1])
}

/// Sequence, then its remainder by 11 as a digit, with 10 and 11 as `0`.
fn mod_11(digits: &[u32], weights: &[u32]) -> u32 {
    match 11 - weighted(digits, weights) % 11 {
        10 | 11 => 0,
        check => check,
    }
}

/// Luhn's check digit (ISO/IEC 7812-1), and not one digit repeated.
pub(super) fn is_luhn(text: &str) -> bool {
    let digits = digits(text);
    !all_alike(&digits) && luhn(&digits)
}

fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else {
        return false;
    };
    // RFC 2606: nobody's.
    let reserved = [".example", ".test", ".invalid", ".localhost"];
    let host = host.to_ascii_lowercase();
    !name.starts_with('.')
        && !name.ends_with('.')
        && !reserved.iter().any(|end| host.ends_with(end))
}

/// ISO 13616: the country's length, and 97.
pub(super) fn is_iban(text: &str) -> bool {
    let plain: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    if !(15..=34).contains(&plain.len()) {
        return false;
    }
    let moved = plain[4..].iter().chain(&plain[..4]);
    let rest = moved.fold(0_u64, |rest, c| {
        let value = u64::from(c.to_digit(36).unwrap_or(0));
        if value < 10 {
            (rest * 10 + value) % 97
        } else {
            (rest * 100 + value) % 97
        }
    });
    rest == 1
}

/// A number some network gives out, with Luhn's digit.
pub(super) fn is_card(text: &str) -> bool {
    let digits = digits(text);
    (14..=16).contains(&digits.len()) && is_luhn(text)
}

pub(super) fn is_aba(text: &str) -> bool {
    let digits = digits(text);
    weighted(&digits, &[3, 7, 1, 3, 7, 1, 3, 7, 1]).is_multiple_of(10) && !all_alike(&digits)
}

/// A word of one kind of letter only is a word.
pub(super) fn mixes_letters_and_digits(text: &str) -> bool {
    let count = text.chars().filter(char::is_ascii_digit).count();
    count >= 3 && text.chars().any(|c| c.is_ascii_alphabetic())
}

/// Numbers that the Social Security Administration has never given out are none.
pub(super) fn is_ssn(text: &str) -> bool {
    let digits = digits(text);
    let number = |range: std::ops::Range<usize>| digits[range].iter().fold(0, |n, d| n * 10 + d);
    let (area, group, serial) = (number(0..3), number(3..5), number(5..9));
    !matches!(area, 0 | 666 | 900..)
        && group != 0
        && serial != 0
        && (area, group, serial) != (78, 5, 1120)
}

pub(super) fn is_nino(text: &str) -> bool {
    !["BG", "GB", "KN", "NK", "NT", "TN", "ZZ"].contains(&&text[..2])
}

/// Verhoeff's check digit, by the dihedral group of order ten.
pub(super) fn is_verhoeff(text: &str) -> bool {
    const STEPS: [[u32; 10]; 8] = [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4],
        [5, 8, 0, 3, 7, 9, 6, 1, 4, 2],
        [8, 9, 1, 6, 0, 4, 3, 5, 2, 7],
        [9, 4, 5, 3, 1, 2, 6, 8, 7, 0],
        [4, 2, 8, 6, 5, 7, 3, 9, 0, 1],
        [2, 7, 9, 3, 8, 0, 6, 4, 1, 5],
        [7, 0, 4, 6, 9, 1, 3, 2, 5, 8],
    ];
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
            multiplied(check, STEPS[place % 8][*digit as usize])
        });
    check == 0 && !all_alike(&digits)
}

pub(super) fn is_dni(text: &str) -> bool {
    const LETTERS: &[u8; 23] = b"TRWAGMYFPDXBNJZSQVHLCKE";
    let plain = text.replace('-', "").replacen('X', "0", 1);
    let plain = match plain.as_bytes()[0] {
        b'Y' => plain.replacen('Y', "1", 1),
        b'Z' => plain.replacen('Z', "2", 1),
        _ => plain,
    };
    let (number, letter) = plain.split_at(plain.len() - 1);
    let number: Option<usize> = number.parse().ok();
    number.is_some_and(|number| LETTERS[number % 23] == letter.as_bytes()[0])
}

pub(super) fn is_insee(text: &str) -> bool {
    let plain: String = text.chars().filter(|c| *c != ' ').collect();
    let corsican = plain.replacen("2A", "19", 1).replacen("2B", "18", 1);
    let (number, key) = corsican.split_at(corsican.len() - 2);
    match (number.parse::<u64>(), key.parse::<u64>()) {
        (Ok(number), Ok(key)) => 97 - number % 97 == key,
        _ => false,
    }
}

pub(super) fn is_codice_fiscale(text: &str) -> bool {
    const ODD: [u32; 36] = [
        1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3,
        6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
    ];
    let values: Vec<u32> = text.chars().filter_map(|c| c.to_digit(36)).collect();
    let sum: u32 = values[..15]
        .iter()
        .enumerate()
        .map(|(place, value)| match (place % 2, value) {
            (0, value) => ODD[*value as usize],
            (_, value) if *value >= 10 => value - 10,
            (_, value) => *value,
        })
        .sum();
    sum % 26 + 10 == values[15]
}

pub(super) fn is_bsn(text: &str) -> bool {
    let digits = digits(text);
    let sum = weighted(&digits[..8], &[9, 8, 7, 6, 5, 4, 3, 2]);
    !all_alike(&digits) && sum % 11 == digits[8]
}

pub(super) fn is_belgian(text: &str) -> bool {
    let digits = digits(text);
    let number = |part: &[u32]| part.iter().fold(0_u64, |n, d| n * 10 + u64::from(*d));
    let (body, check) = (number(&digits[..9]), number(&digits[9..]));
    let since_2000 = 2_000_000_000 + body;
    97 - body % 97 == check || 97 - since_2000 % 97 == check
}

pub(super) fn is_pesel(text: &str) -> bool {
    let digits = digits(text);
    let sum = weighted(&digits[..10], &[1, 3, 7, 9, 1, 3, 7, 9, 1, 3]);
    (10 - sum % 10) % 10 == digits[10] && !all_alike(&digits)
}

pub(super) fn is_personnummer(text: &str) -> bool {
    let digits = digits(text);
    luhn(&digits[digits.len() - 10..])
}

pub(super) fn is_henkilotunnus(text: &str) -> bool {
    const LETTERS: &[u8; 31] = b"0123456789ABCDEFHJKLMNPRSTUVWXY";
    let number: Option<usize> = format!("{}{}", &text[..6], &text[7..10]).parse().ok();
    number.is_some_and(|number| LETTERS[number % 31] == text.as_bytes()[10])
}

pub(super) fn is_fodselsnummer(text: &str) -> bool {
    let digits = digits(text);
    let first = 11 - weighted(&digits[..9], &[3, 7, 6, 1, 8, 9, 4, 5, 2]) % 11;
    let second = 11 - weighted(&digits[..10], &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11;
    let month = digits[2] * 10 + digits[3];
    first % 11 == digits[9] && second % 11 == digits[10] && (1..=12).contains(&(month % 40))
}

pub(super) fn is_cpf(text: &str) -> bool {
    let digits = digits(text);
    let first = mod_11(&digits[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]);
    let second = mod_11(&digits[..10], &[11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    !all_alike(&digits) && digits[9] == first && digits[10] == second
}

pub(super) fn is_cnpj(text: &str) -> bool {
    let digits = digits(text);
    let first = mod_11(&digits[..12], &[5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]);
    let second = mod_11(&digits[..13], &[6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]);
    !all_alike(&digits) && digits[12] == first && digits[13] == second
}

pub(super) fn is_rut(text: &str) -> bool {
    let Some((body, check)) = text.rsplit_once('-') else {
        return false;
    };
    let sum: u32 = digits(body)
        .iter()
        .rev()
        .zip([2, 3, 4, 5, 6, 7].into_iter().cycle())
        .map(|(digit, weight)| digit * weight)
        .sum();
    let expected = match 11 - sum % 11 {
        11 => "0".to_owned(),
        10 => "K".to_owned(),
        check => check.to_string(),
    };
    check.eq_ignore_ascii_case(&expected)
}

pub(super) fn is_resident_id(text: &str) -> bool {
    const WEIGHTS: [u32; 17] = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
    let sum = weighted(&digits(&text[..17]), &WEIGHTS);
    let expected = b"10X98765432"[(sum % 11) as usize];
    text.as_bytes()[17].to_ascii_uppercase() == expected
}

pub(super) fn is_rrn(text: &str) -> bool {
    let digits = digits(text);
    let sum = weighted(&digits[..12], &[2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5]);
    (11 - sum % 11) % 10 == digits[12]
}

pub(super) fn is_nric(text: &str) -> bool {
    let first = text.as_bytes()[0];
    let offset = if matches!(first, b'T' | b'G') { 4 } else { 0 };
    let letters: &[u8; 11] = match first {
        b'S' | b'T' => b"JZIHGFEDCBA",
        _ => b"XWUTRQPNMLK",
    };
    let sum = offset + weighted(&digits(&text[1..8]), &[2, 7, 6, 5, 4, 3, 2]);
    letters[(sum % 11) as usize] == text.as_bytes()[8]
}

pub(super) fn is_hkid(text: &str) -> bool {
    let plain: Vec<u32> = text.chars().filter_map(|c| c.to_digit(36)).collect();
    let (body, check) = plain.split_at(plain.len() - 1);
    let mut values = body.to_vec();
    if values.len() == 7 {
        values.insert(0, 36);
    }
    let sum = weighted(&values, &[9, 8, 7, 6, 5, 4, 3, 2]);
    (sum + check[0]).is_multiple_of(11)
}

pub(super) fn is_taiwanese(text: &str) -> bool {
    const PLACES: &[u8; 26] = b"ABCDEFGHJKLMNPQRSTUVXYWZIO";
    let first = text.as_bytes()[0];
    let Some(place) = PLACES.iter().position(|letter| *letter == first) else {
        return false;
    };
    let place = u32::try_from(place).unwrap_or(0) + 10;
    let digits = digits(&text[1..]);
    let sum = place / 10 + place % 10 * 9 + weighted(&digits, &[8, 7, 6, 5, 4, 3, 2, 1, 1]);
    sum.is_multiple_of(10)
}

pub(super) fn is_kimlik(text: &str) -> bool {
    let digits = digits(text);
    let odd: u32 = digits[..9].iter().step_by(2).sum();
    let even: u32 = digits[1..8].iter().step_by(2).sum();
    let tenth = (odd * 7 + 100 - even) % 10;
    let eleventh = digits[..10].iter().sum::<u32>() % 10;
    digits[9] == tenth && digits[10] == eleventh
}

pub(super) fn is_cuit(text: &str) -> bool {
    let digits = digits(text);
    let expected = match 11 - weighted(&digits[..10], &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]) % 11 {
        11 => 0,
        10 => 9,
        check => check,
    };
    digits[10] == expected
}

pub(super) fn is_tfn(text: &str) -> bool {
    let digits = digits(text);
    weighted(&digits, &[1, 4, 3, 7, 5, 8, 6, 9, 10]).is_multiple_of(11) && !all_alike(&digits)
}

/// ISO 7064, modulus 11 and 10.
pub(super) fn is_steuer_id(text: &str) -> bool {
    let digits = digits(text);
    let product = digits[..10].iter().fold(10, |product, digit| {
        let sum = match (digit + product) % 10 {
            0 => 10,
            sum => sum,
        };
        sum * 2 % 11
    });
    (11 - product) % 10 == digits[10]
}

pub(super) fn is_nif(text: &str) -> bool {
    let digits = digits(text);
    mod_11(&digits[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) == digits[8]
}

pub(super) fn is_nhs(text: &str) -> bool {
    let digits = digits(text);
    let check = 11 - weighted(&digits[..9], &[10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11;
    !all_alike(&digits) && check % 11 == digits[9]
}

/// Luhn's, with the prefix of United States health numbers.
pub(super) fn is_npi(text: &str) -> bool {
    luhn(&digits(&format!("80840{text}")))
}

pub(super) fn is_dea(text: &str) -> bool {
    let digits = digits(&text[2..]);
    let sum = weighted(&digits[..6], &[1, 2, 1, 2, 1, 2]);
    sum % 10 == digits[6] && !all_alike(&digits)
}

pub(super) fn is_medicare(text: &str) -> bool {
    let digits = digits(text);
    weighted(&digits[..8], &[1, 3, 7, 9, 1, 3, 7, 9]) % 10 == digits[8]
}

/// The surname's letters come first, and then a birth date.
pub(super) fn is_uk_licence(text: &str) -> bool {
    let date = digits(&text[5..11]);
    let month = (date[1] * 10 + date[2]) % 50;
    let day = date[3] * 10 + date[4];
    text.as_bytes()[0] != b'9' && (1..=12).contains(&month) && (1..=31).contains(&day)
}

pub(super) fn is_mac(text: &str) -> bool {
    let plain: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    plain.windows(2).any(|pair| pair[0] != pair[1])
}

/// An address that somebody has: not private, local, reserved or for documentation.
pub(super) fn is_public_v4(text: &str) -> bool {
    let Ok(address) = text.parse::<std::net::Ipv4Addr>() else {
        return false;
    };
    let [first, second, ..] = address.octets();
    let shared = first == 100 && (64..128).contains(&second);
    let of_nobody = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_broadcast()
        || address.is_multicast();
    // 1.2.3.4 is what versions look like; small numbers all along are one.
    let version = address.octets().iter().all(|part| *part < 20);
    !of_nobody && !shared && !version && first != 0 && first < 240
}

pub(super) fn is_public_v6(text: &str) -> bool {
    let Ok(address) = text.parse::<std::net::Ipv6Addr>() else {
        return false;
    };
    let [first, second, ..] = address.segments();
    // 2000::/3 is what is given out; 2001:db8::/32 is for documentation.
    (first & 0xe000) == 0x2000 && (first, second) != (0x2001, 0xdb8)
}

pub(super) fn are_coordinates(text: &str) -> bool {
    let Some((latitude, longitude)) = text.split_once(',') else {
        return false;
    };
    let degrees = |text: &str| text.trim().parse::<f64>().unwrap_or(f64::NAN).abs();
    degrees(latitude) <= 90.0 && degrees(longitude) <= 180.0
}

/// ISO 3779, with the check digit of North America.
pub(super) fn is_vin(text: &str) -> bool {
    const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
    let value = |letter: char| match letter {
        '0'..='9' => letter.to_digit(10),
        'A' | 'J' => Some(1),
        'B' | 'K' | 'S' => Some(2),
        'C' | 'L' | 'T' => Some(3),
        'D' | 'M' | 'U' => Some(4),
        'E' | 'N' | 'V' => Some(5),
        'F' | 'W' => Some(6),
        'G' | 'P' | 'X' => Some(7),
        'H' | 'Y' => Some(8),
        'R' | 'Z' => Some(9),
        _ => None,
    };
    let values: Vec<u32> = text.chars().filter_map(value).collect();
    if values.len() != 17 || !text.bytes().any(|b| b.is_ascii_alphabetic()) {
        return false;
    }
    let check = weighted(&values, &WEIGHTS) % 11;
    let expected = if check == 10 {
        'X'
    } else {
        char::from_digit(check, 10).unwrap_or('?')
    };
    text.chars().nth(8) == Some(expected)
}

pub(super) fn has_a_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// E.164: at most fifteen digits.
pub(super) fn is_international(text: &str) -> bool {
    (8..=15).contains(&digits(text).len())
}

/// No area or exchange is called x11.
pub(super) fn is_nanp(text: &str) -> bool {
    let digits = digits(text);
    digits[1..3] != [1, 1] && digits[4..6] != [1, 1] && !all_alike(&digits)
}

pub(super) fn is_phone_length(text: &str) -> bool {
    (7..=15).contains(&digits(text).len())
}
