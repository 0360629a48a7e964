//! Certificates of clients and one's own.

use super::*;

#[test]
fn a_certificate_that_ran_out_names_nobody() {
    let caller = Caller {
        name: "scraper".to_owned(),
        ..Caller::default()
    };
    let until: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
    let certified = Some((caller.clone(), until));
    assert_eq!(still(certified.clone(), until), Some(caller));
    let later = until + Duration::from_nanos(1);
    assert_eq!(still(certified, later), None);
    assert_eq!(still(None, until), None);
}

#[test]
fn a_certificate_is_shown_with_its_own_key_alone() {
    let pair = || {
        let key = rcgen::KeyPair::generate().unwrap();
        let params = rcgen::CertificateParams::new(vec!["a".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    };
    let ((certificate, key), (_, other)) = (pair(), pair());
    assert!(Serving::new(&certificate, &key).is_ok());
    let unfit = Serving::new(&certificate, &other);
    assert!(matches!(unfit, Err(CertificateError::Key(_))));
    let nothing = Serving::new("", &key);
    assert!(matches!(nothing, Err(CertificateError::Empty)));
}
