"""PTO-ISA in the host world: a pinned revision, a checkout proved to be that revision, or the content of a folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping

from pypto._identity.content import ContentRoot
from pypto._identity.host.files import Unidentified, read_small
from pypto._identity.host.git import is_revision, run_git, tree_state
from pypto._identity.host.records import PtoIsaRecord
from pypto._identity.host.selection import HostSelection, PtoIsa
from pypto._identity.policy import IdentitySettings
from pypto._identity.toolchain_inputs import ComponentInputs

PIN_FILE = "pto_isa.pin"


class PtoIsaUnavailable(RuntimeError):
    """The pinned PTO-ISA cannot be had: no usable checkout, and it cannot be cloned."""


def pinned(selection: HostSelection) -> PtoIsa:
    """PTO-ISA with the revision that is in force: the caller's, else the one that the runtime's `pto_isa.pin` names.

    Raises:
        Unidentified: the revision is no complete commit id, or the pin file cannot be read.
    """
    chosen = selection.pto_isa
    revision = chosen.revision
    if revision is None and selection.runtime_root is not None:
        path = os.path.join(selection.runtime_root, PIN_FILE)
        if os.path.lexists(path):
            revision = read_small(path).decode("utf-8", "replace").strip()
    if revision is not None and not is_revision(revision):
        raise Unidentified(f"the pin of PTO-ISA is no complete commit id: {revision!r}")
    return PtoIsa(chosen.root, revision, chosen.remote)


def ensure_pto_isa_root(pto_isa: PtoIsa, cache: str | os.PathLike[str], variables: Mapping[str, str]) -> str:
    """A folder that holds exactly the pinned revision: the caller's checkout if clean and at the pin, else a clone.

    The caller's checkout is never changed. A clone stands in `<cache>/<revision>`, and is made anew if it is no longer
    what it was.

    Args:
        pto_isa: with a revision.
        cache: the folder for clones.
        variables: the environment of git.

    Raises:
        PtoIsaUnavailable: there is neither a usable checkout nor a way to clone one.
    """
    revision = pto_isa.revision
    if revision is None:
        raise PtoIsaUnavailable("PTO-ISA has no pinned revision; name the commit")
    clone = os.path.join(os.path.abspath(cache), revision)
    for root in (pto_isa.root, clone):
        if root is not None:
            state = tree_state(root, variables, ignored=False)
            if state is not None and state.revision == revision and state.unaccounted is None:
                return root
    if pto_isa.remote is None:
        raise PtoIsaUnavailable(
            f"{pto_isa.root or 'PTO-ISA'} is no clean checkout of {revision}, and no remote is named to clone it from"
        )
    os.makedirs(cache, exist_ok=True)
    work = tempfile.mkdtemp(prefix=".clone-", dir=cache)
    try:
        fresh = os.path.join(work, "fresh")
        # Bytes as committed, whatever the user's line-ending settings are.
        clone_command = ["clone", "-q", "--no-checkout", "-c", "core.autocrlf=false", "--", pto_isa.remote, fresh]
        if run_git(work, clone_command, variables) is None:
            raise PtoIsaUnavailable(f"PTO-ISA cannot be cloned from {pto_isa.remote}")
        if run_git(fresh, ["checkout", "-q", "--detach", revision], variables) is None:
            raise PtoIsaUnavailable(f"{pto_isa.remote} has no commit {revision}")
        if os.path.lexists(clone):
            os.rename(clone, os.path.join(work, "stale"))
        os.rename(fresh, clone)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return clone


def pto_isa_inputs(selection: HostSelection, settings: IdentitySettings) -> ComponentInputs:
    """The component `pto_isa`.

    Under `build` the pin is the identity; the checkout is made and verified only when something is compiled. When
    content counts, a checkout that git accounts for completely is its revision, and anything else is read: the folder
    to name is then the one that the compile uses, which `ensure_pto_isa_root` returned.
    """
    try:
        pto_isa = pinned(selection)
    except Unidentified as error:
        return ComponentInputs(unavailable_reason=str(error))
    if pto_isa.revision is not None and not settings.reads_content:
        record: PtoIsaRecord = {"pin": pto_isa.revision}
        return ComponentInputs(evidence=dict(record), unavailable_reason=None)
    if pto_isa.root is None:
        missing = "neither a pinned revision nor a folder" if pto_isa.revision is None else "no folder to be read"
        return ComponentInputs(unavailable_reason=f"PTO-ISA has {missing}")
    root = selection.resolve(pto_isa.root)
    revision = verified_revision(root, pto_isa.revision, selection.variables)
    if revision is not None:
        return ComponentInputs(verified_revision=revision, unavailable_reason=None)
    return ComponentInputs(roots=(ContentRoot(root),), unavailable_reason=None)


def verified_revision(root: str, pin: str | None, variables: Mapping[str, str]) -> str | None:
    """The pinned revision if git accounts for every file below `root` as part of it, ignored files included; else None.

    What it trusts: git's index, which knows a file by size, times and inode, and the filters that the commit itself
    asks for.
    """
    if pin is None:
        return None
    state = tree_state(root, variables, ignored=True)
    if state is None or state.unaccounted is not None or state.revision != pin:
        return None
    return pin
