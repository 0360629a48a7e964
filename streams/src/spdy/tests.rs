//! Frames and headers as a Go client sends them, and a session over a pipe.

use super::frame::{self, Frame, FrameError};
use super::headers::{HeadersError, Packer, Unpacker, dictionary};
use super::session::Session;
use bytes::{BufMut, BytesMut};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The Adler-32 sum of the dictionary, as the protocol's own zlib streams name it.
const DICTIONARY_SUM: u32 = 0xe3c6_a7c2;

fn adler32(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (1u32, 0u32);
    for byte in bytes {
        a = (a + u32::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    b << 16 | a
}

#[test]
fn the_dictionary_is_the_protocols_own() {
    assert_eq!(dictionary().len(), 1423);
    assert_eq!(adler32(&dictionary()), DICTIONARY_SUM);
}

fn plain(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    block.put_u32(headers.len() as u32);
    for (name, value) in headers {
        for text in [name, value] {
            block.put_u32(text.len() as u32);
            block.put_slice(text.as_bytes());
        }
    }
    block
}

/// Packs like zlib with a sync flush after each block, without references to the dictionary.
struct GoPacker(DeflateEncoder<Vec<u8>>, bool);

impl GoPacker {
    fn new() -> Self {
        Self(DeflateEncoder::new(Vec::new(), Compression::best()), false)
    }

    fn pack(&mut self, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.1 {
            out.extend_from_slice(&[0x78, 0xbb]);
            out.put_u32(DICTIONARY_SUM);
            self.1 = true;
        }
        self.0.write_all(&plain(headers)).unwrap();
        self.0.flush().unwrap();
        out.append(self.0.get_mut());
        out
    }
}

#[test]
fn a_block_that_a_go_client_packed_is_unpacked() {
    // By compress/zlib with the dictionary at its best compression, two blocks of one stream.
    let first = hex::decode(GO_FIRST).unwrap();
    let second = hex::decode(GO_SECOND).unwrap();
    let mut unpacker = Unpacker::default();
    let headers = unpacker.unpack(&first).unwrap();
    assert_eq!(headers.get("streamtype"), "error");
    assert_eq!(headers.get("port"), "8080");
    assert_eq!(headers.get("requestid"), "0");
    let headers = unpacker.unpack(&second).unwrap();
    assert_eq!(headers.get("streamtype"), "data");
    assert_eq!(headers.get("port"), "8080");
}

const GO_FIRST: &str = "78f9e3c6a7c202253a703a2b294a4dcc851625aca9a0808614cb45e01c60616061c0c0c0c0590489\
    c64c50f2663400000000ffff";
const GO_SECOND: &str = "c2aa19540e2512d60b000000ffff";

#[test]
fn blocks_that_are_no_headers_are_refused() {
    let unpack = |block: &[u8]| Unpacker::default().unpack(block);
    assert_eq!(unpack(b""), Err(HeadersError::Packed));
    assert_eq!(unpack(b"no zlib at all"), Err(HeadersError::Packed));
    let mut packer = GoPacker::new();
    let long = "x".repeat(20_000);
    assert_eq!(
        unpack(&packer.pack(&[("a", &long)])),
        Err(HeadersError::TooLong)
    );
    let mut packer = GoPacker::new();
    let many = vec![("a", "b"); 101];
    assert_eq!(unpack(&packer.pack(&many)), Err(HeadersError::TooLong));
}

/// As Go's runtimes read it: a whole connection is one stream, each block given out at its end.
#[test]
fn what_is_packed_here_is_zlib_and_is_unpacked_here() {
    let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
    let mut all = Vec::new();
    for kind in ["error", "stdout"] {
        let block = packer.pack(&[("streamtype", kind)]);
        all.extend_from_slice(&block);
        assert_eq!(unpacker.unpack(&block).unwrap().get("streamtype"), kind);
    }
    let expected = [
        plain(&[("streamtype", "error")]),
        plain(&[("streamtype", "stdout")]),
    ];
    let mut read = vec![0; expected.concat().len()];
    let mut zlib = flate2::read::ZlibDecoder::new(&all[..]);
    std::io::Read::read_exact(&mut zlib, &mut read).unwrap();
    assert_eq!(read, expected.concat());
}

#[test]
fn frames_are_read_as_they_arrive() {
    let mut buffer = BytesMut::from(&frame::ping(7)[..]);
    buffer.put_slice(&frame::data(3, b"hello", true));
    buffer.put_slice(&frame::reset(5, frame::CANCEL)[..9]);
    assert_eq!(frame::decode(&mut buffer), Ok(Some(Frame::Ping(7))));
    let data = Frame::Data {
        id: 3,
        is_last: true,
        payload: b"hello"[..].into(),
    };
    assert_eq!(frame::decode(&mut buffer), Ok(Some(data)));
    assert_eq!(frame::decode(&mut buffer), Ok(None));
    buffer.put_slice(&frame::reset(5, frame::CANCEL)[9..]);
    assert_eq!(frame::decode(&mut buffer), Ok(Some(Frame::Reset { id: 5 })));
    let mut long = BytesMut::from(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff][..]);
    assert_eq!(
        frame::decode(&mut long),
        Err(FrameError::TooLong(0x00ff_ffff))
    );
    let mut old = BytesMut::from(&[0x80, 2, 0, 6, 0, 0, 0, 0][..]);
    assert_eq!(frame::decode(&mut old), Err(FrameError::Version(2)));
    let mut short = BytesMut::from(&[0x80, 3, 0, 6, 0, 0, 0, 0][..]);
    assert_eq!(frame::decode(&mut short), Err(FrameError::TooShort));
}

fn open(id: u32, block: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_u32(0x8003_0001);
    out.put_u32(10 + block.len() as u32);
    out.put_u32(id);
    out.put_slice(&[0; 6]);
    out.put_slice(block);
    out
}

#[tokio::test]
async fn a_session_carries_streams_both_ways() {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let mut session = Session::start(far);
    let mut packer = GoPacker::new();
    let block = packer.pack(&[("streamtype", "data"), ("port", "80")]);
    near.write_all(&open(1, &block)).await.unwrap();
    let mut stream = session.accept().await.unwrap();
    assert_eq!((stream.id, stream.headers.get("port")), (1, "80"));
    // The answer: SYN_REPLY, 4 bytes of id, the head of zlib and the blocks of no headers.
    let mut reply = [0; 8 + 4 + 2 + 14];
    near.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply[..12], [0x80, 3, 0, 2, 0, 0, 0, 20, 0, 0, 0, 1]);
    near.write_all(&frame::data(1, b"up", false)).await.unwrap();
    assert_eq!(stream.reader.read().await.unwrap(), "up");
    near.write_all(&frame::data(1, b"end", true)).await.unwrap();
    assert_eq!(stream.reader.read().await.unwrap(), "end");
    assert_eq!(stream.reader.read().await, None);
    stream.writer.write(b"down").await.unwrap();
    stream.writer.finish().await.unwrap();
    near.write_all(&frame::ping(9)).await.unwrap();
    let mut expected = frame::data(1, b"down", false).to_vec();
    expected.extend_from_slice(&frame::data(1, b"", true));
    expected.extend_from_slice(&frame::ping(9));
    let mut got = vec![0; expected.len()];
    near.read_exact(&mut got).await.unwrap();
    assert_eq!(got, expected);
    // The client leaves.
    drop(near);
    assert!(session.accept().await.is_none());
    // What is said now goes nowhere, and whoever says it learns that in the end.
    while stream.writer.write(b"late").await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_said_last_is_sent_when_the_session_goes() {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let mut session = Session::start(far);
    let block = GoPacker::new().pack(&[("streamtype", "error")]);
    near.write_all(&open(1, &block)).await.unwrap();
    let stream = session.accept().await.unwrap();
    stream.writer.write(b"bye").await.unwrap();
    drop((stream, session));
    let mut all = Vec::new();
    near.read_to_end(&mut all).await.unwrap();
    assert!(all.ends_with(&frame::data(1, b"bye", false)));
}
