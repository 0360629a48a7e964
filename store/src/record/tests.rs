//! Records are encoded, decoded, and checked.

use super::*;
use proptest::prelude::*;

fn plain(text: &str) -> Arc<str> {
    text.into()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(
        partition in ".{0,20}", key in ".{0,40}", value in proptest::collection::vec(any::<u8>(), 0..200),
        created in any::<u64>(), previous in any::<u64>(), is_put in any::<bool>(),
    ) {
        let record = Record {
            operation: if is_put { Operation::Put } else { Operation::Delete },
            partition: partition.as_str().into(),
            key: key.as_str().into(),
            created: Revision(created),
            previous: (previous > 0).then_some(Revision(previous)),
            value: value.into(),
        };
        prop_assert_eq!(Record::decode(&record.encode(None), plain), Ok((record.clone(), false)));
        let sealed = Record { value: Bytes::from_static(b"sealed"), ..record.clone() };
        prop_assert_eq!(Record::decode(&record.encode(Some(b"sealed")), plain), Ok((sealed, true)));
    }

    #[test]
    fn a_changed_byte_is_noticed(place in 0usize..60, bit in 0u8..8) {
        let record = Record {
            operation: Operation::Put,
            partition: "pods".into(),
            key: "default/web".into(),
            created: Revision(7),
            previous: None,
            value: Bytes::from_static(b"some value of some length"),
        };
        let mut bytes = record.encode(None);
        let place = place % bytes.len();
        bytes[place] ^= 1 << bit;
        prop_assert_eq!(Record::decode(&bytes, plain), Err(RecordError::Checksum));
        prop_assert!(Record::decode(&bytes[..place], plain).is_err());
    }
}
