#!/usr/bin/env python3
"""Wraps paragraphs of comments, docstrings and Markdown that go beyond column 100.

Usage: wrap.py [--check] [PATH ..]     PATHs are files or folders; default: the whole tree

A paragraph without a line beyond the column is left as it is. Code, tables, headings and diagrams
are never touched, so a line of these may stay long. --check changes nothing, names the lines that
are too long, and ends with 1 if there are any.
"""
import argparse
import pathlib
import re
import sys

WIDTH = 100
ROOT = pathlib.Path(__file__).resolve().parent.parent
LEFT_OUT = {"target", ".git", "node_modules", "results"}
COMMENT = re.compile(r"^(\s*//[/!]?)( .*|)$")
ITEM = re.compile(r"^(\s*)((?:[-*+]|\d+[.)])\s+)(.*)$")
# A word that would begin a list, a heading, a quotation, a table or a fence, were it the first of a
# line.
MARK = re.compile(r"^([-*+]|\d+[.)]|#+|>.*|\|.*|```.*|~~~.*|=+|-+)$")


def is_fixed(text):
    """Whether a line is no prose: a table, a heading, a definition of a link, HTML, code by its
    indent."""
    return (text.startswith(("|", "#", "<", "    ", "\t")) or re.match(r"^\s*\[[^\]]+\]: ", text) is not None
            or text.startswith("# "))


def filled(words, first, rest, width):
    """Words as lines; the first line begins with `first`, the others with `rest`."""
    lines, line = [], first
    is_empty = True
    for place, word in enumerate(words):
        # (A mark stays behind its word.)
        glued = MARK.match(word) is not None
        if is_empty:
            line += word
        elif len(line) + 1 + len(word) <= width or glued:
            line += " " + word
        else:
            lines.append(line)
            line = rest + word
        is_empty = False
    return lines + [line]


def paragraphs(texts):
    """Runs of lines that are filled together: (first, last + 1, indent of the first, indent of the
    others), else None as indents."""
    found, start, fence = [], 0, None
    while start < len(texts):
        text = texts[start]
        mark = re.match(r"^\s*(```+|~~~+)", text)
        if fence or mark:
            if mark and not fence:
                fence = mark[1][:3]
            elif mark and text.strip().startswith(fence):
                fence = None
            found.append((start, start + 1, None, None))
            start += 1
            continue
        if not text.strip() or is_fixed(text):
            found.append((start, start + 1, None, None))
            start += 1
            continue
        item = ITEM.match(text)
        first = item[1] + item[2] if item else re.match(r"^\s*", text)[0]
        rest = " " * len(first)
        end = start + 1
        while (end < len(texts) and texts[end].strip() and not ITEM.match(texts[end])
               and not re.match(r"^\s*(```|~~~)", texts[end]) and not is_fixed(texts[end].removeprefix(rest))):
            end += 1
        found.append((start, end, first, rest))
        start = end
    return found


def wrapped(texts, room):
    """The lines of a block with its long paragraphs filled anew."""
    out = []
    for start, end, first, rest in paragraphs(texts):
        lines = texts[start:end]
        breaks = any(line.endswith(("  ", "\\")) for line in lines)
        if first is None or breaks or all(len(line) <= room for line in lines):
            out += lines
            continue
        words = " ".join(lines)[len(first):].split()
        out += filled(words, first, rest, room)
    return out


def rust(lines):
    """A source's lines with its comments wrapped. (Comments beside code are left alone.)"""
    out, at = [], 0
    while at < len(lines):
        comment = COMMENT.match(lines[at])
        if not comment:
            out.append(lines[at])
            at += 1
            continue
        prefix, texts = comment[1], []
        while at < len(lines) and (part := COMMENT.match(lines[at])) and part[1] == prefix:
            texts.append(part[2][1:])
            at += 1
        out += [f"{prefix} {text}".rstrip() if text else prefix for text in wrapped(texts, WIDTH - len(prefix) - 1)]
    return out


def blocks(texts):
    """Lines of a docstring in runs of one indent; those of examples and empty ones stand alone."""
    run, indent, is_example = [], None, False
    for text in texts:
        is_example = bool(text.strip()) and (is_example or text.lstrip().startswith(">>>"))
        own = None if is_example or not text.strip() else len(text) - len(text.lstrip())
        if run and (own is None or own != indent):
            yield indent, run
            run = []
        run, indent = run + [text], own
        if own is None:
            yield None, run
            run = []
    if run:
        yield indent, run


def docstring(lines):
    """A docstring's lines, from its opening quotes to its closing ones, with long paragraphs filled
    anew."""
    if all(len(line) <= WIDTH for line in lines):
        return lines
    margin = re.match(r"^ *", lines[0])[0]
    opening = re.match(r'^ *"""', lines[0])[0]
    inner = [margin + lines[0][len(opening):], *lines[1:]]
    is_closed_in_text = inner[-1].strip() != '"""'
    if is_closed_in_text:
        inner[-1] = inner[-1].rstrip().removesuffix('"""')
    else:
        inner.pop()
    out = []
    for indent, texts in blocks(inner):
        if indent is None:
            out += texts
            continue
        # (The opening quotes, and those that may close the text, take room.)
        taken = 3 * (not out) + 3 * is_closed_in_text
        out += [" " * indent + text for text in wrapped([text[indent:] for text in texts], WIDTH - indent - taken)]
    out[0] = opening + out[0][len(margin):]
    if is_closed_in_text:
        out[-1] += '"""'
    else:
        out.append(margin + '"""')
    return out


PYTHON_COMMENT = re.compile(r"^( *#)( .*|)$")


def python(lines):
    """A program's lines with its docstrings, and comments that stand alone, wrapped."""
    out, at = [], 0
    while at < len(lines):
        line = lines[at]
        if re.match(r'^ *"""', line):
            end = at + 1 if line.count('"""') > 1 else next(i for i in range(at + 1, len(lines)) if '"""' in lines[i]) + 1
            is_prose = lines[end - 1].rstrip().endswith('"""')
            out += docstring(lines[at:end]) if is_prose else lines[at:end]
            at = end
        elif (comment := PYTHON_COMMENT.match(line)) and not comment[2].startswith((" --", "!")):
            prefix, texts = comment[1], []
            while at < len(lines) and (part := PYTHON_COMMENT.match(lines[at])) and part[1] == prefix:
                texts.append(part[2][1:])
                at += 1
            out += [f"{prefix} {text}".rstrip() if text else prefix for text in wrapped(texts, WIDTH - len(prefix) - 1)]
        else:
            out.append(line)
            at += 1
    return out


def files(paths):
    for path in paths:
        if path.is_file():
            yield path
            continue
        for found in sorted(path.rglob("*")):
            if found.suffix in (".rs", ".md", ".py") and not LEFT_OUT.intersection(found.relative_to(path).parts):
                yield found


def too_long(path, lines):
    if path.suffix == ".rs":
        return [at for at, line in enumerate(lines, 1) if len(line) > WIDTH and re.match(r"^\s*//", line)]
    if path.suffix == ".py":
        return [at for at, line in enumerate(lines, 1) if len(line) > WIDTH and re.match(r'^ *(#|""")', line)]
    return [at for at, line in enumerate(lines, 1) if len(line) > WIDTH and not line.lstrip().startswith("|")]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--check", action="store_true")
    arguments.add_argument("paths", nargs="*", type=pathlib.Path)
    given = arguments.parse_args()
    n_long = 0
    for path in files(given.paths or [ROOT]):
        text = path.read_text()
        lines = text.split("\n")
        new = {".rs": rust, ".py": python}.get(path.suffix, lambda lines: wrapped(lines, WIDTH))(lines)
        if not given.check and new != lines:
            path.write_text("\n".join(new))
        for at in too_long(path, lines if given.check else new):
            n_long += 1
            print(f"{path}:{at}: beyond column {WIDTH}")
    return 1 if n_long else 0


if __name__ == "__main__":
    sys.exit(main())
