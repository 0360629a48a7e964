//! Approved requests of the four signers get a certificate or a reason why not, all others
//! nothing; against a server in memory.

use super::*;
use crate::Config;
use crate::csr::tests::request;
use crate::fake_api::{FakeApi, eventually};
use crate::fake_cluster::spawn;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
use rcgen::{CertificateParams, DnType, IsCa, KeyPair};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use tokio_util::sync::DropGuard;
use x509_parser::prelude::{FromDer, X509Certificate};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const CLIENT_USAGES: [&str; 2] = ["digital signature", "client auth"];
const SERVER_USAGES: [&str; 2] = ["digital signature", "server auth"];
const AUTHORITY: &str = "this cluster";

struct Site {
    api: FakeApi,
    _running: DropGuard,
}

fn start() -> Site {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, AUTHORITY);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let api = FakeApi::new();
    let config = Config {
        signing_cert_pem: certificate.pem(),
        signing_key_pem: key.serialize_pem(),
        ..Config::default()
    };
    let _running = spawn(api.client(), config, run);
    Site { api, _running }
}

impl Site {
    fn ask(&self, name: &str, spec: &CertificateSigningRequestSpec, conditions: &[&str]) {
        let conditions = conditions
            .iter()
            .map(|one| json!({ "type": one, "status": "True", "reason": "Test", "message": "" }));
        let conditions: Vec<Value> = conditions.collect();
        let object = json!({ "spec": spec, "status": { "conditions": conditions } });
        self.api.put(&format!("{REQUESTS}/{name}"), object);
    }

    fn status(&self, name: &str) -> CertificateSigningRequest {
        let object = self.api.get(&format!("{REQUESTS}/{name}")).unwrap();
        serde_json::from_value(object).unwrap()
    }

    async fn is_signed(&self, name: &str) -> Vec<u8> {
        eventually(&format!("{name} is signed"), || {
            csr::has_certificate(&self.status(name))
        })
        .await;
        let status = self.status(name).status.unwrap();
        let pem = status.certificate.unwrap().0;
        CertificateDer::from_pem_slice(&pem).unwrap().to_vec()
    }
}

#[tokio::test(start_paused = true)]
async fn each_signer_signs_what_was_approved() {
    let site = start();
    let node = |signer, names: &[&str], usages: &[&str]| {
        request("system:node:a", "system:nodes", names, signer, usages)
    };
    let asked = [
        (
            "client",
            request("jane", "dev", &[], csr::CLIENT, &CLIENT_USAGES),
        ),
        ("node", node(csr::NODE_CLIENT, &[], &CLIENT_USAGES)),
        ("serving", node(csr::NODE_SERVING, &["a"], &SERVER_USAGES)),
        // Whatever the usages: it has no rules of its own.
        (
            "legacy",
            request("x", "y", &["z"], csr::LEGACY, &["server auth"]),
        ),
    ];
    for (name, spec) in &asked {
        site.ask(name, spec, &["Approved"]);
        let der = site.is_signed(name).await;
        let (_, certificate) = X509Certificate::from_der(&der).unwrap();
        let issuer = format!("CN={AUTHORITY}");
        assert!(
            certificate.issuer().to_string().ends_with(&issuer),
            "{name}"
        );
        let usages = certificate.extended_key_usage().unwrap().unwrap().value;
        let is_server = ["serving", "legacy"].contains(name);
        assert_eq!(usages.server_auth, is_server, "{name}");
        assert_eq!(usages.client_auth, !is_server, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_breaks_the_rules_of_its_signer_fails_and_says_why() {
    let site = start();
    let spec = request("jane", "system:masters", &[], csr::CLIENT, &CLIENT_USAGES);
    site.ask("admin", &spec, &["Approved"]);
    eventually("the request fails", || {
        csr::has_condition(&site.status("admin"), "Failed")
    })
    .await;
    let status = site.status("admin").status.unwrap();
    assert_eq!(status.certificate, None);
    let failed = status.conditions.unwrap().pop().unwrap();
    assert_eq!(failed.reason.as_deref(), Some("SignerValidationFailure"));
    assert_eq!(
        failed.message.as_deref(),
        Some(
            "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not \
             allowed"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_else_is_touched() {
    let site = start();
    let good = |signer| request("jane", "dev", &[], signer, &CLIENT_USAGES);
    site.ask("waiting", &good(csr::CLIENT), &[]);
    site.ask("denied", &good(csr::CLIENT), &["Denied"]);
    site.ask("failed", &good(csr::CLIENT), &["Approved", "Failed"]);
    site.ask("foreign", &good("example.com/other"), &["Approved"]);
    // By then those before have had their turn.
    site.ask("last", &good(csr::CLIENT), &["Approved"]);
    let first = site.is_signed("last").await;
    // What has its certificate keeps it.
    site.api.break_watches();
    site.ask("more", &good(csr::CLIENT), &["Approved"]);
    site.is_signed("more").await;
    assert_eq!(site.is_signed("last").await, first);
    let writes = site.api.requests().into_iter();
    let writes: Vec<String> = writes.filter(|one| one.starts_with("PUT")).collect();
    let expected = ["last", "more"].map(|name| format!("PUT {REQUESTS}/{name}/status"));
    assert_eq!(writes, expected);
}
