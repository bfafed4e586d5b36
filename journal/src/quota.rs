//! Quotas: the most objects of a kind that a workspace may have, so that others have room too.

/// The most objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Name of the objects, in the plural.
    pub what: &'static str,
    /// Limit of one workspace.
    pub each: usize,
    /// Limit of all workspaces together, set by memory.
    pub all: usize,
    /// How to make room, as an imperative.
    pub remedy: &'static str,
}

/// A workspace, or all together, have reached the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{whose} may have {most} {what} at a time; {remedy}")]
pub struct OverQuota {
    whose: String,
    most: usize,
    what: &'static str,
    remedy: &'static str,
}

impl Quota {
    /// Whether `workspace` may have one more; `held` has the workspace of each existing object.
    pub fn check(
        &self,
        workspace: &str,
        held: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<(), OverQuota> {
        self.check_sizes(workspace, 1, held.into_iter().map(|holder| (holder, 1)))
    }

    /// Whether `workspace` may have one more of size `new`; `held` has workspace and size of each existing
    /// object.
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
