use super::*;

fn of(args: &PortArgs) -> Result<Option<PortSettings>, String> {
    port(args, 10259).map_err(|bad| bad.to_string())
}

#[test]
fn the_port_is_upstreams_unless_it_is_named_or_off() {
    let usual = of(&PortArgs::default()).unwrap().unwrap();
    assert_eq!(usual.address.to_string(), "0.0.0.0:10259");
    assert_eq!(usual.always_allowed, ["/healthz", "/readyz", "/livez"]);
    let named = PortArgs {
        secure_port: Some("7".to_owned()),
        bind_address: Some("::1".to_owned()),
        authorization_always_allow_paths: Some(vec!["metrics".to_owned(), "/healthz/*".to_owned()]),
        ..PortArgs::default()
    };
    let named = of(&named).unwrap().unwrap();
    assert_eq!(named.address.to_string(), "[::1]:7");
    assert_eq!(named.always_allowed, ["/metrics", "/healthz/*"]);
    let off = PortArgs {
        secure_port: Some("0".to_owned()),
        ..PortArgs::default()
    };
    assert!(of(&off).unwrap().is_none());
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let far = PortArgs {
        secure_port: Some("70000".to_owned()),
        ..PortArgs::default()
    };
    let told = "--secure-port \"70000\": must be a port, or 0 for none";
    assert_eq!(of(&far).unwrap_err(), told);
    let alone = PortArgs {
        tls_cert_file: Some("/c".to_owned()),
        ..PortArgs::default()
    };
    let told = "--tls-cert-file \"/c\": needs --tls-private-key-file too";
    assert_eq!(of(&alone).unwrap_err(), told);
    let paths = PortArgs {
        authorization_always_allow_paths: Some(vec!["/a/*/b".to_owned()]),
        ..PortArgs::default()
    };
    let told = "--authorization-always-allow-paths \"/a/*/b\": may have a * at its end only";
    assert_eq!(of(&paths).unwrap_err(), told);
}
