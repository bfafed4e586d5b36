//! A table of embeddings in a safetensors file, its numbers as they are written there.

use std::ops::Range;

use safetensors::{Dtype, SafeTensors};

/// A row for each token.
pub(super) struct Table {
    file: Vec<u8>,
    /// Where in the file the rows are.
    rows: Range<usize>,
    count: usize,
    width: usize,
    form: Form,
    /// What each token's row counts; empty: all the same.
    weights: Vec<f32>,
    /// Which row is a token's; empty: the one of its number.
    row_of: Vec<usize>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("count", &self.count)
            .field("width", &self.width)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

/// How a number is written, little end first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// IEEE 754, two bytes.
    Half,
    /// The upper two bytes of a `Single`.
    Brain,
    /// IEEE 754, four bytes.
    Single,
    /// IEEE 754, eight bytes.
    Double,
}

impl Table {
    /// Reads one. The error is a sentence without the file's name.
    pub(super) fn read(file: Vec<u8>) -> Result<Self, String> {
        let (_, head) =
            SafeTensors::read_metadata(&file).map_err(|error| format!("unreadable: {error}"))?;
        let tensors = SafeTensors::deserialize(&file).map_err(|error| error.to_string())?;
        let tables: Vec<_> = (tensors.iter())
            .filter(|(_, tensor)| tensor.shape().len() == 2)
            .collect();
        let [(name, table)] = &tables[..] else {
            return Err(format!(
                "it has {} tables with rows and columns, and one is wanted: a static model as Model2Vec writes it; \
                 others need an endpoint",
                tables.len()
            ));
        };
        let form = Form::of(table.dtype())?;
        let (count, width) = (table.shape()[0], table.shape()[1]);
        if width == 0 {
            return Err(format!("the rows of `{name}` are empty"));
        }
        let numbers = |name: &str| -> Result<Vec<f32>, String> {
            let Ok(tensor) = tensors.tensor(name) else {
                return Ok(Vec::new());
            };
            let form = Form::of(tensor.dtype())?;
            let numbers = tensor.data().chunks_exact(form.size());
            Ok(numbers.map(|bytes| form.number(bytes)).collect())
        };
        let weights = numbers("weights")?;
        let row_of = match tensors.tensor("mapping") {
            Ok(mapping) => places(mapping.dtype(), mapping.data(), count)?,
            Err(_) => Vec::new(),
        };
        // A tensor's offsets count from the end of the file's head.
        let info = head.info(name).ok_or("its head tells of no table")?;
        let begin = file.len() - head.data_len();
        let rows = begin + info.data_offsets.0..begin + info.data_offsets.1;
        Ok(Self {
            file,
            rows,
            count,
            width,
            form,
            weights,
            row_of,
        })
    }

    /// The mean of tokens' rows; zero of none.
    pub(super) fn mean(&self, tokens: &[u32]) -> Result<Vec<f32>, String> {
        let mut sums = vec![0.0_f64; self.width];
        for token in tokens {
            let (row, weight) = self.row(*token)?;
            for (sum, number) in sums.iter_mut().zip(row) {
                *sum += f64::from(weight) * f64::from(number);
            }
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "embeddings are no more exact than that"
        )]
        let mean = |sum: f64| (sum / tokens.len().max(1) as f64) as f32;
        Ok(sums.into_iter().map(mean).collect())
    }

    fn row(&self, token: u32) -> Result<(impl Iterator<Item = f32>, f32), String> {
        let token = token as usize;
        let place = match self.row_of.get(token) {
            Some(place) => Some(*place),
            None if self.row_of.is_empty() => Some(token),
            None => None,
        };
        let place = place.filter(|place| *place < self.count).ok_or_else(|| {
            format!("the tokenizer has a token {token}, and the table no row for it")
        })?;
        let weight = match self.weights.get(token) {
            Some(weight) => *weight,
            None => 1.0,
        };
        let length = self.width * self.form.size();
        let row = &self.file[self.rows.clone()][place * length..(place + 1) * length];
        let numbers = row.chunks_exact(self.form.size());
        Ok((numbers.map(|bytes| self.form.number(bytes)), weight))
    }
}

/// Places of rows, each one that is there.
fn places(form: Dtype, bytes: &[u8], rows: usize) -> Result<Vec<usize>, String> {
    let size = match form {
        Dtype::I64 | Dtype::U64 => 8,
        Dtype::I32 | Dtype::U32 => 4,
        other => return Err(format!("`mapping` has numbers of the form {other:?}")),
    };
    let places = bytes.chunks_exact(size).map(|bytes| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let place = usize::try_from(u64::from_le_bytes(wide)).ok();
        let place = place.filter(|place| *place < rows);
        place.ok_or_else(|| format!("`mapping` names a row that is none of the {rows}"))
    });
    places.collect()
}

impl Form {
    fn of(form: Dtype) -> Result<Self, String> {
        match form {
            Dtype::F16 => Ok(Self::Half),
            Dtype::BF16 => Ok(Self::Brain),
            Dtype::F32 => Ok(Self::Single),
            Dtype::F64 => Ok(Self::Double),
            other => Err(format!(
                "it has numbers of the form {other:?}; F16, BF16, F32 and F64 are read"
            )),
        }
    }

    fn size(self) -> usize {
        match self {
            Self::Half | Self::Brain => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }

    /// The number that so many bytes stand for.
    fn number(self, bytes: &[u8]) -> f32 {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let [one, two, three, four, ..] = wide;
        match self {
            Self::Half => half(u16::from_le_bytes([one, two])),
            Self::Brain => f32::from_le_bytes([0, 0, one, two]),
            Self::Single => f32::from_le_bytes([one, two, three, four]),
            #[expect(
                clippy::cast_possible_truncation,
                reason = "embeddings are no more exact than that"
            )]
            Self::Double => f64::from_le_bytes(wide) as f32,
        }
    }
}

/// IEEE 754 §3.6, binary16.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    sign * match exponent {
        0 => fraction * 2.0_f32.powi(-24),
        0x1f if fraction == 0.0 => f32::INFINITY,
        0x1f => f32::NAN,
        _ => (1.0 + fraction / 1024.0) * 2.0_f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_the_form_they_are_written_in() {
        for (form, bytes, expected) in [
            (Form::Single, &[0, 0, 0x40, 0xc0][..], -3.0),
            (Form::Brain, &[0x40, 0xc0], -3.0),
            (Form::Half, &[0x00, 0xc2], -3.0),
            (Form::Half, &[0x01, 0x00], 2.0_f32.powi(-24)),
            (Form::Half, &[0xff, 0x7b], 65504.0),
            (Form::Half, &[0x00, 0x00], 0.0),
            (Form::Double, &[0, 0, 0, 0, 0, 0, 8, 0xc0], -3.0),
        ] {
            let found = form.number(bytes);
            assert_eq!(
                found.to_bits(),
                f32::to_bits(expected),
                "{form:?} {bytes:?}"
            );
        }
    }
}
