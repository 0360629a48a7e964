//! The names of the document.

use super::*;

#[test]
fn names_are_the_kubelets() {
    let time = At("2026-01-02T03:04:05.6Z".parse().unwrap());
    let stall = Stall {
        some: Waited {
            total_us: 5,
            percent: [1.5, 0.0, 0.0],
        },
        ..Stall::default()
    };
    let pod = PodStats {
        pod_ref: PodReference {
            name: "p".into(),
            namespace: "n".into(),
            uid: "u".into(),
        },
        start_time: time,
        cpu: Some(CpuStats {
            time,
            usage_nano_cores: Some(1),
            usage_core_nano_seconds: Some(2),
            psi: Some((&stall).into()),
        }),
        volumes: vec![VolumeStats {
            fs: FsStats {
                time,
                used_bytes: Some(3),
                ..FsStats::default()
            },
            name: "v".into(),
            pvc_ref: Some(ClaimReference {
                name: "c".into(),
                namespace: "n".into(),
            }),
        }],
        ephemeral_storage: Some(FsStats::default()),
        processes: Some(ProcessStats {
            process_count: Some(4),
        }),
        ..PodStats::default()
    };
    let zero = "\"1970-01-01T00:00:00Z\"";
    let then = "\"2026-01-02T03:04:05Z\"";
    let none = "{\"total\":0,\"avg10\":0.0,\"avg60\":0.0,\"avg300\":0.0}";
    assert_eq!(
        serde_json::to_string(&pod).unwrap(),
        format!(
            "{{\"podRef\":{{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"}},\
             \"startTime\":{then},\"containers\":[],\"cpu\":{{\"time\":{then},\
             \"usageNanoCores\":1,\"usageCoreNanoSeconds\":2,\"psi\":{{\"full\":{none},\
             \"some\":{{\"total\":5000,\"avg10\":1.5,\"avg60\":0.0,\"avg300\":0.0}}}}}},\
             \"volume\":[{{\"time\":{then},\"usedBytes\":3,\"name\":\"v\",\
             \"pvcRef\":{{\"name\":\"c\",\"namespace\":\"n\"}}}}],\
             \"ephemeral-storage\":{{\"time\":{zero}}},\"process_stats\":{{\"process_count\":4}}}}"
        )
    );
    let limit = RlimitStats {
        time,
        process_ids_max: Some(1),
        processes: Some(2),
    };
    let text = serde_json::to_string(&limit).unwrap();
    assert_eq!(
        text,
        format!("{{\"time\":{then},\"maxpid\":1,\"curproc\":2}}")
    );
}
