//! Embeddings from a model in a folder: a table with a row for each token, as `Model2Vec` writes it. What a text
//! means is the mean of its tokens' rows, so nothing is inferred and nobody is asked.
//!
//! ```text
//! tokenizer.json     text ─▶ tokens
//! model.safetensors  token ─▶ row (`mapping`), × its weight (`weights`), both optional
//! ```

mod table;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use tokenizers::Tokenizer;
use tokio::sync::OnceCell;

use self::table::Table;
use super::{Asked, Question, Reply, Silence};

/// Largest file of a model that is read, bytes.
const LARGEST: u64 = 1 << 30;

/// Where texts lie by the model in a folder, which is read when it is first asked. Reading takes a while, and
/// so do long texts: other threads do it.
pub(super) async fn ask(
    read: Arc<OnceCell<Result<StaticModel, String>>>,
    folder: PathBuf,
    texts: Vec<String>,
) -> Vec<Asked> {
    let reading = || async {
        let read = tokio::task::spawn_blocking(move || StaticModel::read(&folder)).await;
        read.unwrap_or_else(|error| Err(error.to_string()))
    };
    read.get_or_init(reading).await;
    let embedding = tokio::task::spawn_blocking(move || {
        let asked = texts.into_iter().map(|text| {
            let reply = match read.get() {
                Some(Ok(model)) => model.embed(&text).map_err(Silence::Useless),
                Some(Err(why)) => Err(Silence::Absent(format!("`embeddings.folder`: {why}"))),
                None => Err(Silence::Absent("the model was not read".to_owned())),
            };
            (Question::Embedding(text), reply.map(Reply::Vector))
        });
        asked.collect()
    });
    // What was not asked is told as such.
    embedding.await.unwrap_or_default()
}

/// A model, read.
pub(super) struct StaticModel {
    tokenizer: Tokenizer,
    /// What stands for words that the model does not know: it says nothing of them.
    unknown: Option<u32>,
    table: Table,
}

impl std::fmt::Debug for StaticModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticModel")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl StaticModel {
    /// Reads one. The error names the file.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let named = |name: &str, why: String| format!("{}: {why}", folder.join(name).display());
        let read = |name: &str| bytes(&folder.join(name)).map_err(|why| named(name, why));
        let written = read("tokenizer.json")?;
        let (tokenizer, unknown) =
            tokenizer(&written).map_err(|why| named("tokenizer.json", why))?;
        let table = Table::read(read("model.safetensors")?);
        Ok(Self {
            tokenizer,
            unknown,
            table: table.map_err(|why| named("model.safetensors", why))?,
        })
    }

    /// Where a text lies; at zero if the model knows no word of it.
    pub(super) fn embed(&self, text: &str) -> Result<Vec<f32>, String> {
        let encoded = self.tokenizer.encode_fast(text, false);
        let encoded = encoded.map_err(|error| format!("the text has no tokens: {error}"))?;
        let known = encoded.get_ids().iter().copied();
        let known: Vec<_> = known.filter(|id| Some(*id) != self.unknown).collect();
        self.table.mean(&known)
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST {
        return Err("it is larger than 1 GiB; take a smaller model, or an endpoint".to_owned());
    }
    Ok(bytes)
}

/// The tokenizer, and its token for what it does not know. Texts are taken whole, whatever the file says.
fn tokenizer(written: &[u8]) -> Result<(Tokenizer, Option<u32>), String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("it is no tokenizer: {error}");
    let mut tokenizer = Tokenizer::from_bytes(written).map_err(|error| unreadable(&error))?;
    tokenizer.with_padding(None);
    let whole = tokenizer.with_truncation(None).map(|_| ());
    whole.map_err(|error| unreadable(&error))?;
    let document: Value = serde_json::from_slice(written).map_err(|error| unreadable(&error))?;
    let model = &document["model"];
    let by_name = model["unk_token"].as_str();
    let by_place = model["unk_id"].as_u64();
    let unknown = by_name
        .and_then(|name| tokenizer.token_to_id(name))
        .or_else(|| by_place.and_then(|id| u32::try_from(id).ok()));
    Ok((tokenizer, unknown))
}

#[cfg(test)]
mod tests;
