//! A minimal PDF (ISO 32000-1): two standard fonts, lines of text, and the seal in a comment.
//!
//! The fonts support only Western letters. Others are printed as their Unicode code points; the signed statement
//! contains the original letters.

use encoding_rs::WINDOWS_1252;

use super::sheet::Sheet;

/// Size of a page, A4, in points.
const PAGE: (u32, u32) = (595, 842);
/// Margin on all sides.
const MARGIN: u32 = 56;
/// Horizontal position of values.
const VALUES: u32 = 190;
/// Objects before the pages: catalogue, pages, two fonts, information.
const BEFORE: usize = 5;

/// The note for texts that are printed with code points.
const OTHER_LETTERS: &str = "Letters that the fonts of this file lack are printed as their number in Unicode, [U+4E2D]. The signed statement has \
                             them as they are; so has a certificate in HTML.";

/// A line of text with its position.
struct TextLine {
    x: u32,
    size: u32,
    bold: bool,
    text: String,
    /// Vertical distance to the previous line, in points; 0 for the same height.
    below: u32,
}

/// The sheet as a PDF with the seal.
pub(super) fn document(sheet: &Sheet, seal: &str) -> Vec<u8> {
    let pages = pages(&lines(sheet));
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R /Lang (en) /ViewerPreferences << /DisplayDocTitle true >> >>".to_owned(),
        kids(pages.len()),
        font("Helvetica"),
        font("Helvetica-Bold"),
        format!("<< /Title {} /Producer (Squall) >>", utf_16(&format!("Certificate: {}", sheet.title))),
    ];
    for (number, content) in pages.iter().enumerate() {
        let stream = BEFORE + 2 + 2 * number;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {} {}] /Contents {stream} 0 R \
             /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>",
            PAGE.0, PAGE.1
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    // The second line has bytes above 127, so that tools treat the file as binary.
    let mut file = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n".to_vec();
    file.extend(format!("%{seal}\n").into_bytes());
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n{object}\nendobj\n", number + 1).into_bytes());
    }
    let table = file.len();
    let count = objects.len() + 1;
    file.extend(format!("xref\n0 {count}\n0000000000 65535 f \n").into_bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").into_bytes());
    }
    let trailer = format!(
        "trailer\n<< /Size {count} /Root 1 0 R /Info 5 0 R >>\nstartxref\n{table}\n%%EOF\n"
    );
    file.extend(trailer.into_bytes());
    file
}

fn font(name: &str) -> String {
    format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>")
}

fn kids(count: usize) -> String {
    let kids: Vec<_> = (0..count)
        .map(|number| format!("{} 0 R", BEFORE + 1 + 2 * number))
        .collect();
    format!(
        "<< /Type /Pages /Count {count} /Kids [{}] >>",
        kids.join(" ")
    )
}

/// The visible content, line by line.
fn lines(sheet: &Sheet) -> Vec<TextLine> {
    let mut lines = Vec::new();
    let mut put = |x: u32, size: u32, bold: bool, below: u32, text: &str| {
        let width = PAGE.0 - MARGIN - x;
        let printed = printable(text);
        for (number, text) in wrapped(&printed, size, width).into_iter().enumerate() {
            // Wrapped lines are closer together.
            let below = if number == 0 { below } else { size + 4 };
            lines.push(TextLine {
                x,
                size,
                bold,
                text,
                below,
            });
        }
    };
    put(MARGIN, 9, false, 0, "SQUALL CERTIFICATE");
    put(MARGIN, 22, true, 30, &sheet.title);
    put(MARGIN, 14, true, 26, &sheet.verdict);
    put(MARGIN, 11, false, 20, &sheet.lead);
    for (heading, rows) in &sheet.groups {
        put(MARGIN, 11, true, 30, heading);
        for (name, value) in rows {
            put(MARGIN, 9, false, 16, name);
            put(VALUES, 9, false, 0, value);
        }
    }
    put(MARGIN, 8, false, 32, sheet.foot);
    let rows = sheet.groups.iter().flat_map(|(_, rows)| rows);
    let mut texts = rows
        .flat_map(|(name, value)| [name, value])
        .chain([&sheet.title]);
    if texts.any(|text| text.chars().any(|letter| code(letter).is_none())) {
        put(MARGIN, 8, false, 18, OTHER_LETTERS);
    }
    lines
}

/// The content streams of pages.
fn pages(lines: &[TextLine]) -> Vec<String> {
    let top = PAGE.1 - MARGIN;
    let (mut pages, mut page, mut y) = (Vec::new(), Vec::new(), top);
    for line in lines {
        if y < MARGIN + line.below {
            pages.push(std::mem::take(&mut page).join("\n"));
            y = top;
        } else {
            y -= line.below;
        }
        let font = if line.bold { "F2" } else { "F1" };
        let (x, size, text) = (line.x, line.size, string(&line.text));
        page.push(format!("BT /{font} {size} Tf {x} {y} Td {text} Tj ET"));
    }
    pages.push(page.join("\n"));
    pages
}

/// Wraps a text to a width in points; words that are too long are broken.
fn wrapped(text: &str, size: u32, width: u32) -> Vec<String> {
    let most = width * 1000 / size;
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split_inclusive(' ') {
        if used + word.chars().map(advance).sum::<u32>() > most && used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for letter in word.chars() {
            if used + advance(letter) > most {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            used += advance(letter);
            line.push(letter);
        }
    }
    lines.push(line);
    lines
}

/// The text on one line; letters that the fonts lack are replaced by code points.
fn printable(text: &str) -> String {
    let letters = text.chars().map(|letter| match code(letter) {
        Some(_) => letter.to_string(),
        None if letter.is_whitespace() => " ".to_owned(),
        None => format!("[U+{:04X}]", u32::from(letter)),
    });
    letters.collect()
}

/// The byte of a letter in `WinAnsiEncoding`; `None`: not supported by the fonts.
fn code(letter: char) -> Option<u8> {
    let mut buffer = [0; 4];
    let (bytes, _, is_other) = WINDOWS_1252.encode(letter.encode_utf8(&mut buffer));
    match &*bytes {
        [byte] if !is_other && !letter.is_control() => Some(*byte),
        _ => None,
    }
}

/// A string in PDF syntax (§7.3.4.2).
fn string(text: &str) -> String {
    let bytes = text.chars().filter_map(code);
    let written = bytes.map(|byte| match byte {
        b'(' | b')' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        other => format!("\\{other:03o}"),
    });
    format!("({})", written.collect::<String>())
}

/// A text string for metadata, in UTF-16 with a byte order mark (§7.9.2.2).
fn utf_16(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("{unit:04X}"));
    format!("<FEFF{}>", units.collect::<String>())
}

/// The width of a character in thousandths of the font size: at least that of Helvetica-Bold.
fn advance(character: char) -> u32 {
    match character {
        'i' | 'j' | 'l' | '.' | ',' | ' ' | '/' | '\\' | '|' | 'I' | '\'' => 280,
        '!' | ':' | ';' | '(' | ')' | '[' | ']' | 'f' | 't' | '-' | '`' => 335,
        'r' | '{' | '}' | '*' => 390,
        '"' => 475,
        'm' | 'M' | '%' => 890,
        'w' | 'G' | 'O' | 'Q' => 780,
        'W' | '@' => 1015,
        'A'..='Z' | '&' => 725,
        _ => 615,
    }
}
