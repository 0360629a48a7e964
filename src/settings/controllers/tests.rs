use super::*;

fn args() -> ControllersCommand {
    ControllersCommand {
        kubeconfig: "/etc/kubeconfig".to_owned(),
        ..ControllersCommand::default()
    }
}

fn bad(args: &ControllersCommand) -> String {
    controllers(args).unwrap_err().to_string()
}

#[test]
fn loops_without_their_files_do_not_run() {
    let settings = controllers(&args()).unwrap();
    assert!(settings.is_elected);
    let disabled: Vec<_> = settings.disabled.into_iter().collect();
    assert_eq!(disabled, ["csr-sign", "root-ca"]);
    let with = ControllersCommand {
        leader_elect: Some("false".to_owned()),
        root_ca_file: Some("/ca.crt".to_owned()),
        cluster_signing_cert_file: Some("/ca.crt".to_owned()),
        cluster_signing_key_file: Some("/ca.key".to_owned()),
        disable: vec!["job".to_owned()],
        ..args()
    };
    let settings = controllers(&with).unwrap();
    assert!(!settings.is_elected);
    let disabled: Vec<_> = settings.disabled.into_iter().collect();
    assert_eq!(disabled, ["job"]);
}

#[test]
fn a_certificate_needs_its_key_and_loops_have_names() {
    let without = ControllersCommand {
        cluster_signing_cert_file: Some("/ca.crt".to_owned()),
        ..args()
    };
    assert_eq!(
        bad(&without),
        "--cluster-signing-cert-file \"/ca.crt\": needs --cluster-signing-key-file too"
    );
    let part = ControllersCommand {
        disable: vec!["scheduler".to_owned()],
        ..args()
    };
    let told = bad(&part);
    assert!(
        told.starts_with("--disable \"scheduler\": must be one of deployment, "),
        "{told}"
    );
    let unclear = ControllersCommand {
        leader_elect: Some("maybe".to_owned()),
        ..args()
    };
    assert_eq!(
        bad(&unclear),
        "--leader-elect \"maybe\": must be true or false"
    );
}
