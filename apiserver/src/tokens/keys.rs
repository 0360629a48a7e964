//! The keys in files: `sa.key`, made at first start, and those that the operator names.

use crate::jose::{PublicKey, SigningKey};
use crate::pki::PkiError;
use crate::pki::authority::{make_directory, read, write_private};
use rcgen::KeyPair;
use std::path::Path;

const FILE: &str = "sa.key";
const KINDS: &str = "it holds no RSA key of 2048 bits or more, and no P-256 or P-384 key";

/// Reads the server's own key under `directory`, or makes it: ECDSA P-256.
pub fn own(directory: &Path) -> Result<SigningKey, PkiError> {
    let path = directory.join(FILE);
    let pem = match read(&path)? {
        Some(pem) => pem,
        None => {
            let pem = KeyPair::generate()?.serialize_pem();
            make_directory(directory)?;
            write_private(&path, &pem)?;
            pem
        }
    };
    SigningKey::from_pem(pem.as_bytes()).ok_or_else(|| unusable(&path, "private key"))
}

pub fn signing(file: &Path) -> Result<SigningKey, PkiError> {
    let pem = present(file)?;
    SigningKey::from_pem(pem.as_bytes()).ok_or_else(|| unusable(file, "private key"))
}

/// Every key in the file, public or the public half of a private one.
pub fn public(file: &Path) -> Result<Vec<PublicKey>, PkiError> {
    let keys = PublicKey::from_pem(present(file)?.as_bytes());
    if keys.is_empty() {
        return Err(unusable(file, "public key"));
    }
    Ok(keys)
}

fn present(file: &Path) -> Result<String, PkiError> {
    std::fs::read_to_string(file).map_err(|source| PkiError::File {
        doing: "read",
        path: file.display().to_string(),
        source,
    })
}

fn unusable(path: &Path, what: &'static str) -> PkiError {
    PkiError::Unusable {
        path: path.display().to_string(),
        what,
        why: KINDS.to_owned(),
    }
}
