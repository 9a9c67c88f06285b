"""Packaging of flytekitplugins-kuberay; settings of the tools stand in pyproject.toml."""

from pathlib import Path

from setuptools import find_namespace_packages, setup

setup(
    name="flytekitplugins-kuberay",
    version="0.1.0",
    description="Ray on Flyte through KubeRay: the task's settings, PodTemplates included, become one RayJob",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    packages=find_namespace_packages(include=["flytekitplugins.*"]),
    package_data={"": ["py.typed", "*.json"]},
    python_requires=">=3.10,<3.13",  # flytekit excludes 3.13
    # The lower bounds are run by `make test-lowest`.
    install_requires=[
        "flytekit>=1.16,<2",
        "flyteidl>=1.16.7,<2",
        "protobuf>=4.25.1",
        "PyYAML>=6.0.1",
        "msgpack>=1.1",
        "pygments>=2.13",
        "rich>=13",
        "typing_extensions>=4.12.2",
        "kubernetes>=12.0.1",  # the models of a PodTemplate: low, since this package stands in every user's image
    ],
    extras_require={
        "connector": [
            "flytekit[connector]>=1.16,<2",
            "kubernetes>=37",  # the first with kubernetes.aio
            "aiohttp>=3.14",  # as that asks for
        ],
        "ray": ["ray[default]>=2.10"],
    },
    entry_points={
        "flytekit.plugins": ["kuberay=flytekitplugins.kuberay"],
        "console_scripts": ["flyte-kuberay=flytekitplugins.kuberay.cli:main"],
    },
)
