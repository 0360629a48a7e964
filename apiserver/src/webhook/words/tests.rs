//! Certificates that are not taken, as Go says it.

use super::*;
use expect_test::{Expect, expect};
use rustls::pki_types::ServerName;

fn check(error: CertificateError, expected: Expect) {
    let error = io::Error::other(rustls::Error::InvalidCertificate(error));
    expected.assert_eq(&of_tls(&error));
}

#[test]
fn certificates() {
    check(
        CertificateError::UnknownIssuer,
        expect!["tls: failed to verify certificate: x509: certificate signed by unknown authority"],
    );
    let of_name = |presented: &[&str]| CertificateError::NotValidForNameContext {
        expected: ServerName::try_from("hook.ns.svc").unwrap(),
        presented: presented.iter().map(|name| (*name).to_owned()).collect(),
    };
    check(
        of_name(&["DnsName(\"a.b\")", "DnsName(\"c\")"]),
        expect![
            "tls: failed to verify certificate: x509: certificate is valid for a.b, c, not hook.ns.svc"
        ],
    );
    check(
        of_name(&[]),
        expect![
            "tls: failed to verify certificate: x509: certificate is not valid for any names, but wanted to match hook.ns.svc"
        ],
    );
    check(
        CertificateError::Expired,
        expect![
            "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
        ],
    );
}
