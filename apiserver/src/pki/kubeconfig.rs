//! The admin's kubeconfig as text, with everything embedded. Writing it, mode 0600, is the
//! binary's.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    pub server_url: &'a str,
    pub user: &'a str,
    pub ca_pem: &'a str,
    pub certificate_pem: &'a str,
    pub key_pem: &'a str,
}

/// `server_url` and `user` are our own and hold nothing that YAML reads otherwise.
pub fn text(parts: &Parts<'_>) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: coracle
  cluster:
    certificate-authority-data: {ca}
    server: {server}
contexts:
- name: coracle
  context:
    cluster: coracle
    user: {user}
current-context: coracle
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
",
        ca = STANDARD.encode(parts.ca_pem),
        server = parts.server_url,
        user = parts.user,
        certificate = STANDARD.encode(parts.certificate_pem),
        key = STANDARD.encode(parts.key_pem),
    )
}
