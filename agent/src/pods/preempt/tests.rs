//! A line a pod in, those that have to go out.

use super::*;
use serde_json::json;

/// `NAME PRIORITY CLASS CPU_MILLI MEMORY`.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let cpu = format!("{}m", words[3]);
            let pod = json!({
                "metadata": { "name": words[0] },
                "spec": {
                    "priority": words[1].parse::<i32>().unwrap(),
                    "containers": [{ "name": "a", "resources": {
                        "requests": { "cpu": cpu, "memory": words[4] },
                    } }],
                },
                "status": { "qosClass": words[2] },
            });
            Arc::new(serde_json::from_value(pod).unwrap())
        })
        .collect()
}

fn victims(pods: Vec<Arc<Pod>>) -> Vec<Victim> {
    let victim = |pod: Arc<Pod>| {
        let requests = asked::requests(&pod);
        Victim { pod, requests }
    };
    pods.into_iter().map(victim).collect()
}

const NODE: &str = "none 0 BestEffort 0 0
                    small 0 Burstable 100 100
                    large 0 Burstable 500 1000
                    sure 0 Guaranteed 200 200
                    critical 2000000000 Burstable 5000 5000";

fn chosen(needs: &[(&str, i64)]) -> Result<String, String> {
    let critical = pods("new 2000000000 Burstable 0 0").remove(0);
    let short: Vec<_> = needs
        .iter()
        .map(|(resource, missing)| Short {
            resource: (*resource).to_owned(),
            requested: *missing,
            used: 0,
            capacity: 0,
        })
        .collect();
    let chosen = choose(&critical, victims(pods(NODE)), &short)?;
    let names: Vec<_> = chosen
        .iter()
        .map(|pod| pod.metadata.name.clone().unwrap())
        .collect();
    Ok(names.join(" "))
}

#[test]
fn the_closest_of_the_lowest_class_goes() {
    assert_eq!(chosen(&[("pods", 1)]).unwrap(), "none");
    assert_eq!(chosen(&[("cpu", 100)]).unwrap(), "small");
    assert_eq!(chosen(&[("cpu", 101)]).unwrap(), "large");
    assert_eq!(chosen(&[("cpu", 600)]).unwrap(), "large small");
    assert_eq!(
        chosen(&[("cpu", 700)]).unwrap(),
        "large sure",
        "the guaranteed one is needed, and the small one is not any more"
    );
    assert_eq!(
        chosen(&[("memory", 900), ("pods", 2)]).unwrap(),
        "none large"
    );
}

#[test]
fn who_is_critical_stays() {
    assert_eq!(
        chosen(&[("cpu", 801)]).unwrap_err(),
        "no set of running pods found to reclaim resources: [(res: cpu, q: 1), ]"
    );
}

#[test]
fn of_critical_pods_the_lesser_one_goes_when_both_have_a_priority() {
    let choose_among = |other: &Arc<Pod>| {
        let critical = pods("new 2000001000 Burstable 0 0").remove(0);
        let short = Short {
            resource: "cpu".to_owned(),
            requested: 100,
            used: 0,
            capacity: 0,
        };
        choose(&critical, victims(vec![other.clone()]), &[short])
    };
    let mut lesser = pods("lesser 2000000000 Burstable 100 0").remove(0);
    assert!(choose_among(&lesser).is_ok());
    let pod = Arc::make_mut(&mut lesser);
    pod.metadata.annotations = Some([("kubernetes.io/config.source".into(), "file".into())].into());
    assert!(choose_among(&lesser).is_ok(), "a static pod that has one");
    Arc::make_mut(&mut lesser).spec.as_mut().unwrap().priority = None;
    assert!(choose_among(&lesser).is_err(), "a static pod that has none");
}
