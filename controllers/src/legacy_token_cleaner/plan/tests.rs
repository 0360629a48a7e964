//! Which tokens are marked, which go, and what a pod mounts.

use super::*;
use serde_json::json;

const NOW: &str = "2026-06-01T10:00:00Z";
const PERIOD: Duration = Duration::from_hours(10 * 24);

fn since(day: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(SINCE.to_owned(), day.to_owned())])
}

fn limits_at(day: &str, now: &str) -> Option<Limits> {
    limits(&since(day), PERIOD, now.parse().unwrap())
}

#[test]
fn nothing_is_judged_before_uses_are_noted_for_a_whole_period() {
    assert_eq!(limits_at("2026-05-22", "2026-06-01T23:59:59Z"), None);
    let reached = limits_at("2026-05-22", "2026-06-02T00:00:00Z").unwrap();
    let expected = Limits {
        created: "2026-05-23T00:00:00Z".parse().unwrap(),
        used: "2026-05-23".to_owned(),
        today: "2026-06-02".to_owned(),
    };
    assert_eq!(reached, expected);
    for unsaid in ["", "yesterday", "2026-1-1"] {
        assert_eq!(limits_at(unsaid, NOW), None, "{unsaid}");
    }
    assert_eq!(limits(&BTreeMap::new(), PERIOD, NOW.parse().unwrap()), None);
}

/// An account that names a token of it, both old; then with a change to both.
fn verdict_of(change: impl FnOnce(&mut Value, &mut Value)) -> Verdict {
    let mut secret = json!({
        "metadata": {
            "name": "old", "namespace": "default", "labels": {},
            "creationTimestamp": "2026-05-22T09:59:59Z",
            "annotations": { NAME: "bot", UID: "u" },
        },
        "type": TYPE,
    });
    let mut bot = json!({
        "metadata": { "name": "bot", "namespace": "default", "uid": "u" },
        "secrets": [{ "name": "other" }, { "name": "old" }],
    });
    change(&mut secret, &mut bot);
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let bot: ServiceAccount = serde_json::from_value(bot).unwrap();
    let limits = limits_at("2026-01-01", NOW).unwrap();
    let bot = (account(&secret) == Some("bot")).then_some(&bot);
    verdict(&secret, bot, || false, &limits)
}

/// With these labels.
fn labelled(labels: &[(&str, &str)]) -> Verdict {
    verdict_of(|secret, _| {
        for (label, value) in labels {
            secret["metadata"]["labels"][label] = (*value).into();
        }
    })
}

#[test]
fn one_that_nobody_used_is_marked_and_later_deleted() {
    assert_eq!(labelled(&[]), Verdict::Mark);
    let used = |day| labelled(&[(LAST_USED, day)]);
    assert_eq!(used("2026-05-21"), Verdict::Mark);
    assert_eq!(
        used("2026-05-22"),
        Verdict::Leave,
        "upstream keeps that day"
    );
    assert_eq!(used("2026-06-01"), Verdict::Leave);
    assert_eq!(used("21 May"), Verdict::Leave, "nobody knows");
    let marked = |day| labelled(&[(INVALID_SINCE, day)]);
    assert_eq!(marked("2026-05-21"), Verdict::Delete);
    assert_eq!(marked("2026-05-22"), Verdict::Leave);
    assert_eq!(marked("true"), Verdict::Mark, "anew, with a day");
    let both = [(INVALID_SINCE, "2026-05-01"), (LAST_USED, "2026-05-30")];
    assert_eq!(labelled(&both), Verdict::Leave, "somebody still tries");
}

#[test]
fn young_ones_and_those_that_people_made_stay() {
    /// Changes the Secret and its account.
    type Change = fn(&mut Value, &mut Value);
    let stays: [(&str, Change); 7] = [
        ("young", |secret, _| {
            secret["metadata"]["creationTimestamp"] = "2026-05-22T10:00:00Z".into();
        }),
        ("of another type", |secret, _| {
            secret["type"] = "Opaque".into()
        }),
        ("on its way out", |secret, _| {
            secret["metadata"]["deletionTimestamp"] = NOW.into();
        }),
        ("of nobody", |secret, _| {
            secret["metadata"]["annotations"] = json!({});
        }),
        ("of an account that is gone", |secret, _| {
            secret["metadata"]["annotations"][NAME] = "gone".into();
        }),
        ("of its predecessor", |_, account| {
            account["metadata"]["uid"] = "v".into();
        }),
        ("made by hand", |_, account| {
            account["secrets"] = json!([{ "name": "other" }]);
        }),
    ];
    for (what, change) in stays {
        assert_eq!(verdict_of(change), Verdict::Leave, "{what}");
    }
    let without_uid = verdict_of(|secret, _| {
        secret["metadata"]["annotations"] = json!({ NAME: "bot" });
    });
    assert_eq!(without_uid, Verdict::Mark);
}

#[test]
fn one_that_a_pod_mounts_stays() {
    let secret = json!({
        "metadata": { "name": "old", "creationTimestamp": "2020-01-01T00:00:00Z" },
        "type": TYPE,
    });
    let secret: Secret = serde_json::from_value(secret).unwrap();
    let account = json!({ "secrets": [{ "name": "old" }] });
    let account: ServiceAccount = serde_json::from_value(account).unwrap();
    let limits = limits_at("2026-01-01", NOW).unwrap();
    let verdict = |is_mounted| verdict(&secret, Some(&account), || is_mounted, &limits);
    assert_eq!(verdict(false), Verdict::Mark);
    assert_eq!(verdict(true), Verdict::Leave);
}

#[test]
fn all_places_of_a_pod_that_name_a_secret_count() {
    let reference = |name: &str| json!({ "name": name });
    let container = |name: &str| {
        json!({
            "name": name,
            "env": [{ "name": "A", "valueFrom": { "secretKeyRef": {
                "name": format!("{name}-env"), "key": "k",
            } } }],
            "envFrom": [{ "secretRef": reference(&format!("{name}-from")) }],
        })
    };
    let pod = json!({ "metadata": { "name": "p" }, "spec": {
        "imagePullSecrets": [reference("pull")],
        "containers": [container("c")],
        "initContainers": [container("i")],
        "ephemeralContainers": [container("e")],
        "volumes": [
            { "name": "a", "secret": { "secretName": "volume" } },
            { "name": "b", "projected": { "sources": [
                { "secret": reference("projected") },
                { "configMap": reference("no-secret") },
            ] } },
            { "name": "c", "csi": { "driver": "d", "nodePublishSecretRef": reference("csi") } },
            { "name": "d", "azureFile": { "secretName": "azure", "shareName": "s" } },
            { "name": "e", "cephfs": { "monitors": [], "secretRef": reference("ceph") } },
            { "name": "f", "flexVolume": { "driver": "d", "secretRef": reference("flex") } },
            { "name": "g", "rbd": { "image": "i", "monitors": [], "secretRef": reference("rbd") } },
            { "name": "h", "iscsi": {
                "iqn": "i", "lun": 0, "targetPortal": "t", "secretRef": reference("iscsi"),
            } },
        ],
    } });
    let mut names = secrets_of(&serde_json::from_value(pod).unwrap());
    names.sort();
    let expected = [
        "azure",
        "c-env",
        "c-from",
        "ceph",
        "csi",
        "e-env",
        "e-from",
        "flex",
        "i-env",
        "i-from",
        "iscsi",
        "projected",
        "pull",
        "rbd",
        "volume",
    ];
    assert_eq!(names, expected);
}
