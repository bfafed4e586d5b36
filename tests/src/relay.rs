//! A TCP relay that can be cut.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Passes connections on to another address, until it is cut.
#[derive(Debug)]
pub struct Relay {
    /// Where it listens.
    pub address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    is_cut: bool,
    open: Vec<TcpStream>,
}

impl Relay {
    /// Passes connections on to `target`.
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("a bound listener");
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let mut state = shared.lock().expect("no thread panics with it");
                // A cut one closes what it accepts.
                if !state.is_cut
                    && let Ok(far) = TcpStream::connect(target)
                {
                    state.open.extend(pass(&near, &far).unwrap_or_default());
                }
            }
        });
        Self { address, state }
    }

    /// Closes every connection, and each that comes.
    pub fn cut(&self) {
        let mut state = self.state.lock().expect("no thread panics with it");
        state.is_cut = true;
        for stream in state.open.drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes connections on again.
    pub fn mend(&self) {
        self.state.lock().expect("no thread panics with it").is_cut = false;
    }
}

/// Copies both ways; the streams, to close them.
fn pass(near: &TcpStream, far: &TcpStream) -> io::Result<Vec<TcpStream>> {
    for (from, to) in [(near, far), (far, near)] {
        let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Both);
        });
    }
    Ok(vec![near.try_clone()?, far.try_clone()?])
}
