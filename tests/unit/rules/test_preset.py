"""What the built-in rules come to, for the homes and projects that there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from yolofs.cli.pages.reference import render_preset
from yolofs.rules import RuleBook, RuleState, parse_rules
from yolofs.rules.preset import installation, preset_rules
from yolofs.rules.preset_table import SECTIONS

PAGE = Path(__file__).parents[3] / "docs/reference/preset.md"
HOME, PROJECT = "/home/u", "/home/u/work/p"


def state(path: str, *, project: str = PROJECT, home: str = HOME) -> str:
    """Return the state over a path, ``~`` and relative ones included."""
    if path.startswith("~"):
        path = home + path[1:]
    elif not path.startswith("/"):
        path = f"{project}/{path}"
    return RuleBook(preset_rules(project.encode(), home.encode(), 1000)).at(path.encode()).state.value


def test_the_page_of_built_in_rules_is_what_the_table_says() -> None:
    assert PAGE.read_text() == render_preset(), (
        "run: python -m yolofs.cli.pages.reference preset > docs/reference/preset.md"
    )


def test_every_line_stands_once_and_every_section_has_one_state() -> None:
    keys = [line.key for section in SECTIONS for line in section.rules]
    assert len(set(keys)) == len(keys)
    for section in SECTIONS:
        assert len({line.state for line in section.rules}) == 1, section.title


@pytest.mark.parametrize(
    "path",
    [
        ".",
        "src/a.c",
        "build/x",
        ".git/config",
        ".git/refs/heads/fix.key",
        "node_modules/x/test/a.pem",
        "a/node_modules/x.pem",
        ".venv/lib/python3.13/site-packages/certifi/cacert.pem",
        "root/usr/lib/python3/dist-packages/certifi/cacert.pem",
        ".env.example",
        ".npmrc",
        "x.env",
        "/tmp/pip-install-x/test/server.key",
        "/var/tmp/x",
        "/dev/shm/x",
        "~/.cache/pip/x.pem",
        "~/.npm/_cacache/x",
        "~/.npm/_logs/x.log",
        "~/.cache/node-gyp/x",
        "~/.cargo/registry/x.pem",
        "~/go/pkg/mod/cache/x",
    ],
)
def test_work_in_the_project_and_in_caches_is_free(path: str) -> None:
    assert state(path) == "allow"


@pytest.mark.parametrize(
    "path",
    [
        "/usr/bin/python3",
        "/usr/lib/python3/dist-packages/certifi/cacert.pem",
        "/usr/lib/ssl/private.key",
        "/bin",
        "/lib64/x",
        "/etc/passwd",
        "/etc/ssl/certs/x.pem",
        "/etc/ssl/cert.pem",
        "/etc/pki/tls/cert.pem",
        "/etc/ssh/ssh_config",
        "/etc/resolv.conf",
        "/run/systemd/resolve/stub-resolv.conf",
        "/opt/x",
        "/nix/store/x",
        "~/.bashrc",
        "~/.profile",
        "~/.gitconfig",
        "~/.config/git/ignore",
        "~/.local/bin/x",
        "~/.local/lib/python3.13/x",
        "~/.pyenv/versions/3.13/lib/python3.13/site-packages/pip/_vendor/certifi/cacert.pem",
        "~/.nvm/x",
        "~/.cargo/bin/cargo",
        "~/.rustup/toolchains/x",
        ".yolofs.toml",
        "~/.config/yolofs/config.toml",
        "src/.yolofs/journal",
        "node_modules/x/.yolofs",
        ".git/.yolofs/rules.toml",
        "lib/site-packages/x/.yolofs",
        "/tmp/x/.yolofs/journal",
    ],
)
def test_the_system_and_programs_are_readable_and_never_ask(path: str) -> None:
    assert state(path) == "read-only"


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/id_ed25519",
        "~/.ssh/x.pub",
        "~/.aws/credentials",
        "~/.gnupg/x",
        "~/.netrc",
        "~/.config/gh/hosts.yml",
        "~/.npmrc",
        "~/.git-credentials",
        "~/.config/git/credentials",
        "~/.docker/config.json",
        "~/.kube/config",
        "~/.pypirc",
        "~/.cargo/credentials.toml",
        "~/.mozilla/firefox/x/cookies.sqlite",
        "~/.config/google-chrome/Default/Cookies",
        "~/.local/share/keyrings/login.keyring",
        "~/.password-store/x.gpg",
        "~/.bash_history",
        "~/.cache/mozilla/x",
        "~/.cache/google-chrome-beta/x",
        "~/.cache/google-chrome-unstable/x",
        "~/.cache/microsoft-edge-dev/x",
        "~/.cache/librewolf/x",
        "~/.cache/waterfox/x",
        "~/.cache/falkon/x",
        "~/.cache/qutebrowser/x",
        "~/.cache/geary/x",
        "~/.cache/weechat/x",
        ".env",
        "sub/.env",
        "sub/.env.local",
        "~/other/.env",
        "/srv/app/.env",
        "~/.cache/huggingface/token",
        "/run/secrets/kubernetes.io/serviceaccount/token",
        "/run/user/1001/x",
        "/run/secrets.d/1/db-password",
        "/run/agenix/x",
        "/run/cloud-init/instance-data-sensitive.json",
        "/run/NetworkManager/system-connections/x.nmconnection",
        "/tmp/krb5cc_1000",
        "/home/other/x",
        "/root/x",
    ],
)
def test_credentials_are_hidden(path: str) -> None:
    assert state(path) == "hidden"


@pytest.mark.parametrize(
    "path",
    [
        "server.key",
        "certs/x.pem",
        "~/x.pem",
        "/srv/x.p12",
        "certs/CA.PEM",
        "x.KEY",
        "~/Desktop/me.P12",
        "x.PFX",
        "id_rsa",
        "/etc/shadow",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/nginx/x.key",
        "/etc/ssl/private/x",
        "/etc/sudoers",
        "/etc/sudoers.d/x",
        "/etc/apt/auth.conf.d/90ubuntu-advantage",
        "/etc/netplan/50-cloud-init.yaml",
        "/etc/postfix/sasl_passwd.db",
        "/var/cache/debconf/passwords.dat",
        "/var/cache/debconf/passwords.dat-old",
        "~/.config/x/id_ed25519",
    ],
)
def test_keys_and_secrets_of_the_system_are_refused(path: str) -> None:
    assert state(path) == "deny"


@pytest.mark.parametrize(
    "path",
    ["~", "~/Documents/x", "~/other/x", "~/.config/x", "~/.local/share/x", "/", "/srv/x", "/mnt/x", "/var/lib/x"],
)
def test_the_preset_asks_where_no_rule_of_it_decides(path: str) -> None:
    assert state(path) == "ask"


@pytest.mark.parametrize(
    ("project", "home"),
    [
        ("/root/p", "/root"),
        ("/root", "/root"),
        ("/", "/root"),
        ("/", "/home/u"),
        ("/home/u", "/home/u"),
        ("/p", "/"),
        ("/home/a/p", "/root"),
        ("/tmp/p", "/tmp/h"),
        ("/tmp/h/p", "/tmp/h"),
        ("/home/u/.cache/p", "/home/u"),
        ("/usr/src/p", "/root"),
    ],
)
def test_wherever_home_and_project_lie_work_is_free_and_credentials_are_not(project: str, home: str) -> None:
    project_dir = project.rstrip("/")
    found = RuleBook(preset_rules(project.encode(), home.encode(), 0))
    for path, expected in [
        (project, RuleState.ALLOW),
        (f"{project_dir}/src/x", RuleState.ALLOW),
        (f"{project_dir}/.env", RuleState.HIDDEN),
        (f"{project_dir}/x.pem", RuleState.DENY),
        (f"{project_dir}/node_modules/x.pem", RuleState.ALLOW),
        (f"{home.rstrip('/')}/.ssh/id_rsa", RuleState.HIDDEN),
        (f"{home.rstrip('/')}/.aws", RuleState.HIDDEN),
        ("/etc/shadow", RuleState.DENY),
        ("/usr/bin/env", RuleState.READ_ONLY),
    ]:
        assert found.at(path.encode()).state is expected, path
    for depth in range(1, project.count("/") + 1):
        above = "/".join(project.split("/")[:depth]) or "/"
        verdict = found.at(above.encode())
        assert not verdict.state.is_hidden or verdict.is_way, f"{above} cannot be passed"


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ("/srv/venv", "read-only"),
        ("/home/u/tools/.venv", "read-only"),
        ("/root/venv", "read-only"),
        (f"{PROJECT}/.venv", "allow"),
        (PROJECT, "allow"),
        ("/home/u", "ask"),
        ("/home", "hidden"),
        ("", "ask"),
    ],
)
def test_where_yolofs_is_installed_is_readable_whole(installed: str, expected: str) -> None:
    book = RuleBook(preset_rules(PROJECT.encode(), HOME.encode(), 1000, (installed.encode() or b"/",)))
    assert book.at(f"{installed}/x/cacert.x".encode()).state.value == expected
    assert book.at(f"{installed}/x/cacert.pem".encode()).state.value == (
        "read-only" if expected == "read-only" else "deny"
    )
    assert book.at(f"{PROJECT}/x".encode()).state.value == "allow"
    assert book.at(f"{HOME}/.ssh/id_rsa".encode()).state.value == "hidden"


def test_the_installation_is_where_python_and_all_modules_lie() -> None:
    import yolofs.cli
    import yolofs.daemon
    import yolofs.rules

    found = [Path(os.fsdecode(path)) for path in installation()]
    assert Path(sys.prefix).resolve() in found
    for module in (yolofs, yolofs.cli, yolofs.daemon, yolofs.rules):
        assert module.__file__ is not None
        file = Path(module.__file__).resolve()
        assert any(file.is_relative_to(path) for path in found), file


def test_libraries_that_lie_somewhere_else_are_part_of_the_installation() -> None:
    """As where a virtual environment borrows them from another one."""
    script = """
import os, sys
sys.prefix = sys.base_prefix = "/nowhere"
import yolofs.rules.preset as preset
print(*map(os.fsdecode, preset.installation()), sep="\\n")
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert str(Path(msgspec.__file__).resolve().parent.parent) in found


def test_of_other_users_only_the_way_home_is_seen() -> None:
    found = RuleBook(preset_rules(b"/home/u/p", b"/home/u", 1000))
    assert found.at(b"/home").is_way
    assert not found.at(b"/home/other").is_way
    assert state("/root/.bashrc") == "hidden"
    assert state("~/.bashrc", home="/root", project="/root/p") == "read-only"


def test_files_that_tools_look_for_above_the_project_are_readable_up_to_the_home_directory() -> None:
    assert state("/home/u/work/package.json") == "read-only"
    assert state("~/package.json") == "read-only"
    assert state("/home/u/work/other/package.json") == "ask"
    assert state("package.json") == "allow"
    assert state("~/package.json", project="/home/u") == "allow"
    assert state("/srv/package.json", project="/srv/p") == "ask"
    assert state("/package.json", project="/p", home="/") == "read-only"


@pytest.mark.parametrize("name", [".git", "dist-packages", "node_modules", "site-packages"])
def test_directories_exempt_from_patterns_still_obey_rules_of_directories(name: str) -> None:
    own = parse_rules([("sub", "read-only", 1), ("**/own.key", "hidden", 2)], PROJECT.encode(), HOME.encode())
    found = RuleBook(own, preset_rules(PROJECT.encode(), HOME.encode(), 1000))
    for path, expected in [
        (f"{PROJECT}/{name}/x.pem", RuleState.ALLOW),
        (f"{PROJECT}/sub/{name}/x.pem", RuleState.READ_ONLY),
        (f"{HOME}/other/{name}/x.pem", RuleState.ASK),
        (f"{PROJECT}/{name}/own.key", RuleState.HIDDEN),
        (f"{PROJECT}/{name}x/x.pem", RuleState.DENY),
    ]:
        assert found.at(path.encode()).state is expected, path
