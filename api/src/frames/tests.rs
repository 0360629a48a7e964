//! Frames go through any cut of the stream, and no bytes make the decoder panic.

use super::*;
use proptest::prelude::*;

fn channel() -> impl Strategy<Value = Channel> {
    prop_oneof![
        Just(Channel::Stdin),
        Just(Channel::Stdout),
        Just(Channel::Stderr),
        Just(Channel::Error),
        Just(Channel::Resize),
        Just(Channel::Close),
    ]
}

/// Decodes a stream that arrives in pieces of these sizes, over and over.
fn decode_in_pieces(stream: &[u8], sizes: &[usize]) -> Vec<Frame> {
    let (mut rest, mut buffer, mut frames) = (stream, BytesMut::new(), Vec::new());
    for size in sizes.iter().cycle() {
        let (piece, later) = rest.split_at((*size).min(rest.len()));
        buffer.extend_from_slice(piece);
        rest = later;
        while let Some(frame) = Decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
        if rest.is_empty() {
            break;
        }
    }
    assert!(buffer.is_empty());
    frames
}

proptest! {
    #[test]
    fn what_goes_in_comes_out(
        sent in proptest::collection::vec((channel(), proptest::collection::vec(any::<u8>(), 0..300)), 0..20),
        sizes in proptest::collection::vec(1usize..50, 1..10),
    ) {
        let mut stream = BytesMut::new();
        for (channel, payload) in &sent {
            Encoder.encode(*channel, payload, &mut stream);
        }
        let got = decode_in_pieces(&stream, &sizes);
        let got: Vec<(Channel, Vec<u8>)> =
            got.into_iter().map(|frame| (frame.channel, frame.payload.to_vec())).collect();
        prop_assert_eq!(got, sent);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut buffer = BytesMut::from(bytes.as_slice());
        while let Ok(Some(frame)) = Decoder.decode(&mut buffer) {
            prop_assert!(frame.payload.len() <= PAYLOAD_BYTES_MAX);
        }
    }
}

#[test]
fn a_long_payload_is_split() {
    let payload = vec![7; PAYLOAD_BYTES_MAX * 2 + 1];
    let mut stream = BytesMut::new();
    Encoder.encode(Channel::Stdout, &payload, &mut stream);
    let frames = decode_in_pieces(&stream, &[10_000]);
    let sizes: Vec<usize> = frames.iter().map(|frame| frame.payload.len()).collect();
    assert_eq!(sizes, [PAYLOAD_BYTES_MAX, PAYLOAD_BYTES_MAX, 1]);
}

#[test]
fn a_close_names_its_channel() {
    let mut stream = BytesMut::new();
    Encoder.close(Channel::Stdin, &mut stream);
    let frame = Decoder.decode(&mut stream).unwrap().unwrap();
    assert_eq!(frame.channel, Channel::Close);
    assert_eq!(Channel::from_number(frame.payload[0]), Some(Channel::Stdin));
}

#[test]
fn bad_frames_are_refused() {
    let decode = |bytes: &[u8]| Decoder.decode(&mut BytesMut::from(bytes));
    assert_eq!(decode(&[9, 0, 0, 0, 0]), Err(FrameError::UnknownChannel(9)));
    assert_eq!(decode(&[1, 0, 1, 0, 1]), Err(FrameError::TooLarge(65_537)));
    assert_eq!(decode(&[1, 0, 0, 0, 2, 5]), Ok(None));
}
