#!/usr/bin/env python3
"""Finds old words in the project's texts, and pages that are hard to read; fails if it finds any.

  scripts/words.py [--count] [PATH...]     default: the files and folders in CHECKED, below

In pages (*.md): old words in the text, sentences of more than 35 words, lines of more than 120 columns (table rows,
lines with a link, and code apart), links to files and headings that do not exist. Of code, only comments are checked:
it shows the program's texts, which are checked in its sources. So are those of a generated page.
In C++, protobuf, shell, Python, CMake, YAML and JSON: old words in comments, and in strings of more than one word.
In charts/: the whole text of every file. Code in `backticks` is exempt everywhere.

scripts/words.exceptions lists what is right in spite of that, each with its reason. With the default files, an
exception that nothing needs is an error.
"""
import bisect
import fnmatch
import os
import re
import subprocess
import sys

MOST_EXCEPTIONS = 30
MOST_WORDS = 35
MOST_COLUMNS = 120
EXCEPTIONS = "scripts/words.exceptions"
CHECKED = [".ci", "CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", "README.md", "SECURITY.md", "api", "bench",
           "charts", "checkpoint", "cluster", "cmake", "docs", "manager", "packaging", "plugins", "scheduler", "scripts",
           "test", "tools", "topology"]
GENERATED = ["docs/configuration.md"]

# What not to write, and what to write.
WORDS = [
    (r"\bCPUs? of (its|their|your|whose) own\b|\b(its|their) own CPUs?\b", "exclusive CPUs"),
    (r"\bwithout a place\b|\bunplaced\b", "unpinned"),
    (r"\b(left|leaves?|leaving) alone\b", "skipped, or not changed"),
    (r"(?<!\bin )(?<!takes )(?<!take )\b(its|their|no|whose) places?\b(?! in\b)", "allocation"),
    (r"\bwhat (it|they|he|each) (holds?|was given|were given|got|gets?|owns?)\b", "its allocation"),
    (r"\bwho (holds|owns|gets|has|got) what\b", "the allocations of each container"),
    (r"\b(teach|teaches|taught|teaching)\b", "resync, restore"),
    (r"\b(is|are|was|were|while|be|been|stays?|still) away\b", "not running"),
    (r"(?<!connection )(?<!qrmctl )\brefus(e|es|ed|al|als|ing)\b", "reject"),
    (r"\bnot admitted\b", "rejected"),
    (r"\b(whoever|whomever|somebody|nobody|anybody|everybody|whom)\b", "a noun: operators, pods, another process"),
    (r"\b(for|of|to|by|from|with|which) who\b", "a noun: operators, the container that"),
    (r"\b(anew|afresh)\b", "again, or recreated, restarted"),
    (r"\bin earnest\b|\bin vain\b", "nothing, or without effect"),
    (r"\bthe (first|second|other) way\b", "a name"),
    (r"\bstands? (there|in|on|at|beside|below|above|behind)\b|\bas (it|they) stands?\b", "is, is listed, does nothing"),
    (r"\b(tell|tells|told|telling)\b(?!( \w+){0,3} apart\b)", "report, show, say, send"),
    (r"\b(mend|mends|mended|heed|heeds|lest|whence|hitherto|thereupon)\b", "repair, follow, or a plain word"),
    (r"\byet to hear\b|\b(hears?|heard) of\b", "has not received, learns of"),
    (r"\bof (those|these) (that|which|whose|who)\b|\bof whose\b|\bof which nobody\b", "a noun"),
    (r"\b(what|who) is there\b", "existing"),
    (r"(?<!\bthere )\bis no (?!longer\b|more\b|less\b|different\b|other\b)(?=[a-z])", "is not a"),
    (r"\bbut for\b", "except"),
]
WORDS = [(re.compile(pattern, re.I), instead) for pattern, instead in WORDS]


class Text:
    """A piece of a file that people read, on one line with single spaces, and the lines that it comes from."""

    def __init__(self):
        self.text, self.starts, self.lines = "", [], []

    def add(self, part, number):
        """Appends `part`, which begins in line `number` of the file."""
        for offset, line in enumerate(part.split("\n")):
            self.starts.append(len(self.text))
            self.lines.append(number + offset)
            self.text += re.sub(r"\s+", " ", " " + line if offset else line)

    def line_at(self, position):
        return self.lines[bisect.bisect_right(self.starts, position) - 1]


def of_code(source, token, joins):
    """The comments and string literals of `source`; neighbours of one kind are one text.

    `token` has the groups `comment`, `string` and, for what is neither, `skip`. `joins` matches what may lie between
    two tokens of one text.
    """
    texts, kind, end = [], None, 0
    for match in token.finditer(source):
        if match.lastgroup == "skip":
            continue
        part = match.group(match.lastgroup)
        if match.lastgroup != kind or not joins.fullmatch(source, end, match.start()):
            texts.append((match.lastgroup, Text()))
        kind, end = match.lastgroup, match.end()
        if kind == "comment":
            part = re.sub(r"(?m)^\s*(///?<?|#+|/?\*)\s*", "", part) + " "
        texts[-1][1].add(part, source.count("\n", 0, match.start(kind)) + 1)
    return [text for kind, text in texts if kind == "comment" or re.search(r"\S \S", text.text)]


CPP = re.compile(
    r'(?P<skip>^[ \t]*\#[ \t]*include[^\n]*|\'(?:\\.|[^\\\'\n])+\')|(?P<comment>//[^\n]*|/\*.*?\*/)'
    r'|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<string>(?:\\.|[^"\\\n])*)"',
    re.S | re.M)
HASH = re.compile(r"(?P<comment>(?:(?<=\s)|^)#(?!!)[^\n]*)|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*')", re.M)
BETWEEN = re.compile(r"\s*")


def texts_of(path, source):
    """The texts of the file, or None for a kind of file that is not checked."""
    name = os.path.basename(path)
    whole = path.startswith("charts/") and not name.startswith(".")
    if path.endswith((".cc", ".h", ".proto", ".json")):
        source = re.sub(r'R"(\w*)\((.*?)\)\1"', lambda found: '"' + found.group(2).replace('"', "'").replace("\\", "/") + '"', source, flags=re.S)
        return of_code(source, CPP, BETWEEN)
    if whole or path.endswith((".html", ".1")):
        text = Text()
        text.add(re.sub(r"(?m)^\s*#?\s*", "", source), 1)
        return [text]
    if path.endswith((".sh", ".py", ".yaml", ".yml", ".cmake", ".exceptions")) or name in ("CMakeLists.txt", "run"):
        return of_code(source, HASH, BETWEEN)
    return None


def blocks_of(source):
    """The paragraphs, list items, headings and table cells of a page without its code, and its lines without code."""
    blocks, lines, block, fence = [], [], Text(), None
    for number, line in enumerate(source.split("\n"), 1):
        mark = re.match(r"\s*(```+)(\w*)", line)
        if mark:
            fence = None if fence is not None else mark.group(2)
            blocks.append(block)
            block = Text()
            continue
        if fence is not None:
            comment = re.search(r"(?:^|\s)#\s(.*)", line) if fence in ("sh", "yaml") else None
            if comment:
                text = Text()
                text.add(comment.group(1), number)
                blocks.append(text)
            continue
        lines.append((number, line))
        if not line.strip() or re.match(r"\s*([-*]|\d+\.)\s|#|\s*\||\s*<!--", line):
            blocks.append(block)
            block = Text()
        if line.lstrip().startswith("|"):
            for cell in re.sub(r"`[^`]*`", lambda code: code.group().replace("|", "/"), line).strip().strip("|").split("|"):
                text = Text()
                text.add(cell, number)
                blocks.append(text)
            continue
        block.add(re.sub(r"^\s*((#+|[-*]|\d+\.)\s)?\s*", "", line) + " ", number)
    return [block for block in blocks + [block] if block.text.strip()], lines


def without_code(text):
    """`text` with each piece of code as one word, and links as their text; every other character stays where it is."""
    text = re.sub(r"`[^`]*`", lambda code: "C" + "_" * (len(code.group()) - 1), text)
    return re.sub(r"\]\([^)]*\)", lambda link: "]" + "_" * (len(link.group()) - 1), text)


def sentences_of(text):
    begin = 0
    for stop in re.finditer(r"(?<!e\.g)(?<!i\.e)[.!?][)\"'*]*(?= |$)", text):
        yield begin, text[begin : stop.end()]
        begin = stop.end()
    yield begin, text[begin:]


def words_in(text):
    return [word for word in re.split(r"\s+", text) if re.search(r"\w", word)]


def anchors_of(source):
    """The names by which GitHub links to the headings of a page."""
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()).replace(" ", "-")
            for heading in re.findall(r"(?m)^#+ (.*)", re.sub(r"(?ms)^```.*?^```", "", source))}


def old_words(text, line_at):
    for pattern, instead in WORDS:
        for match in pattern.finditer(text):
            begin, end = max(0, match.start() - 40), match.end() + 40
            yield (line_at(match.start()), f'old word "{" ".join(match.group().split())}"; write: {instead}',
                   " ".join(text[begin:end].split()))


def check_page(path, source):
    blocks, lines = blocks_of(source)
    for block in blocks:
        text = without_code(block.text)
        yield from old_words(text, block.line_at)
        for begin, sentence in sentences_of(text):
            count = len(words_in(sentence))
            if count > MOST_WORDS:
                begin += len(sentence) - len(sentence.lstrip())
                yield (block.line_at(begin), f"a sentence of {count} words; write at most {MOST_WORDS}",
                       " ".join(block.text[begin : begin + 80].split()))
    for number, line in lines:
        if len(line) > MOST_COLUMNS and not line.lstrip().startswith("|") and "](" not in line and not re.search(r"`[^`]{60,}`", line):
            yield number, f"a line of {len(line)} columns; write at most {MOST_COLUMNS}", line[:80]
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            file, _, anchor = target.partition("#")
            if re.match(r"\w+:", target):
                continue
            file = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
            if not os.path.exists(file):
                yield number, f"a link to {file}, which does not exist", line[:80]
            elif anchor and file.endswith(".md") and anchor not in anchors_of(open(file, encoding="utf-8").read()):
                yield number, f"a link to #{anchor}, which {file} does not have", line[:80]


def check_source(path, source):
    for text in texts_of(path, source) or []:
        yield from old_words(re.sub(r"`[^`]*`", lambda code: "_" * len(code.group()), text.text), text.line_at)


def exceptions():
    """The lines "GLOB | TEXT | REASON" of the file of exceptions."""
    found = []
    for number, line in enumerate(open(EXCEPTIONS, encoding="utf-8"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" | ")]
        if len(parts) != 3 or not all(parts):
            sys.exit(f'{EXCEPTIONS}:{number}: expected "FILES | TEXT | REASON"')
        found.append(parts[:2])
    if len(found) > MOST_EXCEPTIONS:
        sys.exit(f"{EXCEPTIONS}: {len(found)} exceptions; keep at most {MOST_EXCEPTIONS}: change the texts instead")
    return found


def main(arguments):
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    count_only = "--count" in arguments
    paths = [argument for argument in arguments if argument != "--count"]
    files = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *(paths or CHECKED)],
                           check=True, capture_output=True, text=True).stdout.split("\n")
    if not any(files):
        sys.exit(f"no file is tracked below {' '.join(paths)}; name files or folders of the tree")
    allowed = exceptions()
    needed = set()
    counts = {}
    for path in files:
        if not os.path.isfile(path) or path in ("scripts/words.py", EXCEPTIONS, *GENERATED) or path.endswith(".png"):
            continue
        source = open(path, encoding="utf-8", errors="replace").read()
        for line, problem, excerpt in (check_page if path.endswith(".md") else check_source)(path, source):
            for glob, text in allowed:
                if fnmatch.fnmatch(path, glob) and text in excerpt:
                    needed.add((glob, text))
                    break
            else:
                folder = path.split("/")[0]
                counts[folder] = counts.get(folder, 0) + 1
                if not count_only:
                    print(f"{path}:{line}: {problem}\n    {excerpt}")
    unneeded = [f"{glob} | {text}" for glob, text in allowed if (glob, text) not in needed] if not paths else []
    for exception in unneeded:
        print(f'{EXCEPTIONS}: nothing needs the exception "{exception}"; remove it')
    for folder, count in sorted(counts.items()):
        print(f"{folder}: {count}")
    return 1 if counts or unneeded else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
