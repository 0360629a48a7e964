//! Requests name who asks; approval and signing write their own parts.

use super::*;
use crate::kinds::testing::{check_errors, check_row, defaulted, object, update_errors};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use expect_test::expect;

/// Of nothing, with nothing in its signature.
const EMPTY: &str = "MA4wBwIBADAAMAAwAAMBAA==";
/// Of the name `n`, with a key of Ed25519.
const SIGNED: &str = "\
    MIGLMD8CAQAwDDEKMAgGA1UEAwwBbjAqMAUGAytlcAMhAH78hYANAOXE2NK4B/rW8/6sBQ9zB1ndP6IE\
    U/Oxi7x5oAAwBQYDK2VwA0EALy3TEbNPbZ9Rt6+adgG2tONhswxA5tTKHKuKXNi0ZnoKz/VeO0p8uAPO\
    XYNvrhPVB3wTVTLHvTzuQRO8docbDQ==";
/// The same with one of P-256.
const OF_P256: &str = "\
    MIHGMG4CAQAwDDEKMAgGA1UEAwwBbjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJX03ZPe/Gv7BySK\
    A5fMCwkATvTdYQtu58KvCP5+42M74ItIeKvOQ18FfACaljEioUmhdfMjJUSw8Zcnmg/qsmugADAKBggq\
    hkjOPQQDAgNIADBFAiEAijNML7zyprWIX9zw9yfa7a0FZ4eNw6tf4jH1c/bBlWICIEyaXBIhTK793rIM\
    f2euxql2fHMNEulioirviqEAEMGx";

/// A block of that content, as the field has it.
fn wrapped(content: &str) -> String {
    let [begin, end] = ["BEGIN", "END"].map(|word| format!("-----{word} CERTIFICATE REQUEST-----"));
    STANDARD.encode(format!("{begin}\n{content}\n{end}\n"))
}

fn request() -> Value {
    json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": { "name": "node-1" },
        "spec": {
            "request": wrapped(SIGNED), "usages": ["client auth"],
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "expirationSeconds": 86400, "username": "me",
        },
    })
}

#[test]
fn printed() {
    let mut csr = request();
    csr["status"] = json!({ "conditions": [{ "type": "Approved" }], "certificate": "Zm9v" });
    check_row(
        "certificatesigningrequests",
        csr,
        0,
        expect![[r#"
        Name: node-1
        Age: <unknown>
        SignerName: kubernetes.io/kube-apiserver-client-kubelet
        Requestor: me
        RequestedDuration: 24h
        Condition: Approved,Issued"#]],
    );
}

#[test]
fn the_server_says_who_asks() {
    let mut csr = object(request());
    SigningRequest.prepare_create(&mut csr);
    let groups = ["system:bootstrappers".to_owned()];
    let by = Requester {
        name: "system:bootstrap:abcdef",
        groups: &groups,
        ..Default::default()
    };
    SigningRequest.stamp(&mut csr, None, Part::Main, &by, "1970-01-01T00:00:00Z");
    assert_eq!(csr.str(&["spec", "username"]), "system:bootstrap:abcdef");
    assert_eq!(csr.list(&["spec", "groups"]), ["system:bootstrappers"]);
}

#[test]
fn well_formed() {
    let mut bad = request();
    bad["spec"] = json!({
        "request": "Zm9v", "usages": ["client auth", "flying", "flying"],
        "signerName": "a/b/c", "expirationSeconds": 60,
    });
    check_errors(
        "certificatesigningrequests",
        bad,
        expect![[r#"
        spec.request: Invalid value: "Zm9v": PEM block type must be CERTIFICATE REQUEST
        spec.usages[1]: Unsupported value: "flying": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"
        spec.usages[2]: Unsupported value: "flying": supported values: "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment", "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel", "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime", "server auth", "signing", "timestamping"
        spec.usages[2]: Duplicate value: "flying"
        spec.signerName: Invalid value: "a/b/c": must be a fully qualified domain and path of the form 'example.com/signer-name'
        spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)"#]],
    );
    let mut bad = request();
    bad["spec"]["signerName"] = "local/Signer".into();
    bad["spec"]["usages"] = json!([]);
    check_errors(
        "certificatesigningrequests",
        bad,
        expect![[r#"
            spec.usages: Required value
            spec.signerName: Invalid value: "local": should be a domain with at least two segments separated by dots
            spec.signerName: Invalid value: "Signer": validating label "Signer": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]],
    );
}

#[test]
fn the_form_of_a_request() {
    let check = |request: Value, detail: &str| {
        let mut bad = super::tests::request();
        bad["spec"]["request"] = request;
        let errors = validate::request(&object(bad));
        let details: Vec<_> = errors.iter().map(|error| error.detail.as_str()).collect();
        assert_eq!(details.join(" "), detail);
    };
    check(wrapped(SIGNED).into(), "");
    check(wrapped(&format!("A: b\n\n{SIGNED}")).into(), "");
    let type_of_block = "PEM block type must be CERTIFICATE REQUEST";
    check(Value::Null, type_of_block);
    check("".into(), type_of_block);
    check(wrapped("!!!!").into(), type_of_block);
    let truncated = "asn1: syntax error: sequence truncated";
    check(wrapped("MAAB").into(), truncated);
    let longer = EMPTY.replace("==", "Aw");
    check(wrapped(&longer).into(), "asn1: syntax error: trailing data");
    check(wrapped("MAIA").into(), truncated);
    let other = "asn1: structure error: tags don't match";
    check(wrapped("YWJj").into(), other);
    check(wrapped("MAA=").into(), truncated);
    check(
        wrapped("AgEA").into(),
        "asn1: structure error: tags don't match",
    );
}

/// Nobody asks for a certificate of somebody else's key.
#[test]
fn the_signature_of_a_request() {
    let check = |request: &[u8], why: Option<&str>| {
        assert_eq!(signature::problem(request).as_deref(), why);
    };
    let bytes = |text: &str| STANDARD.decode(text).unwrap();
    let changed = |text: &str, from: &[u8], to: &[u8]| {
        let mut bytes = bytes(text);
        let at = bytes.windows(from.len()).rposition(|part| part == from);
        let at = at.unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let unimplemented = "x509: cannot verify signature: algorithm unimplemented";
    check(
        &bytes(EMPTY),
        Some("asn1: syntax error: sequence truncated"),
    );
    check(&bytes(SIGNED), None);
    check(&bytes(OF_P256), None);
    // Another name than the one that was signed.
    let other = changed(SIGNED, b"\x0c\x01n", b"\x0c\x01m");
    check(&other, Some("x509: Ed25519 verification failure"));
    let other = changed(OF_P256, b"\x0c\x01n", b"\x0c\x01m");
    check(&other, Some("x509: ECDSA verification failure"));
    // Of another algorithm: none that is known, that of other keys, one with a longer digest.
    let other = changed(SIGNED, &[0x2b, 0x65, 0x70], &[0x2b, 0x65, 0x6e]);
    check(&other, Some(unimplemented));
    let key = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
    let other = changed(
        OF_P256,
        &key,
        &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x02],
    );
    check(&other, Some(unimplemented));
    let ends = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
    let of_rsa = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    let other = changed(OF_P256, &ends, &of_rsa);
    check(&other, Some(unimplemented));
    let longer = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04];
    check(&changed(OF_P256, &ends, &longer), None);
    let algorithm = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21];
    let other = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21];
    check(&changed(SIGNED, &algorithm, &other), Some(unimplemented));
}

#[test]
fn approval_decides_and_status_signs() {
    let mut decided = request();
    decided["status"] = json!({ "conditions": [
        { "type": "Approved", "status": "True" }, { "type": "Denied", "status": "False" },
    ] });
    update_errors(
        "certificatesigningrequests",
        decided.clone(),
        request(),
        Part::Other("approval"),
        expect![[r#"
            status.conditions[1].status: Unsupported value: "False": supported values: "True"
            status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive"#]],
    );
    update_errors(
        "certificatesigningrequests",
        decided,
        request(),
        Part::Status,
        expect![[r#"
            status.conditions[1].status: Unsupported value: "False": supported values: "True"
            status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive
            status.conditions: Forbidden: updates may not add a condition of type "Approved"
            status.conditions: Forbidden: updates may not add a condition of type "Denied""#]],
    );
}

#[test]
fn conditions_get_their_times() {
    let old = defaulted("certificatesigningrequests", request());
    let mut new = old.clone();
    let conditions = json!([{ "type": "Approved", "status": "True" }]);
    new.set(&["status", "conditions"], conditions);
    let now = "2026-01-02T03:04:05Z";
    let part = Part::Other("approval");
    SigningRequest.prepare_update(&mut new, &old, part);
    SigningRequest.stamp(&mut new, Some(&old), part, &Requester::default(), now);
    expect![[r#"{"conditions":[{"lastTransitionTime":"2026-01-02T03:04:05Z","lastUpdateTime":"2026-01-02T03:04:05Z","status":"True","type":"Approved"}]}"#]].assert_eq(&new.get(&["status"]).unwrap().to_string());
}
