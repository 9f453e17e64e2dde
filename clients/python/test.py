"""Tests of the official Python client: list, watch, create, patch, replace, delete."""

import threading
import unittest
import uuid

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException


def setUpModule():
    config.load_kube_config()


# The object that a controller creates in every namespace is left out.
OURS = "metadata.name!=kube-root-ca.crt"


def named(name, **fields):
    return {"metadata": {"name": name}, **fields}


class Life(unittest.TestCase):
    def setUp(self):
        self.core = client.CoreV1Api()
        self.namespace = f"python-{uuid.uuid4().hex[:8]}"
        self.core.create_namespace(named(self.namespace))
        self.addCleanup(self.core.delete_namespace, self.namespace)

    def test_a_config_map_is_created_changed_and_deleted(self):
        core, namespace = self.core, self.namespace
        made = core.create_namespaced_config_map(namespace, client.V1ConfigMap(
            metadata=client.V1ObjectMeta(name="a", labels={"l": "m"}), data={"k": "v"}))
        self.assertTrue(made.metadata.uid)
        self.assertEqual(core.read_namespaced_config_map("a", namespace).data, {"k": "v"})
        listed = core.list_namespaced_config_map(namespace, label_selector="l=m")
        self.assertEqual([item.metadata.name for item in listed.items], ["a"])
        patched = core.patch_namespaced_config_map("a", namespace, {"data": {"k": "w"}})
        self.assertEqual(patched.data, {"k": "w"})
        operations = [{"op": "add", "path": "/data/n", "value": "1"}]
        self.assertEqual(core.patch_namespaced_config_map("a", namespace, operations).data, {"k": "w", "n": "1"})
        patched.metadata.resource_version = None
        patched.data = {"k": "x"}
        self.assertEqual(core.replace_namespaced_config_map("a", namespace, patched).data, {"k": "x"})
        self.assertEqual(core.delete_namespaced_config_map("a", namespace).status, "Success")
        with self.assertRaises(ApiException) as failure:
            core.read_namespaced_config_map("a", namespace)
        self.assertEqual((failure.exception.status, failure.exception.reason), (404, "Not Found"))

    def test_a_deployment_is_scaled(self):
        apps, namespace = client.AppsV1Api(), self.namespace
        labels = {"app": "a"}
        apps.create_namespaced_deployment(namespace, named("a", spec={
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }))
        scale = apps.patch_namespaced_deployment_scale("a", namespace, {"spec": {"replicas": 3}})
        self.assertEqual(scale.spec.replicas, 3)
        deployment = apps.read_namespaced_deployment("a", namespace)
        self.assertEqual((deployment.spec.replicas, deployment.metadata.generation), (3, 2))
        self.assertEqual(deployment.spec.template.spec.containers[0].termination_message_path, "/dev/termination-log")

    def test_a_watch_reports_changes(self):
        core, namespace = self.core, self.namespace
        version = core.list_namespaced_config_map(namespace).metadata.resource_version

        def change():
            core.create_namespaced_config_map(namespace, named("a"))
            core.patch_namespaced_config_map("a", namespace, {"data": {"k": "v"}})
            core.delete_namespaced_config_map("a", namespace)

        changes = threading.Thread(target=change)
        changes.start()
        seen, stream = [], watch.Watch()
        for event in stream.stream(core.list_namespaced_config_map, namespace, field_selector=OURS,
                                   resource_version=version, timeout_seconds=120):
            seen.append((event["type"], event["object"].metadata.name))
            if event["type"] == "DELETED":
                stream.stop()
        changes.join()
        self.assertEqual(seen, [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")])

    def test_lists_are_paged(self):
        for number in range(5):
            self.core.create_namespaced_config_map(self.namespace, named(f"a{number}"))
        names, more = [], None
        while more != "":
            page = self.core.list_namespaced_config_map(
                self.namespace, field_selector=OURS, limit=2, _continue=more)
            names += [item.metadata.name for item in page.items]
            more = page.metadata._continue or ""
        self.assertEqual(names, [f"a{number}" for number in range(5)])

    def test_the_dynamic_client_discovers(self):
        found = dynamic.DynamicClient(client.ApiClient())
        maps = found.resources.get(api_version="v1", kind="ConfigMap")
        maps.create(namespace=self.namespace, body=named("a", apiVersion="v1", kind="ConfigMap", data={"k": "v"}))
        self.assertEqual(maps.get(name="a", namespace=self.namespace).data.k, "v")
        maps.delete(name="a", namespace=self.namespace)


if __name__ == "__main__":
    unittest.main()
