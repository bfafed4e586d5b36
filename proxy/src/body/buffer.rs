//! Memory of buffered bodies: the limits, and the bounded buffer for the start of a body.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

/// Memory limits: per body, and for all bodies.
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
    /// At most `limit` bytes per body (`inspect_limit`) and `memory` bytes in total
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

    /// The largest body to buffer, bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// A lease without memory.
    pub(crate) fn lease(&self) -> Lease {
        Lease {
            memory: Arc::clone(&self.memory),
            taken: 0,
        }
    }
}

/// Memory reserved for a buffered body; released when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    memory: Arc<Memory>,
    taken: u64,
}

impl Lease {
    /// Reserves `bytes` more, if available.
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

    /// Reserves enough for `bytes` in total.
    pub(crate) fn cover(&mut self, bytes: usize) -> Result<(), TooMuch> {
        self.grow((bytes as u64).saturating_sub(self.taken))
    }

    /// The same bytes; the memory is released with the last reference to them.
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

/// Why a body cannot be buffered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooMuch {
    /// It is longer than `inspect_limit`, given here.
    Body(u64),
    /// It needs more than remains of `inspect_memory`, given here.
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

/// The start of a body, as bounded references to the pieces that passed.
#[derive(Debug)]
pub(crate) struct Buffer {
    pieces: Vec<Bytes>,
    length: usize,
    most: usize,
    lease: Option<Lease>,
    is_cut: bool,
}

impl Buffer {
    /// A buffer of at most `most` bytes, without a lease.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            pieces: Vec::new(),
            length: 0,
            most,
            lease: None,
            is_cut: false,
        }
    }

    /// A buffer with the limit per body of `inspect`.
    pub(crate) fn within(inspect: &Inspect) -> Self {
        Self {
            lease: Some(inspect.lease()),
            ..Self::new(usize::try_from(inspect.limit()).unwrap_or(usize::MAX))
        }
    }

    /// Stores as much of a piece as fits; returns the number of stored bytes.
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

    /// Number of stored bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Whether bytes were left out.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The stored bytes, piece by piece.
    pub(crate) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }

    /// The stored bytes as one piece; no copy if there was only one.
    pub(crate) fn whole(&self) -> Bytes {
        match &*self.pieces {
            [only] => only.clone(),
            pieces => pieces.concat().into(),
        }
    }

    /// A copy of the stored bytes: a piece may refer to a large buffer.
    pub(crate) fn copied(&self) -> Bytes {
        self.pieces.concat().into()
    }
}
