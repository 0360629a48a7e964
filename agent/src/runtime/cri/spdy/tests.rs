//! Frames on the wire.

use super::{Frame, FrameError, Opener, data, decode, pong};
use bytes::BytesMut;
use std::io::Read;

#[test]
fn frames_are_read_as_they_arrive() {
    let mut wire = BytesMut::new();
    wire.extend_from_slice(&data(3, b"abc", false));
    wire.extend_from_slice(&pong(7));
    wire.extend_from_slice(&[0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 5, 0, 0, 0, 1]);
    wire.extend_from_slice(&data(3, b"", true));
    let mut read = BytesMut::new();
    let mut frames = Vec::new();
    for byte in wire {
        read.extend_from_slice(&[byte]);
        frames.extend(decode(&mut read).unwrap());
    }
    let told = |payload: &'static str, is_last| Frame::Data {
        stream: 3,
        is_last,
        payload: payload.into(),
    };
    assert_eq!(
        frames,
        [
            told("abc", false),
            Frame::Ping(7),
            Frame::Reset(5),
            told("", true)
        ]
    );
    let mut long = BytesMut::from(&[0u8, 0, 0, 1, 0, 0xff, 0xff, 0xff][..]);
    assert_eq!(decode(&mut long), Err(FrameError(0x00ff_ffff)));
    let mut short = BytesMut::from(&[0x80u8, 3, 0, 3, 0, 0, 0, 0][..]);
    assert_eq!(decode(&mut short), Err(FrameError(0)));
}

#[test]
fn headers_are_one_stream_of_zlib() {
    let mut opener = Opener::default();
    let mut packed = Vec::new();
    for (number, kind) in [(1, "error"), (3, "stdout")] {
        let (stream, frame) = opener.open(&[("streamtype", kind)]);
        assert_eq!(stream, number);
        packed.extend_from_slice(&frame[18..]);
    }
    let mut plain = [0u8; 55];
    let mut unpacker = flate2::read::ZlibDecoder::new(&packed[..]);
    unpacker.read_exact(&mut plain).unwrap();
    let text = String::from_utf8_lossy(&plain);
    assert_eq!(
        text,
        "\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05error\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x06stdout"
    );
}
