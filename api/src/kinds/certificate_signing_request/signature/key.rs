//! The public key that a request carries (RFC 3279, RFC 5480, RFC 8410), read as Go reads it and
//! refused in its words. Pure; holds no key against a signature.

use super::{Algorithm, NULL, OTHER_TAGS, TRUNCATED, bits};
use crate::der::{self, BIT_STRING, Element, INTEGER, SEQUENCE};

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const P224: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x21];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];

const ED25519_BYTES: usize = 32;
/// Before the two halves of a point that is not compressed.
const PLAIN_POINT: u8 = 4;
/// Of an exponent, as Go has room for it.
const EXPONENT_BYTES_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Rsa {
        bits: usize,
    },
    P256,
    P384,
    /// On P-224 or P-521.
    OtherEc,
    Ed25519,
}

#[derive(Debug)]
pub struct PublicKey {
    pub kind: Kind,
    pub bytes: Vec<u8>,
}

impl Kind {
    pub fn family(self) -> &'static str {
        match self {
            Self::Rsa { .. } => "RSA",
            Self::P256 | Self::P384 | Self::OtherEc => "ECDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    pub fn go_type(self) -> &'static str {
        match self {
            Self::Rsa { .. } => "*rsa.PublicKey",
            Self::P256 | Self::P384 | Self::OtherEc => "*ecdsa.PublicKey",
            Self::Ed25519 => "ed25519.PublicKey",
        }
    }
}

/// `None` for a key of no known kind.
pub fn read(info: &Element<'_>) -> Result<Option<PublicKey>, &'static str> {
    let parts = der::all(info.content).ok_or(TRUNCATED)?;
    let [algorithm, key, ..] = &parts[..] else {
        return Err(TRUNCATED);
    };
    let algorithm = Algorithm::read(algorithm)?;
    if key.tag != BIT_STRING {
        return Err(OTHER_TAGS);
    }
    let bytes = bits(key)?;
    let kind = match algorithm.name {
        RSA => rsa(&algorithm, &bytes)?,
        EC => ec(&algorithm, &bytes)?,
        ED25519 => ed25519(&algorithm, &bytes)?,
        _ => return Ok(None),
    };
    Ok(Some(PublicKey { kind, bytes }))
}

fn rsa(algorithm: &Algorithm<'_>, key: &[u8]) -> Result<Kind, &'static str> {
    let parameters = algorithm.parameters.map(|parameters| parameters.whole);
    if parameters != Some(NULL) {
        return Err("x509: RSA key missing NULL parameters");
    }
    let pair = der::first(key).filter(|(pair, _)| pair.tag == SEQUENCE);
    let (pair, _) = pair.ok_or("x509: invalid RSA public key")?;
    let (modulus, rest) = integer(pair.content).ok_or("x509: invalid RSA modulus")?;
    let exponent = integer(rest).filter(|(digits, _)| digits.len() <= EXPONENT_BYTES_MAX);
    let (exponent, _) = exponent.ok_or("x509: invalid RSA public exponent")?;
    if !is_positive(modulus) {
        return Err("x509: RSA modulus is not a positive number");
    }
    if !is_positive(exponent) {
        return Err("x509: RSA public exponent is not a positive number");
    }
    let digits = modulus.strip_prefix(&[0]).unwrap_or(modulus);
    let unset = digits.first().map_or(0, |first| first.leading_zeros());
    let bits = 8 * digits.len() - unset as usize;
    Ok(Kind::Rsa { bits })
}

/// The digits of an integer, of which none is needless, and what comes after it.
fn integer(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (element, rest) = der::first(bytes)?;
    let is_shortest = match element.content {
        [] => false,
        [first, second, ..] => !matches!((first, second >> 7), (0, 0) | (0xff, 1)),
        [_] => true,
    };
    (element.tag == INTEGER && is_shortest).then_some((element.content, rest))
}

fn is_positive(digits: &[u8]) -> bool {
    digits.first().is_some_and(|first| *first < 0x80) && digits != [0]
}

fn ec(algorithm: &Algorithm<'_>, key: &[u8]) -> Result<Kind, &'static str> {
    let curve = algorithm.parameters;
    let curve = curve.filter(|curve| curve.tag == der::OBJECT_IDENTIFIER);
    let curve = curve.ok_or("x509: invalid ECDSA parameters")?;
    let (kind, half_bytes) = match curve.content {
        P224 => (Kind::OtherEc, 28),
        P256 => (Kind::P256, 32),
        P384 => (Kind::P384, 48),
        P521 => (Kind::OtherEc, 66),
        _ => return Err("x509: unsupported elliptic curve"),
    };
    if key.first() != Some(&PLAIN_POINT) || key.len() != 1 + 2 * half_bytes {
        return Err("x509: failed to unmarshal elliptic curve point");
    }
    Ok(kind)
}

fn ed25519(algorithm: &Algorithm<'_>, key: &[u8]) -> Result<Kind, &'static str> {
    if algorithm.parameters.is_some() {
        return Err("x509: Ed25519 key encoded with illegal parameters");
    }
    if key.len() != ED25519_BYTES {
        return Err("x509: wrong Ed25519 public key size");
    }
    Ok(Kind::Ed25519)
}
