"""What pyproject.toml says about the project is what lies on the disk and in the documents."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import yolofs

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKED = ("cli", "config", "daemon")


def test_the_packages_listed_are_those_on_the_disk() -> None:
    found = set()
    for top in (ROOT / "yolofs", *(ROOT / name for name in LINKED)):
        prefix = "yolofs" if top.name == "yolofs" else f"yolofs.{top.name}"
        for directory, _, files in os.walk(top):
            if any(name.endswith(".py") for name in files):
                found.add(".".join([prefix, *Path(directory).relative_to(top).parts]))
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(found)


def test_every_package_has_an_init_file_so_that_tools_see_it() -> None:
    for package in PROJECT["tool"]["setuptools"]["packages"]:
        assert Path(ROOT, *package.split("."), "__init__.py").is_file(), package


def test_the_links_show_the_folders_of_the_top_level() -> None:
    for name in LINKED:
        assert os.readlink(ROOT / "yolofs" / name) == f"../{name}"
        assert PROJECT["tool"]["setuptools"]["package-dir"][f"yolofs.{name}"] == name


def test_every_package_has_a_rule_for_the_imports_in_it() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    ruled = {one for contract in contracts for one in contract.get("containers", ()) if contract["exhaustive"]}
    assert ruled == set(PROJECT["tool"]["setuptools"]["packages"])


def test_commands_may_import_nothing_of_the_daemon_but_rpc() -> None:
    contracts = {contract["name"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]}
    forbidden = contracts["commands reach the daemon by yolofs.daemon.rpc alone"]["forbidden_modules"]
    there = {path.stem for path in (ROOT / "daemon").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert set(forbidden) == {f"yolofs.daemon.{name}" for name in there - {"__init__", "__pycache__", "rpc"}}


def test_the_version_is_written_once() -> None:
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "yolofs.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", yolofs.__version__)


def test_every_dependency_has_its_line_in_the_design_notes() -> None:
    page = (ROOT / "docs/design/dependencies.md").read_text()
    documented = re.findall(r"^\| `([a-z0-9-]+)` \|(?: [^|]+ \|){3}$", page, re.MULTILINE)
    extras = PROJECT["project"]["optional-dependencies"]
    assert extras["dev"][0] == "yolofs[pyfuse3]"
    wanted = [*PROJECT["project"]["dependencies"], *extras["pyfuse3"], *extras["dev"][1:]]
    assert documented == [_name(requirement) for requirement in wanted]


def test_every_dependency_of_the_program_is_bounded_on_both_sides() -> None:
    for requirement in PROJECT["project"]["dependencies"]:
        assert re.fullmatch(r"[a-z0-9-]+>=[\d.]+,<[\d.]+", requirement), requirement


def test_pyfuse3_is_pinned_to_the_versions_whose_hook_is_known() -> None:
    assert PROJECT["project"]["optional-dependencies"]["pyfuse3"] == ["pyfuse3>=3.4,<3.6"]


def _name(requirement: str) -> str:
    found = re.match(r"[a-z0-9-]+", requirement)
    assert found is not None
    return found[0]
