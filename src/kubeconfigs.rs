//! `coracle kubeconfig`: kubeconfigs with certificates of the cluster's CA, and taking them back.
//!
//! Runs on the server's machine. Issuing needs the CA in the data directory and no server; taking
//! back writes to the running server, with a certificate that is made for it and kept nowhere.

use crate::cli::{IssueArgs, KubeconfigAction, KubeconfigCommand, RevokeArgs};
use crate::control_plane::{self, told};
use crate::settings::{BadSetting, parse};
use crate::{Failure, logging, settings, show};
use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::{serial_number, timestamp};
use coracle_apiserver::authenticate::user::MASTERS;
use coracle_apiserver::pki::ADMIN_USER;
use coracle_apiserver::pki::authority::{Authority, LEAF_LIFE};
use coracle_apiserver::pki::kubeconfig::{self, Order};
use coracle_apiserver::pki::peer::ClientCertificate;
use coracle_apiserver::pki::revoked::{self, Revoked, RevokedCertificate};
use coracle_client::{Client, connect};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Of the certificate with which this command asks, which no list names.
const OWN_LIFE: Duration = Duration::from_secs(600);
/// A shorter life is over before the file has been copied to where it is used.
const LIFE_MIN: Duration = Duration::from_secs(60);
/// Somebody else may write the list at the same time.
const ATTEMPTS: usize = 5;

pub fn run(command: KubeconfigCommand) -> Result<(), Failure> {
    logging::start(None, "warn")?;
    let data_dir = settings::data_dir(command.data_dir.as_deref());
    let server = command
        .server
        .as_deref()
        .map(parse::server_url)
        .transpose()?;
    if command.action.is_some() && command.issue != IssueArgs::default() {
        return Err(misplaced(&command.issue).into());
    }
    match command.action {
        None => issue(&command.issue, &data_dir, server),
        Some(KubeconfigAction::Revoke(args)) => revoke(&args, &data_dir, server),
        Some(KubeconfigAction::Revoked) => Ok(revoked(&data_dir, server)?),
    }
}

/// `--user jane revoke` could mean anything.
fn misplaced(args: &IssueArgs) -> BadSetting {
    let given = [
        ("user", args.user.as_ref()),
        ("group", args.group.first()),
        ("lifetime", args.lifetime.as_ref()),
        ("output", args.output.as_ref()),
    ];
    let first = given
        .into_iter()
        .find_map(|(flag, text)| Some((flag, text?)));
    let (flag, text) = first.map_or(("user", ""), |(flag, text)| (flag, text.as_str()));
    let expected = "is for a new kubeconfig: what is taken back is named after `revoke`";
    BadSetting::new(flag, text, expected)
}

/// What is asked for, checked.
struct Wanted<'a> {
    user: &'a str,
    groups: Vec<&'a str>,
    life: Duration,
}

impl<'a> Wanted<'a> {
    fn check(args: &'a IssueArgs) -> Result<Self, BadSetting> {
        let groups: Vec<&str> = args.group.iter().map(String::as_str).collect();
        let (user, groups) = match (args.user.as_deref(), groups.as_slice()) {
            (Some(""), _) => {
                return Err(BadSetting::new("user", "", "must not be empty"));
            }
            (Some(user), _) => (user, groups),
            (None, []) => (ADMIN_USER, vec![MASTERS]),
            (None, [group, ..]) => {
                let expected = "needs --user: whose groups these are";
                return Err(BadSetting::new("group", group, expected));
            }
        };
        if groups.contains(&"") {
            return Err(BadSetting::new("group", "", "must not be empty"));
        }
        let life = match args.lifetime.as_deref() {
            None => LEAF_LIFE,
            Some(text) => match parse::duration("lifetime", text)? {
                life if life < LIFE_MIN => {
                    return Err(BadSetting::new("lifetime", text, "must be at least 1m"));
                }
                life => life,
            },
        };
        Ok(Self { user, groups, life })
    }
}

fn issue(args: &IssueArgs, data_dir: &Path, server: Option<String>) -> Result<(), Failure> {
    let wanted = Wanted::check(args)?;
    let authority = authority(data_dir)?;
    let left = Duration::try_from(authority.not_after().duration_since(now()));
    let left = left.unwrap_or(Duration::ZERO); // It has ended.
    if let Some(text) = args.lifetime.as_deref().filter(|_| wanted.life > left) {
        let ends = timestamp::format_time(authority.not_after());
        let expected = format!("must end before the cluster's CA does, at {ends}");
        return Err(BadSetting::new("lifetime", text, expected).into());
    }
    let server_url = server_url(data_dir, server)?;
    let order = Order {
        server_url: &server_url,
        user: wanted.user,
        groups: &wanted.groups,
        life: wanted.life.min(left),
    };
    let made = kubeconfig::issue(&authority, &order, now());
    let made = made.map_err(anyhow::Error::from)?;
    let Some(file) = args.output.as_deref().filter(|file| *file != "-") else {
        show::line(made.text.trim_end());
        return Ok(());
    };
    control_plane::kubeconfig::write(Path::new(file), &made.text)?;
    let groups = match wanted.groups.as_slice() {
        [] => String::new(),
        groups => format!(" in {}", groups.join(", ")),
    };
    show::line(&format!(
        "wrote {file}: {}{groups}, until {}, serial number {}",
        wanted.user,
        timestamp::format_time(made.not_after),
        hex::encode(&made.serial)
    ));
    Ok(())
}

fn authority(data_dir: &Path) -> anyhow::Result<Authority> {
    Authority::read(&data_dir.join("server/pki")).with_context(|| {
        format!(
            "there is no server's CA in {}: run this on the server's machine, with its --data-dir",
            data_dir.display()
        )
    })
}

/// The one that the server itself wrote down, unless one is named.
fn server_url(data_dir: &Path, named: Option<String>) -> anyhow::Result<String> {
    if let Some(url) = named {
        return Ok(url);
    }
    let path = data_dir.join("admin.kubeconfig");
    let loaded = connect::kubeconfig::load(&path, None).with_context(|| {
        format!(
            "{} does not tell the server's address: name it with --server",
            path.display()
        )
    })?;
    let url = loaded.endpoint.url().to_string();
    Ok(url.trim_end_matches('/').to_owned())
}

fn revoke(args: &RevokeArgs, data_dir: &Path, server: Option<String>) -> Result<(), Failure> {
    if args.user.iter().any(String::is_empty) {
        return Err(BadSetting::new("user", "", "must not be empty").into());
    }
    if let Some(user) = args.user.first() {
        check_clock(user, now())?;
    }
    let serials = args.serial.iter().map(|text| serial(text));
    let serials = serials.collect::<Result<Vec<String>, BadSetting>>()?;
    let authority = authority(data_dir)?;
    let mut certificates = Vec::new();
    for file in &args.file {
        certificates.extend(certificates_in(Path::new(file), &authority)?);
    }
    certificates.extend(serials.into_iter().map(|serial| RevokedCertificate {
        serial,
        user: String::new(),
        ends: String::new(),
    }));
    let server_url = server_url(data_dir, server)?;
    let mut lines = Vec::new();
    runtime()?.block_on(async {
        let client = client(&authority, &server_url)?;
        change(&client, |list| {
            lines.clear();
            for one in &certificates {
                list.add_certificate(one.clone());
                let of = match one.user.as_str() {
                    "" => String::new(),
                    user => format!(" of {user}"),
                };
                lines.push(format!("revoked the certificate {}{of}", one.serial));
            }
            for user in &args.user {
                list.add_user(user, now());
                lines.push(format!(
                    "revoked every certificate of {user} issued until now"
                ));
            }
        })
        .await
    })?;
    for line in &lines {
        show::line(line);
    }
    if !args.user.is_empty() {
        // Certificates are told apart by the second: one that is issued next must be a later one.
        std::thread::sleep(Duration::from_secs(1));
        show::line("`coracle kubeconfig` makes a new kubeconfig that counts");
    }
    Ok(())
}

/// A user's certificates are taken back by the time of their issue, which this machine must know.
fn check_clock(user: &str, now: Timestamp) -> Result<(), BadSetting> {
    let floor = i64::from(serial_number::CLOCK_FLOOR_SECONDS);
    if now.as_second() >= floor {
        return Ok(());
    }
    let expected = format!(
        "cannot be revoked while this machine's clock is not set: it shows {}",
        timestamp::format_time(now)
    );
    Err(BadSetting::new("user", user, expected))
}

/// As `openssl x509` shows one: `-text` puts colons between the bytes, `-serial` has capitals.
fn serial(text: &str) -> Result<String, BadSetting> {
    let expected = "must be a serial number in hexadecimal digits, two for each byte";
    let number = revoked::serial(text);
    let number = number.ok_or_else(|| BadSetting::new("serial", text, expected))?;
    Ok(hex::encode(number))
}

/// The client certificates in a kubeconfig, all of them of this cluster.
fn certificates_in(file: &Path, authority: &Authority) -> anyhow::Result<Vec<RevokedCertificate>> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let parsed: serde_json::Value =
        serde_yaml_ng::from_str(&text).with_context(|| format!("{shown} is not a kubeconfig"))?;
    let mut found = Vec::new();
    for entry in parsed["users"].as_array().into_iter().flatten() {
        let user = &entry["user"];
        let pem = match (
            user["client-certificate-data"].as_str(),
            user["client-certificate"].as_str(),
        ) {
            (Some(data), _) => STANDARD.decode(data).ok(),
            (None, Some(path)) => {
                let folder = file.parent().unwrap_or(Path::new("."));
                std::fs::read(folder.join(path)).ok()
            }
            (None, None) => continue,
        };
        let certificate = pem.and_then(|pem| ClientCertificate::from_pem(&pem));
        let certificate = certificate
            .with_context(|| format!("{shown} holds a client certificate that cannot be read"))?;
        if !certificate.is_signed_by(authority.certificate()) {
            bail!(
                "the certificate of {:?} in {shown} is not one of this cluster",
                certificate.subject.user
            );
        }
        found.push(RevokedCertificate {
            serial: hex::encode(&certificate.subject.serial),
            user: certificate.subject.user,
            ends: timestamp::format_time(certificate.not_after),
        });
    }
    if found.is_empty() {
        bail!("{shown} holds no client certificate");
    }
    Ok(found)
}

fn revoked(data_dir: &Path, server: Option<String>) -> anyhow::Result<()> {
    let authority = authority(data_dir)?;
    let server_url = server_url(data_dir, server)?;
    let list = runtime()?.block_on(async {
        let client = client(&authority, &server_url)?;
        Ok::<_, anyhow::Error>(read(&client).await?.1)
    })?;
    let certificates = list.certificates.into_iter().map(|one| {
        // By its number alone, nothing else is known of it.
        let known = |text: String| match text.is_empty() {
            true => "<unknown>".to_owned(),
            false => text,
        };
        vec![known(one.user), one.serial, known(one.ends)]
    });
    let users = list.users.into_iter().map(|one| {
        let which = format!("all issued until {}", one.issued_until);
        vec![one.user, which, "<never>".to_owned()]
    });
    let rows: Vec<Vec<String>> = certificates.chain(users).collect();
    show::line(&show::columns(&["USER", "CERTIFICATES", "UNTIL"], &rows));
    Ok(())
}

fn client(authority: &Authority, server_url: &str) -> anyhow::Result<Client> {
    let order = Order {
        server_url,
        user: revoked::KEEPER,
        groups: &[MASTERS],
        life: OWN_LIFE,
    };
    let own = kubeconfig::issue(authority, &order, now())?;
    let loaded = connect::kubeconfig::parse(&own.text, Path::new("."), None)?;
    Ok(connect::client(&loaded.endpoint))
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), revoked::NAMESPACE)
}

/// The list, and the object that it is kept in.
async fn read(client: &Client) -> anyhow::Result<(Option<ConfigMap>, Revoked)> {
    let found = maps(client).get_opt(revoked::NAME).await;
    let found = found
        .map_err(told)
        .context("the running server did not show the revoked certificates")?;
    let Some(map) = &found else {
        return Ok((None, Revoked::default()));
    };
    let text = map.data.as_ref().and_then(|data| data.get(revoked::KEY));
    let list = Revoked::parse(text.map(String::as_str)).with_context(|| {
        format!(
            "the ConfigMap {}/{} does not hold a list of revoked certificates",
            revoked::NAMESPACE,
            revoked::NAME
        )
    })?;
    Ok((found, list))
}

/// Writes the changed list; again when somebody else was faster.
async fn change(client: &Client, mut apply: impl FnMut(&mut Revoked)) -> anyhow::Result<()> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let (found, mut list) = read(client).await?;
        list.prune(now());
        apply(&mut list);
        let is_new = found.is_none();
        let mut map = found.unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta {
                name: Some(revoked::NAME.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        });
        map.data = Some(BTreeMap::from([(revoked::KEY.to_owned(), list.to_text())]));
        let (maps, params) = (maps(client), PostParams::default());
        let written = if is_new {
            maps.create(&params, &map).await
        } else {
            maps.replace(revoked::NAME, &params, &map).await
        };
        match written {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status))
                if (status.is_conflict() || status.is_already_exists()) && attempt < ATTEMPTS => {}
            Err(error) => return Err(told(error)).context("nothing was revoked"),
        }
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.context("cannot start")
}

#[allow(clippy::disallowed_methods)] // The binary may read the clock.
fn now() -> Timestamp {
    Timestamp::now()
}

#[cfg(test)]
mod tests;
