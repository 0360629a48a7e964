//! Every certificate in the data directory: who it is for and how long it is good.
//!
//! A server renews its own while it runs, and a node those of the node; what ran out while they were
//! down, and what nobody renews, is what this is for.

use super::finding::{Finding, Verdict};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use coracle_agent::enrol::Lifetime;
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::path::{Path, PathBuf};

const CHECK: &str = "certificates";
const SOON: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Deeper than anything that Coracle keeps.
const DEPTH_MAX: usize = 4;
/// Larger files hold no certificate.
const FILE_BYTES_MAX: u64 = 1 << 20;
const KUBECONFIG: &str = "admin.kubeconfig";
const IN_KUBECONFIG: &str = "client-certificate-data:";

struct Found {
    path: PathBuf,
    lifetime: Option<Lifetime>,
}

pub fn check(data_dir: &Path, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    for part in ["server", "agent"] {
        let directories = fs::read_dir(data_dir.join(part)).into_iter().flatten();
        for directory in directories.flatten() {
            if directory.file_name().to_string_lossy().starts_with("pki") {
                gather(&directory.path(), DEPTH_MAX, &mut found);
            }
        }
    }
    found.extend(of_kubeconfig(&data_dir.join(KUBECONFIG)));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let judged: Vec<Finding> = found.iter().filter_map(|one| judge(one, now)).collect();
    if found.is_empty() {
        return vec![Finding::ok(CHECK, "none yet")];
    }
    if judged.is_empty() {
        let good = format!("{} found, all good for longer than 30 days", found.len());
        return vec![Finding::ok(CHECK, good)];
    }
    judged
}

fn gather(directory: &Path, depth: usize, found: &mut Vec<Found>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        if metadata.is_dir() && depth > 0 {
            gather(&path, depth - 1, found);
            continue;
        }
        let is_certificate = path
            .extension()
            .is_some_and(|end| end == "crt" || end == "pem");
        if metadata.is_file() && is_certificate && metadata.len() <= FILE_BYTES_MAX {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lifetime = Lifetime::of(&text);
            found.push(Found { path, lifetime });
        }
    }
}

fn of_kubeconfig(path: &Path) -> Option<Found> {
    let text = fs::read_to_string(path).ok()?;
    let data = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(IN_KUBECONFIG))?;
    let pem = BASE64_STANDARD.decode(data.trim()).ok();
    let pem = pem.and_then(|bytes| String::from_utf8(bytes).ok());
    Some(Found {
        path: path.to_owned(),
        lifetime: pem.and_then(|pem| Lifetime::of(&pem)),
    })
}

/// None for one that is well.
fn judge(found: &Found, now: Timestamp) -> Option<Finding> {
    let path = found.path.display().to_string();
    let Some(lifetime) = &found.lifetime else {
        return Some(Finding::fail(
            CHECK,
            format!("{path} is no certificate"),
            remedy_of_none(&path),
        ));
    };
    let until = lifetime.not_after;
    let shown = match lifetime.common_name.as_str() {
        "" => path.clone(),
        name => format!("{path} ({name})"),
    };
    if now < lifetime.not_before {
        let found = format!("{shown} is good from {} on", lifetime.not_before);
        return Some(Finding::fail(CHECK, found, "Set the clock: it is behind"));
    }
    let (verdict, found) = if until <= now {
        (Verdict::Fail, format!("{shown} ended at {until}"))
    } else if until.duration_since(now) < SOON {
        (Verdict::Warn, format!("{shown} ends at {until}"))
    } else {
        return None;
    };
    Some(Finding {
        check: CHECK,
        verdict,
        found,
        remedy: remedy(&path).to_owned(),
    })
}

fn remedy_of_none(path: &str) -> &'static str {
    if path.ends_with(KUBECONFIG) {
        "The next start of the server writes it anew"
    } else if path.contains("/agent/") {
        "Put the file back from a backup, or enrol with a new token (`coracle token create`)"
    } else {
        "Put the file back from a backup"
    }
}

fn remedy(path: &str) -> &'static str {
    if path.contains("/agent/") {
        "The node renews it while it reaches its server; once it has ended, enrol with a new token \
         (`coracle token create`)"
    } else if path.ends_with("front-proxy/ca.crt") {
        "Remove it with its ca.key and start the server again, which makes both anew; nothing but \
         aggregated API servers knows them, and they are told"
    } else if path.ends_with("ca.crt") {
        "Every other certificate ends with it: start anew with another --data-dir, or sign a new one \
         with the same key"
    } else {
        "A running server renews it; start it"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str, year: i32) -> String {
        let mut params = rcgen::CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().pem()
    }

    fn findings(now: &str) -> Vec<String> {
        let directory = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("server/pki/ca.crt", &pem("ca", 2040));
        put("server/pki/front-proxy/ca.crt", &pem("proxy", 2030));
        put("agent/pki/client.pem", &pem("system:node:a", 2027));
        let nameless = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.not_after = rcgen::date_time_ymd(2050, 1, 1);
        let nameless = params.self_signed(&nameless).unwrap();
        put("agent/pki/nameless.pem", &nameless.pem());
        let encoded = BASE64_STANDARD.encode(pem("admin", 2028));
        put(
            KUBECONFIG,
            &format!("  user:\n    {IN_KUBECONFIG} {encoded}\n"),
        );
        let root = format!("{}/", directory.path().display());
        check(directory.path(), now.parse().unwrap())
            .into_iter()
            .map(|one| format!("{:?} {}", one.verdict, one.found.replace(&root, "")))
            .collect()
    }

    #[test]
    fn what_has_ended_and_what_soon_will_is_told_and_nothing_else() {
        assert_eq!(
            findings("2026-06-01T00:00:00Z"),
            ["Ok 5 found, all good for longer than 30 days"]
        );
        assert_eq!(
            findings("2027-12-15T00:00:00Z"),
            [
                "Warn admin.kubeconfig (admin) ends at 2028-01-01T00:00:00Z",
                "Fail agent/pki/client.pem (system:node:a) ended at 2027-01-01T00:00:00Z",
            ]
        );
        // A board without a battery, before it has the time.
        assert_eq!(findings("1970-01-02T00:00:00Z").len(), 5);
    }

    #[test]
    fn each_kind_of_certificate_has_a_remedy_of_its_own() {
        let remedies = [
            "/d/server/pki/ca.crt",
            "/d/server/pki/front-proxy/ca.crt",
            "/d/agent/pki/ca.crt",
            "/d/admin.kubeconfig",
        ]
        .map(remedy);
        let begins = [
            "Every other",
            "Remove it with",
            "The node renews",
            "A running server",
        ];
        for (remedy, begin) in remedies.iter().zip(begins) {
            assert!(remedy.starts_with(begin), "{remedy}");
        }
        assert!(remedy_of_none("/d/admin.kubeconfig").contains("next start"));
        assert!(remedy_of_none("/d/agent/pki/client.pem").contains("enrol"));
        assert!(!remedy_of_none("/d/server/pki/ca.crt").contains("enrol"));
    }

    #[test]
    fn before_the_first_start_there_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let found = check(directory.path(), Timestamp::UNIX_EPOCH);
        assert_eq!(found, [Finding::ok(CHECK, "none yet")]);
    }

    #[test]
    fn a_file_that_the_power_cut_emptied_is_named() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("server/pki")).unwrap();
        fs::write(directory.path().join("server/pki/ca.crt"), "").unwrap();
        let found = check(directory.path(), Timestamp::UNIX_EPOCH);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].found.ends_with("ca.crt is no certificate"),
            "{found:?}"
        );
    }
}
