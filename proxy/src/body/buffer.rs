//! Memory for bodies: how much of them may be held, and the one buffer that holds their beginning.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// How much may be held back: by one body, and by all of them.
#[derive(Debug, Clone)]
pub(crate) struct Inspect {
    limit: u64,
    memory: Arc<Memory>,
}

#[derive(Debug)]
struct Memory {
    total: u64,
    free: AtomicU64,
}

impl Inspect {
    /// At most `limit` bytes a body (`inspect_limit`) and `memory` bytes in all
    /// (`inspect_memory`). Clones share the memory.
    pub(crate) fn new(limit: u64, memory: u64) -> Self {
        let memory = Memory {
            total: memory,
            free: AtomicU64::new(memory),
        };
        Self {
            limit,
            memory: Arc::new(memory),
        }
    }

    /// The largest body that may be held back, bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// A lease of no memory yet.
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            memory: Arc::clone(&self.memory),
            taken: 0,
        }
    }
}

/// Memory taken for a body that is held back; given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<Memory>,
    taken: u64,
}

impl Lease {
    /// Takes `bytes` more, if there are that many.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), TooMuch> {
        self.memory
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free| {
                free.checked_sub(bytes)
            })
            .map_err(|_| TooMuch::Memory(self.memory.total))?;
        self.taken += bytes;
        Ok(())
    }

    /// Takes as much more as there is to be `bytes` in all.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.grow((bytes as u64).saturating_sub(self.taken))
    }

    /// The same bytes; the memory is given back when the last handle to them is gone.
    pub(crate) fn hold(self, bytes: Bytes) -> Bytes {
        struct LeasedBytes(
            Bytes,
            #[expect(dead_code, reason = "held for its drop")] Lease,
        );
        impl AsRef<[u8]> for LeasedBytes {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Bytes::from_owner(LeasedBytes(bytes, self))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.memory.free.fetch_add(self.taken, Ordering::Relaxed);
    }
}

/// Why a body cannot be held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// It is longer than `inspect_limit`, given here.
    Body(u64),
    /// It would take more than is left of `inspect_memory`, given here.
    Memory(u64),
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Body(limit) => {
                write!(f, "the body is longer than `inspect_limit` ({limit} bytes)")
            }
            Self::Memory(total) => write!(
                f,
                "other bodies that are held back take up `limits.inspect_memory` ({total} bytes)"
            ),
        }
    }
}

/// The beginning of a body, in the pieces in which it passed: handles to bytes, bounded.
#[derive(Debug)]
pub(crate) struct Buffer {
    pieces: Vec<Bytes>,
    length: usize,
    most: usize,
    lease: Option<Lease>,
    is_cut: bool,
}

impl Buffer {
    /// A buffer of at most `most` bytes, which take nothing from any budget.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            pieces: Vec::new(),
            length: 0,
            most,
            lease: None,
            is_cut: false,
        }
    }

    /// A buffer of as many bytes as one body may take of `inspect`.
    pub(crate) fn within(inspect: &Inspect) -> Self {
        Self {
            lease: Some(inspect.lease()),
            ..Self::new(usize::try_from(inspect.limit()).unwrap_or(usize::MAX))
        }
    }

    /// Keeps what there is room for of a piece. How many bytes that were.
    pub(crate) fn push(&mut self, piece: &Bytes) -> usize {
        let mut kept = piece.len().min(self.most - self.length);
        if let Some(lease) = &mut self.lease
            && lease.grow(kept as u64).is_err()
        {
            kept = 0;
        }
        if kept > 0 {
            self.length += kept;
            self.pieces.push(piece.slice(..kept));
        }
        if kept < piece.len() {
            self.is_cut = true;
            self.most = self.length;
        }
        kept
    }

    /// Bytes that are held.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether there was more.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What is held, piece by piece.
    pub(crate) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// What is held in one piece; no copy when it came in one.
    pub(crate) fn whole(&self) -> Bytes {
        match &*self.pieces {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// What is held in memory of its own: a piece may be a small part of a large buffer.
    pub(crate) fn copied(&self) -> Bytes {
        self.pieces.concat().into()
    }
}
