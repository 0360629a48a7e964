//! A state reaches the socket of the service manager.

use super::*;

#[test]
fn a_state_reaches_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    send_to(path.as_os_str().as_encoded_bytes(), "READY=1").unwrap();
    let mut buffer = [0; 16];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"READY=1");
}
