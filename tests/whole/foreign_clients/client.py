"""What the Kubernetes project's Python client does with lists and watches of a server.

Usage: client.py KUBECONFIG. Prints nothing and ends with 0 when all is as it should be.
"""
import sys

from kubernetes import client, config, watch

PAGE = 3
NAMES = [f"n{place}" for place in range(7)]


def config_map(name, label):
    metadata = client.V1ObjectMeta(name=name, labels={"l": label})
    return client.V1ConfigMap(metadata=metadata, data={"key": "value"})


def pages(api, namespace):
    token, seen = None, []
    while True:
        page = api.list_namespaced_config_map(
            namespace, limit=PAGE, label_selector="l", _continue=token
        )
        seen += [item.metadata.name for item in page.items]
        token = page.metadata._continue
        if not token:
            return seen


def events(api, namespace, **options):
    """Type and name of each event of a watch that ends by itself."""
    stream = watch.Watch().stream(
        api.list_namespaced_config_map, namespace, timeout_seconds=2, **options
    )
    return [(event["type"], event["object"].metadata.name) for event in stream]


def main():
    config.load_kube_config(sys.argv[1])
    api = client.CoreV1Api()
    made = api.create_namespace(
        client.V1Namespace(metadata=client.V1ObjectMeta(generate_name="python-"))
    )
    namespace = made.metadata.name
    begin = api.list_namespaced_config_map(namespace).metadata.resource_version
    for place, name in enumerate(NAMES):
        api.create_namespaced_config_map(namespace, config_map(name, "ab"[place % 2]))
    assert pages(api, namespace) == NAMES, pages(api, namespace)

    # A selector turns changes into comings and goings.
    api.patch_namespaced_config_map("n0", namespace, {"metadata": {"labels": {"l": "b"}}})
    api.delete_namespaced_config_map("n2", namespace)
    seen = events(api, namespace, resource_version=begin, label_selector="l=a")
    created = [("ADDED", name) for name in NAMES[::2]]
    assert seen == created + [("DELETED", "n0"), ("DELETED", "n2")], seen

    # From what is there, and one object alone.
    seen = events(api, namespace, field_selector="metadata.name=n1")
    assert seen == [("ADDED", "n1")], seen

    # What is compacted or never was is told as a failure that the client knows.
    for options, code in [({"resource_version": "x"}, 400), ({"limit": 1, "_continue": "x"}, 400)]:
        try:
            api.list_namespaced_config_map(namespace, **options)
            raise AssertionError(f"{options} was taken")
        except client.ApiException as failure:
            assert failure.status == code, failure

    # An update that somebody else got ahead of.
    stale = api.read_namespaced_config_map("n1", namespace)
    api.patch_namespaced_config_map("n1", namespace, {"data": {"key": "other"}})
    try:
        api.replace_namespaced_config_map("n1", namespace, stale)
        raise AssertionError("a stale update was taken")
    except client.ApiException as failure:
        assert failure.status == 409, failure

    gone = api.delete_collection_namespaced_config_map(namespace, label_selector="l=b")
    assert gone.status is None or gone.status == "Success", gone
    assert pages(api, namespace) == ["n4", "n6"], pages(api, namespace)
    api.delete_namespace(namespace)


main()
