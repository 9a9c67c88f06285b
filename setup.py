"""Packaging of flytekitplugins-kuberay; settings of the tools stand in pyproject.toml."""

from pathlib import Path

from setuptools import find_namespace_packages, setup

setup(
    name="flytekitplugins-kuberay",
    version="0.1.0",
    packages=find_namespace_packages(include=["flytekitplugins.*"]),
    package_data={"flytekitplugins.kuberay": ["py.typed"]},
    python_requires=">=3.10,<3.13",
    install_requires=["flytekit>=1.16,<2", "flyteidl>=1.16.7,<2", "protobuf>=4.25", "PyYAML>=6", "kubernetes>=12.0.1"],
    extras_require={"connector": ["flytekit[connector]>=1.16", "kubernetes>=37"], "ray": ["ray[default]>=2.9"]},
    entry_points={
        "flytekit.plugins": ["kuberay=flytekitplugins.kuberay"],
        "console_scripts": ["flyte-kuberay=flytekitplugins.kuberay.cli:main"],
    },
)
