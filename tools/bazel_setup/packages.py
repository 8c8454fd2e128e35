"""What a Bazel needs of Debian's packages: which of them, and the files themselves, each checked once more here.

The package's own fetching does the work, from this checkout: it needs nothing but the standard library.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

if (_CHECKOUT := str(Path(__file__).resolve().parents[2])) not in sys.path:
    sys.path.insert(0, _CHECKOUT)

from pypto.toolchain.apt import MIRROR_VARIABLE, Apt, Remedies, Stanza
from pypto.toolchain.errors import FetchError
from pypto.toolchain.progress import Progress

__all__ = ["REMEDIES", "Apt", "FetchError", "closure", "download"]

REMEDIES = Remedies(
    archive=f"pass --suite or --mirror to tools/bazel_setup, or name an archive with {MIRROR_VARIABLE}=URI",
    expired="to accept an old, signed index run\n    python3 tools/bazel_setup --allow-expired",
    otherwise="install Bazelisk, or name an installed Bazel with PYPTO_BAZEL=/path/to/bazel",
)


def closure(apt: Apt, roots: Sequence[str], keep: re.Pattern[str]) -> tuple[dict[str, Stanza], int]:
    """What `roots` need and `keep` matches, out of the complete set apt's solver finds; and that set's size.

    Raises:
        FetchError: the suite does not carry what they need.
    """
    stanzas = apt.solve(roots)
    provides: dict[str, list[str]] = {}
    for package, fields in stanzas.items():
        for name in re.split(r",\s*", fields.get("Provides", "")):
            provides.setdefault(name.split(" ")[0], []).append(package)
    chosen: dict[str, Stanza] = {}
    todo = list(roots)
    while todo:
        name = todo.pop()
        if name in chosen or name not in stanzas:
            continue
        chosen[name] = stanzas[name]
        needs = ", ".join(stanzas[name].get(k, "") for k in ("Pre-Depends", "Depends"))
        for option in re.split(r"[,|]", needs):
            want = re.sub(r"[\s(:].*", "", option.strip())
            hits = [want] if want in stanzas else provides.get(want, [])
            todo += [h for h in hits if h in roots or keep.match(h)]
    return {k: chosen[k] for k in sorted(chosen)}, len(stanzas)


def download(apt: Apt, packages: Mapping[str, Stanza], debs: Path) -> list[Path]:
    """Fetch packages into `debs`, and compare every one with the signed index.

    Raises:
        FetchError: apt failed, or a file differs from the index.
    """
    debs.mkdir(parents=True, exist_ok=True)
    count, total = len(packages), sum(int(fields["Size"]) for fields in packages.values())
    with Progress(f"downloading {count} Debian package{'s' * (count != 1)}", total) as progress:
        failed = apt.download({name: fields["Version"] for name, fields in packages.items()}, debs, progress)
        if failed is not None:
            raise FetchError(f"apt could not fetch the packages:{failed.lines()}\n  {REMEDIES.archive}")
    by_hash = {hashlib.sha256(deb.read_bytes()).hexdigest(): deb for deb in debs.glob("*.deb")}
    differing = [name for name, fields in packages.items() if fields["SHA256"] not in by_hash]
    if differing:
        raise FetchError(
            f"downloaded files differ from the signed index: {', '.join(differing)}\n"
            "  the mirror is being updated or damaged; try again later, or pass --mirror to tools/bazel_setup"
        )
    return [by_hash[fields["SHA256"]] for fields in packages.values()]
