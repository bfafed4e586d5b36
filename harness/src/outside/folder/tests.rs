use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Rows of `[UNK]`, sunny, bright, rainy, and of a piece of a word.
const ROWS: [[f32; 2]; 5] = [[9.0, 9.0], [1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.5, 0.5]];

const WORDS: [&str; 5] = ["[UNK]", "sunny", "bright", "rainy", "##ish"];

fn numbers<const N: usize>(rows: &[[f32; N]]) -> Vec<u8> {
    rows.iter()
        .flatten()
        .flat_map(|one| one.to_le_bytes())
        .collect()
}

/// Tensors by name, each with its form and shape.
type Written<'w> = (&'w str, Dtype, Vec<usize>, Vec<u8>);

fn tensors(all: &[Written<'_>]) -> Vec<u8> {
    let views = all.iter().map(|(name, form, shape, bytes)| {
        let view = TensorView::new(*form, shape.clone(), bytes).expect("a tensor");
        (*name, view)
    });
    serialize(views, None).expect("a file")
}

fn table() -> Written<'static> {
    ("embeddings", Dtype::F32, vec![5, 2], numbers(&ROWS))
}

/// A tokenizer's file with such a model.
fn tokenizer_of(model: &Value) -> String {
    json!({
        "version": "1.0",
        "truncation": {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
        "padding": null,
        "added_tokens": [{"id": 0, "content": "[UNK]", "single_word": false, "lstrip": false,
                          "rstrip": false, "normalized": false, "special": true}],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null,
        "decoder": null,
        "model": model,
    })
    .to_string()
}

fn word_pieces() -> Value {
    let places = WORDS.iter().enumerate();
    let vocabulary: serde_json::Map<_, _> = places
        .map(|(place, word)| ((*word).to_owned(), json!(place)))
        .collect();
    json!({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
           "max_input_chars_per_word": 100, "vocab": vocabulary})
}

fn folder(tokenizer: &str, table: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer).expect("written");
    std::fs::write(folder.path().join("model.safetensors"), table).expect("written");
    folder
}

fn embedded(folder: &TempDir, text: &str) -> Result<Vec<f32>, String> {
    StaticModel::read(folder.path())?.embed(text)
}

#[test]
fn a_text_lies_at_the_mean_of_what_it_says() {
    let folder = folder(&tokenizer_of(&word_pieces()), &tensors(&[table()]));
    for (text, expected) in [
        ("sunny", [1.0, 0.0]),
        ("Sunny, rainy", [0.5, 0.5]),
        ("sunnyish", [0.75, 0.25]),
        ("sunny and quite unheard of", [1.0, 0.0]),
        ("", [0.0, 0.0]),
        ("quite unheard of", [0.0, 0.0]),
    ] {
        assert_eq!(embedded(&folder, text), Ok(expected.to_vec()), "{text}");
    }
}

#[test]
fn tokens_may_have_weights_and_share_rows() {
    let weights = numbers(&[[1.0, 2.0, 4.0, 1.0, 1.0]]);
    let mapping: Vec<u8> = [0_i64, 1, 1, 2, 2]
        .iter()
        .flat_map(|row| row.to_le_bytes())
        .collect();
    let rows = numbers(&[[9.0, 9.0], [1.0, 0.0], [0.0, 1.0]]);
    let table = tensors(&[
        ("embeddings", Dtype::F32, vec![3, 2], rows),
        ("mapping", Dtype::I64, vec![5], mapping),
        ("weights", Dtype::F32, vec![5], weights),
    ]);
    let folder = folder(&tokenizer_of(&word_pieces()), &table);
    assert_eq!(embedded(&folder, "bright"), Ok(vec![4.0, 0.0]));
    assert_eq!(embedded(&folder, "sunny rainy"), Ok(vec![1.0, 0.5]));
}

/// Numbers of the workspace's JSON are kept as they are written, which not every reader expects.
#[test]
fn every_kind_of_tokenizer_is_read() {
    let words = json!({"[UNK]": 0, "sunny": 1, "bright": 2, "rainy": 3, "s": 4});
    for model in [
        json!({"type": "WordLevel", "unk_token": "[UNK]", "vocab": words}),
        json!({"type": "BPE", "dropout": null, "unk_token": "[UNK]", "continuing_subword_prefix": null,
               "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
               "vocab": words, "merges": []}),
        json!({"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [
            ["[UNK]", 0.0], ["sunny", -1.5], ["bright", -2.25], ["rainy", -3.0], ["s", -9.5]]}),
    ] {
        let folder = folder(&tokenizer_of(&model), &tensors(&[table()]));
        assert_eq!(
            embedded(&folder, "sunny rainy"),
            Ok(vec![0.5, 0.5]),
            "{model}"
        );
    }
}

#[test]
fn what_is_no_such_model_is_told_with_its_file() {
    let tokenizer = tokenizer_of(&word_pieces());
    let one_row = ("embeddings", Dtype::F32, vec![1, 2], numbers(&ROWS[..1]));
    let another = ("layer.0", Dtype::F32, vec![1, 2], numbers(&ROWS[..1]));
    for (tokenizer, table, expected) in [
        (
            "{}",
            tensors(&[table()]),
            "tokenizer.json: it is no tokenizer",
        ),
        (&tokenizer, b"no".to_vec(), "model.safetensors: unreadable"),
        (
            &tokenizer,
            tensors(&[table(), another]),
            "model.safetensors: it has 2 tables",
        ),
        (
            &tokenizer,
            tensors(&[("embeddings", Dtype::I8, vec![5, 2], vec![0; 10])]),
            "numbers of the form I8",
        ),
        (&tokenizer, tensors(&[one_row]), "no row for it"),
    ] {
        let folder = folder(tokenizer, &table);
        let told = embedded(&folder, "rainy").expect_err("no model");
        assert!(told.contains(expected), "{told}");
    }
    let none = StaticModel::read(Path::new("/no/such/model")).expect_err("none");
    assert!(
        none.starts_with("/no/such/model/tokenizer.json: "),
        "{none}"
    );
}
