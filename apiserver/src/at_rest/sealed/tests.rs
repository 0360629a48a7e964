//! Values open with their key in their place, and not otherwise.

use super::*;

fn key(cipher: Cipher, byte: u8) -> Key {
    Key {
        name: format!("key{byte}"),
        cipher,
        secret: vec![byte; 32],
    }
}

#[test]
fn a_value_opens_with_its_key_in_its_place() {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let own = key(cipher, 1);
        for plain in [&b""[..], b"hunter2", &[7; 100_000]] {
            let sealed = own.seal("/secrets", "default/a", plain).unwrap();
            let opened = own.open("/secrets", "default/a", &sealed);
            assert_eq!(opened.as_deref(), Some(plain));
            assert_eq!(head(&sealed).map(|head| head.name), Some("key1"));
            for (partition, place) in [("/secrets", "default/b"), ("/configmaps", "default/a")] {
                assert_eq!(
                    own.open(partition, place, &sealed),
                    None,
                    "{partition} {place}"
                );
            }
            let mut other = key(cipher, 2);
            assert_eq!(other.open("/secrets", "default/a", &sealed), None);
            other.name = own.name.clone();
            assert_eq!(other.open("/secrets", "default/a", &sealed), None);
        }
    }
}

#[test]
fn no_changed_or_missing_byte_goes_unnoticed() {
    let own = key(Cipher::Aes256Gcm, 1);
    let sealed = own.seal("/secrets", "default/a", b"hunter2").unwrap();
    for place in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[place] ^= 1;
        assert_eq!(own.open("/secrets", "default/a", &changed), None, "{place}");
        assert_eq!(own.open("/secrets", "default/a", &sealed[..place]), None);
    }
}

#[test]
fn the_same_value_is_sealed_differently_each_time() {
    let own = key(Cipher::ChaCha20Poly1305, 1);
    let seal = || own.seal("/secrets", "default/a", b"hunter2").unwrap();
    let (a, b) = (seal(), seal());
    assert_eq!(a.len(), b.len());
    assert_ne!(a[a.len() - 23..], b[b.len() - 23..], "the ciphertexts");
}
