//! The states of a run, as types: a move that is not in the drawing cannot be written down.
//!
//! ```text
//! queued ──▶ awaiting_approval ──▶ running ──▶ passed | failed | inconclusive | errored
//!   │  └──────────────┼─────────────▲ │
//!   └─────────────────┴──────────────┴─▶ cancelled | errored
//! ```
//!
//! A run that has not begun can end too: somebody cancels it, or its daemon ends.

use squall_journal::run::RunState;

/// It waits for its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Queued(());

/// It waits for somebody to say yes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AwaitingApproval(());

/// It is under way.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Running(());

/// Nothing comes after it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Over(Ending);

/// How a run that was under way ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The agent did what is demanded.
    Passed,
    /// It did not.
    Failed,
    /// Nothing is proved.
    Inconclusive,
    /// It could not be carried to its end.
    Errored,
    /// Somebody ended it, or a limit.
    Cancelled,
}

/// How a run ends that never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbegun {
    /// It cannot be executed.
    Errored,
    /// Somebody ended it.
    Cancelled,
}

/// From which state to which: made here only, so the store is never told of any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    from: RunState,
    to: RunState,
}

impl Move {
    pub(crate) fn from(self) -> RunState {
        self.from
    }

    pub(crate) fn to(self) -> RunState {
        self.to
    }
}

impl Ending {
    fn state(self) -> RunState {
        match self {
            Self::Passed => RunState::Passed,
            Self::Failed => RunState::Failed,
            Self::Inconclusive => RunState::Inconclusive,
            Self::Errored => RunState::Errored,
            Self::Cancelled => RunState::Cancelled,
        }
    }
}

impl From<Unbegun> for Ending {
    fn from(unbegun: Unbegun) -> Self {
        match unbegun {
            Unbegun::Errored => Self::Errored,
            Unbegun::Cancelled => Self::Cancelled,
        }
    }
}

impl Queued {
    /// A run that was just asked for.
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// It touches what needs a yes.
    pub(crate) fn hold(self) -> (AwaitingApproval, Move) {
        let to = RunState::AwaitingApproval;
        (AwaitingApproval(()), self.to(to))
    }

    /// It is its turn.
    pub(crate) fn start(self) -> (Running, Move) {
        (Running(()), self.to(RunState::Running))
    }

    /// It ends before it began.
    pub(crate) fn end(self, unbegun: Unbegun) -> (Over, Move) {
        let ending = Ending::from(unbegun);
        (Over(ending), self.to(ending.state()))
    }

    #[expect(clippy::unused_self, reason = "who moves on is no longer where it was")]
    fn to(self, to: RunState) -> Move {
        let from = RunState::Queued;
        Move { from, to }
    }
}

impl AwaitingApproval {
    /// Somebody has said yes, and it is its turn.
    pub(crate) fn start(self) -> (Running, Move) {
        (Running(()), self.to(RunState::Running))
    }

    /// It ends before it began.
    pub(crate) fn end(self, unbegun: Unbegun) -> (Over, Move) {
        let ending = Ending::from(unbegun);
        (Over(ending), self.to(ending.state()))
    }

    #[expect(clippy::unused_self, reason = "who moves on is no longer where it was")]
    fn to(self, to: RunState) -> Move {
        let from = RunState::AwaitingApproval;
        Move { from, to }
    }
}

impl Running {
    /// It ends.
    #[expect(clippy::unused_self, reason = "who moves on is no longer where it was")]
    pub(crate) fn end(self, ending: Ending) -> (Over, Move) {
        let (from, to) = (RunState::Running, ending.state());
        (Over(ending), Move { from, to })
    }
}

/// A run at any point of its life, for those who meet it there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Queued(Queued),
    AwaitingApproval(AwaitingApproval),
    Running(Running),
    Over(Over),
}

impl Life {
    #[cfg(test)]
    pub(crate) fn state(&self) -> RunState {
        match self {
            Self::Queued(_) => RunState::Queued,
            Self::AwaitingApproval(_) => RunState::AwaitingApproval,
            Self::Running(_) => RunState::Running,
            Self::Over(Over(ending)) => ending.state(),
        }
    }

    /// Ends a run that has not begun. The life itself for one that has.
    pub(crate) fn end_unbegun(self, unbegun: Unbegun) -> Result<(Self, Move), Self> {
        let (over, to) = match self {
            Self::Queued(queued) => queued.end(unbegun),
            Self::AwaitingApproval(waiting) => waiting.end(unbegun),
            begun @ (Self::Running(_) | Self::Over(_)) => return Err(begun),
        };
        Ok((Self::Over(over), to))
    }

    /// Begins a run whose turn it is. The life itself for one that has begun.
    pub(crate) fn start(self) -> Result<(Self, Move), Self> {
        let (running, to) = match self {
            Self::Queued(queued) => queued.start(),
            Self::AwaitingApproval(waiting) => waiting.start(),
            begun @ (Self::Running(_) | Self::Over(_)) => return Err(begun),
        };
        Ok((Self::Running(running), to))
    }

    /// Ends a run that is under way. The life itself for one that is not.
    pub(crate) fn end(self, ending: Ending) -> Result<(Self, Move), Self> {
        match self {
            Self::Running(running) => {
                let (over, to) = running.end(ending);
                Ok((Self::Over(over), to))
            }
            other => Err(other),
        }
    }

    /// Holds a run that was just asked for. The life itself for any other.
    pub(crate) fn hold(self) -> Result<(Self, Move), Self> {
        match self {
            Self::Queued(queued) => {
                let (waiting, to) = queued.hold();
                Ok((Self::AwaitingApproval(waiting), to))
            }
            other => Err(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ENDINGS: [Ending; 5] = [
        Ending::Passed,
        Ending::Failed,
        Ending::Inconclusive,
        Ending::Errored,
        Ending::Cancelled,
    ];

    /// What is wanted of a run, sensible or not.
    #[derive(Debug, Clone, Copy)]
    enum Wish {
        Hold,
        Start,
        EndUnbegun(Unbegun),
        End(Ending),
    }

    fn any_wish() -> impl Strategy<Value = Wish> {
        prop_oneof![
            Just(Wish::Hold),
            Just(Wish::Start),
            Just(Wish::EndUnbegun(Unbegun::Errored)),
            Just(Wish::EndUnbegun(Unbegun::Cancelled)),
            prop::sample::select(&ENDINGS[..]).prop_map(Wish::End),
        ]
    }

    /// The drawing, as a table.
    fn is_drawn(from: RunState, to: RunState) -> bool {
        use RunState as S;
        match from {
            S::Queued => matches!(
                to,
                S::AwaitingApproval | S::Running | S::Errored | S::Cancelled
            ),
            S::AwaitingApproval => matches!(to, S::Running | S::Errored | S::Cancelled),
            S::Running => to.is_over(),
            S::Passed | S::Failed | S::Inconclusive | S::Errored | S::Cancelled => false,
        }
    }

    proptest! {
        /// Whatever is wanted of a run, in whatever order, it moves along the drawing or stays.
        #[test]
        fn a_run_moves_along_the_drawing_or_not_at_all(wishes in prop::collection::vec(any_wish(), 0..20)) {
            let mut life = Life::Queued(Queued::new());
            for wish in wishes {
                let before = life.state();
                let moved = match wish {
                    Wish::Hold => life.hold(),
                    Wish::Start => life.start(),
                    Wish::EndUnbegun(unbegun) => life.end_unbegun(unbegun),
                    Wish::End(ending) => life.end(ending),
                };
                life = match moved {
                    Ok((life, to)) => {
                        prop_assert!(is_drawn(to.from(), to.to()), "{to:?}");
                        prop_assert_eq!((to.from(), to.to()), (before, life.state()));
                        life
                    }
                    Err(life) => {
                        prop_assert_eq!(life.state(), before);
                        life
                    }
                };
            }
        }
    }

    #[test]
    fn a_run_comes_to_every_state_and_over_is_over() {
        let queued = || Life::Queued(Queued::new());
        let running = || queued().start().expect("its turn").0;
        let held = queued().hold().expect("held").0;
        assert_eq!(held.state(), RunState::AwaitingApproval);
        assert_eq!(held.start().expect("a yes").0.state(), RunState::Running);
        for ending in ENDINGS {
            let over = running().end(ending).expect("it was under way").0;
            assert!(over.state().is_over());
            let over = over.start().expect_err("over is over");
            let over = over
                .end_unbegun(Unbegun::Cancelled)
                .expect_err("over is over");
            over.end(Ending::Passed).expect_err("over is over");
        }
    }
}
