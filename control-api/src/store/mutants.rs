//! Mutants that models wrote, so that a repeated run gets the same ones without calls.

use super::statement::{signed, sql};
use super::{Store, StoreError};

const PUT: &str = "INSERT INTO mutants (workspace, id, texts, written) \
     VALUES ($1, $2, $3, (SELECT COALESCE(MAX(written), 0) + 1 FROM mutants WHERE workspace = $1)) \
     ON CONFLICT (workspace, id) DO UPDATE SET texts = excluded.texts, written = excluded.written";
const PRUNE: &str = "DELETE FROM mutants WHERE workspace = $1 AND id IN (SELECT id FROM mutants \
     WHERE workspace = $1 ORDER BY written DESC LIMIT 1000 OFFSET $2)";
const GET: &str = "SELECT texts FROM mutants WHERE workspace = $1 AND id = $2";

impl Store {
    /// The texts of a key; `None`: there are none.
    pub async fn mutants(&self, workspace: &str, id: &str) -> Result<Option<String>, StoreError> {
        self.bounded(async {
            let get = sql(GET).bind(workspace).bind(id);
            let rows: Vec<(String,)> = get.rows(&self.reader).await?;
            Ok(rows.into_iter().next().map(|(texts,)| texts))
        })
        .await
    }

    /// Replaces the texts of a key, and deletes the oldest keys of its workspace until `most` are left.
    pub async fn put_mutants(
        &self,
        workspace: &str,
        id: &str,
        texts: &str,
        most: u64,
    ) -> Result<(), StoreError> {
        self.bounded(async {
            let put = sql(PUT).bind(workspace).bind(id).bind(texts);
            put.execute(&self.writer).await?;
            let prune = sql(PRUNE).bind(workspace).bind(signed(most));
            prune.execute(&self.writer).await?;
            Ok(())
        })
        .await
    }
}
