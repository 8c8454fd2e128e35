#!/usr/bin/env python3
"""Stands in for Bazel's coverage report generator, which is downloaded from the web otherwise.

It merges LCOV files, which is what Python tests write; it does not read the gcov data of C++ code.
"""

import os
import re
import sys

options: dict[str, list[str]] = {}
for argument in sys.argv[1:]:
    key, _, value = argument.lstrip("-").partition("=")
    options.setdefault(key, []).append(value)

reports: list[str] = []
for folder in options.get("coverage_dir", []):
    for base, _folders, names in os.walk(folder):
        reports += [os.path.join(base, n) for n in names if n.endswith(".dat")]
for listing in options.get("reports_file", []):
    with open(listing) as file:
        reports += file.read().split()
allowed: set[str] | None = None
for listing in options.get("source_file_manifest", []):
    if os.path.isfile(listing):
        with open(listing) as file:
            allowed = set(file.read().split())
unwanted = [re.compile(p) for p in options.get("filter_sources", [])]

hits: dict[str, dict[int, int]] = {}
for report in sorted(reports):
    if not os.path.isfile(report):
        continue
    with open(report) as file:
        current: dict[int, int] | None = None
        for line in map(str.strip, file):
            if line.startswith("SF:"):
                source = line[3:]
                drop = any(p.fullmatch(source) for p in unwanted) or (allowed is not None and source not in allowed)
                current = None if drop else hits.setdefault(source, {})
            elif line.startswith("DA:") and current is not None:
                number, count = (int(n) for n in line[3:].split(",")[:2])
                current[number] = current.get(number, 0) + count

with open(options["output_file"][0], "w") as file:
    for source, lines in sorted(hits.items()):
        file.write(f"SF:{source}\n")
        file.writelines(f"DA:{number},{count}\n" for number, count in sorted(lines.items()))
        file.write(f"LH:{sum(1 for c in lines.values() if c)}\nLF:{len(lines)}\nend_of_record\n")
