//! One entry of the audit log.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::json;
use squall_documents::named;
use squall_harness::digest::sha256;
use squall_journal::timestamp;

/// Longest text of an entry, bytes; longer ones are cut.
const LONGEST: usize = 512;

named! {
    /// The outcome of a change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum AuditOutcome {
        /// The change was made.
        Done = "done",
        /// The call was rejected; nothing was changed.
        Refused = "refused",
        /// Squall or its store failed.
        Failed = "failed",
    }
}

/// An entry of the audit log. It contains no secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AuditEntry {
    /// Its number, from 1 without gaps.
    pub number: i64,
    /// Time, RFC 3339.
    #[serde(serialize_with = "as_date")]
    #[schemars(with = "String")]
    pub at: i64,
    /// Workspace of what was changed.
    pub workspace: String,
    /// Name of the token; `-` without one, `squall` for changes without a call.
    pub actor: String,
    /// Address of the client; `-` for none.
    pub source: String,
    /// Method and route, or a word for a change without a call.
    pub action: String,
    /// The path, or the changed object.
    pub target: String,
    /// SHA-256 of the state before; `null`: it did not exist.
    pub before: Option<String>,
    /// SHA-256 of the state after; `null`: it no longer exists.
    pub after: Option<String>,
    /// `done`, `refused` or `failed`.
    pub outcome: String,
    /// A detail for people.
    pub detail: String,
    /// Hash of the previous entry.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn as_date<S: Serializer>(at: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&timestamp::rfc3339(at.unsigned_abs()))
}

impl AuditEntry {
    /// This entry after the entry with `number` and `hash`. Its texts are bounded and without NUL, which PostgreSQL
    /// does not support.
    #[must_use]
    pub fn after(mut self, number: i64, hash: &str) -> Self {
        let texts = [
            &mut self.workspace,
            &mut self.actor,
            &mut self.source,
            &mut self.action,
            &mut self.target,
            &mut self.detail,
        ];
        for text in texts {
            text.truncate(text.floor_char_boundary(LONGEST));
            *text = text.replace('\0', "\u{fffd}");
        }
        self.number = number + 1;
        hash.clone_into(&mut self.previous);
        self.hash = self.hashed();
        self
    }

    /// The hashed text: the previous hash, a line feed, and all other fields as a JSON list without spaces, in
    /// order.
    pub fn canonical(&self) -> String {
        let fields = json!([
            self.number,
            self.at,
            self.workspace,
            self.actor,
            self.source,
            self.action,
            self.target,
            self.before,
            self.after,
            self.outcome,
            self.detail,
        ]);
        format!("{}\n{fields}", self.previous)
    }

    /// SHA-256 of [`Self::canonical`].
    pub fn hashed(&self) -> String {
        sha256(self.canonical())
    }
}
