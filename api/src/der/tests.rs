//! What is put together can be taken apart, and what does not fit is refused.

use super::*;

#[test]
fn lengths_take_as_many_bytes_as_they_need() {
    for (length, header) in [
        (0, 2),
        (127, 2),
        (128, 3),
        (255, 3),
        (256, 4),
        (65_535, 4),
        (65_536, 5),
    ] {
        let whole = element(SEQUENCE, &vec![7; length]);
        assert_eq!(whole.len(), length + header, "{length}");
        let (read, after) = first(&whole).unwrap();
        assert_eq!((read.content.len(), after.len()), (length, 0));
        assert_eq!(read.whole, whole);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for bad in [
        &[][..],
        &[0x30],
        &[0x30, 2, 1],
        &[0x30, 0x80],
        &[0x30, 0x82, 1],
        &[0x30, 0x85, 0, 0, 0, 0, 1, 0],
    ] {
        assert_eq!(first(bad), None, "{bad:?}");
    }
    assert_eq!(within(SEQUENCE, &[0x30, 0, 0]), None);
    assert_eq!(within(SEQUENCE, &[0x31, 0]), None);
}

#[test]
fn a_name_has_an_attribute_for_each_organization() {
    let name = name("jane", &["dev", "ops"]);
    let sets = within(SEQUENCE, &name).unwrap();
    let values: Vec<&[u8]> = sets
        .iter()
        .map(|set| {
            let pair = within(SEQUENCE, set.content).unwrap();
            pair[1].content
        })
        .collect();
    assert_eq!(values, [&b"dev"[..], b"ops", b"jane"]);
}

#[test]
fn halves_of_a_signature_are_padded() {
    let signature = element(
        SEQUENCE,
        &[element(INTEGER, &[0, 0xff, 1]), element(INTEGER, &[5])].concat(),
    );
    assert_eq!(
        fixed_signature(&signature, 3),
        Some(vec![0, 0xff, 1, 0, 0, 5])
    );
    assert_eq!(fixed_signature(&signature, 1), None);
    assert_eq!(fixed_signature(&[0x30, 0], 2), None);
}
