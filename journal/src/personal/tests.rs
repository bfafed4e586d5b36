use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// Detector, a text that matches, and a text that only looks similar.
#[rustfmt::skip]
const CASES: &[(&str, &str, &str)] = &[
    ("email", "write to ada.l+x@mail.example.org", "ada@host.test"),
    ("iban", "GB82 WEST 1234 5698 7654 32", "GB82 WEST 1234 5698 7654 33"),
    ("card", "4111 1111 1111 1111", "4111 1111 1111 1112"),
    ("card", "378282246310005", "0000000000000000"),
    ("card_code", "CVV: 123", "the code 123"),
    ("us_routing", "routing number 021000021", "routing number 021000022"),
    ("bank_account", "account number 12345678", "the account has 12345678 hits"),
    ("uk_sort_code", "sort code 20-00-00", "20-00-00"),
    ("swift", "SWIFT: DEUTDEFF500", "the SWIFT language"),
    ("bitcoin", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1abc"),
    ("ethereum", "0x52908400098527886E0F7030069857D2E4169EE7", "0x5290"),
    ("us_ssn", "536-90-4399", "000-12-3456"),
    ("us_ssn", "SSN 536904399", "order 536904399"),
    ("us_itin", "912-70-1234", "912-20-1234"),
    ("uk_nino", "AB 12 34 56 C", "GB 12 34 56 C"),
    ("ca_sin", "046 454 286", "046 454 287"),
    ("in_aadhaar", "2341 2341 2346", "2341 2341 2345"),
    ("es_dni", "12345678Z", "12345678A"),
    ("es_nie", "X1234567L", "X1234567T"),
    ("fr_insee", "2 55 08 14 168 025 38", "2 55 08 14 168 025 39"),
    ("it_codice_fiscale", "RSSMRA85T10A562S", "RSSMRA85T10A562T"),
    ("nl_bsn", "BSN 111222333", "BSN 111222334"),
    ("be_national_number", "85.07.30-033 28", "85.07.30-033 29"),
    ("pl_pesel", "PESEL 44051401359", "PESEL 44051401358"),
    ("se_personnummer", "811228-9874", "811228-9875"),
    ("fi_henkilotunnus", "131052-308T", "131052-308U"),
    ("dk_cpr", "CPR 070761-4285", "070761-4285"),
    ("br_cpf", "529.982.247-25", "529.982.247-26"),
    ("cl_rut", "12.345.678-5", "12.345.678-6"),
    ("cn_resident_id", "11010519491231002X", "110105194912310021"),
    ("sg_nric", "S1234567D", "S1234567E"),
    ("hk_id", "A123456(3)", "A123456(4)"),
    ("tw_id", "A123456789", "A123456788"),
    ("za_id", "8001015009087", "8001015009086"),
    ("mx_curp", "HEGG560427MVZRRL04", "HEGG561327MVZRRL04"),
    ("tr_kimlik", "TCKN 10000000146", "TCKN 10000000147"),
    ("date_of_birth", "Date of birth: 12/03/1984", "released 12/03/1984"),
    ("us_ein", "EIN 12-3456789", "12-3456789"),
    ("in_pan", "ABCPE1234F", "ABCDE1234F"),
    ("br_cnpj", "11.222.333/0001-81", "11.222.333/0001-82"),
    ("ar_cuit", "20-12345678-6", "20-12345678-7"),
    ("au_tfn", "TFN 123 456 782", "TFN 123 456 783"),
    ("de_steuer_id", "Steuer-ID 86 095 742 719", "Steuer-ID 86 095 742 718"),
    ("pt_nif", "NIF 123456789", "NIF 123456788"),
    ("uk_nhs", "NHS number 943 476 5919", "NHS number 943 476 5918"),
    ("us_npi", "NPI 1234567893", "NPI 1234567894"),
    ("us_dea", "AB1234563", "AB1234564"),
    ("us_mbi", "1EG4-TE5-MK73", "1EG4-TE5-MK7"),
    ("au_medicare", "Medicare 2123 45670 1", "Medicare 2123 45680 1"),
    ("medical_record", "MRN: 00123456", "record 00123456"),
    ("health_insurance", "member ID: XYZ123456789", "member of 9"),
    ("passport_mrz", "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "P<UTO"),
    ("passport", "passport no. L8988901", "the passport office"),
    ("uk_driving_licence", "MORGA657054SM9IJ", "MORGA699999SM9IJ"),
    ("driving_licence", "driver's license D1234567", "driver's license expired"),
    ("us_alien_number", "alien registration number A012345678", "A012345678"),
    ("visa", "visa number 12345678", "visa 12345678"),
    ("mac_address", "00:1B:44:11:3A:B7", "00:00:00:00:00:00"),
    ("imei", "IMEI 490154203237518", "IMEI 490154203237519"),
    ("ipv6", "2a00:1450:4001:81b::200e", "2001:db8::1"),
    ("ipv4", "from 93.184.216.34", "version 1.2.3.4 on 192.168.0.1"),
    ("advertising_id", "IDFA 6D92078A-8246-4BA4-AE5B-76104861E7DC", "6D92078A-8246-4BA4-AE5B-76104861E7DC"),
    ("coordinates", "48.8583, 2.29448", "98.8583, 2.29448"),
    ("vin", "1HGCM82633A004352", "1HGCM82634A004352"),
    ("us_street", "1600 Pennsylvania Avenue", "1600 people on the street"),
    ("de_street", "Hauptstrasse 5", "die Strasse 5"),
    ("us_zip", "Springfield, IL 62704", "order IX 62704"),
    ("uk_postcode", "SW1A 2AA", "SW1A 2CC"),
    ("licence_plate", "number plate is AB12 CDE", "number plate is dirty"),
    ("phone_international", "+49 30 901820", "+49"),
    ("phone_us", "(212) 555-0187", "(911) 211-0187"),
    ("phone_uk", "07700 900123", "0770 900"),
    ("phone_fr", "01 23 45 67 89", "01 23 45 67"),
    ("phone_jp", "090-1234-5678", "060-1234-5678"),
    ("phone_in", "98765 43210", "28765 43210"),
    ("phone_labelled", "Tel.: 030/901820", "the number 030/901820"),
];

#[test]
fn each_is_found_and_what_only_looks_like_it_is_not() {
    for (detector, there, absent) in CASES {
        let names =
            |text: &str| -> Vec<_> { find(text).iter().map(|found| found.detector).collect() };
        assert_eq!(names(there), [*detector], "{there}");
        assert!(!names(absent).contains(detector), "{detector}: {absent}");
    }
}

#[test]
fn numbers_with_two_check_digits_are_found() {
    // Generated here, so that the repository contains no real person's number.
    let made = |body: &[u32]| -> Option<String> {
        let digit = |digits: &[u32], weights: &[u32]| {
            let sum: u32 = digits.iter().zip(weights).map(|(d, w)| d * w).sum();
            (11 - sum % 11) % 11
        };
        let mut digits = body.to_vec();
        digits.push(digit(&digits, &[3, 7, 6, 1, 8, 9, 4, 5, 2]));
        digits.push(digit(&digits, &[5, 4, 3, 2, 7, 6, 5, 4, 3, 2]));
        let text = digits.iter().map(u32::to_string).collect();
        digits.iter().all(|d| *d < 10).then_some(text)
    };
    let all = (0..100).filter_map(|n| made(&[0, 1, 0, 1, 5, 0, n / 10, n % 10, 7]));
    let all: Vec<String> = all.collect();
    assert!(all.len() > 50);
    for number in all {
        assert_eq!(find(&number)[0].detector, "no_fodselsnummer", "{number}");
    }
    let rrn: Vec<_> = (0..10)
        .flat_map(|last| find(&format!("900101-123456{last}")))
        .filter(|found| found.detector == "kr_rrn")
        .collect();
    assert_eq!(rrn.len(), 1);
}

#[test]
fn names_differ_and_each_detector_has_a_case() {
    let names: BTreeSet<_> = DETECTORS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names.len(), DETECTORS.len());
    let apart = ["no_fodselsnummer", "kr_rrn"];
    for name in names {
        let has_case = CASES.iter().any(|(of, ..)| *of == name) || apart.contains(&name);
        assert!(has_case, "{name} has no case");
    }
}

#[test]
fn ordinary_texts_hold_none() {
    for text in [
        "Order 123456789 ships on 2026-11-22 at 10:15:30.",
        "Version 1.2.3.4 of the library, see section 10.4.2.1.",
        "The answer is 3.14159265358979, about 22/7.",
        "uuid 550e8400-e29b-41d4-a716-446655440000, sha 9f86d081884c7d659a2feaa0c55ad015",
        "Call me Ishmael. Some years ago, never mind how long precisely.",
        "call_abc123 returned 200 in 1234567890 ns",
        "Paris (75001), 20 °C, wind 12 km/h, pressure 1013 hPa",
        "timestamps 1700000000 and 1700000000000",
    ] {
        assert_eq!(find(text), [], "{text}");
    }
}

proptest! {
    #[test]
    fn every_place_is_in_the_text_and_no_two_overlap(text in r"[0-9A-Za-z@:+(). \-/]{0,80}|\PC{0,40}") {
        let found = find(&text);
        for (one, next) in found.iter().zip(found.iter().skip(1)) {
            prop_assert!(one.place.end <= next.place.start);
        }
        for one in &found {
            prop_assert!(text.get(one.place.clone()).is_some());
        }
    }
}
