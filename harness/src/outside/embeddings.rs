//! Embeddings from an endpoint with `OpenAI`'s API: `POST …/embeddings`.

use serde_json::{Value, json};

use super::{Answered, NoReply, OutsideReply, Question};
use crate::dial::Dialler;
use crate::model::{Embeddings, Endpoint};

/// Maximum number of texts in one request.
pub(super) const AT_A_TIME: usize = 32;

pub(super) async fn ask(
    embeddings: &Embeddings,
    dialler: &Dialler,
    texts: Vec<String>,
) -> Vec<Answered> {
    let vectors = vectors(embeddings, dialler, &texts).await;
    let asked = texts.into_iter().enumerate().map(|(place, text)| {
        let reply = match &vectors {
            Ok(vectors) => Ok(OutsideReply::Vector(vectors[place].clone())),
            Err(why) => Err(why.clone()),
        };
        (Question::Embedding(text), reply)
    });
    asked.collect()
}

async fn vectors(
    embeddings: &Embeddings,
    dialler: &Dialler,
    texts: &[String],
) -> Result<Vec<Vec<f32>>, NoReply> {
    let base = embeddings.base_url.trim_end_matches('/');
    let key = embeddings.api_key.iter();
    let headers = key
        .map(|key| ("authorization", format!("Bearer {key}")))
        .collect();
    let body = json!({ "model": embeddings.name, "input": texts });
    let client = dialler.client(base);
    let endpoint = Endpoint::new(&client, format!("{base}/embeddings"), headers);
    let document = endpoint.post(&body).await?;
    read(&document, texts.len()).ok_or_else(|| {
        let at = endpoint.shown();
        NoReply::useless(format!(
            "the answer of {at} has no embedding for every text"
        ))
    })
}

/// One vector for each text, in order; the order in the response is given by `index`.
fn read(document: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let mut vectors = vec![Vec::new(); count];
    for (place, entry) in document["data"].as_array()?.iter().enumerate() {
        let index = match &entry["index"] {
            Value::Null => place,
            index => usize::try_from(index.as_u64()?).ok()?,
        };
        let numbers = entry["embedding"].as_array()?.iter().map(Value::as_f64);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "embeddings are no more exact than that"
        )]
        let numbers = numbers.map(|number| number.map(|number| number as f32));
        *vectors.get_mut(index)? = numbers.collect::<Option<Vec<f32>>>()?;
    }
    let length = vectors.first()?.len();
    let fit = length > 0 && vectors.iter().all(|vector| vector.len() == length);
    fit.then_some(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn embeddings_are_told_apart_by_their_index() {
        for (document, expected) in [
            (
                json!({"data": [{"index": 1, "embedding": [0.5]}, {"index": 0, "embedding": [1]}]}),
                Some(vec![vec![1.0], vec![0.5]]),
            ),
            (json!({"data": [{"embedding": [1]}, {"embedding": [2]}]}), Some(vec![vec![1.0], vec![2.0]])),
            (json!({"data": [{"embedding": [1]}]}), None),
            (json!({"data": [{"embedding": [1]}, {"embedding": [1, 2]}]}), None),
            (json!({"data": [{"index": 7, "embedding": [1]}]}), None),
            (json!({"data": [{"embedding": ["x"]}, {"embedding": [1]}]}), None),
            (json!({"error": "no"}), None),
        ] {
            assert_eq!(read(&document, 2), expected, "{document}");
        }
    }
}
