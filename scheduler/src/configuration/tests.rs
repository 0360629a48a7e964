//! Files in, plans and complaints out; the words are upstream's.

use super::*;
use crate::plugins::node_resources::{Resource, Weighted};
use crate::plugins::node_resources_fit::{Point as CurvePoint, Strategy};
use expect_test::{Expect, expect};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn of(rest: &str) -> Configuration {
    read(&format!("{HEAD}{rest}")).unwrap()
}

fn refused(rest: &str, expected: Expect) {
    let error = read(&format!("{HEAD}{rest}")).unwrap_err();
    expected.assert_eq(&error.to_string());
}

fn names(plan: &Plan, point: Point) -> String {
    plan.by_point[point as usize].join(" ")
}

#[test]
fn nothing_said_is_upstreams_default() {
    let configuration = of("");
    let [plan] = configuration.profiles.as_slice() else {
        panic!("one profile");
    };
    assert_eq!(plan.scheduler_name, "default-scheduler");
    assert_eq!(configuration.backoff, Backoff::default());
    assert_eq!(configuration.election, LeaderElection::default());
    expect!["TaintToleration NodeAffinity NodeResourcesFit PodTopologySpread InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality"]
        .assert_eq(&names(plan, Point::Score));
    expect!["NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"]
        .assert_eq(&names(plan, Point::Filter));
    let weights = [
        "TaintToleration",
        "NodeAffinity",
        "InterPodAffinity",
        "ImageLocality",
    ];
    assert_eq!(weights.map(|name| plan.weights[name]), [3, 2, 2, 1]);
}

#[test]
fn what_is_no_configuration_is_told() {
    let told = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(told("{}"), "Object 'kind' is missing");
    assert_eq!(
        told("kind: KubeSchedulerConfiguration"),
        "Object 'apiVersion' is missing"
    );
    expect![[r#"no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3""#]]
        .assert_eq(&told("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration"));
    refused(
        "podMaxBackoffSeconds: soon",
        expect![[
            r#"podMaxBackoffSeconds: invalid type: string "soon", expected i64 at line 3 column 23"#
        ]],
    );
}

#[test]
fn unknown_fields_are_told_with_their_paths() {
    refused(
        "x: 1\nprofiles: [{y: 1, plugins: {z: 1, filter: {w: 1, enabled: [{name: NodeName, v: 1}]}}}]",
        expect![[
            r#"strict decoding error: unknown field "x", unknown field "profiles[0].y", unknown field "profiles[0].plugins.z", unknown field "profiles[0].plugins.filter.w", unknown field "profiles[0].plugins.filter.enabled[0].v""#
        ]],
    );
    refused(
        "leaderElection: {lock: a}\nclientConnection: {speed: 1}",
        expect![[
            r#"strict decoding error: unknown field "leaderElection.lock", unknown field "clientConnection.speed""#
        ]],
    );
    refused(
        "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {weight: 1}}]}]",
        expect![[
            r#"strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin InterPodAffinity: strict decoding error: unknown field "weight""#
        ]],
    );
    refused(
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{nam: cpu}]}}}]}]",
        expect![[
            r#"strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "scoringStrategy.resources[0].nam""#
        ]],
    );
    refused(
        "profiles: [{pluginConfig: [{name: NodeAffinity, args: {kind: InterPodAffinityArgs}}]}]",
        expect![
            "decoding .profiles[0].pluginConfig[0]: args for plugin NodeAffinity were not of type NodeAffinityArgs.kubescheduler.config.k8s.io, got InterPodAffinityArgs.kubescheduler.config.k8s.io"
        ],
    );
}

#[test]
fn numbers_have_bounds() {
    refused(
        "parallelism: 0\npercentageOfNodesToScore: 101\npodInitialBackoffSeconds: 0\npodMaxBackoffSeconds: -1",
        expect![
            "[podInitialBackoffSeconds: Invalid value: 0: must be greater than 0, podMaxBackoffSeconds: Invalid value: -1: must be greater than or equal to PodInitialBackoffSeconds, parallelism: Invalid value: 0: should be an integer value greater than zero, percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]]"
        ],
    );
    let configuration = of(
        "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 30\npercentageOfNodesToScore: 20\n\
        profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 70}]",
    );
    let seconds = Duration::from_secs;
    assert_eq!(
        configuration.backoff,
        Backoff {
            initial: seconds(2),
            max: seconds(30)
        }
    );
    let percentages = configuration
        .profiles
        .iter()
        .map(|plan| plan.percentage_of_nodes);
    assert_eq!(percentages.collect::<Vec<_>>(), [20, 70]);
    refused(
        "leaderElection: {leaseDuration: 5s, resourceLock: endpoints}",
        expect![[
            r#"[leaderElection.leaseDuration: Invalid value: "5s": must be greater than `RenewDeadline`, leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"]"#
        ]],
    );
    refused(
        "leaderElection: {retryPeriod: 20s}",
        expect![
            r#"leaderElection.renewDeadline: Invalid value: "": must be greater than retryPeriod*JitterFactor"#
        ],
    );
    refused(
        "leaderElection: {leaseDuration: 900ms, renewDeadline: 500ms, retryPeriod: 100ms}",
        expect![
            r#"leaderElection.leaseDuration: Invalid value: "900ms": must be at least a second"#
        ],
    );
    let election = of("leaderElection: {leaderElect: false, resourceName: mine}").election;
    assert_eq!((election.is_on, election.name.as_str()), (false, "mine"));
}

#[test]
fn profiles_have_names_of_their_own() {
    refused(
        "profiles: [{schedulerName: a}, {}, {schedulerName: a}]",
        expect![
            "[profiles[1].schedulerName: Required value, profiles[2].schedulerName: Duplicate value: profiles[0].schedulerName]"
        ],
    );
    refused(
        "extenders: [{urlPrefix: a}]",
        expect!["extenders: Forbidden: no extenders are called"],
    );
}

fn chosen(plugins: &str) -> Plan {
    let mut configuration = of(&format!("profiles: [{{plugins: {plugins}}}]"));
    configuration.profiles.remove(0)
}

#[test]
fn plugins_are_disabled_and_enabled_by_point() {
    let plan = chosen(
        "{filter: {disabled: [{name: NodePorts}, {name: NodeName}]}, score: {disabled: [{name: '*'}], enabled: [{name: ImageLocality, weight: 7}]}}",
    );
    expect!["NodeUnschedulable TaintToleration NodeAffinity NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"]
        .assert_eq(&names(&plan, Point::Filter));
    assert_eq!(names(&plan, Point::Score), "ImageLocality");
    assert_eq!(plan.weights["ImageLocality"], 7);
    assert!(
        names(&plan, Point::PreFilter).contains("NodePorts"),
        "at other points it is"
    );
}

#[test]
fn all_points_are_chosen_at_once_and_single_ones_override() {
    let plan = chosen(
        "{multiPoint: {disabled: [{name: InterPodAffinity}], enabled: [{name: NodeAffinity, weight: 9}]}}",
    );
    assert_eq!(plan.weights["NodeAffinity"], 9);
    assert!(!names(&plan, Point::Filter).contains("InterPodAffinity"));
    assert!(!names(&plan, Point::Score).contains("InterPodAffinity"));
    let plan = chosen(
        "{multiPoint: {enabled: [{name: TaintToleration, weight: 4}]}, score: {enabled: [{name: NodeResourcesFit, weight: 5}, {name: TaintToleration}]}}",
    );
    expect!["NodeResourcesFit TaintToleration NodeAffinity PodTopologySpread InterPodAffinity DynamicResources NodeResourcesBalancedAllocation ImageLocality"]
        .assert_eq(&names(&plan, Point::Score));
    assert_eq!(
        (
            plan.weights["NodeResourcesFit"],
            plan.weights["TaintToleration"]
        ),
        (5, 1)
    );
    let plan = chosen(
        "{multiPoint: {disabled: [{name: '*'}], enabled: [{name: DefaultBinder}, {name: PrioritySort}, {name: NodeName}]}}",
    );
    let all = Point::ALL.map(|point| names(&plan, point)).join(" ");
    assert_eq!(
        all.split_whitespace().collect::<Vec<_>>(),
        ["NodeName", "DefaultBinder", "PrioritySort"]
    );
}

#[test]
fn plugins_that_are_not_there_or_elsewhere_are_refused() {
    let refused = |plugins: &str, expected: Expect| {
        refused(&format!("profiles: [{{plugins: {plugins}}}]"), expected);
    };
    refused(
        "{filter: {enabled: [{name: Foo}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: FilterPlugin "Foo" does not exist"#
        ]],
    );
    refused(
        "{multiPoint: {enabled: [{name: Foo}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: PreFilterPlugin "Foo" does not exist"#
        ]],
    );
    refused(
        "{score: {enabled: [{name: NodeName}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: plugin "NodeName" does not extend ScorePlugin plugin"#
        ]],
    );
    refused(
        "{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: plugin "NodeName" already registered as "FilterPlugin""#
        ]],
    );
    refused(
        "{multiPoint: {disabled: [{name: DefaultBinder}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: at least one bind plugin is needed for profile with scheduler name "default-scheduler""#
        ]],
    );
    refused(
        "{queueSort: {disabled: [{name: PrioritySort}]}}",
        expect![[
            r#"initializing profiles: creating profile for scheduler name default-scheduler: only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0"#
        ]],
    );
    refused(
        "{filter: {enabled: [{name: EBSLimits}]}}",
        expect![[
            r#"profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version "kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1")"#
        ]],
    );
}

fn told(config: &str) -> Arguments {
    let text = format!("profiles: [{{pluginConfig: [{config}]}}]");
    of(&text).profiles[0].arguments.clone()
}

use crate::plugins::registry::Arguments;

#[test]
fn plugins_are_told_their_arguments() {
    let told_affinity = told(
        "{name: InterPodAffinity, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: InterPodAffinityArgs, hardPodAffinityWeight: 5, ignorePreferredTermsOfExistingPods: true}}",
    );
    let affinity = told_affinity.inter_pod_affinity;
    assert_eq!(affinity.hard_pod_affinity_weight, 5);
    assert!(affinity.ignore_preferred_terms_of_existing_pods);
    let args = told(
        "{name: NodeResourcesFit, args: {ignoredResources: [x.io/a], scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: x.io/a, weight: 3}, {name: cpu}], requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}}",
    );
    assert_eq!(args.fit.ignored_resources, ["x.io/a"]);
    let point = |utilization, score| CurvePoint { utilization, score };
    let curve = Strategy::RequestedToCapacityRatio(vec![point(0, 0), point(100, 100)]);
    assert_eq!(args.fit.scoring.strategy, curve);
    let weighted = |name, weight| Weighted {
        resource: Resource::named(name),
        weight,
    };
    assert_eq!(
        args.fit.scoring.resources,
        [weighted("x.io/a", 3), weighted("cpu", 1)]
    );
    let args = told(
        "{name: VolumeBinding, args: {bindTimeoutSeconds: 30}}, {name: DefaultPreemption, args: {minCandidateNodesAbsolute: 7}}, {name: NodeResourcesBalancedAllocation, args: {resources: [{name: memory}]}}",
    );
    assert_eq!(args.volume_binding_timeout, Duration::from_secs(30));
    assert_eq!(
        (
            args.preemption.candidates_percent_min,
            args.preemption.candidates_min
        ),
        (10, 7)
    );
    assert_eq!(args.balanced, [weighted("memory", 1)]);
    let args = told("{name: DynamicResources, args: {filterTimeout: 0s, bindingTimeout: 1m30s}}");
    assert_eq!(args.devices.filter_timeout, Duration::ZERO);
    assert_eq!(args.devices.binding_timeout, Duration::from_secs(90));
    let args = told(
        "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}}",
    );
    assert_eq!(args.spread.unwrap()[0].topology_key, "zone");
    let args = told(
        "{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}}",
    );
    assert!(
        args.added_affinity
            .required_during_scheduling_ignored_during_execution
            .is_some()
    );
    assert!(
        told("{name: PodTopologySpread}, {name: NodeName}")
            .spread
            .is_none()
    );
}

#[test]
fn arguments_have_bounds() {
    let refused = |config: &str, expected: Expect| {
        refused(
            &format!("profiles: [{{pluginConfig: [{config}]}}]"),
            expected,
        );
    };
    refused(
        "{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}, {name: InterPodAffinity}",
        expect![[
            r#"[profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100], profiles[0].pluginConfig[1]: Duplicate value: "InterPodAffinity"]"#
        ]],
    );
    refused(
        "{name: Foo}, {name: NodeName, args: {a: 1}}",
        expect![[
            r#"[profiles[0].pluginConfig[0].name: Not found: "Foo", profiles[0].pluginConfig[1].args: Forbidden: the plugin takes no args]"#
        ]],
    );
    refused(
        "{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}",
        expect![
            "[profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage]"
        ],
    );
    refused(
        "{name: VolumeBinding, args: {bindTimeoutSeconds: -1}}",
        expect![
            "profiles[0].pluginConfig[0].args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"
        ],
    );
    refused(
        "{name: DynamicResources, args: {filterTimeout: -1s, bindingTimeout: 900ms}}",
        expect![[
            r#"[profiles[0].pluginConfig[0].args.filterTimeout: Invalid value: "-1s": must be zero or positive, profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "900ms": must be at least 1 second]"#
        ]],
    );
    refused(
        "{name: NodeResourcesFit, args: {scoringStrategy: {type: Best, resources: [{name: cpu, weight: 101}], requestedToCapacityRatio: {shape: []}}}}",
        expect![[
            r#"[profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100], profiles[0].pluginConfig[0].args.scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio]"#
        ]],
    );
    refused(
        "{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 11}, {utilization: 50, score: 1}]}}}}",
        expect![
            "[profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: values must be sorted in increasing order, profiles[0].pluginConfig[0].args.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]]"
        ],
    );
    refused(
        "{name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 0, topologyKey: '', whenUnsatisfiable: Never}]}}",
        expect![[
            r#"[profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty, profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Required value: can not be empty, profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"]"#
        ]],
    );
}

#[test]
fn what_is_in_force_is_shown() {
    let usual = serde_json::from_str::<serde_json::Value>(&Configuration::default().shown());
    let usual = &usual.unwrap()["componentconfig"];
    assert_eq!(usual["kind"], KIND);
    assert_eq!(usual["leaderElection"]["leaseDuration"], "15s");
    let profile = &usual["profiles"][0];
    assert_eq!(profile["schedulerName"], "default-scheduler");
    let binds = serde_json::json!([{"name": "DefaultBinder"}]);
    assert_eq!(profile["plugins"]["bind"]["enabled"], binds);
    let taints = serde_json::json!({"name": "TaintToleration", "weight": 3});
    let scores = profile["plugins"]["score"]["enabled"].as_array().unwrap();
    assert!(scores.contains(&taints), "{scores:?}");
}
