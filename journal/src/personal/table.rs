//! Every detector. Where two fit one place, the earlier row wins.

use super::Category::{Contact, Device, Health, Identity, Payment, Place, Tax, Travel};
use super::checks::{
    are_coordinates, has_a_digit, is_aba, is_belgian, is_bsn, is_card, is_cnpj, is_codice_fiscale,
    is_cpf, is_cuit, is_dea, is_dni, is_email, is_fodselsnummer, is_henkilotunnus, is_hkid,
    is_iban, is_insee, is_international, is_kimlik, is_luhn, is_mac, is_medicare, is_nanp, is_nhs,
    is_nif, is_nino, is_npi, is_nric, is_personnummer, is_pesel, is_phone_length, is_public_v4,
    is_public_v6, is_resident_id, is_rrn, is_rut, is_ssn, is_steuer_id, is_taiwanese, is_tfn,
    is_uk_licence, is_verhoeff, is_vin, mixes_letters_and_digits,
};
use super::{Category, Detector};

const fn row(
    category: Category,
    name: &'static str,
    pattern: &'static str,
    holds: fn(&str) -> bool,
) -> Detector {
    Detector {
        name,
        category,
        pattern,
        holds,
    }
}

/// A shape that says enough by itself.
fn any(_: &str) -> bool {
    true
}

#[rustfmt::skip]
pub(super) const DETECTORS: &[Detector] = &[
    // A word before the number says what it is.
    row(Payment, "card_code", r"(?i)\b(?:cvv2?|cvc2?|security code|card verification(?: code| value)?)\b[^0-9\n]{0,8}(?P<v>[0-9]{3,4})\b", any),
    row(Payment, "us_routing", r"(?i)\b(?:aba|routing)(?: (?:number|no\.?|transit))*\b[^0-9\n]{0,8}(?P<v>[0-9]{9})\b", is_aba),
    row(Payment, "bank_account", r"(?i)\baccount (?:number|no\.?|nr\.?)[^0-9\n]{0,8}(?P<v>[0-9]{6,17})\b", any),
    row(Payment, "uk_sort_code", r"(?i)\bsort code\b[^0-9\n]{0,8}(?P<v>[0-9]{2}[- ]?[0-9]{2}[- ]?[0-9]{2})\b", any),
    row(Payment, "swift", r"\b(?i:swift|bic)(?i: code)?[^A-Z0-9\n]{0,6}(?P<v>[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)\b", any),
    row(Identity, "nl_bsn", r"(?i)\bbsn\b[^0-9\n]{0,8}(?P<v>[0-9]{9})\b", is_bsn),
    row(Identity, "pl_pesel", r"(?i)\bpesel\b[^0-9\n]{0,8}(?P<v>[0-9]{11})\b", is_pesel),
    row(Identity, "dk_cpr", r"(?i)\bcpr(?:[- ]?(?:nr\.?|number|nummer))?[^0-9\n]{0,6}(?P<v>(?:[0-2][0-9]|3[01])(?:0[1-9]|1[0-2])[0-9]{2}-?[0-9]{4})\b", any),
    row(Identity, "tr_kimlik", r"\b(?i:kimlik|tckn|t\.?c\.?)[^0-9\n]{0,12}(?P<v>[1-9][0-9]{10})\b", is_kimlik),
    row(Identity, "date_of_birth", r"(?i)\b(?:date of birth|d\.?o\.?b\.?|born(?: on)?|birthday)\b[^0-9A-Za-z\n]{0,4}(?:is )?(?P<v>[0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4}|[0-9]{1,2}(?:st|nd|rd|th)? [A-Za-z]{3,9},? [0-9]{4}|[A-Za-z]{3,9} [0-9]{1,2}(?:st|nd|rd|th)?,? [0-9]{4})\b", any),
    row(Tax, "us_ein", r"(?i)\b(?:ein|employer identification(?: number)?)\b[^0-9\n]{0,8}(?P<v>[0-9]{2}-[0-9]{7})\b", any),
    row(Tax, "au_tfn", r"(?i)\b(?:tfn|tax file number)\b[^0-9\n]{0,8}(?P<v>[0-9]{3} ?[0-9]{3} ?[0-9]{3})\b", is_tfn),
    row(Tax, "de_steuer_id", r"(?i)\b(?:steuer-?id(?:nr)?|steueridentifikationsnummer|idnr|tax id)\b[^0-9\n]{0,8}(?P<v>[1-9][0-9](?: ?[0-9]{3}){3})\b", is_steuer_id),
    row(Tax, "pt_nif", r"(?i)\b(?:nif|contribuinte)\b[^0-9\n]{0,8}(?P<v>[1-35689][0-9]{8})\b", is_nif),
    row(Health, "uk_nhs", r"(?i)\bnhs(?: (?:number|no\.?))?[^0-9\n]{0,8}(?P<v>[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{4})\b", is_nhs),
    row(Health, "us_npi", r"(?i)\bnpi\b[^0-9\n]{0,8}(?P<v>[12][0-9]{9})\b", is_npi),
    row(Health, "au_medicare", r"(?i)\bmedicare\b[^0-9\n]{0,12}(?P<v>[2-6][0-9]{3} ?[0-9]{5} ?[0-9])\b", is_medicare),
    row(Health, "medical_record", r"(?i)\b(?:mrn|medical record(?: number| no\.?)?|patient id)\b[^0-9A-Z\n]{0,6}(?P<v>[A-Z]{0,3}-?[0-9]{5,12})\b", any),
    row(Health, "health_insurance", r"(?i)\b(?:health insurance|insurance member|member|subscriber|policy) (?:id|number|no\.?)[^0-9A-Z\n]{0,6}(?P<v>[A-Z]{1,4}[0-9]{6,12})\b", any),
    row(Travel, "passport", r"(?i)\bpassport\b(?: (?:number|no\.?|nr\.?))?[^0-9A-Z\n]{0,6}(?:is )?(?P<v>[A-Z]{0,2}[0-9]{6,9})\b", any),
    row(Travel, "driving_licence", r"(?i)\b(?:driver'?s?|driving) licen[cs]e\b(?: (?:number|no\.?))?[^0-9A-Z\n]{0,6}(?P<v>[A-Z]{0,3}[0-9]{5,14})\b", any),
    row(Travel, "us_alien_number", r"(?i)\balien (?:registration )?(?:number|no\.?)[^0-9A-Z\n]{0,6}(?P<v>A?[0-9]{8,9})\b", any),
    row(Travel, "visa", r"(?i)\bvisa (?:number|no\.?)[^0-9A-Z\n]{0,6}(?P<v>[A-Z]{0,2}[0-9]{7,9})\b", any),
    row(Device, "imei", r"(?i)\bimei\b[^0-9\n]{0,8}(?P<v>[0-9]{15})\b", is_luhn),
    row(Device, "advertising_id", r"(?i)\b(?:idfa|gaid|advertising id)\b[^0-9A-F\n]{0,6}(?P<v>[0-9A-F]{8}(?:-[0-9A-F]{4}){3}-[0-9A-F]{12})\b", any),
    row(Place, "licence_plate", r"(?i)\b(?:licen[cs]e|number|registration) plate\b[^0-9A-Z\n]{0,6}(?:is )?(?P<v>[A-Z0-9]{1,4}[- ]?[A-Z0-9]{2,5})\b", has_a_digit),

    // The shape says enough, mostly with a check digit.
    row(Contact, "email", r"\b[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}[A-Za-z]{2,24}\b", is_email),
    row(Payment, "iban", r"\b[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b", is_iban),
    row(Payment, "card", r"\b[2-6][0-9]{3}(?:[ -]?[0-9]{4}){3}\b|\b3[47][0-9]{2}[ -]?[0-9]{6}[ -]?[0-9]{5}\b|\b3(?:0[0-5]|[68][0-9])[0-9][ -]?[0-9]{6}[ -]?[0-9]{4}\b", is_card),
    row(Payment, "bitcoin", r"\b(?:bc1[ac-hj-np-z02-9]{25,59}|[13][1-9A-HJ-NP-Za-km-z]{25,34})\b", mixes_letters_and_digits),
    row(Payment, "ethereum", r"\b0x[0-9a-fA-F]{40}\b", any),
    row(Identity, "us_ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b|\b(?i:ssn|social security)(?i: number| no\.?)?[^0-9\n]{0,8}(?P<v>[0-9]{3} ?[0-9]{2} ?[0-9]{4})\b", is_ssn),
    row(Tax, "us_itin", r"\b9[0-9]{2}-[5-9][0-9]-[0-9]{4}\b", any),
    row(Identity, "uk_nino", r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]\b", is_nino),
    row(Identity, "ca_sin", r"\b[0-9]{3}[ -][0-9]{3}[ -][0-9]{3}\b", is_luhn),
    row(Identity, "in_aadhaar", r"\b[2-9][0-9]{3}[ -][0-9]{4}[ -][0-9]{4}\b", is_verhoeff),
    row(Identity, "es_dni", r"\b[0-9]{8}-?[A-HJ-NP-TV-Z]\b", is_dni),
    row(Identity, "es_nie", r"\b[XYZ]-?[0-9]{7}-?[A-HJ-NP-TV-Z]\b", is_dni),
    row(Identity, "fr_insee", r"\b[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}\b", is_insee),
    row(Identity, "it_codice_fiscale", r"\b[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]\b", is_codice_fiscale),
    row(Identity, "be_national_number", r"\b[0-9]{2}\.[0-9]{2}\.[0-9]{2}-[0-9]{3}[. ][0-9]{2}\b", is_belgian),
    row(Identity, "se_personnummer", r"\b(?:19|20)?[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])[-+][0-9]{4}\b", is_personnummer),
    row(Identity, "fi_henkilotunnus", r"\b(?:[0-2][0-9]|3[01])(?:0[1-9]|1[0-2])[0-9]{2}[-+A][0-9]{3}[0-9A-FHJ-NPR-Y]\b", is_henkilotunnus),
    row(Identity, "no_fodselsnummer", r"\b(?:[0-6][0-9]|7[01])[0-9]{4} ?[0-9]{5}\b", is_fodselsnummer),
    row(Identity, "br_cpf", r"\b[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}\b", is_cpf),
    row(Identity, "cl_rut", r"\b[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-[0-9kK]\b", is_rut),
    row(Identity, "cn_resident_id", r"\b[1-8][0-9]{5}(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])[0-9]{3}[0-9Xx]\b", is_resident_id),
    row(Identity, "kr_rrn", r"\b[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])-[1-4][0-9]{6}\b", is_rrn),
    row(Identity, "sg_nric", r"\b[STFG][0-9]{7}[A-Z]\b", is_nric),
    row(Identity, "hk_id", r"\b[A-Z]{1,2}[0-9]{6}\([0-9A]\)", is_hkid),
    row(Identity, "tw_id", r"\b[A-Z][12][0-9]{8}\b", is_taiwanese),
    row(Identity, "za_id", r"\b[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])[0-9]{4}[01][89][0-9]\b", is_luhn),
    row(Identity, "mx_curp", r"\b[A-Z][AEIOUX][A-Z]{2}[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-2][0-9]|3[01])[HM][A-Z]{2}[B-DF-HJ-NP-TV-Z]{3}[0-9A-Z][0-9]\b", any),
    row(Tax, "in_pan", r"\b[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]\b", any),
    row(Tax, "br_cnpj", r"\b[0-9]{2}\.[0-9]{3}\.[0-9]{3}/[0-9]{4}-[0-9]{2}\b", is_cnpj),
    row(Tax, "ar_cuit", r"\b(?:20|2[347]|3[034])-[0-9]{8}-[0-9]\b", is_cuit),
    row(Health, "us_dea", r"\b[ABFGMPR][A-Z9][0-9]{7}\b", is_dea),
    row(Health, "us_mbi", r"\b[1-9][AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y][AC-HJKMNP-RT-Y0-9][0-9]-?[AC-HJKMNP-RT-Y]{2}[0-9]{2}\b", any),
    row(Travel, "passport_mrz", r"\bP[A-Z<][A-Z]{3}[A-Z<]{39}", any),
    row(Travel, "uk_driving_licence", r"\b[A-Z9]{5}[0-9]{6}[A-Z9]{2}[0-9A-Z]{3}\b", is_uk_licence),
    row(Device, "mac_address", r"\b[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5}\b|\b[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}\b", is_mac),
    row(Device, "ipv6", r"(?i)(?:[0-9a-f]{1,4}:){2,7}(?::?[0-9a-f]{1,4}){1,7}", is_public_v6),
    row(Device, "ipv4", r"(?:^|[^0-9.vV])(?P<v>[0-9]{1,3}(?:\.[0-9]{1,3}){3})\b", is_public_v4),
    row(Place, "coordinates", r"-?[0-9]{1,2}\.[0-9]{4,10} ?, ?-?[0-9]{1,3}\.[0-9]{4,10}\b", are_coordinates),
    row(Place, "vin", r"\b[A-HJ-NPR-Z0-9]{17}\b", is_vin),
    row(Place, "us_street", r"\b[0-9]{1,5} (?:[NSEW]\.? )?(?:[A-Z][a-z]{1,20} ){1,3}(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Way)\b", any),
    row(Place, "de_street", r"\b[A-Z][a-z]{2,20}(?:stra(?:ss|ß)e|str\.|allee|weg|gasse|platz) [0-9]{1,4}[a-z]?\b", any),
    row(Place, "us_zip", r"\b(?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]) [0-9]{5}(?:-[0-9]{4})?\b", any),
    row(Place, "uk_postcode", r"\b(?:GIR 0AA|[A-PR-UWYZ](?:[0-9]{1,2}|[A-HK-Y][0-9]|[A-HK-Y][0-9][0-9ABEHMNPRV-Y]|[0-9][A-HJKPS-UW]) [0-9][ABD-HJLNP-UW-Z]{2})\b", any),
    row(Contact, "phone_international", r"(?:^|[^0-9A-Za-z+])(?P<v>\+[1-9][0-9]{0,2}(?:[ .-]?\(?[0-9]{1,4}\)?){2,6})\b", is_international),
    row(Contact, "phone_us", r"(?:\([2-9][0-9]{2}\) ?|\b[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}\b", is_nanp),
    row(Contact, "phone_uk", r"\b0(?:7[0-9]{3} ?[0-9]{6}|[12][0-9]{2,3} [0-9]{3} ?[0-9]{3,4}|20 [0-9]{4} [0-9]{4})\b", any),
    row(Contact, "phone_fr", r"\b0[1-9](?:[ .-][0-9]{2}){4}\b", any),
    row(Contact, "phone_jp", r"\b0[789]0-[0-9]{4}-[0-9]{4}\b", any),
    row(Contact, "phone_in", r"\b[6-9][0-9]{4}[ -][0-9]{5}\b", any),
    row(Contact, "phone_labelled", r"(?i)\b(?:tel|telephone|phone|mobile|cell|fax|whatsapp)\b(?: (?:number|no\.?))?[.: ]{1,3}(?:is )?(?P<v>\(?[0-9][0-9 ()./-]{5,16}[0-9])\b", is_phone_length),
];
