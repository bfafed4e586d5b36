//! Deterministic random draws.
//!
//! A draw is a keyed hash (XXH3, 64 bits, stable across releases) of seed, activation key, rule id,
//! request fingerprint, attempt and the number of the draw. There is no shared generator state. So
//! editing one rule changes no other rule's draws, and requests may arrive in any order. Decisions
//! use integers; floats are only printed.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::fingerprint::Fingerprint;

/// Parts per million, the unit of probabilities and draws.
pub const MILLION: u32 = 1_000_000;

/// The part of a draw that is the same for every exchange: seed, activation key and rule id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleKey(u64);

impl RuleKey {
    /// Hashes all three with their lengths, so that different triples cannot have equal input.
    pub fn new(seed: u64, activation_key: &str, rule_id: &str) -> Self {
        let mut hash = Xxh3::new();
        hash.update(&seed.to_le_bytes());
        for part in [activation_key, rule_id] {
            hash.update(&(part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        Self(hash.digest())
    }
}

/// The dice of one rule in one exchange.
///
/// The first draw belongs to the trigger, even if it is not used; the fault's draws follow it.
#[derive(Debug, Clone)]
pub struct Dice {
    key: RuleKey,
    fingerprint: u64,
    attempt: u64,
    draws: u64,
}

impl Dice {
    /// The dice of the rule behind `key` for the `attempt`-th request with this fingerprint.
    pub fn new(key: RuleKey, fingerprint: Fingerprint, attempt: u64) -> Self {
        Self {
            key,
            fingerprint: fingerprint.0,
            attempt,
            draws: 0,
        }
    }

    /// Dice whose result does not matter, for querying the effect of a fault.
    pub(crate) fn unrolled() -> Self {
        Self::new(RuleKey(0), Fingerprint(0), 0)
    }

    /// The trigger's draw, 0 to 999 999. It is constant.
    pub fn trigger(&self) -> u32 {
        narrow(scale(self.hash(0), u64::from(MILLION)))
    }

    /// The fault's next draw, 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        scale(self.next_choice(), bound)
    }

    /// The fault's next draw, as all 64 bits.
    pub fn next_choice(&mut self) -> u64 {
        self.draws += 1;
        self.hash(self.draws)
    }

    fn hash(&self, draw: u64) -> u64 {
        let mut input = [0; 24];
        input[..8].copy_from_slice(&self.fingerprint.to_le_bytes());
        input[8..16].copy_from_slice(&self.attempt.to_le_bytes());
        input[16..].copy_from_slice(&draw.to_le_bytes());
        xxh3_64_with_seed(&input, self.key.0)
    }
}

/// Maps a draw to a number below a million.
fn narrow(draw: u64) -> u32 {
    u32::try_from(draw).expect("below a million")
}

/// Maps 64 random bits onto `0..bound` by their high part (Lemire's multiplication; the bias is
/// below `bound / 2^64`).
fn scale(bits: u64, bound: u64) -> u64 {
    u64::try_from((u128::from(bits) * u128::from(bound)) >> 64).expect("below bound")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dice(seed: u64, key: &str, rule: &str, fingerprint: u64, attempt: u64) -> Dice {
        Dice::new(
            RuleKey::new(seed, key, rule),
            Fingerprint(fingerprint),
            attempt,
        )
    }

    /// Golden values: a seed in a bug report must replay in every later release.
    #[test]
    fn draws_never_change_between_releases() {
        for (seed, key, rule, fingerprint, attempt, trigger) in [
            (0, "", "", 0, 0, 890_155),
            (42, "default", "error-1a2b3c4d", 7, 1, 513_998),
            (42, "default", "error-1a2b3c4d", 7, 2, 86_956),
            (42, "default", "error-1a2b3c4d", 8, 1, 431),
            (43, "default", "error-1a2b3c4d", 7, 1, 535_610),
            (42, "cell/1/0", "error-1a2b3c4d", 7, 1, 929_573),
        ] {
            assert_eq!(
                dice(seed, key, rule, fingerprint, attempt).trigger(),
                trigger,
                "{seed} {key} {rule} {fingerprint} {attempt}"
            );
        }
        let mut dice = dice(42, "default", "slow", 7, 1);
        assert_eq!(
            [dice.below(1000), dice.below(1000), dice.below(1000)],
            [70, 52, 66]
        );
    }

    #[test]
    fn a_faults_choices_do_not_hang_on_whether_the_trigger_drew() {
        let mut one = dice(1, "k", "r", 2, 3);
        let mut other = one.clone();
        one.trigger();
        assert_eq!(one.next_choice(), other.next_choice());
    }

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(RuleKey::new(1, "ab", "c"), RuleKey::new(1, "a", "bc"));
    }
}
