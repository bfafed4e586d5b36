//! The search through the fault space, by the number of faults: points with one, those with two, those with three.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::fault;
use crate::count::count;
use crate::run::{ExplorationRecord, ExploredCall, FaultPoint, FaultSpace, PointFault, PointState};

/// Most points of a round. It is no option, so that the points depend on results only.
const ROUND: usize = 16;

/// A search in progress. Its record is all that it knows, so a search continues from the record of an interrupted one.
pub(crate) struct CallSearch {
    record: ExplorationRecord,
    /// The faults of the points to execute.
    queue: VecDeque<Vec<PointFault>>,
    /// Those with three faults, which come after the pairs.
    deep: Vec<Vec<PointFault>>,
    are_pairs_queued: bool,
    /// The record of the interrupted search.
    earlier: Option<ExplorationRecord>,
}

/// A point to execute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Planned {
    /// Its name, unique in the search.
    pub(crate) name: String,
    /// Number of the golden prompt, from 1.
    pub(crate) prompt: u64,
    /// Its faults, in the order of their calls.
    pub(crate) faults: Vec<PointFault>,
}

/// What an executed point showed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PointResult {
    pub(crate) state: PointState,
    /// Digest of what the agent did.
    pub(crate) behaviour: String,
    /// The calls of the invocation.
    pub(crate) calls: Vec<ExploredCall>,
}

impl CallSearch {
    /// Begins after a clean run of this many invocations with these calls.
    pub(crate) fn new(
        budget: u64,
        invocations: u64,
        calls: Vec<ExploredCall>,
        earlier: Option<(&str, &ExplorationRecord)>,
    ) -> Self {
        // The results that are taken over are never more than the budget.
        let used = earlier.filter(|(_, record)| !record.points.is_empty());
        let used = used.map_or(0, |(_, record)| record.invocations);
        let mut search = Self {
            record: ExplorationRecord {
                budget: budget.max(used),
                invocations,
                resumed: earlier.map(|(run, _)| run.to_owned()),
                ..ExplorationRecord::default()
            },
            queue: VecDeque::new(),
            deep: Vec::new(),
            are_pairs_queued: false,
            earlier: earlier.map(|(_, record)| record.clone()),
        };
        search.join(calls);
        search
    }

    /// What was executed and found so far.
    pub(crate) fn record(&self) -> ExplorationRecord {
        ExplorationRecord {
            single: self.single(),
            pairs: self.pairs(),
            ..self.record.clone()
        }
    }

    /// The points to execute next; none if the budget or the fault space is used up. Results of an interrupted
    /// search are taken over.
    pub(crate) fn next(&mut self) -> Vec<Planned> {
        let mut planned = Vec::new();
        while planned.len() < ROUND
            && self.record.invocations + (planned.len() as u64) < self.record.budget
        {
            // What is pruned depends on all points with fewer faults.
            let faults = self.queue.front().map(Vec::len);
            if planned
                .last()
                .is_some_and(|last: &Planned| Some(last.faults.len()) != faults)
            {
                break;
            }
            let Some(faults) = self.queue.pop_front() else {
                if self.are_pairs_queued {
                    break;
                }
                self.queue = self.candidates().into();
                self.queue.extend(std::mem::take(&mut self.deep));
                self.are_pairs_queued = true;
                continue;
            };
            if self.is_failure_again(&faults) {
                self.record.single.pruned += 1;
                continue;
            }
            let point = self.planned(faults);
            match self.observed_before(&point) {
                Some(observed) if planned.is_empty() => self.add(&point, observed),
                Some(_) | None => planned.push(point),
            }
        }
        planned
    }

    /// Adds the result of a point. The points of a round are added in their order.
    pub(crate) fn add(&mut self, point: &Planned, observed: PointResult) {
        self.record.invocations += 1;
        self.record.points.push(FaultPoint {
            name: point.name.clone(),
            faults: point.faults.clone(),
            state: observed.state,
            behaviour: observed.behaviour,
        });
        // A failure under more faults would be this one again. Calls under a pair would be points with three faults.
        if observed.state == PointState::Passed && !self.are_pairs_queued {
            let new = observed.calls.into_iter().filter(|call| {
                let mut known = self.record.calls.iter();
                !known.any(|known| is_same(known, call))
            });
            let new = new.map(|call| ExploredCall {
                prompt: point.prompt,
                under: point.faults.clone(),
                ..call
            });
            let new = new.collect();
            self.join(new);
        }
    }

    /// Adds calls, and queues their points: one fault after the other, each on all of them.
    fn join(&mut self, calls: Vec<ExploredCall>) {
        let first = self.record.calls.len();
        self.record.calls.extend(calls);
        let calls = self.record.calls.iter().enumerate().skip(first);
        let mut points: Vec<_> = calls
            .flat_map(|(number, call)| {
                let faults = call.faults.iter();
                faults.map(move |fault| {
                    let mut faults = call.under.clone();
                    faults.push(PointFault {
                        call: number,
                        fault: fault.clone(),
                    });
                    (fault::rank(fault), faults)
                })
            })
            .collect();
        points.sort_by_key(|(rank, _)| *rank);
        for (_, faults) in points {
            match faults.len() {
                1 | 2 => self.queue.push_back(faults),
                _ => self.deep.push(faults),
            }
        }
    }

    /// Whether the last fault fails on a call of the same name under some of these faults, or alone. The point would
    /// show that failure again.
    fn is_failure_again(&self, faults: &[PointFault]) -> bool {
        let calls = &self.record.calls;
        let Some((last, first)) = faults.split_last() else {
            return false;
        };
        if calls[last.call].under.is_empty() {
            return false;
        }
        self.record.in_state(PointState::Failed).any(|point| {
            let Some((known, under)) = point.faults.split_last() else {
                return false;
            };
            known.fault == last.fault
                && calls[known.call].call == calls[last.call].call
                && under.len() < first.len()
                && under.iter().all(|one| first.contains(one))
        })
    }

    fn planned(&self, faults: Vec<PointFault>) -> Planned {
        let calls = &self.record.calls;
        let names = faults.iter().map(|one| {
            let call = self.record.call_name(one.call);
            format!("{} on the {call}", one.fault)
        });
        let mut name = names.collect::<Vec<_>>().join(" and ");
        let prompt = faults.first().map_or(1, |one| calls[one.call].prompt);
        if calls.iter().any(|call| call.prompt != 1) {
            name = format!("{name}, prompt {prompt}");
        }
        Planned {
            name,
            prompt,
            faults,
        }
    }

    fn observed_before(&self, point: &Planned) -> Option<PointResult> {
        let earlier = self.earlier.as_ref()?;
        let mut points = earlier.points.iter();
        let found = points.find(|one| one.name == point.name)?;
        let calls = earlier.calls.iter();
        let calls = calls.filter(|call| !call.under.is_empty() && call.under == found.faults);
        Some(PointResult {
            state: found.state,
            behaviour: found.behaviour.clone(),
            calls: calls.cloned().collect(),
        })
    }

    /// The executed points with one fault on a call of the clean run, one of each class: the first that passed with
    /// this behaviour on this call. A pair with a failed fault would be its failure again.
    fn representatives(&self) -> BTreeMap<usize, Vec<&FaultPoint>> {
        let mut classes = BTreeSet::new();
        let mut representatives: BTreeMap<usize, Vec<&FaultPoint>> = BTreeMap::new();
        for point in self.record.in_state(PointState::Passed) {
            if let [one] = &point.faults[..]
                && classes.insert((one.call, &point.behaviour))
            {
                representatives.entry(one.call).or_default().push(point);
            }
        }
        representatives
    }

    /// Pairs of calls of the clean run that belong to different logical calls of one prompt.
    fn pairs_of_calls(&self) -> impl Iterator<Item = (usize, usize)> {
        let calls = &self.record.calls;
        let clean = calls.iter().take_while(|call| call.under.is_empty());
        let clean: Vec<_> = clean.enumerate().collect();
        clean.clone().into_iter().flat_map(move |(number, call)| {
            let later = clean.clone().into_iter().skip(number + 1);
            later.filter_map(move |(other, later)| {
                let differ = call.prompt == later.prompt && call.logical != later.logical;
                differ.then_some((number, other))
            })
        })
    }

    /// The pairs of representatives: those of the first representatives of all calls before those of the next ones.
    fn candidates(&self) -> Vec<Vec<PointFault>> {
        let representatives = self.representatives();
        let of = |call: usize| representatives.get(&call).into_iter().flatten().enumerate();
        let pairs = self.pairs_of_calls().flat_map(|(call, other)| {
            of(call).flat_map(move |(place, one)| {
                of(other).map(move |(second, another)| {
                    let faults = one.faults.iter().chain(&another.faults);
                    (place + second, faults.cloned().collect())
                })
            })
        });
        let mut pairs: Vec<(usize, Vec<PointFault>)> = pairs.collect();
        pairs.sort_by_key(|(distance, _)| *distance);
        pairs.into_iter().map(|(_, faults)| faults).collect()
    }

    fn single(&self) -> FaultSpace {
        let calls = self.record.calls.iter();
        let executed = self.record.points.iter().filter(|one| !self.is_pair(one));
        FaultSpace {
            points: calls.map(|call| call.faults.len() as u64).sum(),
            executed: executed.count() as u64,
            pruned: self.record.single.pruned,
        }
    }

    fn pairs(&self) -> FaultSpace {
        let representatives = self.representatives();
        let calls = &self.record.calls;
        let mut executed: BTreeMap<usize, u64> = BTreeMap::new();
        for point in &self.record.points {
            if let [one] = &point.faults[..] {
                *executed.entry(one.call).or_default() += 1;
            }
        }
        // Faults of a call that may take part: its representatives, and those that were not executed yet.
        let able = |call: usize| {
            let chosen = representatives.get(&call).map_or(0, Vec::len) as u64;
            let executed = executed.get(&call).copied().unwrap_or(0);
            (calls[call].faults.len() as u64 + chosen).saturating_sub(executed)
        };
        let (mut points, mut able_points) = (0, 0);
        for (call, other) in self.pairs_of_calls() {
            points += (calls[call].faults.len() * calls[other].faults.len()) as u64;
            able_points += able(call) * able(other);
        }
        let executed = self.record.points.iter().filter(|one| self.is_pair(one));
        FaultSpace {
            points,
            executed: executed.count() as u64,
            pruned: points - able_points,
        }
    }

    /// Whether a point has two faults on calls of the clean run.
    fn is_pair(&self, point: &FaultPoint) -> bool {
        let under = |one: &PointFault| !self.record.calls[one.call].under.is_empty();
        point.faults.len() > 1 && !point.faults.iter().any(under)
    }
}

impl ExplorationRecord {
    /// The result in a sentence.
    pub fn summary(&self) -> String {
        let of = |state| self.in_state(state).count();
        format!(
            "{} executed in {} of at most {}: {} passed, {} failed, {} not reached, {} not judged",
            count(self.points.len(), "point"),
            count(self.invocations, "invocation"),
            self.budget,
            of(PointState::Passed),
            of(PointState::Failed),
            of(PointState::NotReached),
            of(PointState::NotJudged),
        )
    }
}

fn is_same(one: &ExploredCall, other: &ExploredCall) -> bool {
    one.prompt == other.prompt && one.call == other.call && one.number == other.number
}
