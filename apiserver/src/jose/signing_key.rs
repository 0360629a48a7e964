//! Keys that sign tokens: ECDSA P-256 or P-384, or RSA; PKCS #8, SEC 1 or PKCS #1 in PEM.

use super::{Algorithm, PublicKey, encode};
use coracle_api::der;
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::Signer;
use serde_json::{Value, json};
use x509_parser::pem::Pem;

pub struct SigningKey {
    signer: Box<dyn Signer>,
    public: PublicKey,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey")
            .field("id", &self.public.id())
            .finish_non_exhaustive()
    }
}

impl SigningKey {
    /// The first private key in a PEM text.
    pub fn from_pem(text: &[u8]) -> Option<Self> {
        let mut blocks = Pem::iter_from_buffer(text).filter_map(Result::ok);
        blocks.find_map(|block| Self::from_block(&block))
    }

    pub(super) fn from_block(block: &Pem) -> Option<Self> {
        let bytes = block.contents.clone();
        let private = match block.label.as_str() {
            "PRIVATE KEY" => PrivateKeyDer::Pkcs8(bytes.into()),
            "EC PRIVATE KEY" => PrivateKeyDer::Sec1(bytes.into()),
            "RSA PRIVATE KEY" => PrivateKeyDer::Pkcs1(bytes.into()),
            _ => return None,
        };
        let key = any_supported_type(&private).ok()?;
        let public = PublicKey::from_info(&key.public_key()?)?;
        let signer = key.choose_scheme(&[scheme(public.algorithm())])?;
        Some(Self { signer, public })
    }

    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The token that says `claims`.
    pub fn sign(&self, claims: &Value) -> Result<String, rustls::Error> {
        let algorithm = self.public.algorithm();
        let header = json!({ "alg": algorithm.name(), "kid": self.public.id() });
        let [header, claims] = [&header, claims].map(|part| encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.signer.sign(signed.as_bytes())?;
        let signature = match algorithm {
            Algorithm::Es256 => der::fixed_signature(&signature, 32),
            Algorithm::Es384 => der::fixed_signature(&signature, 48),
            _ => Some(signature),
        };
        let signature = signature.expect("a signature of two integers of the curve's size");
        Ok(format!("{signed}.{}", encode(signature)))
    }
}

fn scheme(algorithm: Algorithm) -> SignatureScheme {
    match algorithm {
        Algorithm::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
        Algorithm::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        _ => SignatureScheme::RSA_PKCS1_SHA256,
    }
}
