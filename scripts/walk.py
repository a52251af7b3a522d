#!/usr/bin/env python3
"""What one container's creation, its removal and an idle reconcile pass through.

  scripts/walk.py PROGRAM DIRECTORY [--list] [--no-bounds]

PROGRAM is a qrmd that was compiled with -finstrument-functions, DIRECTORY has what test_walk recorded of it. Counts, of
what every turn of a step passes through: functions of ours longer than three lines, the pairs of files (.h and .cc) that
they are in, and how often the work goes on in another thread; also the frames between the walk and a built-in policy.
Fails when that is more than the bounds below. With --list, prints the functions.
"""

import argparse
import collections
import glob
import os
import re
import subprocess
import sys

# Step: functions, file pairs. Half of the 424 and 95 of a creation while built-in plugins were called as plugin processes
# are, and 60 % of the 108 functions of an idle reconcile then.
BOUNDS = {"creation": (212, 47), "reconcile": (64,)}
MOST_FRAMES = 4  # between the walk and a policy
WALK = re.compile(r"^(manager/admission/planner|plugins/placement/walk)\.")
POLICY = re.compile(r"^plugins/(cpu|memory|nic)/")


class Program:
    """Knows the functions of PROGRAM by their addresses."""

    def __init__(self, path, addresses):
        self.names, sizes = {}, {}
        for line in subprocess.run(["nm", "-CS", "--defined-only", path], text=True, check=True,
                                   capture_output=True).stdout.splitlines():
            start, size, kind, *name = line.split(" ", 3)
            if kind in "tTwW" and name and (address := int(start, 16)) in addresses:
                self.names[address], sizes[address] = name[0], int(size, 16)
        wanted = [(a, at) for a in sorted(sizes) for at in range(a, a + sizes[a], 2)]
        lines = subprocess.run(["addr2line", "-e", path], text=True, check=True, capture_output=True,
                               input="".join(f"{at:x}\n" for _, at in wanted)).stdout.splitlines()
        self.files, numbers = {}, collections.defaultdict(set)
        for (address, at), line in zip(wanted, lines):
            file, number = line.split(" ")[0].rsplit(":", 1)
            if at == address:
                self.files[address] = os.path.relpath(os.path.realpath(file), root_of(file))
            if number.isdigit() and os.path.relpath(os.path.realpath(file), root_of(file)) == self.files[address]:
                numbers[address].add(int(number))
        self.lines = {a: max(n) - min(n) + 1 for a, n in numbers.items()}


def root_of(file):
    """The tree that `file` is in."""
    folder = os.path.dirname(os.path.realpath(file))
    while folder not in ("", "/") and not os.path.exists(os.path.join(folder, "CMakePresets.json")):
        folder = os.path.dirname(folder)
    return folder


def read(file):
    with open(file, encoding="ascii") as events:
        return [(int(address, 16), int(thread)) for address, thread in map(str.split, events)]


def frames(program, events):
    """The longest way from the walk to a policy: the names of the functions between."""
    stacks, longest = collections.defaultdict(list), []
    for address, thread in events:
        stack = stacks[thread]
        if address == 0:
            if stack:
                stack.pop()
            continue
        stack.append(address)
        files = [program.files.get(a, "") for a in stack]
        if POLICY.match(files[-1]):
            between = next((i for i, f in enumerate(reversed(files[:-1])) if WALK.match(f) or POLICY.match(f)), None)
            if between is not None and WALK.match(files[-2 - between]) and between > len(longest):
                longest = [program.names[a] for a in stack[-1 - between:-1]]
    return longest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("directory")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--no-bounds", action="store_true")
    arguments = parser.parse_args()
    steps = {step: [read(file) for file in sorted(glob.glob(f"{arguments.directory}/{step}.*"))]
             for step in ("creation", "removal", "reconcile")}
    program = Program(arguments.program, {a for turns in steps.values() for turn in turns for a, _ in turn})
    failed, way = False, []
    print(f"{'':10} functions  pairs  hand-overs")
    for step, turns in steps.items():
        passed = set.intersection(*({a for a, _ in turn} for turn in turns))
        functions = sorted((a for a in passed if program.lines.get(a, 0) > 3),
                           key=lambda a: (program.files[a], program.names[a]))
        pairs = {os.path.splitext(program.files[a])[0] for a in functions}
        overs = min(sum(a[1] != b[1] for a, b in zip(turn, turn[1:])) for turn in turns)
        print(f"{step:10} {len(functions):9}  {len(pairs):5}  {overs:10}")
        if arguments.list:
            for a in functions:
                print(f"    {program.files[a]:50} {program.lines[a]:4} {program.names[a]}")
        failed = failed or any(has > most for has, most in zip((len(functions), len(pairs)), BOUNDS.get(step, ())))
        if step == "creation":
            way = max((frames(program, turn) for turn in turns), key=len)
    print(f"{len(way)} frames between the walk and a built-in policy:")
    print("\n".join(f"    {name}" for name in way))
    failed = failed or len(way) > MOST_FRAMES
    if failed and not arguments.no_bounds:
        sys.exit(f"more than {BOUNDS} and {MOST_FRAMES} frames; fold what only passes on")


if __name__ == "__main__":
    main()
