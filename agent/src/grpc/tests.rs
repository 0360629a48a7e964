//! Calls to a server in this process.

use super::testing::{Reply, framed, serve};
use super::{Channel, Code, Endpoint, Status};
use bytes::Bytes;
use std::path::Path;
use std::time::Duration;

const WITHIN: Duration = Duration::from_secs(20);

#[derive(Clone, PartialEq, prost::Message)]
struct Text {
    #[prost(string, tag = "1")]
    text: String,
}

fn text(text: &str) -> Text {
    let text = text.to_owned();
    Text { text }
}

fn channel(path: &Path) -> Channel {
    Channel::new(Endpoint::Unix(path.to_owned()), 1024)
}

async fn say(channel: &Channel, word: &str) -> Result<String, Status> {
    let answer: Text = channel.unary("/test.Talk/Say", &text(word), WITHIN).await?;
    Ok(answer.text)
}

fn talk(call: &super::testing::Call) -> Reply {
    assert_eq!(call.path, "/test.Talk/Say");
    assert_eq!(call.headers["content-type"], "application/grpc");
    let word = call.read::<Text>().text;
    match word.as_str() {
        "refuse" => Reply::status(Code::NOT_FOUND, "no %22such%22 caf%C3%A9 100%"),
        "many" => {
            let message = prost::Message::encode_to_vec(&text("one"));
            Reply::of(&[&message, &message])
        }
        "none" => Reply::of(&[]),
        "large" => Reply {
            // Its length alone is enough.
            parts: vec![Bytes::from_static(b"\0\0\x01\0\0")],
            ..Reply::never()
        },
        "compressed" => Reply {
            parts: vec![Bytes::from_static(b"\x01\0\0\0\0")],
            ..Reply::of(&[])
        },
        "torn" => Reply {
            parts: vec![framed(b"\x0a\x03one").slice(..7)],
            ..Reply::of(&[])
        },
        "garbage" => Reply::of(&[b"\x0a\x09one"]),
        "split" => {
            let whole = framed(b"\x0a\x03one");
            Reply {
                parts: vec![whole.slice(..2), whole.slice(2..6), whole.slice(6..)],
                ..Reply::of(&[])
            }
        }
        "unended" => Reply {
            trailers: Some(Vec::new()),
            ..Reply::message(&text("one"))
        },
        "web" => Reply {
            http_status: 503,
            trailers: Some(Vec::new()),
            ..Reply::of(&[])
        },
        "never" => Reply::never(),
        other => Reply::message(&text(&format!("you said {other}"))),
    }
}

#[tokio::test]
async fn answers_and_failures_are_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let _server = serve(&path, |call| talk(&call));
    let channel = channel(&path);
    assert_eq!(say(&channel, "hello").await.unwrap(), "you said hello");
    assert_eq!(say(&channel, "split").await.unwrap(), "one");
    let failed = async |word: &str| say(&channel, word).await.unwrap_err().to_string();
    assert_eq!(
        failed("refuse").await,
        "rpc error: code = NotFound desc = no \"such\" café 100%"
    );
    assert_eq!(
        failed("large").await,
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (65536 \
         vs. 1024)"
    );
    for (word, code) in [
        ("many", Code::INTERNAL),
        ("none", Code::INTERNAL),
        ("compressed", Code::INTERNAL),
        ("torn", Code::INTERNAL),
        ("garbage", Code::INTERNAL),
        ("unended", Code::INTERNAL),
        ("web", Code::UNAVAILABLE),
    ] {
        let status = say(&channel, word).await.unwrap_err();
        assert_eq!(status.code, code, "{word}: {status}");
    }
    assert_eq!(say(&channel, "still").await.unwrap(), "you said still");
}

#[tokio::test]
async fn a_deadline_is_told_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let (told, mut telling) = tokio::sync::mpsc::channel(1);
    let _server = serve(&path, move |call| {
        let timeout = call.headers["grpc-timeout"].to_str().unwrap().to_owned();
        told.try_send(timeout).unwrap();
        Reply::never()
    });
    let within = Duration::from_millis(50);
    let (channel, question) = (channel(&path), text(""));
    let answered = channel.unary::<Text>("/test.Talk/Say", &question, within);
    let status = answered.await.unwrap_err();
    assert_eq!(
        status.to_string(),
        "rpc error: code = DeadlineExceeded desc = context deadline exceeded"
    );
    assert_eq!(telling.recv().await.unwrap(), "50m");
}

/// A call that was under way when the peer went fails, and is the caller's to repeat.
async fn said_at_last(channel: &Channel, word: &str) -> String {
    loop {
        match say(channel, word).await {
            Ok(said) => return said,
            Err(status) => assert_eq!(status.code, Code::UNAVAILABLE, "{status}"),
        }
    }
}

#[tokio::test]
async fn a_peer_that_comes_back_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let channel = channel(&path);
    let unreached = say(&channel, "too early").await.unwrap_err();
    assert_eq!(
        unreached.to_string(),
        format!(
            "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error \
             while dialing: dial unix {}: connect: no such file or directory\"",
            path.display()
        )
    );
    for round in ["one", "two", "three"] {
        let server = serve(&path, |call| talk(&call));
        assert_eq!(
            said_at_last(&channel, round).await,
            format!("you said {round}")
        );
        drop(server);
    }
    let _server = serve(&path, |call| talk(&call));
    said_at_last(&channel, "four").await;
    let both = tokio::join!(say(&channel, "a"), say(&channel, "b"));
    assert_eq!(
        (both.0.unwrap(), both.1.unwrap()),
        ("you said a".into(), "you said b".into())
    );
}

#[tokio::test]
async fn a_stream_goes_on_until_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let server = serve(&path, |call| {
        let message = prost::Message::encode_to_vec(&text("tick"));
        match call.read::<Text>().text.as_str() {
            "for ever" => Reply {
                trailers: None,
                ..Reply::of(&[&message])
            },
            _ => Reply::of(&[&message, &message]),
        }
    });
    let channel = channel(&path);
    let mut answers = channel
        .stream::<Text>("/test.Talk/Watch", &text("twice"))
        .await
        .unwrap();
    assert_eq!(answers.next().await.unwrap(), Some(text("tick")));
    assert_eq!(answers.next().await.unwrap(), Some(text("tick")));
    assert_eq!(answers.next().await.unwrap(), None);
    assert_eq!(answers.next().await.unwrap(), None);
    let mut answers = channel
        .stream::<Text>("/test.Talk/Watch", &text("for ever"))
        .await
        .unwrap();
    assert_eq!(answers.next().await.unwrap(), Some(text("tick")));
    drop(server);
    let broken = answers.next().await.unwrap_err();
    assert_eq!(broken.code, Code::UNAVAILABLE);
}

#[test]
fn endpoints_are_sockets_or_addresses() {
    let shown = |text: &str| Endpoint::parse(text).map(|endpoint| endpoint.to_string());
    assert_eq!(shown("unix:///run/x.sock").unwrap(), "unix:///run/x.sock");
    assert_eq!(shown("unix:/run/x.sock").unwrap(), "unix:///run/x.sock");
    assert_eq!(shown("/run/x.sock").unwrap(), "unix:///run/x.sock");
    assert_eq!(shown("tcp://127.0.0.1:5").unwrap(), "tcp://127.0.0.1:5");
    assert_eq!(
        shown("unix://run/x").unwrap_err(),
        "\"unix://run/x\" is no absolute path of a socket"
    );
    assert_eq!(
        shown("http://x").unwrap_err(),
        "protocol \"http\" is not known here"
    );
    assert!(shown("").is_err());
}
