"""Head and worker pods shaped by PodTemplates: a sidecar and the volume it shares, a node pool with its toleration.

Run it here, where templates count for nothing:  pyflyte run examples/pod_templates.py count_words --text "a b a"
See what a cluster gets:                         flyte-kuberay render examples/pod_templates.py
"""

import ray
from flytekit import PodTemplate, Resources, task
from kubernetes.client import V1Container, V1EmptyDirVolumeSource, V1PodSpec, V1Toleration, V1Volume, V1VolumeMount

from flytekitplugins.kuberay import HeadNodeConfig, RayJobConfig, WorkerNodeConfig

LOGS = V1VolumeMount(name="logs", mount_path="/var/log/audit")

# The sidecar stays beside the Ray container, and the volume is theirs to share.
HEAD = PodTemplate(
    primary_container_name="ray-head",
    pod_spec=V1PodSpec(
        containers=[
            V1Container(name="ray-head", volume_mounts=[LOGS]),
            V1Container(name="audit", image="registry.example.com/team/audit:2.3", volume_mounts=[LOGS]),
        ],
        volumes=[V1Volume(name="logs", empty_dir=V1EmptyDirVolumeSource(size_limit="1Gi"))],
    ),
    annotations={"example.com/audited": "true"},
)

# Workers go to a pool of nodes that others are kept off.
WORKER = PodTemplate(
    primary_container_name="ray-worker",
    pod_spec=V1PodSpec(
        containers=[V1Container(name="ray-worker")],
        node_selector={"example.com/pool": "batch"},
        tolerations=[V1Toleration(key="example.com/pool", operator="Equal", value="batch", effect="NoSchedule")],
    ),
    labels={"team": "search"},
)


@ray.remote
def count(words: list[str]) -> dict[str, int]:
    """How often each word is there."""
    return {word: words.count(word) for word in words}


@task(
    task_config=RayJobConfig(
        head_node_config=HeadNodeConfig(pod_template=HEAD),
        worker_node_config=[
            WorkerNodeConfig(
                group_name="batch",
                replicas=4,
                pod_template=WORKER,
                requests=Resources(cpu="4", mem="16Gi"),  # merged into the template's Ray container
            )
        ],
    ),
    container_image="registry.example.com/team/ray-task:1.0",  # with ray, flytekit and this package in it
)
def count_words(text: str = "to be or not to be") -> dict[str, int]:
    """How often each word of a text is there, in the order of the alphabet."""
    return dict(sorted(ray.get(count.remote(text.split())).items()))
