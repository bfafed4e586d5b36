//! Aligned columns; colours do not count as width.

use super::output::on_a_line;

/// Rows of cells, each on one line; the first row is the heading.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new(headings: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let mut table = Self::default();
        table.row(headings);
        table
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let cells = cells.into_iter().map(|cell| on_a_line(&cell.into()));
        self.rows.push(cells.collect());
    }

    /// The lines, columns two spaces apart, no space at a line's end.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| shown(cell))
                .max()
        };
        let widths: Vec<usize> = (0..columns)
            .map(|column| width(column).unwrap_or(0))
            .collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - shown(cell) + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Characters a terminal shows: all but colour codes.
pub(crate) fn shown(cell: &str) -> usize {
    let mut count = 0;
    let mut characters = cell.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            characters.by_ref().find(|c| *c == 'm');
        } else {
            count += 1;
        }
    }
    count
}

/// Text broken at spaces into lines of at most `width` characters, where words allow it.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is always a line");
        if !last.is_empty() && shown(last) + 1 + shown(word) > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painted_cells_line_up_with_plain_ones() {
        let mut table = Table::new(["NAME", "RULES"]);
        table.row(["\x1b[36mbrownout\x1b[0m", "3"]);
        table.row(["a", "12"]);
        assert_eq!(
            table.render(),
            "NAME      RULES\n\x1b[36mbrownout\x1b[0m  3\na         12\n"
        );
    }

    #[test]
    fn a_cell_is_on_one_line_and_moves_nothing() {
        let mut table = Table::new(["SUITE", "STATE"]);
        table.row(["shop\n\x1b]0;x\x07", "failed"]);
        assert_eq!(table.render(), "SUITE        STATE\nshop ␛]0;x␇  failed\n");
    }

    #[test]
    fn text_is_broken_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("extraordinary", 5), ["extraordinary"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
