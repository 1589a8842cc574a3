"""A plan is data: it can be printed, stored and read again."""

from __future__ import annotations

import pytest

from yolofs.commit.plan.plan import (
    Create,
    Duplicate,
    FinishDirectory,
    Link,
    MakeDirectory,
    MetadataBefore,
    Park,
    Place,
    Plan,
    Remove,
    Rewrite,
    SetMetadata,
    Step,
)
from yolofs.errors import YolofsError
from yolofs.paths import ROOT, RelPath, StoreIno

WAS = MetadataBefore(0o100644, 1, 2, 3, 4, ((b"user.\xff", b"\0"),))
A, B, INO = RelPath(b"a"), RelPath(b"d/\xff\n"), StoreIno(7)
PLAN = Plan(
    b"/base\xff",
    (
        Park(B, 1, 100),
        Remove(A, 2, 101),
        MakeDirectory(A, INO),
        Create(A, INO, 3, 4096, -1),
        Create(A, INO, 7, 4096, 10**18, replaced=102),
        Place(B, 1),
        Duplicate(B, A, INO, 4),
        Link(A, B, 5),
        Rewrite(A, INO, 6, 103),
        SetMetadata(A, INO, WAS),
        FinishDirectory(ROOT, None, 10**18),
    ),
)


def test_each_kind_of_step_is_told_in_a_line() -> None:
    assert list(PLAN.lines()) == [
        'take "d/\\377\\n" out of the way',
        "remove a",
        "make directory a",
        "create a",
        "replace a",
        'put "d/\\377\\n" in its place',
        'copy a to "d/\\377\\n"',
        'link a to "d/\\377\\n"',
        "rewrite a",
        "set the metadata of a",
        "set the metadata of directory .",
    ]


def test_a_plan_survives_json() -> None:
    assert Plan.decode(PLAN.encode()) == PLAN


def test_a_malformed_plan_is_refused() -> None:
    with pytest.raises(YolofsError, match=r"this is not the plan of a commit: .*truncated"):
        Plan.decode(PLAN.encode()[:-5])


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ((Remove(RelPath(b"../a"), 1, 2),), "not a path relative to base: ../a"),
        ((Remove(RelPath(b"/a"), 1, 2),), "not a path relative to base: /a"),
        ((Remove(RelPath(b"a/"), 1, 2),), "not a path relative to base: a/"),
        ((Remove(RelPath(b"a\0"), 1, 2),), "NUL"),
        ((Remove(RelPath(b"a" * 256), 1, 2),), "longer than 255"),
        ((Remove(ROOT, 1, 2),), "Remove of base itself"),
        ((SetMetadata(ROOT, INO, WAS),), "SetMetadata of base itself"),
        ((Link(A, RelPath(b"../a"), 1),), "not a path relative to base: ../a"),
        ((Duplicate(A, RelPath(b"/a"), INO, 1),), "not a path relative to base: /a"),
        ((Link(A, ROOT, 1),), "Link of base itself"),
        ((Remove(A, -1, 2),), "-1 is no number of a slot"),
        ((Remove(A, 1, 2), Remove(B, 1, 3)), "1 is no number of a slot, or that of two"),
        ((Place(A, 1),), "nothing is parked under 1 for a"),
        ((Park(B, 1, 2), Place(A, 1), Place(A, 1)), "nothing is parked under 1 for a"),
        ((MakeDirectory(A, StoreIno(0)),), "0 is no number of a store inode"),
    ],
)
def test_a_plan_with_impossible_steps_is_refused(steps: tuple[Step, ...], said: str) -> None:
    with pytest.raises(YolofsError, match="this is not the plan of a commit: ") as caught:
        Plan.decode(Plan(b"/base", steps).encode())
    assert said in caught.value.message


@pytest.mark.parametrize("root", [b"", b"base", b"/base/../etc", b"/base/", b"/base\0"])
def test_a_plan_whose_base_is_no_absolute_path_is_refused(root: bytes) -> None:
    with pytest.raises(YolofsError, match="is no absolute path of a directory"):
        Plan.decode(Plan(root).encode())


def test_a_plan_of_a_later_version_is_refused() -> None:
    with pytest.raises(YolofsError, match="has version 2; only 1 is known"):
        Plan.decode(Plan(b"/", version=2).encode())
