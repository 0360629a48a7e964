//! Who may come in: kubeconfigs that are issued and taken back, tokens in Secrets and in files, and
//! what is too large.

use crate::lab::{Cluster, Lab, all_text, coracle, wait};
use std::path::PathBuf;

/// `coracle kubeconfig` on the server's machine; what it says on both outputs.
fn kubeconfig(cluster: &Cluster, arguments: &[&str]) -> Result<String, String> {
    let mut command = cluster.host.command(coracle());
    command.arg("kubeconfig").args(arguments);
    command.arg("--data-dir").arg(&cluster.host.data_dir);
    let output = command.output().unwrap();
    if output.status.success() {
        Ok(all_text(&output))
    } else {
        Err(all_text(&output))
    }
}

fn file(cluster: &Cluster, name: &str) -> PathBuf {
    cluster.host.data_dir.join(name)
}

/// kubectl with another kubeconfig, or with a token alone.
pub fn with(cluster: &Cluster, options: &[&str], arguments: &[&str]) -> Result<String, String> {
    let mut command = cluster.host.command(&cluster.kubectl);
    let output = command.args(options).args(arguments).output().unwrap();
    if output.status.success() {
        Ok(all_text(&output))
    } else {
        Err(all_text(&output))
    }
}

/// A kubeconfig that shows this token and no certificate.
pub fn kubeconfig_of_token(cluster: &Cluster, token: &str) -> String {
    let path = file(cluster, "token.yaml");
    let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let (head, _) = text.split_once("    client-certificate-data").unwrap();
    std::fs::write(&path, format!("{head}    token: {token}\n")).unwrap();
    path.display().to_string()
}

#[test]
fn a_leaked_kubeconfig_is_taken_back_and_the_ca_stays() {
    let mut lab = Lab::new();
    let cluster = lab.server("revoke", &[]);
    let (jane, admin) = (file(&cluster, "jane.yaml"), file(&cluster, "second.yaml"));
    let (jane, admin) = (jane.display().to_string(), admin.display().to_string());
    let said = kubeconfig(
        &cluster,
        &[
            "--user", "jane", "--group", "dev", "--group", "ops", "-o", &jane,
        ],
    );
    let said = said.unwrap();
    assert!(
        said.starts_with(&format!("wrote {jane}: jane in dev, ops, until ")),
        "{said}"
    );
    kubeconfig(&cluster, &["-o", &admin]).unwrap();
    let who = |file: &str| with(&cluster, &["--kubeconfig", file], &["auth", "whoami"]);
    let shown = who(&jane).unwrap();
    assert!(
        shown.contains("jane") && shown.contains("[dev ops system:authenticated]"),
        "{shown}"
    );
    assert!(who(&admin).unwrap().contains("system:masters"));

    let said = kubeconfig(&cluster, &["revoke", &jane]).unwrap();
    assert!(
        said.starts_with("revoked the certificate ") && said.contains(" of jane"),
        "{said}"
    );
    let refused = who(&jane).unwrap_err();
    assert!(refused.contains("Unauthorized"), "{refused}");
    assert!(who(&admin).is_ok());

    // The file is lost: everything of the admin ends, the server's own copy too.
    kubeconfig(&cluster, &["revoke", "--user", "kubernetes-admin"]).unwrap();
    assert!(who(&admin).is_err());
    assert!(cluster.try_kubectl(&["get", "namespaces"]).is_err());
    let listed = kubeconfig(&cluster, &["revoked"]).unwrap();
    assert!(
        listed.contains("kubernetes-admin   all issued until "),
        "{listed}"
    );
    let own = cluster.kubeconfig().display().to_string();
    kubeconfig(&cluster, &["-o", &own]).unwrap();
    cluster.kubectl(&["get", "namespaces"]);
    let text = kubeconfig(&cluster, &[]).unwrap();
    assert!(text.starts_with("apiVersion: v1\nkind: Config\n"), "{text}");
    // Nobody who is left out by it can do anything about it.
    let kept = [
        "get",
        "configmap",
        "-n",
        "kube-system",
        "coracle-revoked-certificates",
    ];
    assert!(
        cluster
            .kubectl(&kept)
            .contains("coracle-revoked-certificates")
    );
}

#[test]
fn a_secret_holds_a_token_until_its_account_ends() {
    let mut lab = Lab::new();
    let cluster = lab.server("legacy", &[]);
    cluster.apply(
        r#"
apiVersion: v1
kind: ServiceAccount
metadata: { name: bot }
---
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata: { name: bot-token, annotations: { kubernetes.io/service-account.name: bot } }
"#,
    );
    let secret = ["secret", "bot-token"];
    let token = wait("the token is made", || {
        let token = cluster.kubectl(&[
            "get",
            "secret",
            "bot-token",
            "-o",
            "go-template={{with .data.token}}{{. | base64decode}}{{end}}",
        ]);
        (!token.is_empty()).then_some(token)
    });
    let uid = cluster.value(&["serviceaccount", "bot"], "{.metadata.uid}");
    let annotation = "{.metadata.annotations.kubernetes\\.io/service-account\\.uid}";
    assert_eq!(cluster.value(&secret, annotation), uid);
    let config = format!("--kubeconfig={}", cluster.kubeconfig().display());
    let bot = kubeconfig_of_token(&cluster, &token);
    let who = || with(&cluster, &["--kubeconfig", &bot], &["auth", "whoami"]);
    let shown = who().unwrap();
    assert!(
        shown.contains("system:serviceaccount:default:bot"),
        "{shown}"
    );
    let label = "{.metadata.labels.kubernetes\\.io/legacy-token-last-used}";
    wait("the use is written down", || {
        (!cluster.value(&secret, label).is_empty()).then_some(())
    });
    with(&cluster, &[&config], &["delete", "serviceaccount", "bot"]).unwrap();
    cluster.wait_gone(&["secret", "bot-token"]);
    let refused = who().unwrap_err();
    assert!(refused.contains("Unauthorized"), "{refused}");
}

#[test]
fn files_of_tokens_and_paths_for_nobody() {
    let mut lab = Lab::new();
    let (tokens, settings) = (lab.path("tokens.csv"), lab.path("authentication.yaml"));
    std::fs::write(&tokens, "s3cret,jane,7,\"dev,ops\"\n").unwrap();
    let text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n\
                anonymous: { enabled: true, conditions: [{ path: /livez }] }\n";
    std::fs::write(&settings, text).unwrap();
    let (tokens, settings) = (tokens.display().to_string(), settings.display().to_string());
    let flags = [
        "--token-auth-file",
        &tokens,
        "--authentication-config",
        &settings,
    ];
    let cluster = lab.server("files", &flags);
    let ask = |path: &str, headers: &[&str]| {
        let url = format!("https://{}:6443{path}", cluster.host.address);
        let mut command = cluster.host.command("curl");
        command.args(["-sk", "-o", "/dev/null", "-w", "%{http_code}", &url]);
        for header in headers {
            command.args(["-H", header]);
        }
        all_text(&command.output().unwrap())
    };
    assert_eq!(ask("/livez", &[]), "200");
    assert_eq!(ask("/version", &[]), "401");
    assert_eq!(ask("/version", &["Authorization: Bearer s3cret"]), "200");
    assert_eq!(ask("/livez", &["Authorization: Bearer s3cre7"]), "401");
    let huge = format!("X-Huge: {}", "x".repeat(100_000));
    // Over HTTP/2 curl itself sends no header as large as that.
    let with_http1 = |headers: &[String]| {
        let url = format!("https://{}:6443/livez", cluster.host.address);
        let mut command = cluster.host.command("curl");
        command.args(["--http1.1", "-sk", "-o", "/dev/null", "-w", "%{http_code}"]);
        command.arg(&url);
        headers.iter().for_each(|one| {
            command.args(["-H", one]);
        });
        all_text(&command.output().unwrap())
    };
    assert_eq!(with_http1(&[huge]), "431");
    // One header a group: whoever acts for somebody in many sends many.
    let groups: Vec<String> = (0..300).map(|one| format!("X-Group-{one}: g")).collect();
    assert_eq!(with_http1(&groups), "200");
}
