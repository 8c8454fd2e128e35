"""Debian packages through the machine's own apt, without root and without touching its state.

Mirrors, proxies and certificates are those the machine is configured for; signatures and checksums are
verified by apt, and the checksum of each file once more here.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from .common import Failure, mb, run, say

Stanza = dict[str, str]
"""The fields of one package in the archive's index."""


def require_tools() -> None:
    missing = [t for t in ("apt-get", "apt-cache", "apt-config", "dpkg-deb") if not shutil.which(t)]
    if missing:
        raise Failure(
            f"{', '.join(missing)} not found: a Bazel can be set up only where apt is\n"
            "  install Bazelisk, or name an installed Bazel with PYPTO_BAZEL=/path/to/bazel"
        )


def mirrors() -> list[str]:
    """Base URIs of Debian's main archive, from this machine's own apt configuration."""
    found: list[str] = []
    targets = run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN)|$(LABEL)|$(CREATED_BY)"], check=False
    ).stdout
    for line in targets.splitlines():
        uri, _, rest = line.partition(" ")
        origin, label, kind = [*rest.split("|"), "", ""][:3]
        if kind == "Packages" and origin in ("", "Debian") and "Security" not in label:
            found.append(uri)
    if not found:  # `apt-get update` never ran here: read the sources
        for path in [Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*"))]:
            if path.suffix not in (".list", ".sources") or not path.is_file():
                continue
            for line in path.read_text(errors="replace").splitlines():
                words = line.split()
                if words[:1] in (["deb"], ["URIs:"]):
                    found += [w for w in words[1:] if "://" in w]
    good: list[str] = []
    for uri in found:
        uri = uri.rstrip("/") + "/"
        if "security" not in uri and uri not in good and re.match(r"(https?|file|mirror\S*)://?", uri):
            good.append(uri)
    return good


def keyring() -> Path:
    for name in ("debian-archive-keyring.pgp", "debian-archive-keyring.gpg"):
        path = Path("/usr/share/keyrings") / name
        if path.is_file():
            return path
    raise Failure(
        "no Debian archive keys in /usr/share/keyrings, so packages cannot be verified\n"
        "  install the package debian-archive-keyring"
    )


class Apt:
    """apt with its state, cache, sources and hooks all inside one folder."""

    def __init__(self, where: Path, arch: str, allow_expired: bool = False) -> None:
        self.where = where
        for part in ("lists/partial", "archives/partial", "etc/parts", "log"):
            (where / part).mkdir(parents=True, exist_ok=True)
        for part in ("status", "etc/empty"):
            (where / part).touch()
        # Of the host's settings only how to fetch (proxies, certificates, retries): none of its hooks or pins.
        dump = run(["apt-config", "dump"]).stdout.splitlines()
        keep = [line for line in dump if re.match(r'Acquire::[^"]* "[^"]*";$', line)]
        settings: dict[str, str | Path] = {
            "Dir::Etc::main": where / "etc/empty",
            "Dir::Etc::parts": where / "etc/parts",
            "Dir::Etc::sourcelist": where / "etc/sources.list",
            "Dir::Etc::sourceparts": where / "etc/parts",
            "Dir::Etc::preferences": where / "etc/empty",
            "Dir::Etc::preferencesparts": where / "etc/parts",
            "Dir::State": where,
            "Dir::State::lists": where / "lists",
            "Dir::State::status": where / "status",
            "Dir::State::extended_states": where / "extended_states",
            "Dir::Cache": where,
            "Dir::Cache::archives": where / "archives",
            "Dir::Log": where / "log",
            "APT::Architecture": arch,
            "APT::Install-Recommends": "false",
            "APT::Get::AllowUnauthenticated": "false",
            "Acquire::AllowInsecureRepositories": "false",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::http::Timeout": "30",
            "Acquire::https::Timeout": "30",
        }
        if allow_expired:
            settings["Acquire::Check-Valid-Until"] = "false"
        if os.geteuid() == 0:  # apt's download user could not enter a folder below root's home
            settings["APT::Sandbox::User"] = "root"
        lines = [*keep, *(f'{k} "{v}";' for k, v in settings.items()), f'APT::Architectures {{ "{arch}"; }};']
        (where / "apt.conf").write_text("\n".join(["#clear APT::Architectures;", *lines, ""]))
        self.env = {**os.environ, "APT_CONFIG": str(where / "apt.conf"), "LC_ALL": "C"}

    def __call__(self, tool: str, *argv: str, cwd: Path | None = None, check: bool = True) -> CompletedProcess[str]:
        return run([tool, *argv], env=self.env, cwd=cwd, check=check)

    def open_suite(self, suite: str, mirror: str | None) -> None:
        """Read the index of `suite` from the first mirror that has it."""
        uris = [mirror.rstrip("/") + "/"] if mirror else mirrors()
        if not uris:
            raise Failure("apt on this machine names no Debian archive\n  pass --mirror URI to tools/bazel_setup")
        trouble: list[str] = []
        for uri in uris:
            say(f"reading the index of Debian {suite}")
            (self.where / "etc/sources.list").write_text(f"deb [signed-by={keyring()}] {uri} {suite} main\n")
            done = self("apt-get", "update", "-o", "APT::Update::Error-Mode=any", check=False)
            if done.returncode == 0:
                return
            trouble += [s for s in done.stderr.splitlines() if s.startswith(("E:", "W:"))][:3]
        text = "\n  ".join(trouble) or "no reason given"
        raise Failure(f"apt could not read Debian {suite}:\n  {text}{remedy(text, suite)}")

    def candidate(self, package: str) -> str | None:
        found = re.search(r"Candidate: (\S+)", self("apt-cache", "policy", package).stdout)
        return None if not found or found[1] == "(none)" else found[1]

    def show(self, *packages: str) -> list[Stanza]:
        shown = self("apt-cache", "show", "--no-all-versions", *packages).stdout
        return [dict(re.findall(r"^(\S+): (.*)$", block, re.M)) for block in shown.split("\n\n") if block.strip()]

    def closure(self, roots: Sequence[str], keep: re.Pattern[str]) -> tuple[dict[str, Stanza], int]:
        """What `roots` need and `keep` matches, out of the complete set apt's solver finds; and that set's size."""
        solved = re.findall(r"^Inst (\S+) \((\S+)", self("apt-get", "-s", "install", *roots).stdout, re.M)
        stanzas: dict[str, Stanza] = {}
        provides: dict[str, list[str]] = {}
        for fields in self.show(*(f"{name}={version}" for name, version in solved)):
            stanzas[fields["Package"]] = fields
            for name in re.split(r",\s*", fields.get("Provides", "")):
                provides.setdefault(name.split(" ")[0], []).append(fields["Package"])
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
        return {k: chosen[k] for k in sorted(chosen)}, len(solved)

    def download(self, packages: Mapping[str, Stanza], debs: Path) -> list[Path]:
        """Fetch packages into `debs`, and check every one against the signed index."""
        debs.mkdir(parents=True, exist_ok=True)
        total = sum(int(f["Size"]) for f in packages.values())
        say(f"downloading {len(packages)} package{'s' * (len(packages) != 1)}, {mb(total)}")
        start, done, names = time.monotonic(), 0, list(packages)
        for at in range(0, len(names), 8):
            part = names[at : at + 8]
            self("apt-get", "download", "-q", *(f"{n}={packages[n]['Version']}" for n in part), cwd=debs)
            done += sum(int(packages[n]["Size"]) for n in part)
            if len(names) > 8:
                say(f"  {mb(done)} of {mb(total)} after {time.monotonic() - start:.0f} s")
        by_hash = {hashlib.sha256(deb.read_bytes()).hexdigest(): deb for deb in debs.glob("*.deb")}
        differing = [n for n, f in packages.items() if f["SHA256"] not in by_hash]
        if differing:
            raise Failure(
                f"downloaded files differ from the signed index: {', '.join(differing)}\n"
                "  the mirror is being updated or damaged; try again later, or pass --mirror to tools/bazel_setup"
            )
        return [by_hash[f["SHA256"]] for f in packages.values()]


def remedy(text: str, suite: str) -> str:
    """What to do about apt's complaint, where that is known."""
    if re.search(r"resolv|connect|unreachable|timed out|timeout", text, re.I):
        return "\n  the archive cannot be reached: no network, or a proxy that apt is not told about"
    if "NO_PUBKEY" in text or "not signed" in text:
        return (
            "\n  the suite's signing key is not in this machine's keyring: upgrade the package debian-archive-keyring"
        )
    if "expired" in text or "not valid yet" in text:
        return (
            "\n  this machine's clock is wrong, or the mirror is a frozen copy; to accept an old, signed index run\n"
            "    python3 tools/bazel_setup --allow-expired"
        )
    if "404" in text or "Release file" in text:
        return f"\n  the archive carries no suite {suite}: pass --suite or --mirror to tools/bazel_setup"
    return ""
