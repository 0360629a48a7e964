//! Who may ask for, approve and sign certificates.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

/// A CertificateSigningRequest `c`.
pub fn request(signer: &str, common_name: &str, organization: &str) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    let key = KeyPair::generate().unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": { "name": "c" },
        "spec": { "signerName": signer, "request": STANDARD.encode(pem) },
    })
}

const CLIENT: &str = "kubernetes.io/kube-apiserver-client";

#[tokio::test]
async fn nobody_asks_to_be_a_master() {
    let (bench, jane) = (bench(vec![]), User::named("jane"));
    let asked = as_user(&jane, "CREATE certificatesigningrequests -");
    let refused = bench
        .admit(&asked, Some(request(CLIENT, "jane", "system:masters")))
        .await;
    assert_eq!(
        refused.unwrap_err(),
        "certificatesigningrequests.certificates.k8s.io \"c\" is forbidden: use of \
         kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed"
    );
    assert!(
        bench
            .admit(&asked, Some(request(CLIENT, "jane", "dev")))
            .await
            .is_ok()
    );
    let mut broken = request(CLIENT, "jane", "dev");
    broken["spec"]["request"] = "bm9uc2Vuc2U=".into();
    let refused = bench.admit(&asked, Some(broken)).await.unwrap_err();
    assert!(
        refused.contains("PEM block type must be CERTIFICATE REQUEST"),
        "{refused}"
    );
}

#[tokio::test]
async fn approving_and_signing_need_rights_on_the_signer() {
    let bench = bench(vec![]);
    let old = Object::from_value(request(CLIENT, "jane", "dev")).unwrap();
    let mut signed = old.to_value();
    signed["status"] = json!({ "certificate": "x" });
    let jane = User::named("jane");
    let controller = User::named("system:serviceaccount:kube-system:certificate-controller");
    for (subresource, verb) in [("approval", "approve"), ("status", "sign")] {
        let text = format!("UPDATE certificatesigningrequests/{subresource} - c");
        let asked = |user| Asked {
            user,
            text: &text,
            old: Some(&old),
            warnings: Warnings::default(),
        };
        let refused = bench
            .admit(&asked(&jane), Some(signed.clone()))
            .await
            .unwrap_err();
        let ending = format!("not permitted to {verb} requests with signerName {CLIENT:?}");
        assert!(refused.ends_with(&ending), "{refused}");
        let signs = bench.admit(&asked(&controller), Some(signed.clone())).await;
        // The upstream controller approves node requests only, but signs for all its signers.
        assert_eq!(signs.is_ok(), verb == "sign", "{verb} {signs:?}");
    }
    let asked = Asked {
        user: &jane,
        text: "UPDATE certificatesigningrequests/status - c",
        old: Some(&old),
        warnings: Warnings::default(),
    };
    assert!(bench.admit(&asked, Some(old.to_value())).await.is_ok());
}
