//! Quotas: how many things of a kind a workspace may have, so that the others have room too.

/// How many things of a kind there may be at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The things, in the plural.
    pub what: &'static str,
    /// Most of one workspace.
    pub each: usize,
    /// Most of all workspaces together: what memory allows.
    pub all: usize,
    /// What makes room, as an imperative.
    pub remedy: &'static str,
}

/// A workspace, or all of them together, has as many as it may.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{whose} may have {most} {what} at a time; {remedy}")]
pub struct OverQuota {
    whose: String,
    most: usize,
    what: &'static str,
    remedy: &'static str,
}

impl Quota {
    /// Whether `workspace` may have one more; `held`: the workspace of each that there is.
    pub fn check(
        &self,
        workspace: &str,
        held: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), OverQuota> {
        self.check_sizes(workspace, 1, held.into_iter().map(|holder| (holder, 1)))
    }

    /// Whether `workspace` may have one more of size `new`; `held`: the workspace and the size of each that there is.
    pub fn check_sizes(
        &self,
        workspace: &str,
        new: usize,
        held: impl IntoIterator<Item = (impl AsRef<str>, usize)>,
    ) -> Result<(), OverQuota> {
        let (mut own, mut all) = (new, new);
        for (holder, size) in held {
            all += size;
            if holder.as_ref() == workspace {
                own += size;
            }
        }
        let (whose, most) = if own > self.each {
            (format!("the workspace `{workspace}`"), self.each)
        } else if all > self.all {
            ("all workspaces together".to_owned(), self.all)
        } else {
            return Ok(());
        };
        Err(OverQuota {
            whose,
            most,
            what: self.what,
            remedy: self.remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_its_own_limit_and_all_together_have_one() {
        let quota = Quota {
            what: "tapes",
            each: 2,
            all: 3,
            remedy: "stop one first",
        };
        let own = "the workspace `blue` may have 2 tapes at a time; stop one first";
        let all = "all workspaces together may have 3 tapes at a time; stop one first";
        for (held, over) in [
            (&[][..], None),
            (&["blue", "red"], None),
            (&["red", "red"], None),
            (&["blue", "blue"], Some(own)),
            (&["red", "red", "red", "blue", "blue"], Some(own)),
            (&["blue", "red", "red"], Some(all)),
            (&["red", "red", "red"], Some(all)),
        ] {
            let checked = quota.check("blue", held).map_err(|over| over.to_string());
            assert_eq!(checked.err().as_deref(), over, "{held:?}");
        }
    }
}
