//! A sheet as a PDF (ISO 32000-1), as small as one can be: two of the fonts that every reader has, lines of
//! text, and the seal in a comment.
//!
//! Those fonts know Western letters. Others are printed with those ([`letters`]), and kept beside it as they
//! are, so that they are found and copied; the signed statement has them too.

use std::fmt::Write as _;

use super::letters::{Letter, code, letters};
use super::sheet::Sheet;
use crate::report::shown;

/// Size of a page, A4, in points.
const PAGE: (u32, u32) = (595, 842);
/// Room at every edge.
const MARGIN: u32 = 56;
/// Where values stand.
const VALUES: u32 = 190;
/// Objects before the pages: catalogue, pages, two fonts, information.
const BEFORE: usize = 5;

/// What is told where something is printed otherwise than it is said.
const OTHER_LETTERS: &str = "Letters that the fonts of this file lack are printed in Latin ones, or as their number in Unicode, [U+4E2D]. The \
                             signed statement has them as they are; so has text that is copied from here, and a certificate in HTML.";

/// A line of text at its place.
struct Line {
    x: u32,
    size: u32,
    bold: bool,
    text: Vec<Letter>,
    /// Points down to it from the line before; 0 for the same height.
    below: u32,
}

/// The sheet as a PDF that carries its seal.
pub(super) fn document(sheet: &Sheet, seal: &str) -> Vec<u8> {
    let pages = pages(&lines(sheet));
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R /Lang (en) /ViewerPreferences << /DisplayDocTitle true >> >>".to_owned(),
        kids(pages.len()),
        font("Helvetica"),
        font("Helvetica-Bold"),
        format!("<< /Title {} /Producer (Squall) >>", said(&on_one_line(&format!("Certificate: {}", sheet.title)))),
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
    // The second line has bytes over 127, so that nobody takes the file for text.
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

/// Everything that is shown, line by line.
fn lines(sheet: &Sheet) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut put = |x: u32, size: u32, bold: bool, below: u32, text: &str| {
        let width = PAGE.0 - MARGIN - x;
        for (number, text) in wrapped(text, size, width).into_iter().enumerate() {
            // What is wrapped goes on closely below.
            let below = if number == 0 { below } else { size + 4 };
            lines.push(Line {
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
    if !lines.iter().all(|line| is_as_said(&line.text)) {
        let (x, size, width) = (MARGIN, 8, PAGE.0 - 2 * MARGIN);
        for (number, text) in wrapped(OTHER_LETTERS, size, width).into_iter().enumerate() {
            lines.push(Line {
                x,
                size,
                bold: false,
                text,
                below: if number == 0 { 18 } else { size + 4 },
            });
        }
    }
    lines
}

/// Contents of pages.
fn pages(lines: &[Line]) -> Vec<String> {
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
        let (x, size, text) = (line.x, line.size, printed(&line.text));
        let shown = format!("/{font} {size} Tf {x} {y} Td {text} Tj");
        page.push(if is_as_said(&line.text) {
            format!("BT {shown} ET")
        } else {
            let said = said(&line.text);
            format!("/Span << /ActualText {said} >> BDC BT {shown} ET EMC")
        });
    }
    pages.push(page.join("\n"));
    pages
}

/// The text in lines of so many points; a word that is too long is broken.
fn wrapped(text: &str, size: u32, width: u32) -> Vec<Vec<Letter>> {
    let most = width * 1000 / size;
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::new(), 0);
    let long = |letter: &Letter| letter.shown.chars().map(advance).sum::<u32>();
    for word in on_one_line(text).split_inclusive(|letter| letter.said == ' ') {
        if used + word.iter().map(long).sum::<u32>() > most && used > 0 {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        for letter in word {
            if used + long(letter) > most {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            used += long(letter);
            line.push(letter.clone());
        }
    }
    lines.push(line);
    lines
}

/// The letters of a text, everything in it visible.
fn on_one_line(text: &str) -> Vec<Letter> {
    letters(&shown(text).replace(['\n', '\t'], " "))
}

/// Whether everything is printed as it is said.
fn is_as_said(line: &[Letter]) -> bool {
    let mut letters = line.iter();
    letters.all(|letter| letter.shown.chars().eq([letter.said]))
}

/// Letters as they are printed.
fn printed(line: &[Letter]) -> String {
    let mut written = "(".to_owned();
    let printed = line.iter().flat_map(|letter| letter.shown.chars());
    for byte in printed.filter_map(code) {
        match byte {
            b'(' | b')' | b'\\' => {
                written.push('\\');
                written.push(char::from(byte));
            }
            b' '..=b'~' => written.push(char::from(byte)),
            other => written.push_str(&octal(other)),
        }
    }
    written.push(')');
    written
}

/// Letters as they are said: UTF-16 with its mark, as a string of PDF (§7.9.2.2).
fn said(line: &[Letter]) -> String {
    let text: String = line.iter().map(|letter| letter.said).collect();
    let mut written = "<FEFF".to_owned();
    for unit in text.encode_utf16() {
        // Writing to a string never fails.
        let _ = write!(written, "{unit:04X}");
    }
    written.push('>');
    written
}

fn octal(byte: u8) -> String {
    format!("\\{byte:03o}")
}

/// How far a character moves on, in thousandths of the size: Helvetica-Bold's where it is wider.
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
