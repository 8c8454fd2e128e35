"""Which versions of the tool sets have been tested together."""

# One row for each tested combination. A version matches when it equals the row's, or begins with it and a dot.
# `pto_isa` is the version of the wheel that carries the headers, or the revision of a checkout.
ROWS = [
    struct(ptoas = "0.1.1", pto_isa = "0.1.4", gcc = ["12", "13", "14"]),
    # What `ptoas --version` of the same release reports is the LLVM that it is made of.
    struct(ptoas = "19.1.7", pto_isa = "0.1.4", gcc = ["12", "13", "14"]),
]

def _matches(version, wanted):
    return version == wanted or version.startswith(wanted + ".")

def incompatibility(gcc, isa, ptoas, rows = ROWS):
    """Why versions do not fit together.

    Args:
      gcc: string; version of GCC.
      isa: string; version of PTO-ISA.
      ptoas: string; version of ptoas.
      rows: list of structs; the table.

    Returns:
      None when they do, else a struct of `found` and `row` (strings).
    """
    best, best_count = None, -1
    for row in rows:
        fits = [_matches(ptoas, row.ptoas), _matches(isa, row.pto_isa), bool([1 for wanted in row.gcc if _matches(gcc, wanted)])]
        count = len([1 for fit in fits if fit])
        if count == 3:
            return None
        if count > best_count:
            best, best_count = row, count
    return struct(
        found = "ptoas {}, PTO-ISA {}, GCC {}".format(ptoas, isa, gcc),
        row = "ptoas {}, PTO-ISA {}, GCC {}".format(best.ptoas, best.pto_isa, " or ".join(best.gcc)),
    )
