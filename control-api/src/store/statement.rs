//! SQL statements for both databases.

use std::fmt::Write as _;

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Any, Arguments as _, AssertSqlSafe, Encode, Executor, FromRow, Type};

use super::error::Cause;

/// A statement and the values of its `$1`, `$2` and so on.
pub(super) struct SqlStatement {
    text: String,
    values: AnyArguments,
    /// Whether connections keep it prepared.
    pub(super) is_kept: bool,
}

/// A statement with a constant text.
pub(super) fn sql(text: impl Into<String>) -> SqlStatement {
    SqlStatement {
        text: text.into(),
        values: AnyArguments::default(),
        is_kept: true,
    }
}

impl SqlStatement {
    /// Binds the next value.
    pub(super) fn bind<'t>(mut self, value: impl Encode<'t, Any> + Type<Any>) -> Self {
        self.add(value);
        self
    }

    /// Appends to the text, which then is not constant.
    pub(super) fn push(&mut self, text: &str) -> &mut Self {
        self.is_kept = false;
        self.text.push_str(text);
        self
    }

    /// Appends the placeholder of a value and binds it.
    pub(super) fn push_bind<'t>(&mut self, value: impl Encode<'t, Any> + Type<Any>) -> &mut Self {
        self.add(value);
        self.is_kept = false;
        // Writing to a string cannot fail.
        let _ = write!(self.text, "${}", self.values.len());
        self
    }

    fn add<'t>(&mut self, value: impl Encode<'t, Any> + Type<Any>) {
        self.values
            .add(value)
            .expect("numbers, texts and bytes can be encoded");
    }

    /// Executes it; returns the number of rows that it wrote.
    pub(super) async fn execute<'e>(
        self,
        on: impl Executor<'e, Database = Any>,
    ) -> Result<u64, Cause> {
        let query = sqlx::query_with(AssertSqlSafe(self.text), self.values);
        let done = query.persistent(self.is_kept).execute(on).await?;
        Ok(done.rows_affected())
    }

    /// Executes it; returns the rows.
    pub(super) async fn rows<'e, R>(
        self,
        on: impl Executor<'e, Database = Any>,
    ) -> Result<Vec<R>, Cause>
    where
        R: for<'r> FromRow<'r, AnyRow> + Send + Unpin,
    {
        let query = sqlx::query_as_with(AssertSqlSafe(self.text), self.values);
        Ok(query.persistent(self.is_kept).fetch_all(on).await?)
    }
}

/// A number in the type of databases.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
