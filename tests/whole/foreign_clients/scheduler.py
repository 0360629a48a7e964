"""A scheduler for pods that ask for it by name, on the Kubernetes project's Python client.

Usage: scheduler.py [KUBECONFIG]; without one it is configured by the pod that it runs in.
Places each waiting pod on the Ready node with the fewest pods, and posts what it did as an event.
Runs until it is killed.
"""
import datetime
import sys

from kubernetes import client, config, watch

NAME = "second-scheduler"


def is_ready(node):
    conditions = node.status.conditions or []
    ready = any(c.type == "Ready" and c.status == "True" for c in conditions)
    return ready and not node.spec.unschedulable


def emptiest(api):
    pods = api.list_pod_for_all_namespaces().items
    nodes = [node.metadata.name for node in api.list_node().items if is_ready(node)]
    return min(nodes, key=lambda name: sum(pod.spec.node_name == name for pod in pods))


def bind(api, pod, node):
    binding = client.V1Binding(
        metadata=client.V1ObjectMeta(name=pod.metadata.name),
        target=client.V1ObjectReference(api_version="v1", kind="Node", name=node),
    )
    # The client cannot read the Status that comes back, as it expects a Binding.
    api.create_namespaced_pod_binding(
        pod.metadata.name, pod.metadata.namespace, binding, _preload_content=False
    )


def tell(events, pod, node):
    now = datetime.datetime.now(datetime.timezone.utc)
    regarding = client.V1ObjectReference(
        api_version="v1",
        kind="Pod",
        name=pod.metadata.name,
        namespace=pod.metadata.namespace,
        uid=pod.metadata.uid,
    )
    events.create_namespaced_event(
        pod.metadata.namespace,
        client.EventsV1Event(
            metadata=client.V1ObjectMeta(generate_name=f"{pod.metadata.name}-"),
            event_time=now,
            reporting_controller=NAME,
            reporting_instance=f"{NAME}-1",
            action="Binding",
            reason="Scheduled",
            type="Normal",
            regarding=regarding,
            note=f"Successfully assigned {pod.metadata.namespace}/{pod.metadata.name} to {node}",
        ),
    )


def main():
    if len(sys.argv) > 1:
        config.load_kube_config(sys.argv[1])
    else:
        config.load_incluster_config()
    api, events = client.CoreV1Api(), client.EventsV1Api()
    waiting = f"spec.schedulerName={NAME},spec.nodeName="
    while True:
        stream = watch.Watch().stream(
            api.list_pod_for_all_namespaces, field_selector=waiting, timeout_seconds=60
        )
        for event in stream:
            pod = event["object"]
            if event["type"] == "ADDED" and not pod.metadata.deletion_timestamp:
                node = emptiest(api)
                bind(api, pod, node)
                tell(events, pod, node)


main()
