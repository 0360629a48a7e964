//! Keys that check signatures: RSA of 2048 to 8192 bits, P-256 and P-384; from PEM files and from
//! JSON Web Keys (RFC 7517), and as the latter.

use super::{Algorithm, SigningKey, encode};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use coracle_api::der;
use coracle_api::json;
use ring::digest::{SHA256, digest};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::{Value, json};
use x509_parser::pem::Pem;

/// `rsaEncryption`, `id-ecPublicKey` and the curves, as DER encodes them.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const NULL: &[u8] = &[0x05, 0x00];
/// The first byte of a point that is not compressed.
const UNCOMPRESSED: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    kind: Kind,
    /// An RSAPublicKey (RFC 8017), or a point.
    bytes: Vec<u8>,
    id: String,
}

impl PublicKey {
    /// Reads a SubjectPublicKeyInfo. Its hash is the key's id, as upstream names keys.
    pub fn from_info(info: &[u8]) -> Option<Self> {
        let parts = der::within(der::SEQUENCE, info)?;
        let [algorithm, key] = parts.as_slice() else {
            return None;
        };
        let algorithm = der::all(algorithm.content)?;
        let parameter = algorithm.get(1).map(|one| one.content);
        let kind = match (algorithm.first()?.content, parameter) {
            (RSA, _) => Kind::Rsa,
            (EC, Some(P256)) => Kind::P256,
            (EC, Some(P384)) => Kind::P384,
            _ => return None,
        };
        // The first byte counts the unused bits of the last.
        let bytes = key.content.strip_prefix(&[0])?.to_vec();
        let id = encode(digest(&SHA256, info));
        Some(Self { kind, bytes, id })
    }

    fn from_kind(kind: Kind, bytes: &[u8]) -> Option<Self> {
        let oid = |bytes| der::element(der::OBJECT_IDENTIFIER, bytes);
        let algorithm = match kind {
            Kind::Rsa => [oid(RSA), NULL.to_vec()],
            Kind::P256 => [oid(EC), oid(P256)],
            Kind::P384 => [oid(EC), oid(P384)],
        };
        let info = [
            der::element(der::SEQUENCE, &algorithm.concat()),
            der::element(der::BIT_STRING, &[&[0], bytes].concat()),
        ];
        Self::from_info(&der::element(der::SEQUENCE, &info.concat()))
    }

    /// Every key in a PEM text: public keys, those of certificates, those of private keys.
    pub fn from_pem(text: &[u8]) -> Vec<Self> {
        let blocks = Pem::iter_from_buffer(text).filter_map(Result::ok);
        let read = |block: Pem| match block.label.as_str() {
            "PUBLIC KEY" => Self::from_info(&block.contents),
            "RSA PUBLIC KEY" => Self::from_kind(Kind::Rsa, &block.contents),
            "CERTIFICATE" => {
                let (_, read) = x509_parser::parse_x509_certificate(&block.contents).ok()?;
                Self::from_info(read.public_key().raw)
            }
            _ => SigningKey::from_block(&block).map(|key| key.public().clone()),
        };
        blocks.filter_map(read).collect()
    }

    /// `None` for keys of kinds that are not known, and for those that are not for signatures.
    pub fn from_jwk(key: &Value) -> Option<Self> {
        let number = |name: &str| URL_SAFE_NO_PAD.decode(json::text(key, name)).ok();
        if !matches!(json::text(key, "use"), "" | "sig") {
            return None;
        }
        let read = match (json::text(key, "kty"), json::text(key, "crv")) {
            ("RSA", _) => {
                let parts = [integer(&number("n")?), integer(&number("e")?)];
                let bytes = der::element(der::SEQUENCE, &parts.concat());
                Self::from_kind(Kind::Rsa, &bytes)
            }
            ("EC", "P-256") => Self::from_kind(Kind::P256, &point(&number("x")?, &number("y")?)),
            ("EC", "P-384") => Self::from_kind(Kind::P384, &point(&number("x")?, &number("y")?)),
            _ => None,
        };
        let id = json::text(key, "kid").to_owned();
        read.map(|read| Self { id, ..read })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// What upstream signs with a key of this kind.
    pub fn algorithm(&self) -> Algorithm {
        match self.kind {
            Kind::Rsa => Algorithm::Rs256,
            Kind::P256 => Algorithm::Es256,
            Kind::P384 => Algorithm::Es384,
        }
    }

    /// False too for an algorithm of another kind of key.
    pub fn verify(&self, algorithm: Algorithm, signed: &str, signature: &[u8]) -> bool {
        let checked: &dyn VerificationAlgorithm = match (self.kind, algorithm) {
            (Kind::Rsa, Algorithm::Rs256) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (Kind::Rsa, Algorithm::Rs384) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (Kind::Rsa, Algorithm::Rs512) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (Kind::Rsa, Algorithm::Ps256) => &signature::RSA_PSS_2048_8192_SHA256,
            (Kind::Rsa, Algorithm::Ps384) => &signature::RSA_PSS_2048_8192_SHA384,
            (Kind::Rsa, Algorithm::Ps512) => &signature::RSA_PSS_2048_8192_SHA512,
            (Kind::P256, Algorithm::Es256) => &signature::ECDSA_P256_SHA256_FIXED,
            (Kind::P384, Algorithm::Es384) => &signature::ECDSA_P384_SHA384_FIXED,
            _ => return false,
        };
        let key = UnparsedPublicKey::new(checked, &self.bytes);
        key.verify(signed.as_bytes(), signature).is_ok()
    }

    /// As a JSON Web Key, for those who check tokens themselves.
    pub fn to_jwk(&self) -> Value {
        let mut key = json!({
            "use": "sig",
            "kid": self.id,
            "alg": self.algorithm().name(),
        });
        let curve = match self.kind {
            Kind::Rsa => {
                let numbers = der::within(der::SEQUENCE, &self.bytes).unwrap_or_default();
                key["kty"] = "RSA".into();
                for (name, number) in ["n", "e"].into_iter().zip(&numbers) {
                    key[name] = encode(unsigned(number.content)).into();
                }
                return key;
            }
            Kind::P256 => "P-256",
            Kind::P384 => "P-384",
        };
        let halves = self.bytes.get(1..).unwrap_or_default();
        let (x, y) = halves.split_at(halves.len() / 2);
        key["kty"] = "EC".into();
        key["crv"] = curve.into();
        key["x"] = encode(x).into();
        key["y"] = encode(y).into();
        key
    }
}

/// A number that is not negative: one that begins with a set bit gets a zero before it.
fn integer(number: &[u8]) -> Vec<u8> {
    let digits = unsigned(number);
    let sign: &[u8] = match digits.first() {
        Some(first) if first & 0x80 == 0 => &[],
        _ => &[0],
    };
    der::element(der::INTEGER, &[sign, digits].concat())
}

fn unsigned(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    &number[zeros..]
}

fn point(x: &[u8], y: &[u8]) -> Vec<u8> {
    [&[UNCOMPRESSED], x, y].concat()
}
