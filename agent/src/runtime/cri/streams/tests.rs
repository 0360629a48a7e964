//! Streams over a pipe, whose other end is the runtime.

use super::{AttachConfig, connect, exit_code, streams_of};
use bytes::BytesMut;
use coracle_streams::spdy::frame::{self, Frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ALL: AttachConfig = AttachConfig {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};
const SUCCESS: &[u8] = br#"{"metadata":{},"status":"Success"}"#;

#[tokio::test]
async fn outputs_arrive_and_input_is_closed_by_itself() {
    let (near, mut runtime) = tokio::io::duplex(1 << 16);
    let mut streams = streams_of(near, ALL);
    let mut stdin = streams.stdin.take().unwrap();
    stdin.write_all(b"to the command").await.unwrap();
    drop(stdin);
    let (exit, all) = tokio::join!(streams.exit, async {
        // The streams are numbered in the order in which they are opened.
        let (error, input, stdout, stderr) = (1, 3, 5, 7);
        let (mut buffer, mut given) = (BytesMut::new(), Vec::new());
        loop {
            match frame::decode(&mut buffer).unwrap() {
                Some(Frame::Data {
                    id: stream,
                    is_last,
                    payload,
                }) => {
                    assert_eq!(stream, input);
                    given.extend_from_slice(&payload);
                    if is_last {
                        break;
                    }
                }
                Some(_) => {}
                None => assert!(runtime.read_buf(&mut buffer).await.unwrap() > 0),
            }
        }
        for frame in [
            frame::data(stdout, b"said", false),
            frame::ping(2),
            frame::data(stderr, b"wailed", true),
            frame::data(stdout, b" more", false),
            frame::data(error, SUCCESS, true),
        ] {
            runtime.write_all(&frame).await.unwrap();
        }
        let (mut out, mut err) = (String::new(), String::new());
        let mut stdout = streams.stdout.take().unwrap();
        stdout.read_to_string(&mut out).await.unwrap();
        let mut stderr = streams.stderr.take().unwrap();
        stderr.read_to_string(&mut err).await.unwrap();
        (given, out, err)
    });
    assert_eq!(exit.unwrap(), 0);
    assert_eq!(
        all,
        (
            b"to the command".to_vec(),
            "said more".into(),
            "wailed".into()
        )
    );
}

#[tokio::test]
async fn a_runtime_that_goes_is_an_error() {
    let (near, runtime) = tokio::io::duplex(1 << 16);
    let streams = streams_of(near, ALL);
    drop(runtime);
    let error = streams.exit.await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the runtime's streams broke off: it did not say how it ended"
    );
}

#[test]
fn a_status_says_how_a_command_ended() {
    assert_eq!(exit_code(SUCCESS).unwrap(), 0);
    let failed = br#"{"status":"Failure","reason":"NonZeroExitCode","message":"m",
        "details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#;
    assert_eq!(exit_code(failed).unwrap(), 7);
    let broken = br#"{"status":"Failure","reason":"InternalError","message":"no such file"}"#;
    assert_eq!(exit_code(broken).unwrap_err().to_string(), "no such file");
    assert_eq!(
        exit_code(b"plain words").unwrap_err().to_string(),
        "plain words"
    );
}

#[tokio::test]
async fn only_a_plain_url_is_gone_to() {
    for url in ["https://127.0.0.1:1/exec/x", "/exec/x", "unix:///x", ""] {
        let error = connect(url).await.err().unwrap().to_string();
        assert!(error.contains("URL"), "{url}: {error}");
    }
}
