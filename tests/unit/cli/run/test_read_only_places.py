"""What a command line names to be written, for the hint after a command that failed."""

from __future__ import annotations

import os

import pytest

from yolofs.cli.run.read_only_places import places_written, say_places, which_are_read_only

NATIVE = [b"/usr", b"/opt"]


def written(*words: str, directory: str = "/home/u/p") -> list[str]:
    """Return the paths that are taken for written."""
    return [os.fsdecode(one.path) for one in places_written(list(map(os.fsencode, words)), {}, os.fsencode(directory))]


@pytest.mark.parametrize(
    ("words", "paths"),
    [
        (["touch", "/usr/local/x", "/opt/y"], ["/usr/local/x", "/opt/y"]),
        (["cp", "/usr/bin/python3", "/opt/python"], ["/opt/python"]),
        (["cp", "a", "b", "../../../opt/"], ["/opt"]),
        (["mv", "/usr/share/a", "here"], ["/usr/share/a", "/home/u/p/here"]),
        (["sh", "-c", "echo x > /opt/y 2>&1; cat /usr/share/words"], ["/opt/y"]),
        (["bash", "-lc", "cd /x && sudo install -m755 tool /usr/local/bin/tool"], ["/usr/local/bin/tool"]),
        (["sh", "-c", "A=1 mkdir -p '/opt/a b'\nrm -rf /usr/lib/x"], ["/opt/a b", "/usr/lib/x"]),
        (["bash", "-c", "sh -c 'touch /opt/z'"], ["/opt/z"]),
        (["make", "-j4", "install"], ["/usr/local"]),
        (["grep", "word", "/usr/share/dict/words"], []),
        (["/usr/bin/python3", "/usr/share/script.py"], []),
        (["sh", "-c", "touch '/opt/unfinished"], []),
        (["sh", "script.sh", "/opt/x"], []),
        (["npm", "install", "cowsay"], []),
        (["corepack", "prepare", "pnpm@9"], []),
        (["corepack", "enable"], ["/usr/bin"]),
        (["corepack", "enable", "pnpm", "--install-directory", "/opt/bin"], ["/opt/bin"]),
    ],
)
def test_the_paths_that_a_command_writes_are_read_off_its_words(words: list[str], paths: list[str]) -> None:
    assert written(*words) == paths


def test_a_global_package_of_node_goes_below_the_prefix() -> None:
    environment = {b"npm_config_prefix": b"/usr/local"}
    (place,) = places_written([b"npm", b"install", b"-g", b"cowsay"], environment, b"/")
    assert place.path == b"/usr/local/lib/node_modules"
    assert place.advice is not None


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (["npm", "install", "-g", "--prefix", "/opt/node", "cowsay"], "/opt/node/lib/node_modules"),
        (["npm", "--prefix=here", "install", "--global", "cowsay"], "/home/u/p/here/lib/node_modules"),
        (["npm", "install", "--location=global", "--prefix", "/opt/node", "cowsay"], "/opt/node/lib/node_modules"),
        (["npm", "i", "--location", "global", "--prefix", "/opt/node", "cowsay"], "/opt/node/lib/node_modules"),
        (["sh", "-c", "npm_config_prefix=/opt/node npm i -g cowsay"], "/opt/node/lib/node_modules"),
        (["sh", "-c", "npm_config_prefix=/opt/node npm i -g --prefix here cowsay"], "/home/u/p/here/lib/node_modules"),
    ],
)
def test_the_prefix_that_the_command_line_gives_counts_before_that_of_the_environment(
    words: list[str], path: str
) -> None:
    environment = {b"npm_config_prefix": b"/usr/local"}
    places = places_written(list(map(os.fsencode, words)), environment, b"/home/u/p")
    assert [os.fsdecode(place.path) for place in places] == [path]


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("npm_config_prefix=/opt npm install -g x | tail", ["/opt/lib/node_modules"]),
        ("touch /opt/a; touch /opt/b", ["/opt/a"]),
        ("touch /opt/a\ntouch /opt/b\n", ["/opt/a"]),
        ("touch /opt/a & touch /opt/b", ["/opt/a"]),
        ("touch /opt/a || touch /opt/b", ["/opt/a"]),
        ("(touch /opt/a && touch /opt/b) | tail", ["/opt/a", "/opt/b"]),
        ("mkdir -p /opt/a && cp x /opt/b && echo done", []),
        ("cd here; mkdir -p /opt/a", []),
        ("mkdir -p /opt/a;", []),
        ("sh -c 'touch /opt/a' | tail", ["/opt/a"]),
        ("sh -c 'touch /opt/a | tail'", ["/opt/a"]),
        ("make install DESTDIR=here | tail", []),
        ("cmake --install build --prefix=here | tail", []),
        ("make install | tail", ["/usr/local"]),
    ],
)
def test_of_a_command_that_succeeded_only_what_the_shell_hides_is_told(script: str, paths: list[str]) -> None:
    """What its exit code tells of may have found done what it was to do."""
    found = which_are_read_only(NATIVE, [b"sh", b"-c", script.encode()], {}, b"/", 0)
    assert [os.fsdecode(place.path) for place in found] == paths


def test_a_place_that_is_not_straight_from_the_disk_is_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert which_are_read_only(NATIVE, [b"touch", b"/etc/x", b"/usr2/x"], {}, b"/", 1) == []
    assert which_are_read_only([], [b"touch", b"/usr/x"], {}, b"/", 1) == []
    say_places([])
    assert capsys.readouterr().err == ""


def test_a_hostile_name_stays_on_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_places(which_are_read_only(NATIVE, [b"touch", b"/usr/a\n\x1b[31m\xff"], {}, b"/", 1))
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 3
    assert "\x1b" not in said
