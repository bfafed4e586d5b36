use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A wire and the socket at its other end.
async fn connected() -> (Socket, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let far = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let (near, _) = listener.accept().await.unwrap();
    (Socket::new(near).unwrap(), far)
}

#[tokio::test]
async fn bytes_are_counted_in_both_directions() {
    let (mut wire, mut far) = connected().await;
    let control = wire.control();
    far.write_all(b"hello").await.unwrap();
    let mut five = [0; 5];
    wire.read_exact(&mut five).await.unwrap();
    wire.write_all(b"goodbye").await.unwrap();
    assert_eq!(control.moved(), 12);
    assert_eq!(control.local(), far.peer_addr().unwrap());
}

#[tokio::test]
async fn a_reset_is_an_rst_and_nothing_leaves_before_it() {
    let (mut wire, mut far) = connected().await;
    wire.write_all(b"kept").await.unwrap();
    let mut four = [0; 4];
    far.read_exact(&mut four).await.unwrap();
    wire.control().reset_on_close();
    wire.write_all(b"swallowed").await.unwrap();
    wire.shutdown().await.unwrap();
    assert_eq!(wire.control().moved(), 4);
    drop(wire);
    let error = far.read(&mut four).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn without_a_reset_a_close_is_a_fin() {
    let (wire, mut far) = connected().await;
    drop(wire);
    assert_eq!(far.read(&mut [0; 4]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_abort_ends_a_read_that_waits() {
    let (mut wire, _far) = connected().await;
    let control = wire.control();
    let mut byte = [0];
    let (read, ()) = tokio::join!(wire.read(&mut byte), async { control.abort() });
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
    let written = wire.write(b"x").await;
    assert_eq!(
        written.unwrap_err().kind(),
        io::ErrorKind::ConnectionAborted
    );
}

#[tokio::test]
async fn a_reset_frees_a_write_that_waits() {
    let (mut wire, _far) = connected().await;
    let control = wire.control();
    // More than the kernel takes while nobody reads.
    let much = vec![0; 64 << 20];
    let (written, ()) = tokio::join!(wire.write_all(&much), async { control.reset_on_close() });
    written.unwrap();
    assert!(control.moved() < much.len() as u64);
}
