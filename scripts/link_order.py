"""Turns the functions that a run called into a linker script, for `scripts/link-order`.

A function is named by its mangled name up to the hash, so that the file outlives changes elsewhere in
its crate; one of many that share that name (instances of generic code used everywhere) by its hash as
well, which holds for as long as the versions of crates and compiler do. A name that no function has any more does
nothing.
"""

import re
import subprocess
import sys
from collections import defaultdict

HASH = re.compile(r"17h[0-9a-f]{16}E")
# Bytes of other functions that may come along for a name without a hash.
ALONG = 8 << 10
# The disambiguators of crates in names of the newer mangling.
CRATE = re.compile(r"Cs[0-9A-Za-z]{8,13}_")
HEAD = """\
/* The functions that a daemon calls at its start and for its first calls, side by side: see docs/decisions/link-order.md.
   Written by scripts/link-order. */
SECTIONS {
  .text.start : {
"""
TAIL = "  }\n} INSERT BEFORE .text;\n"


def functions(binary):
    """Every function of the binary, and its size in bytes."""
    listed = subprocess.run(["nm", "-S", "--defined-only", binary], check=True, capture_output=True, text=True)
    fields = (line.split() for line in listed.stdout.splitlines())
    return {row[3]: int(row[1], 16) for row in fields if len(row) == 4 and row[2] in "tTwW"}


def stem(name):
    """The name without what hangs on versions."""
    return CRATE.sub("Cs*_", HASH.sub("17h*", name))


def patterns(called, sizes):
    """What names these functions, and few others."""
    alike, wanted = defaultdict(int), defaultdict(list)
    for name, size in sizes.items():
        alike[stem(name)] += size
    for name in called:
        if name in sizes:
            wanted[stem(name)].append(name)
    for name, instances in sorted(wanted.items()):
        size = sum(sizes[instance] for instance in instances)
        if alike[name] - size <= ALONG:
            yield name
        else:
            yield from sorted(instances)


def called(calls):
    """The functions that a stretch of a run called."""
    with open(calls) as lines:
        return {match[1].split("'")[0] for line in lines if (match := re.match(r"c?fn=\(\d+\) (.*)", line))}


def write(binary, script, stretches):
    sizes = functions(binary)
    # What an earlier stretch calls stands first, once.
    names = dict.fromkeys(name for calls in stretches for name in patterns(called(calls), sizes))
    if len(names) < 500:
        sys.exit(f"{stretches} name {len(names)} functions of {binary}: too few for a start; is it stripped?")
    with open(script, "w") as out:
        out.write(HEAD + "".join(f"    *(.text.{name})\n" for name in names) + TAIL)
    print(f"{script}: {len(names)} names")


def check(binary, script):
    with open(script) as lines:
        names = [match[1] for line in lines if (match := re.match(r"    \*\(\.text\.(.*)\)$", line))]
    known, stems = functions(binary), set()
    for name in known:
        stems.update((name, stem(name)))
    found = sum(name in stems for name in names)
    print(f"{found} of {len(names)} names of {script} are functions of {binary}")
    if 2 * found < len(names):
        sys.exit("write it anew: scripts/link-order")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", binary, script, *stretches]:
            write(binary, script, stretches)
        case ["check", binary, script]:
            check(binary, script)
        case _:
            sys.exit("used by scripts/link-order")
