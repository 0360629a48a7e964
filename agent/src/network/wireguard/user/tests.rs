//! Two nodes with devices and sockets.

use super::testing::{FAR, NEAR, Near, inner, pair};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

fn ask(near: &Near, text: &str) -> String {
    let mut stream = TcpStream::connect((inner(FAR), near.answering.echo)).unwrap();
    assert_eq!(stream.local_addr().unwrap().ip(), inner(NEAR));
    stream.write_all(text.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn packets_pass_between_two_nodes_and_again_after_a_restart() {
    pair(|near| {
        let long = "x".repeat(300_000);
        assert_eq!(ask(near, &long), long);
        // A connection outlives the agent, as the link does.
        let mut stream = TcpStream::connect((inner(FAR), near.answering.echo)).unwrap();
        stream.write_all(b"before ").unwrap();
        near.restart();
        stream.write_all(b"and after").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "before and after");
        assert_eq!(ask(near, &long), long);
        assert!(near.is_running());
    });
}
