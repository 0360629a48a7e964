//! The CA pair: made once at first start, read ever after, and the signing of leaves.
//!
//! Keys are ECDSA P-256, files of keys have mode 0600 from their first byte. A pair that is half
//! there or does not fit together is refused by name: it is never replaced behind the user's back.

use super::PkiError;
use crate::private_file;
use coracle_api::{der, serial_number};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SerialNumber, SigningKey,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const CA_LIFE: Duration = Duration::from_secs(10 * 365 * DAY.as_secs());
/// As kubeadm's certificates.
pub const LEAF_LIFE: Duration = Duration::from_secs(365 * DAY.as_secs());
const CERTIFICATE_FILE: &str = "ca.crt";
const KEY_FILE: &str = "ca.key";

/// A CA certificate with its key.
pub struct Authority {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    Server,
    Client,
}

/// What a leaf certificate says.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<'a> {
    pub common_name: &'a str,
    pub organizations: &'a [&'a str],
    pub names: &'a [SanType],
    pub usage: Usage,
    pub life: Duration,
}

/// A leaf with the key made for it.
#[derive(Debug)]
pub struct Issued {
    pub certificate: CertificateDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
    pub key_der: Vec<u8>,
    pub not_after: Timestamp,
    pub serial: Vec<u8>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub fn open(directory: &Path, now: Timestamp) -> Result<Self, PkiError> {
        let (certificate, key) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
        match (read(&certificate)?, read(&key)?) {
            (Some(certificate_pem), Some(key_pem)) => {
                Self::from_pem(certificate_pem, key_pem, &certificate, &key)
            }
            (None, None) => Self::make(directory, now),
            (Some(_), None) => Err(half(&certificate, &key)),
            (None, Some(_)) => Err(half(&key, &certificate)),
        }
    }

    fn from_pem(
        certificate_pem: String,
        key_pem: String,
        certificate_path: &Path,
        key_path: &Path,
    ) -> Result<Self, PkiError> {
        let unusable = |path: &Path, what: &'static str, why: String| PkiError::Unusable {
            path: path.display().to_string(),
            what,
            why,
        };
        let key = KeyPair::from_pem(&key_pem)
            .map_err(|error| unusable(key_path, "private key", error.to_string()))?;
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes())
            .map_err(|error| unusable(certificate_path, "certificate", error.to_string()))?;
        let own_key = x509_parser::parse_x509_certificate(&certificate)
            .map(|(_, parsed)| parsed.public_key().subject_public_key.data.to_vec())
            .map_err(|error| unusable(certificate_path, "certificate", error.to_string()))?;
        if own_key != key.public_key_raw() {
            let why = format!("it belongs to another key than {}", key_path.display());
            return Err(unusable(certificate_path, "certificate", why));
        }
        let issuer = Issuer::from_ca_cert_der(&certificate, key)?;
        Ok(Self {
            certificate,
            certificate_pem,
            key_pem,
            issuer,
        })
    }

    fn make(directory: &Path, now: Timestamp) -> Result<Self, PkiError> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(1970, 1, 1);
        params.not_after = params.not_before + after_epoch(ends(now, CA_LIFE));
        params.distinguished_name = rcgen::DistinguishedName::new();
        // Unlike in each cluster, so that no client takes one cluster's CA for another's.
        let name = format!("coracle-ca@{}", now.as_second());
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let certificate = params.self_signed(&key)?;
        let (certificate_pem, key_pem) = (certificate.pem(), key.serialize_pem());
        make_directory(directory)?;
        // The key first: a crash in between leaves half a pair, which the next start names.
        write_private(&directory.join(KEY_FILE), &key_pem)?;
        write_private(&directory.join(CERTIFICATE_FILE), &certificate_pem)?;
        Ok(Self {
            certificate: certificate.der().clone(),
            certificate_pem,
            key_pem,
            issuer: Issuer::new(params, key),
        })
    }

    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// When every certificate that it signed has ended too.
    pub fn not_after(&self) -> Timestamp {
        let read = x509_parser::parse_x509_certificate(&self.certificate);
        let (_, read) = read.expect("it was read when it was opened");
        let seconds = read.validity().not_after.timestamp();
        Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
    }

    pub fn key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Reads a CA that is there; one that is not is never made.
    pub fn read(directory: &Path) -> Result<Self, PkiError> {
        let path = directory.join(CERTIFICATE_FILE);
        std::fs::metadata(&path).map_err(failed("read", &path))?;
        Self::open(directory, Timestamp::UNIX_EPOCH)
    }

    /// Makes a key and signs a certificate for it.
    pub fn issue(&self, leaf: &Leaf<'_>, now: Timestamp) -> Result<Issued, PkiError> {
        let key = KeyPair::generate()?;
        let not_after = ends(now, leaf.life);
        let serial = serial_number::new(now.as_second(), rand::random());
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(1970, 1, 1);
        params.not_after = params.not_before + after_epoch(not_after);
        params.distinguished_name = rcgen::DistinguishedName::new();
        // rcgen writes one organization: the whole name takes this one's place below.
        params
            .distinguished_name
            .push(DnType::CommonName, leaf.common_name);
        params.serial_number = Some(SerialNumber::from(serial.to_vec()));
        params.subject_alt_names = leaf.names.to_vec();
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match leaf.usage {
            Usage::Server => ExtendedKeyUsagePurpose::ServerAuth,
            Usage::Client => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        let made = params.signed_by(&key, &self.issuer)?;
        let subject = der::name(leaf.common_name, leaf.organizations);
        let certificate = self.with_subject(made.der(), &subject)?;
        Ok(Issued {
            certificate_pem: der::certificate_pem(&certificate),
            certificate,
            key_pem: key.serialize_pem(),
            key_der: key.serialize_der(),
            not_after,
            serial: serial.to_vec(),
        })
    }

    fn with_subject(
        &self,
        made: &CertificateDer<'_>,
        subject: &[u8],
    ) -> Result<CertificateDer<'static>, PkiError> {
        const WHY: &str = "what rcgen made has the form of a certificate";
        let signed = der::with_subject(made, subject).expect(WHY);
        let signature = self.issuer.key().sign(&signed)?;
        let certificate = der::signed(&signed, made, &signature).expect(WHY);
        Ok(CertificateDer::from(certificate))
    }
}

/// When something made now with this life ends: never sooner than its life after the floor, for the
/// machine whose clock has not been set yet.
fn ends(now: Timestamp, life: Duration) -> Timestamp {
    let floor = i64::from(serial_number::CLOCK_FLOOR_SECONDS);
    let floor = Timestamp::from_second(floor).expect("a date in range");
    let life = SignedDuration::try_from(life).expect("some years");
    now.max(floor)
        .saturating_add(life)
        .unwrap_or(Timestamp::MAX)
}

fn after_epoch(at: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(at.as_second()).unwrap_or(0))
}

fn half(present: &Path, missing: &Path) -> PkiError {
    PkiError::HalfAPair {
        present: present.display().to_string(),
        missing: missing.display().to_string(),
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> PkiError {
    move |source| PkiError::File {
        doing,
        path: path.display().to_string(),
        source,
    }
}

pub(crate) fn read(path: &Path) -> Result<Option<String>, PkiError> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

pub(crate) fn make_directory(path: &Path) -> Result<(), PkiError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed("make the directory", path))
}

pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    private_file::write(path, text).map_err(failed("write", path))
}
