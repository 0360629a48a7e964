//! What is kept of answers, and who a certificate speaks for.

use super::*;
use crate::clock::Instant;

#[test]
fn answers_end_and_are_few() {
    let now = Instant::now();
    let later = |seconds: u64| now + Duration::from_secs(seconds);
    let kept: Kept<usize, bool> = Kept::default();
    kept.put(0, true, later(10), now);
    assert_eq!(kept.get(&0, later(9)), Some(true));
    assert_eq!(kept.get(&0, later(10)), None);
    for key in 0..3 * KEPT_MAX {
        kept.put(key, false, later(10), now);
    }
    assert!(kept.0.lock().len() <= KEPT_MAX);
}

#[test]
fn a_certificate_names_its_user_and_groups() {
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let name = &mut params.distinguished_name;
    name.push(rcgen::DnType::CommonName, "scraper");
    name.push(rcgen::DnType::OrganizationName, "readers");
    params.not_after = rcgen::date_time_ymd(2030, 1, 1);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (caller, until) = Caller::of_certificate(certificate.der()).unwrap();
    assert_eq!(until.to_string(), "2030-01-01T00:00:00Z");
    assert_eq!(caller.name, "scraper");
    assert_eq!(caller.groups, ["readers", "system:authenticated"]);
}

#[test]
fn only_a_bearers_token_is_one() {
    let of = |value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, value.parse().unwrap());
        token(&headers).map(str::to_owned)
    };
    assert_eq!(of("bearer  abc "), Some("abc".to_owned()));
    assert_eq!(of("Basic abc"), None);
    assert_eq!(of("Bearer "), None);
    assert_eq!(token(&HeaderMap::new()), None);
}

#[test]
fn a_review_names_what_is_asked() {
    let caller = Caller {
        name: "scraper".to_owned(),
        ..Caller::default()
    };
    let path = review(
        &caller,
        &Asked::Path {
            verb: "get".to_owned(),
            path: "/metrics".to_owned(),
        },
    );
    let attributes = path.spec.non_resource_attributes.unwrap();
    assert_eq!(attributes.path.as_deref(), Some("/metrics"));
    assert_eq!(path.spec.resource_attributes, None);
    let node = review(
        &caller,
        &Asked::Node {
            name: "n".to_owned(),
            verb: "get",
            subresource: "stats",
        },
    );
    let attributes = node.spec.resource_attributes.unwrap();
    assert_eq!(attributes.subresource.as_deref(), Some("stats"));
    assert_eq!(node.spec.user.as_deref(), Some("scraper"));
}
