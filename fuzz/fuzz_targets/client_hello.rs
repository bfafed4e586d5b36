//! The first bytes of a connection, from anybody, in any chunks: nothing panics, and neither what
//! the connection is taken for nor what its `ClientHello` says hangs on the chunking.
//!
//! The first byte chooses the chunk size; the rest is the connection.

#![no_main]

use libfuzzer_sys::fuzz_target;
use squall_proxy::http1::sniff::{Sniff, classify};
use squall_proxy::tls::{ClientHello, HelloReader};

fuzz_target!(|input: &[u8]| {
    let [size, connection @ ..] = input else {
        return;
    };
    let size = usize::from(*size).max(1);
    sniff(connection);
    assert_eq!(hello(connection, size), hello(connection, usize::MAX));
});

/// Once the answer is clear, more bytes do not change it.
fn sniff(connection: &[u8]) {
    let whole = classify(connection);
    let decided = (0..=connection.len())
        .map(|end| classify(&connection[..end]))
        .find(|sniff| *sniff != Sniff::NeedMore);
    assert_eq!(decided.unwrap_or(Sniff::NeedMore), whole);
}

fn hello(connection: &[u8], size: usize) -> Result<Option<ClientHello>, String> {
    let mut reader = HelloReader::new();
    for chunk in connection.chunks(size) {
        if let Some(hello) = reader.push(chunk).map_err(|error| error.to_string())? {
            return Ok(Some(hello));
        }
    }
    Ok(None)
}
